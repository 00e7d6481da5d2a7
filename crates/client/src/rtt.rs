//! The round-trip estimator that the field's fetchers share (RFC 6298 with the smoothing spread
//! over the samples of one round trip).

use std::time::Duration;

/// Constants of the estimator; the defaults are those of ndncatchunks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RttOptions {
    /// Weight of a sample in the smoothed round trip.
    pub alpha: f64,
    /// Weight of a sample in the variation.
    pub beta: f64,
    /// Variations added to the round trip to make the timeout.
    pub k: f64,
    /// Timeout before the first sample.
    pub rto_initial: Duration,
    /// Least timeout.
    pub rto_min: Duration,
    /// Greatest timeout.
    pub rto_max: Duration,
    /// What a backoff multiplies the timeout with.
    pub backoff: u32,
}

impl Default for RttOptions {
    fn default() -> Self {
        Self {
            alpha: 0.125,
            beta: 0.25,
            k: 8.0,
            rto_initial: Duration::from_secs(1),
            rto_min: Duration::from_millis(200),
            rto_max: Duration::from_secs(60),
            backoff: 2,
        }
    }
}

/// Estimates the retransmission timeout from round-trip samples.
#[derive(Debug, Clone)]
pub struct RttEstimator {
    options: RttOptions,
    smoothed: Option<Duration>,
    variation: Duration,
    rto: Duration,
    least: Duration,
    greatest: Duration,
    samples: u64,
    total: Duration,
}

impl RttEstimator {
    /// An estimator without samples.
    #[must_use]
    pub fn new(options: RttOptions) -> Self {
        Self {
            rto: options.rto_initial,
            options,
            smoothed: None,
            variation: Duration::ZERO,
            least: Duration::MAX,
            greatest: Duration::ZERO,
            samples: 0,
            total: Duration::ZERO,
        }
    }

    /// Takes one sample. `expected` is how many samples one round trip brings, at least 1.
    ///
    /// Only for exchanges that were not retransmitted: the answer of others is ambiguous (Karn).
    pub fn sample(&mut self, rtt: Duration, expected: usize) {
        self.samples += 1;
        self.total += rtt;
        self.least = self.least.min(rtt);
        self.greatest = self.greatest.max(rtt);
        // Precision: a window is far below 2^52 segments.
        #[allow(clippy::cast_precision_loss)]
        let n = expected.max(1) as f64;
        match self.smoothed {
            None => {
                self.smoothed = Some(rtt);
                self.variation = rtt / 2;
            }
            Some(smoothed) => {
                let (alpha, beta) = (self.options.alpha / n, self.options.beta / n);
                let error = smoothed.abs_diff(rtt);
                self.variation = self.variation.mul_f64(1.0 - beta) + error.mul_f64(beta);
                self.smoothed = Some(smoothed.mul_f64(1.0 - alpha) + rtt.mul_f64(alpha));
            }
        }
        let smoothed = self.smoothed.unwrap_or(rtt);
        let rto = smoothed + self.variation.mul_f64(self.options.k);
        self.rto = rto.clamp(self.options.rto_min, self.options.rto_max);
    }

    /// Lengthens the timeout after a loss; the next sample sets it anew.
    pub fn back_off(&mut self) {
        self.rto = (self.rto * self.options.backoff).min(self.options.rto_max);
    }

    /// The same statistics with an estimate that starts anew, for a path that may be another.
    #[must_use]
    pub fn restarted(&self) -> Self {
        Self {
            smoothed: None,
            variation: Duration::ZERO,
            rto: self.options.rto_initial,
            ..self.clone()
        }
    }

    /// The retransmission timeout.
    #[must_use]
    pub fn rto(&self) -> Duration {
        self.rto
    }

    /// How long an answer takes at most by what was seen: the timeout without its lower limit.
    #[must_use]
    pub fn expected(&self) -> Duration {
        self.smoothed.map_or(self.rto, |rtt| rtt + self.variation.mul_f64(self.options.k))
    }

    /// Longest timeout that the options allow.
    #[must_use]
    pub fn rto_max(&self) -> Duration {
        self.options.rto_max
    }

    /// The smoothed round trip, once there is a sample.
    #[must_use]
    pub fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    /// Least, mean and greatest sample, once there is one.
    #[must_use]
    pub fn summary(&self) -> Option<(Duration, Duration, Duration)> {
        let count = u32::try_from(self.samples).unwrap_or(u32::MAX);
        (count > 0).then(|| (self.least, self.total / count, self.greatest))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_first_sample_sets_the_estimate_and_a_backoff_doubles_until_the_next() {
        let mut rtt = RttEstimator::new(RttOptions::default());
        assert_eq!(rtt.rto(), MS(1000));
        rtt.sample(MS(100), 1);
        assert_eq!(rtt.rto(), MS(100 + 8 * 50));
        rtt.back_off();
        assert_eq!(rtt.rto(), MS(1000));
        rtt.sample(MS(100), 1);
        // variation 50 * 3/4 = 37.5
        assert_eq!(rtt.rto(), MS(100 + 300));
        assert_eq!(rtt.summary(), Some((MS(100), MS(100), MS(100))));
    }

    #[test]
    fn the_timeout_stays_between_its_limits() {
        let mut rtt = RttEstimator::new(RttOptions::default());
        rtt.sample(MS(1), 1);
        assert_eq!(rtt.rto(), MS(200));
        for _ in 0..20 {
            rtt.back_off();
        }
        assert_eq!(rtt.rto(), MS(60_000));
    }

    #[test]
    fn many_samples_in_a_round_trip_weigh_as_one() {
        let mut one = RttEstimator::new(RttOptions::default());
        let mut many = RttEstimator::new(RttOptions::default());
        one.sample(MS(100), 1);
        many.sample(MS(100), 64);
        one.sample(MS(200), 1);
        for _ in 0..64 {
            many.sample(MS(200), 64);
        }
        let (a, b) = (one.smoothed().unwrap(), many.smoothed().unwrap());
        assert!(a.abs_diff(b) < MS(1), "{a:?} {b:?}");
    }
}
