//! Losses seen by order: a segment that later ones overtook.

use super::{Pipeline, Slot, State};
use onym_tables::id::Tick;
use std::time::Duration;

/// So many later segments must have come before a segment counts as overtaken.
const OVERTAKEN_BY: u64 = 3;
/// Least time before an overtaken segment is asked for again: a node on the way suppresses what is
/// repeated sooner (10 ms).
const OVERTAKEN_MIN: Duration = Duration::from_millis(15);

impl<P> Pipeline<P> {
    /// Looks sooner at the timeouts when the next segment in order was overtaken.
    pub(super) fn watch_order(&mut self, segment: u64) {
        self.reached = self.reached.max(segment + 1);
        if let Some(slot) = self.slots.front()
            && self.base + OVERTAKEN_BY < self.reached
        {
            self.check_at = self.check_at.min(self.due(self.base, slot));
        }
    }

    /// When a segment in flight counts as lost: at its deadline, or, once later ones have come, as
    /// soon as an answer is overdue by what was seen so far.
    pub(super) fn due(&self, segment: u64, slot: &Slot<P>) -> Tick {
        let overtaken = slot.tries == 1
            && segment + OVERTAKEN_BY < self.reached
            && matches!(slot.state, State::InFlight)
            && !self.window.is_fixed();
        if !overtaken {
            return slot.deadline;
        }
        slot.deadline.min(slot.sent + self.rtt.expected().max(OVERTAKEN_MIN))
    }
}
