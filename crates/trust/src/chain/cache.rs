//! Certificates whose chain was verified.

use super::claim::is_full;
use super::refusal::Refusal;
use super::window::Window;
use onym_crypto::Certificate;
use onym_wire::{Name, NameRef};
use std::collections::{BTreeMap, VecDeque};

/// A certificate with a chain to an anchor.
#[derive(Debug, Clone)]
pub(super) struct Verified {
    pub(super) certificate: Certificate,
    /// When it and all above it are valid.
    pub(super) window: Window,
    /// Certificates between it and its anchor, itself counted.
    pub(super) depth: usize,
    pub(super) anchor: Name,
    /// When its records were asked for, and how long their answers count; `None` when nobody asks.
    pub(super) recorded: Option<(u64, u64)>,
}

impl Verified {
    /// Whether what was learned about its revocation counts still.
    fn is_settled(&self, now_ms: u64) -> bool {
        self.recorded.is_none_or(|(at_ms, keep_ms)| now_ms.abs_diff(at_ms) <= keep_ms)
    }
}

/// Verified certificates by name; the one that was added first goes when it is full.
#[derive(Debug, Clone)]
pub(super) struct Cache {
    by_name: BTreeMap<Name, Verified>,
    order: VecDeque<Name>,
    max: usize,
}

impl Cache {
    pub(super) const fn new(max: usize) -> Self {
        Self { by_name: BTreeMap::new(), order: VecDeque::new(), max }
    }

    pub(super) fn len(&self) -> usize {
        self.by_name.len()
    }

    pub(super) fn clear(&mut self) {
        self.by_name.clear();
        self.order.clear();
    }

    /// Forgets all chains that are over: each is verified again when it is asked for, and what was
    /// renewed above it is found.
    pub(super) fn forget_expired(&mut self, now_ms: u64) {
        let is_over = |known: &mut Verified| {
            matches!(known.window.check(now_ms), Err(Refusal::Expired { .. }))
        };
        self.by_name.retain(|_, known| !is_over(known));
        let by_name = &self.by_name;
        self.order.retain(|name| by_name.contains_key(name));
    }

    pub(super) fn insert(&mut self, verified: Verified) {
        let name = verified.certificate.name().to_name();
        if self.by_name.insert(name.clone(), verified).is_none() {
            self.order.push_back(name);
        }
        while self.by_name.len() > self.max {
            let Some(oldest) = self.order.pop_front() else { break };
            self.by_name.remove(&oldest);
        }
    }

    /// The certificate of this name, unless its records must be asked for again.
    pub(super) fn get(&self, name: NameRef<'_>, now_ms: u64) -> Option<&Verified> {
        self.by_name.get(name.value()).filter(|known| known.is_settled(now_ms))
    }

    /// The certificate that a locator means: of several, the newest that is valid then.
    pub(super) fn find(&self, locator: NameRef<'_>, moment_ms: u64) -> Option<&Verified> {
        if is_full(locator) {
            return self.get(locator, moment_ms);
        }
        let from = locator.to_name();
        let behind = self.by_name.range(from..);
        let ours = behind.take_while(|(name, _)| locator.is_prefix_of(name.as_ref()));
        let mut newest = None;
        for (_, verified) in ours {
            if verified.window.check(moment_ms).is_ok() && verified.is_settled(moment_ms) {
                newest = Some(verified);
            }
        }
        newest
    }

    /// The last certificate, in canonical order, that a locator means, valid or not.
    pub(super) fn newest(&self, locator: NameRef<'_>) -> Option<&Verified> {
        let behind = self.by_name.range(locator.to_name()..);
        let ours = behind.take_while(|(name, _)| locator.is_prefix_of(name.as_ref()));
        ours.last().map(|(_, verified)| verified)
    }
}
