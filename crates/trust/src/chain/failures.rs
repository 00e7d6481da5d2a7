//! What failed a moment ago, so that it is not asked for again with each packet.

use super::refusal::Refusal;
use super::waiting::Want;
use std::collections::BTreeMap;

/// Most failures that are remembered; the next is not.
const FAILURES_MAX: usize = 4096;

/// Failures to get or verify a certificate.
#[derive(Debug, Clone)]
pub(super) struct Failures {
    by_want: BTreeMap<Want, (u64, Refusal)>,
    keep_ms: u64,
}

impl Failures {
    pub(super) const fn new(keep_ms: u64) -> Self {
        Self { by_want: BTreeMap::new(), keep_ms }
    }

    pub(super) const fn keep_for(&mut self, keep_ms: u64) {
        self.keep_ms = keep_ms;
    }

    pub(super) fn clear(&mut self) {
        self.by_want.clear();
    }

    /// The clock may have been put right meanwhile: what was remembered at a moment far from now,
    /// before or after it, says nothing.
    fn is_recent(&self, at_ms: u64, now_ms: u64) -> bool {
        now_ms.abs_diff(at_ms) < self.keep_ms
    }

    pub(super) fn of(&self, want: &Want, now_ms: u64) -> Option<&Refusal> {
        let (at_ms, refusal) = self.by_want.get(want)?;
        self.is_recent(*at_ms, now_ms).then_some(refusal)
    }

    pub(super) fn forget_old(&mut self, now_ms: u64) {
        let keep_ms = self.keep_ms;
        self.by_want.retain(|_, (at_ms, _)| now_ms.abs_diff(*at_ms) < keep_ms);
    }

    pub(super) fn remember(&mut self, want: &Want, refusal: &Refusal, now_ms: u64) {
        // A bound says nothing about the certificate.
        if matches!(refusal, Refusal::Busy(_)) {
            return;
        }
        if self.by_want.len() >= FAILURES_MAX {
            self.forget_old(now_ms);
        }
        if self.by_want.len() < FAILURES_MAX {
            self.by_want.insert(want.clone(), (now_ms, refusal.clone()));
        }
    }
}
