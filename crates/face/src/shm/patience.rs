//! How long an empty ring is watched before its reader sleeps.
//!
//! To wake a sleeper costs both sides a system call and the sleeper some ten microseconds. Where
//! the other side answers sooner than that, watching is cheaper. Where it cannot run while we watch,
//! or has nothing to say, watching is waste, so it is tried more and more rarely.

use std::time::{Duration, Instant};

/// Longest watch.
pub(super) const WATCH: Duration = Duration::from_micros(50);
/// Sleeps without a watch after one that was in vain; doubles up to the second.
const PAUSE_MIN: u32 = 2;
const PAUSE_MAX: u32 = 256;

#[derive(Debug)]
pub(super) struct Patience {
    /// When the ring was found empty, while it is.
    since: Option<Instant>,
    /// Whether the present emptiness, or the next one, is watched.
    watches: bool,
    /// Sleeps until the next watch may be tried.
    pause: u32,
    /// How many there will be after the next watch in vain.
    next_pause: u32,
}

impl Patience {
    pub(super) fn new() -> Self {
        Self { since: None, watches: false, pause: 0, next_pause: PAUSE_MIN }
    }

    /// Something was in the ring at `now`.
    pub(super) fn found(&mut self, now: impl FnOnce() -> Instant) {
        let Some(since) = self.since.take() else { return };
        if self.watches {
            self.next_pause = PAUSE_MIN;
        } else if self.pause > 0 {
            self.pause -= 1;
        } else {
            // Slept through what a watch would have seen?
            self.watches = now().duration_since(since) < WATCH;
        }
    }

    /// The ring is empty at `now`; whether to look again soon instead of sleeping.
    pub(super) fn looks_again(&mut self, now: impl FnOnce() -> Instant) -> bool {
        let now = now();
        let since = *self.since.get_or_insert(now);
        if !self.watches {
            return false;
        }
        if now.duration_since(since) < WATCH {
            return true;
        }
        self.watches = false;
        self.pause = self.next_pause;
        self.next_pause = (self.next_pause * 2).min(PAUSE_MAX);
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The ring is empty from `at` on and something comes after `gap`; how long it was watched.
    fn emptiness(patience: &mut Patience, at: Instant, gap: Duration) -> Duration {
        let mut watched = Duration::ZERO;
        while watched < gap && patience.looks_again(|| at + watched) {
            watched += Duration::from_micros(1);
        }
        patience.found(|| at + gap);
        watched
    }

    #[test]
    fn a_peer_that_answers_soon_is_watched_for_from_the_second_time_on() {
        let (mut patience, start) = (Patience::new(), Instant::now());
        let soon = Duration::from_micros(20);
        assert_eq!(emptiness(&mut patience, start, soon), Duration::ZERO);
        for _ in 0..10 {
            assert_eq!(emptiness(&mut patience, start, soon), soon);
        }
    }

    #[test]
    fn an_idle_ring_is_not_watched_and_one_watched_in_vain_ever_more_rarely() {
        let (mut patience, start) = (Patience::new(), Instant::now());
        let late = Duration::from_millis(1);
        for _ in 0..100 {
            assert_eq!(emptiness(&mut patience, start, late), Duration::ZERO);
        }
        // The other side runs only while we sleep: it seems to answer soon, and never does in time.
        let mut watched = 0;
        for _ in 0..10_000 {
            let since = start;
            if patience.looks_again(|| since) {
                watched += 1;
                assert!(!patience.looks_again(|| since + WATCH));
            }
            patience.found(|| since + Duration::from_micros(20));
        }
        assert!((5..60).contains(&watched), "{watched} of 10000");
    }
}
