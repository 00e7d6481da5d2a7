//! A fuzzer without instrumentation, for the stable compiler: changes inputs of the corpus at
//! random, from a seed, and keeps none. Where the nightly compiler is there libFuzzer finds more.

use crate::Target;
use onym_tables::Rng;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::time::{Duration, Instant};

/// An input that takes longer is reported as a failure.
pub const SLOW: Duration = Duration::from_secs(10);
/// Octets that are often at an edge of something.
const EDGES: [u8; 12] = [0, 1, 2, 31, 32, 127, 128, 252, 253, 254, 255, 100];

/// How a campaign ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// Inputs tried.
    pub tried: u64,
    /// The input that failed, when one did.
    pub failure: Option<Vec<u8>>,
}

/// FNV-1a, for names of files.
#[must_use]
pub fn digest(octets: &[u8]) -> u64 {
    let step = |hash: u64, octet: &u8| (hash ^ u64::from(*octet)).wrapping_mul(0x100_0000_01b3);
    octets.iter().fold(0xcbf2_9ce4_8422_2325, step)
}

/// Whether `target` takes `input` without panic and in time.
#[must_use]
pub fn holds(target: Target, input: &[u8]) -> bool {
    let begun = Instant::now();
    let is_fine = catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_ok();
    is_fine && begun.elapsed() < SLOW
}

/// Tries changed inputs of `corpus` until `time` is over or one fails.
#[must_use]
pub fn campaign(target: Target, corpus: &[Vec<u8>], seed: u64, time: Duration) -> Found {
    let mut rng = Rng::new(seed);
    let (begun, mut tried) = (Instant::now(), 0);
    while begun.elapsed() < time {
        let mut input = pick(&mut rng, corpus).to_vec();
        for _ in 0..=rng.below(8) {
            change(&mut rng, &mut input, corpus);
        }
        input.truncate(target.len_max);
        tried += 1;
        if !holds(target, &input) {
            return Found { tried, failure: Some(input) };
        }
    }
    Found { tried, failure: None }
}

/// A number below `bound`, 0 when there is none.
fn below(rng: &mut Rng, bound: usize) -> usize {
    usize::try_from(rng.below(bound.max(1) as u64)).unwrap_or_default()
}

fn pick<'a>(rng: &mut Rng, corpus: &'a [Vec<u8>]) -> &'a [u8] {
    corpus.get(below(rng, corpus.len())).map_or(&[], Vec::as_slice)
}

fn change(rng: &mut Rng, input: &mut Vec<u8>, corpus: &[Vec<u8>]) {
    let at = below(rng, input.len());
    let octet = rng.next_u32().to_be_bytes()[0];
    match (rng.below(8), input.get_mut(at)) {
        (0, Some(place)) => *place ^= 1 << (octet % 8),
        (1, Some(place)) => *place = octet,
        (2, Some(place)) => *place = EDGES[usize::from(octet) % EDGES.len()],
        (3, Some(place)) => *place = place.wrapping_add(octet % 5).wrapping_sub(2),
        (4, Some(_)) => {
            let end = (at + 1 + below(rng, 8)).min(input.len());
            input.drain(at..end);
        }
        (5, Some(_)) => {
            let end = (at + 1 + below(rng, 32)).min(input.len());
            let part = input[at..end].to_vec();
            let to = below(rng, input.len());
            input.splice(to..to, part);
        }
        (6, _) => {
            let other = pick(rng, corpus);
            let from = below(rng, other.len());
            let end = (from + 1 + below(rng, 64)).min(other.len());
            input.splice(at..at, other[from..end].iter().copied());
        }
        _ => input.insert(at, octet),
    }
}
