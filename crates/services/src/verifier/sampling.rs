//! Statistical verification: how often, and which packets.
//!
//! The probability follows the queue: above half of its bound it is halved, below an eighth it
//! grows by a tenth. A failure under a prefix makes its packets be verified all for ten periods.
//! Which packets are picked is a keyed hash of the name, so nobody can choose names that are not.

use onym_tables::{HashKey, Tick};
use onym_wire::name::NameRef;
use std::collections::BTreeMap;

/// How often the probability follows the queue, in milliseconds.
const ADAPT_MS: u64 = 100;
/// Periods for which a prefix with a failure is verified whole.
const WATCHED_PERIODS: u32 = 10;
/// Prefixes that are verified whole; beyond, everything is.
const WATCHED_MAX: usize = 1024;

/// The state of sampling.
#[derive(Debug)]
pub(super) struct Sampling {
    probability: f64,
    next: Tick,
    watched: BTreeMap<Vec<u8>, u32>,
}

impl Default for Sampling {
    fn default() -> Self {
        Self { probability: 1.0, next: Tick(0), watched: BTreeMap::new() }
    }
}

impl Sampling {
    pub(super) fn probability(&self) -> f64 {
        self.probability
    }

    /// Whether the Data of this name is verified.
    pub(super) fn picks(&self, key: &HashKey, name: NameRef<'_>) -> bool {
        let parent = name.drop_last(1).value();
        if self.watched.len() >= WATCHED_MAX || self.watched.contains_key(parent) {
            return true;
        }
        let hash = key.words([key.name(name.value()), 0x7361_6d70]);
        #[allow(clippy::cast_precision_loss)]
        let share = (hash >> 11) as f64 / (1_u64 << 53) as f64;
        share < self.probability
    }

    /// A signature under the parent of this name was wrong.
    pub(super) fn failed(&mut self, name: NameRef<'_>) {
        if self.watched.len() < WATCHED_MAX {
            self.watched.insert(name.drop_last(1).value().to_vec(), WATCHED_PERIODS);
        }
    }

    pub(super) fn due(&self) -> Tick {
        self.next
    }

    pub(super) fn adapt(&mut self, now: Tick, queue: usize, queue_max: usize, least: f64) {
        if now < self.next {
            return;
        }
        self.next = now.plus_ms(ADAPT_MS);
        if queue > queue_max / 2 {
            self.probability /= 2.0;
        } else if queue < queue_max / 8 {
            self.probability += 0.1;
        }
        self.probability = self.probability.clamp(least, 1.0);
    }

    pub(super) fn period(&mut self) {
        self.watched.retain(|_, left| {
            *left = left.saturating_sub(1);
            *left > 0
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::name::Name;

    #[test]
    fn the_probability_follows_the_queue_and_a_failure_makes_its_prefix_whole() {
        let key = HashKey::new(1, 2);
        let mut sampling = Sampling::default();
        for step in 1..6 {
            sampling.adapt(Tick::from_ms(step * 200), 90, 100, 0.05);
        }
        assert_eq!(sampling.probability(), 0.05);
        let name = |n: u64| format!("/a/{n}").parse::<Name>().unwrap();
        let picked = |s: &Sampling| (0..2000).filter(|n| s.picks(&key, name(*n).as_ref())).count();
        assert!((50..160).contains(&picked(&sampling)), "{}", picked(&sampling));
        sampling.failed(name(1).as_ref());
        assert_eq!(picked(&sampling), 2000);
        for _ in 0..10 {
            sampling.period();
        }
        assert!(picked(&sampling) < 160);
        for step in 10..30 {
            sampling.adapt(Tick::from_ms(step * 200), 0, 100, 0.05);
        }
        assert_eq!(sampling.probability(), 1.0);
    }
}
