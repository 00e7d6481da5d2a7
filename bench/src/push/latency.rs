//! How long publications are under way, as a histogram that sides hand over.

use onym_sys::clock;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Steps of each doubling: a value is told within two per cent.
const STEPS_BITS: u32 = 6;

/// Nanoseconds of a clock that all processes of this machine share.
pub(super) fn now_ns() -> u64 {
    clock::monotonic_ns()
}

/// Times of publications, by their bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Histogram {
    counts: BTreeMap<u32, u64>,
}

fn bucket(ns: u64) -> u32 {
    let ns = ns.max(1 << STEPS_BITS);
    let shift = ns.ilog2() - STEPS_BITS;
    let step = u32::try_from(ns >> shift).unwrap_or(u32::MAX);
    (shift << STEPS_BITS) + step
}

/// The middle of a bucket, in seconds.
fn middle(bucket: u32) -> f64 {
    let shift = (bucket >> STEPS_BITS) - 1;
    let step = bucket - (shift << STEPS_BITS);
    (f64::from(step) + 0.5) * 2_f64.powf(f64::from(shift)) / 1e9
}

impl Histogram {
    pub(super) fn add(&mut self, ns: u64) {
        *self.counts.entry(bucket(ns)).or_default() += 1;
    }

    pub(super) fn merge(&mut self, other: &Self) {
        for (bucket, count) in &other.counts {
            *self.counts.entry(*bucket).or_default() += count;
        }
    }

    /// The time, in seconds, that this share of publications did not take longer; 0 without any.
    pub(super) fn quantile(&self, share: f64) -> f64 {
        let total: u64 = self.counts.values().sum();
        let rank = (share * total as f64).ceil().max(1.0);
        let mut seen = 0;
        for (bucket, count) in &self.counts {
            seen += count;
            if seen as f64 >= rank {
                return middle(*bucket);
            }
        }
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_those_of_the_values_within_two_per_cent() {
        let mut values: Vec<u64> = (0..100_000_u64).map(|n| 80 + n * n % 9_999_991 * 7).collect();
        let (mut all, mut half) = (Histogram::default(), Histogram::default());
        for (n, value) in values.iter().enumerate() {
            if n % 2 == 0 { all.add(*value) } else { half.add(*value) }
        }
        let text = serde_json::to_string(&half).expect("JSON");
        all.merge(&serde_json::from_str(&text).expect("JSON"));
        values.sort_unstable();
        for share in [0.001, 0.5, 0.99, 0.999, 1.0] {
            let at = (share * values.len() as f64).ceil() as usize - 1;
            let (exact, told) = (values[at] as f64 / 1e9, all.quantile(share));
            assert!((told / exact - 1.0).abs() < 0.02, "{share}: {told} for {exact}");
        }
        assert_eq!(Histogram::default().quantile(0.5), 0.0);
    }
}
