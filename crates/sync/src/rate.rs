//! How much of something may happen: so many at once, then so many in a second.

use onym_tables::Tick;

/// A leaky bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    burst: u64,
    per_second: u64,
    used: u64,
    at: Tick,
}

impl Rate {
    /// An empty one: `burst` at once, and `per_second` (at least 1) after them.
    #[must_use]
    pub const fn new(now: Tick, burst: u64, per_second: u64) -> Self {
        let per_second = if per_second == 0 { 1 } else { per_second };
        Self { burst, per_second, used: 0, at: now }
    }

    /// Whether something that weighs `weight` may happen now; it is counted then.
    pub fn allow(&mut self, now: Tick, weight: u64) -> bool {
        let step = 1_000_000_000 / self.per_second;
        let back = now.0.saturating_sub(self.at.0) / step.max(1);
        self.used = self.used.saturating_sub(back);
        self.at.0 += back * step;
        let allowed = self.used < self.burst;
        if allowed {
            self.used = self.used.saturating_add(weight);
        }
        allowed
    }

    /// When it was looked at last.
    #[must_use]
    pub const fn seen(&self) -> Tick {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_burst_passes_and_then_so_many_in_a_second_by_weight() {
        let mut rate = Rate::new(Tick(0), 10, 5);
        let passed = |rate: &mut Rate, ms, weight| {
            (0..100).filter(|_| rate.allow(Tick::from_ms(ms), weight)).count()
        };
        assert_eq!(passed(&mut rate, 0, 1), 10);
        assert_eq!(passed(&mut rate, 1_000, 1), 5);
        assert_eq!(passed(&mut rate, 1_100, 1), 0);
        // What weighs more uses up what follows.
        assert_eq!(passed(&mut rate, 11_000, 100), 1);
        assert_eq!(passed(&mut rate, 20_000, 1), 0);
        assert_eq!(passed(&mut rate, 40_000, 1), 10);
    }
}
