//! How fast fragments leave: so many octets in a tick, fewer after receivers missed some, more while
//! they miss none (P-33).

use onym_tables::Tick;
use std::time::Duration;

/// Time between two portions.
pub(super) const TICK: Duration = Duration::from_millis(1);
/// Octets of a tick at the start, at least, and at most. One fragment leaves whatever it is.
const START: u32 = 90_000;
const LEAST: u32 = 5600;
const MOST: u32 = 1_400_000;
/// A rate is cut once in this time: what was sent before the cut may still be missed.
const CUT_AGAIN: Duration = Duration::from_millis(50);
/// Ticks without a miss after which a tick has so much more of what it had.
const RAISE: u32 = 8;
const SHARE: u32 = 64;

/// The rate of one node, over all of its long publications.
#[derive(Debug)]
pub(super) struct Pace {
    rate: u32,
    /// Start of the present tick, and what of it was used.
    tick: Tick,
    used: u32,
    good: u32,
    cut: Option<Tick>,
}

impl Default for Pace {
    fn default() -> Self {
        Self { rate: START, tick: Tick(0), used: 0, good: 0, cut: None }
    }
}

impl Pace {
    /// How many octets may leave now.
    pub(super) fn room(&mut self, now: Tick) -> u32 {
        if now.since(self.tick) >= TICK {
            // A tick that was used up and harmed nobody.
            if self.used >= self.rate {
                self.good += 1;
                if self.good >= RAISE {
                    self.good = 0;
                    self.rate = (self.rate + self.rate.div_ceil(SHARE)).min(MOST);
                }
            }
            (self.tick, self.used) = (now, 0);
        }
        self.rate.saturating_sub(self.used)
    }

    /// So many octets left.
    pub(super) fn take(&mut self, octets: usize) {
        self.used = self.used.saturating_add(u32::try_from(octets).unwrap_or(u32::MAX));
    }

    /// When more may leave.
    pub(super) fn next(&self) -> Tick {
        self.tick + TICK
    }

    /// Receivers missed fragments.
    pub(super) fn missed(&mut self, now: Tick) {
        if self.cut.is_none_or(|cut| now.since(cut) >= CUT_AGAIN) {
            (self.cut, self.good) = (Some(now), 0);
            self.rate = (self.rate / 2).max(LEAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Octets that leave in so many ticks from `start` on.
    fn sent(pace: &mut Pace, start: u64, ticks: u64) -> u64 {
        let one = |ms| {
            let room = pace.room(Tick(0).plus_ms(ms));
            pace.take(room as usize);
            u64::from(room)
        };
        (start..start + ticks).map(one).sum()
    }

    #[test]
    fn the_rate_grows_while_nothing_is_missed_and_halves_once_when_something_is() {
        let mut pace = Pace::default();
        let first = sent(&mut pace, 1, 100);
        assert!(first > 100 * u64::from(START), "{first}");
        let before = sent(&mut pace, 101, 1);
        let now = Tick(0).plus_ms(102);
        (0..10).for_each(|_| pace.missed(now));
        assert_eq!(sent(&mut pace, 102, 1), before / 2);
        assert!(sent(&mut pace, 103, 100_000) / 100_000 <= MOST.into());
        for ms in (200_000..300_000).step_by(100) {
            pace.missed(Tick(0).plus_ms(ms));
        }
        assert_eq!(sent(&mut pace, 300_000, 1), LEAST.into());
    }

    #[test]
    fn a_tick_that_is_used_up_has_no_room() {
        let mut pace = Pace::default();
        let now = Tick(0).plus_ms(5);
        let room = pace.room(now);
        pace.take(room as usize);
        assert_eq!((pace.room(now), pace.next()), (0, now + TICK));
    }
}
