//! When slow start ends before anything is lost.

use std::time::Duration;

/// HyStart's view of rounds: the least round trip of each round of segments (RFC 9406).
#[derive(Debug, Default)]
pub(super) struct Round {
    ends_at: u64,
    samples: u32,
    least: Option<Duration>,
    least_before: Option<Duration>,
}

impl Round {
    /// Samples of a round before its minimum is believed.
    const SAMPLES_MIN: u32 = 8;
    /// Growth of the minimum that shows a queue: an eighth of the round trip, within these.
    const GROWTH_MIN: Duration = Duration::from_millis(1);
    const GROWTH_MAX: Duration = Duration::from_millis(16);

    /// Takes a sample of `segment`; true when this round's minimum shows a growing queue.
    pub(super) fn grew(&mut self, segment: u64, next: u64, rtt: Duration) -> bool {
        if segment >= self.ends_at {
            self.ends_at = next;
            self.least_before = self.least.take();
            self.samples = 0;
        }
        self.samples += 1;
        let least = self.least.map_or(rtt, |l| l.min(rtt));
        self.least = Some(least);
        let Some(before) = self.least_before else { return false };
        let growth = (before / 8).clamp(Self::GROWTH_MIN, Self::GROWTH_MAX);
        self.samples >= Self::SAMPLES_MIN && least >= before + growth
    }
}
