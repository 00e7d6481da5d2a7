//! The order in which pending Interests were asked for, without touching what lies between: a
//! queue in which an entry that was asked for again stands twice, and counts where it stands last.

use std::collections::VecDeque;

/// Slots with the stamp of each use, oldest first.
#[derive(Debug, Default)]
pub(super) struct Recency {
    queue: VecDeque<(u32, u64)>,
    next: u64,
}

impl Recency {
    /// Notes a use: its stamp, to be kept with the entry.
    pub(super) fn push(&mut self, slot: u32) -> u64 {
        self.next += 1;
        self.queue.push_back((slot, self.next));
        self.next
    }

    /// Takes the entry used longest ago, of those for which `counts` says that the stamp is its
    /// latest.
    pub(super) fn pop(&mut self, counts: impl Fn(u32, u64) -> bool) -> Option<u32> {
        while let Some((slot, stamp)) = self.queue.pop_front() {
            if counts(slot, stamp) {
                return Some(slot);
            }
        }
        None
    }

    /// Keeps the queue within four times the entries: amortised, each use is looked at once more.
    pub(super) fn tidy(&mut self, entries: usize, counts: impl Fn(u32, u64) -> bool) {
        while self.queue.front().is_some_and(|(slot, stamp)| !counts(*slot, *stamp)) {
            self.queue.pop_front();
        }
        if self.queue.len() > 4 * entries.max(256) {
            self.queue.retain(|(slot, stamp)| counts(*slot, *stamp));
        }
    }

    /// Slots by their latest use, newest first.
    pub(super) fn newest_first(&self, counts: impl Fn(u32, u64) -> bool) -> Vec<u32> {
        let kept = self.queue.iter().rev().filter(|(slot, stamp)| counts(*slot, *stamp));
        kept.map(|(slot, _)| *slot).collect()
    }
}
