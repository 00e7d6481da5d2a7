//! What is known of one face.

use onym_tables::Tick;
use onym_tables::rtt::RttEstimator;
use std::time::Duration;

/// What is known of one face.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct State {
    pub(super) interests: u64,
    pub(super) data: u64,
    pub(super) outstanding: u32,
    rtt: RttEstimator,
    /// Unanswered since it answered last.
    silent: u32,
    /// Until when it is left alone; it is dead until it answers.
    dead_until: Option<Tick>,
    pub(super) probed: Tick,
    /// Current weight of smooth weighted round robin.
    pub(super) current: i64,
}

impl State {
    /// Whether it is believed dead.
    pub(super) fn is_dead(&self) -> bool {
        self.dead_until.is_some()
    }

    /// Its smoothed round-trip time.
    pub(super) fn smoothed_rtt(&self) -> Option<Duration> {
        self.rtt.smoothed()
    }

    /// Whether it is dead and may be tried again.
    pub(super) fn may_probe(&self, now: Tick, every_ms: u64) -> bool {
        self.dead_until.is_some_and(|until| until <= now) && self.probed.plus_ms(every_ms) <= now
    }

    /// It answered after `rtt`.
    pub(super) fn answered(&mut self, rtt: Duration) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.silent = 0;
        self.dead_until = None;
        self.data += 1;
        self.rtt.sample(rtt);
    }

    /// It refused, or did not answer in time.
    pub(super) fn failed(&mut self, now: Tick, fail_after: u32, hold_down_ms: u64) {
        self.outstanding = self.outstanding.saturating_sub(1);
        self.silent += 1;
        if self.silent >= fail_after.max(1) {
            self.dead_until = Some(now.plus_ms(hold_down_ms));
        }
    }
}
