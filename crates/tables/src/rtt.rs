//! Round-trip time as RFC 6298 estimates it; used by link reliability and by strategies.

use std::time::Duration;

/// Retransmission timeout before the first sample.
const RTO_INITIAL: Duration = Duration::from_secs(1);
/// Least retransmission timeout.
const RTO_MIN: Duration = Duration::from_millis(200);
/// Greatest retransmission timeout.
const RTO_MAX: Duration = Duration::from_secs(60);

/// Smoothed round-trip time and retransmission timeout (alpha 1/8, beta 1/4, K 4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RttEstimator {
    smoothed: Option<Duration>,
    variation: Duration,
    rto: Duration,
}

impl Default for RttEstimator {
    fn default() -> Self {
        Self { smoothed: None, variation: Duration::ZERO, rto: RTO_INITIAL }
    }
}

impl RttEstimator {
    /// Takes one measured round-trip time into account; ends any backoff.
    pub fn sample(&mut self, rtt: Duration) {
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                self.variation = (self.variation * 3 + smoothed.abs_diff(rtt)) / 4;
                self.smoothed = Some((smoothed * 7 + rtt) / 8);
            }
        }
        let smoothed = self.smoothed.unwrap_or(rtt);
        self.rto = smoothed.saturating_add(self.variation * 4).clamp(RTO_MIN, RTO_MAX);
    }

    /// Doubles the timeout, because it has run out.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * 2).min(RTO_MAX);
    }

    /// The smoothed round-trip time, once there was a sample.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// The retransmission timeout: 1 s before the first sample, then 200 ms to 60 s.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.rto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_follows_rfc_6298_and_stays_within_its_bounds() {
        let mut rtt = RttEstimator::default();
        assert_eq!(rtt.rto(), Duration::from_secs(1));
        rtt.sample(Duration::from_millis(400));
        assert_eq!(rtt.rto(), Duration::from_millis(400 + 4 * 200));
        rtt.sample(Duration::from_millis(400));
        assert_eq!(rtt.rto(), Duration::from_millis(400 + 4 * 150));
        for _ in 0..100 {
            rtt.sample(Duration::from_micros(10));
        }
        assert_eq!(rtt.rto(), RTO_MIN);
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), RTO_MAX);
        rtt.sample(Duration::from_micros(10));
        assert_eq!(rtt.rto(), RTO_MIN, "a sample ends the backoff");
    }
}
