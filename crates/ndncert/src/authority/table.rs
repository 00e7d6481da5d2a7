//! Bounded tables of requests and replies.

use super::challenge::Running;
use crate::{Now, Session};
use onym_crypto::Certificate;
use onym_wire::{Name, NameRef};
use std::collections::{BTreeMap, VecDeque};

/// How long a request may go without a challenge, in milliseconds.
const IDLE_MS: u64 = 300_000;

/// A request that is open.
#[derive(Debug)]
pub(super) struct Request {
    /// What was asked for; its key signs all that follows.
    pub(super) certificate: Certificate,
    pub(super) session: Session,
    /// When it began, by the clock that never jumps.
    pub(super) began_ms: u64,
    pub(super) running: Option<Running>,
    /// The Interest that is answered when records were looked up.
    pub(super) waiting: Option<Name>,
}

impl Request {
    pub(super) fn waits_for(&self, name: NameRef<'_>) -> bool {
        self.waiting.as_ref().is_some_and(|waiting| *waiting == name)
    }

    /// When it ends.
    pub(super) fn until_ms(&self) -> u64 {
        self.running.as_ref().map_or(self.began_ms + IDLE_MS, Running::until_ms)
    }
}

/// Replies by the name of their Interest, the oldest first.
#[derive(Debug)]
pub(super) struct Replies {
    max: usize,
    keep_ms: u64,
    by_name: BTreeMap<Name, Vec<u8>>,
    order: VecDeque<(u64, Name)>,
}

impl Replies {
    pub(super) fn new(max: usize, keep_ms: u64) -> Self {
        Self { max, keep_ms, by_name: BTreeMap::new(), order: VecDeque::new() }
    }

    pub(super) fn find(&mut self, now: Now, name: NameRef<'_>) -> Option<Vec<u8>> {
        while let Some((at, oldest)) = self.order.front()
            && (now.tick_ms.saturating_sub(*at) > self.keep_ms || self.order.len() > self.max)
        {
            self.by_name.remove(oldest);
            self.order.pop_front();
        }
        self.by_name.get(name.value()).cloned()
    }

    pub(super) fn keep(&mut self, now: Now, name: NameRef<'_>, wire: &[u8]) {
        if self.by_name.insert(name.to_name(), wire.to_vec()).is_none() {
            self.order.push_back((now.tick_ms, name.to_name()));
        }
        // Room for the next one.
        if self.order.len() > self.max
            && let Some((_, oldest)) = self.order.pop_front()
        {
            self.by_name.remove(&oldest);
        }
    }
}

/// So many in a period, and no more.
#[derive(Debug)]
pub(super) struct Throttle {
    max: u32,
    period_ms: u64,
    began_ms: u64,
    count: u32,
}

impl Throttle {
    pub(super) fn new(max: u32, period_ms: u64) -> Self {
        Self { max, period_ms, began_ms: 0, count: 0 }
    }

    fn roll(&mut self, now: Now) {
        if now.tick_ms.saturating_sub(self.began_ms) >= self.period_ms {
            (self.began_ms, self.count) = (now.tick_ms, 0);
        }
    }

    /// Whether there is one more in this period; counts it.
    pub(super) fn take(&mut self, now: Now) -> bool {
        let is_open = self.is_open(now);
        self.count = self.count.saturating_add(1);
        is_open
    }

    /// Whether there would be one more.
    pub(super) fn is_open(&mut self, now: Now) -> bool {
        self.roll(now);
        self.count < self.max
    }
}
