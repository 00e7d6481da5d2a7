//! When a domain sends to other domains (P-66).

use super::super::SETTLE;
use onym_tables::Tick;
use std::time::Duration;

/// How often everything is said.
const REFRESH: Duration = Duration::from_secs(4);
/// Least time from one round of messages to the next.
const INTERVAL: Duration = Duration::from_millis(100);
/// Least time from a round that says everything to one that does so before its time.
const APART: Duration = Duration::from_secs(1);

/// When the next round of messages begins, and what it says.
#[derive(Debug, Default)]
pub(super) struct Pace {
    /// When the last round was.
    round: Tick,
    /// When everything was said.
    said: Tick,
    /// When what changed is said.
    change: Option<Tick>,
    /// When everything is said.
    full: Tick,
}

impl Pace {
    /// Something changed: it is told with what else changes soon.
    pub(super) fn changed(&mut self, now: Tick) {
        self.change.get_or_insert(now + SETTLE);
    }

    /// Somebody is reached who knows nothing yet.
    pub(super) fn reached(&mut self, now: Tick) {
        self.full = self.full.min((now + SETTLE).max(self.said + APART));
    }

    /// When the next round is.
    pub(super) fn due(&self) -> Tick {
        self.change.map_or(self.full, |at| at.min(self.full)).max(self.round + INTERVAL)
    }

    /// Begins a round that is due; whether it says everything.
    pub(super) fn begin(&mut self, now: Tick) -> bool {
        let is_full = self.full <= now;
        (self.round, self.change) = (now, None);
        if is_full {
            (self.said, self.full) = (now, now + REFRESH);
        }
        is_full
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rounds of 10 s in which `step` is called every millisecond: all, and those that say
    /// everything.
    fn rounds(step: impl Fn(&mut Pace, Tick)) -> (usize, usize) {
        let (mut pace, mut all, mut full) = (Pace::default(), 0, 0);
        for ms in 0..10_000 {
            let now = Tick::from_ms(ms);
            step(&mut pace, now);
            if pace.due() <= now {
                all += 1;
                full += usize::from(pace.begin(now));
            }
        }
        (all, full)
    }

    #[test]
    fn what_flaps_costs_a_round_in_a_tenth_of_a_second_and_everything_once_a_second() {
        assert_eq!(rounds(|_, _| ()), (3, 3));
        assert_eq!(rounds(Pace::changed), (99, 3));
        assert_eq!(rounds(Pace::reached), (10, 10));
        let both = |pace: &mut Pace, now| {
            pace.changed(now);
            pace.reached(now);
        };
        assert_eq!(rounds(both), (99, 10));
    }

    #[test]
    fn a_change_after_silence_is_told_within_the_time_that_changes_take_to_settle() {
        let mut pace = Pace::default();
        assert!(pace.begin(Tick::from_ms(1000)));
        pace.changed(Tick::from_ms(3000));
        pace.changed(Tick::from_ms(3040));
        assert_eq!(pace.due(), Tick::from_ms(3000) + SETTLE);
        assert!(!pace.begin(pace.due()));
        assert_eq!(pace.due(), Tick::from_ms(5000));
    }
}
