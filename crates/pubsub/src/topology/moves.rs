//! How often the trees of an item were moved because of loads, and how long they stay therefore (P-90).

use onym_tables::Tick;
use std::time::Duration;

/// Time that a tree stays where it was moved to, which doubles with each move so many times.
const REST: Duration = Duration::from_secs(20);
const DOUBLINGS_MAX: u32 = 5;
/// Time after its rest when earlier moves of a tree do not count any more.
const FORGIVEN: Duration = Duration::from_secs(600);

/// Moves of an item's trees away from loads.
#[derive(Debug, Default)]
pub(super) struct Moves {
    /// Until when they stay.
    rest: Tick,
    count: u32,
}

impl Moves {
    pub(super) const fn rest(&self) -> Tick {
        self.rest
    }

    pub(super) fn note(&mut self, now: Tick) {
        if now.since(self.rest) > FORGIVEN {
            self.count = 0;
        }
        self.rest = now + REST * (1 << self.count.min(DOUBLINGS_MAX));
        self.count += 1;
    }
}
