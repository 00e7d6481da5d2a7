//! Sizing of a stage so that nothing but its members matches.

use super::{Positions, stage_has, stage_hash, stage_key};
use onym_wire::push::Stage;

/// Most bits of a stage.
const BITS_MAX: u16 = 4095;
/// Seeds that are tried for each size.
const SEEDS: u8 = 16;
/// Most ones of a member.
const K_MAX: u16 = 15;

/// A stage with its own octets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StageBuilt {
    /// Bits.
    pub bits: u16,
    /// Ones of a member.
    pub k: u8,
    /// Seed.
    pub seed: u8,
    /// The filter.
    pub octets: Vec<u8>,
}

impl StageBuilt {
    /// As the wire has it.
    #[must_use]
    pub fn as_stage(&self) -> Stage<'_> {
        Stage { bits: self.bits, k: self.k, seed: self.seed, octets: &self.octets }
    }
}

/// Hashes of all tags under one seed.
struct Seeded(Vec<Positions>);

impl Seeded {
    fn new(seed: u8, index: u8, tags: &[u64]) -> Self {
        let key = stage_key(seed, index);
        Self(tags.iter().map(|tag| stage_hash(&key, *tag)).collect())
    }

    fn positions(&self, tag: usize, bits: u16, k: u16) -> impl Iterator<Item = u16> {
        let mut positions = self.0[tag];
        (0..k).map(move |_| positions.next(bits))
    }
}

/// The smallest stage number `index` that holds `members` and none of `others`; `None` when 4095
/// bits do not suffice.
#[must_use]
pub fn build_stage(index: u8, members: &[u64], others: &[u64]) -> Option<StageBuilt> {
    let seeded = |tags: &[u64]| -> Vec<Seeded> {
        (0..SEEDS).map(|seed| Seeded::new(seed, index, tags)).collect()
    };
    let (members_of, others_of) = (seeded(members), seeded(others));
    let n = u16::try_from(members.len()).ok()?.max(1);
    let mut bits = n.max(4);
    while bits <= BITS_MAX {
        let best = (bits * 7 / n / 10).clamp(1, K_MAX);
        for seed in 0..SEEDS {
            let (ours, theirs) = (&members_of[usize::from(seed)], &others_of[usize::from(seed)]);
            let mut ks = [1, 2, 3, best];
            ks.sort_unstable();
            for k in ks {
                let octets = fill(ours, members.len(), bits, k);
                let hit = (0..others.len())
                    .any(|tag| theirs.positions(tag, bits, k).all(|bit| is_set(&octets, bit)));
                if !hit {
                    let built = StageBuilt { bits, k: k as u8, seed, octets };
                    debug_assert!(members.iter().all(|m| stage_has(&built.as_stage(), index, *m)));
                    return Some(built);
                }
            }
        }
        // Finer than the octets of the wire would not help.
        bits += (bits / 16).max(1);
    }
    None
}

fn fill(members: &Seeded, count: usize, bits: u16, k: u16) -> Vec<u8> {
    let mut octets = vec![0; usize::from(bits).div_ceil(8)];
    for tag in 0..count {
        for bit in members.positions(tag, bits, k) {
            octets[usize::from(bit >> 3)] |= 1 << (bit & 7);
        }
    }
    octets
}

fn is_set(octets: &[u8], bit: u16) -> bool {
    octets[usize::from(bit >> 3)] & (1 << (bit & 7)) != 0
}
