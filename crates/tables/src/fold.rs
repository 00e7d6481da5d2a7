//! A cheaper keyed hash, for choices that no table depends on: which shard, which group.
//!
//! Multiplies pairs of words, mixed with secret ones, and folds the products: fewer instructions than
//! SipHash, and weaker. An attacker who does not know the secret cannot aim at a shard or a group; one
//! who learned it could load one more than the others, and nothing else. Hash tables, where collisions
//! make searches long, have NH (`nh.rs`).

use crate::hash::HashKey;
use crate::mix::{fold, spread};

/// The words of this process.
#[derive(Clone, Copy)]
pub struct FoldKey([u64; 3]);

impl std::fmt::Debug for FoldKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FoldKey(..)")
    }
}

impl FoldKey {
    /// Words that `key` hides.
    #[must_use]
    pub fn new(key: &HashKey) -> Self {
        Self([5, 6, 7].map(|n| key.words([n, u64::MAX])))
    }

    /// Hash of three words.
    #[inline(always)]
    #[must_use]
    pub fn words(&self, words: [u64; 3]) -> u64 {
        let [a, b, c] = self.0;
        spread(fold(fold(words[0] ^ a, words[1] ^ b) ^ words[2] ^ c, a | 1))
    }

    /// Hash of octets.
    #[inline]
    #[must_use]
    pub fn octets(&self, octets: &[u8]) -> u64 {
        let [a, b, c] = self.0;
        let mut sum = c;
        let two = |pair: &[u8; 16]| {
            let pair = u128::from_le_bytes(*pair);
            // The lower and the upper half.
            #[allow(clippy::cast_possible_truncation)]
            (pair as u64, (pair >> 64) as u64)
        };
        let (pairs, rest) = octets.as_chunks::<16>();
        for pair in pairs {
            let (low, high) = two(pair);
            sum = fold(low ^ a ^ sum, high ^ b);
        }
        if !rest.is_empty() {
            // The last sixteen, of which some were taken already, or all there are.
            let (low, high) = match octets.last_chunk::<16>() {
                Some(last) => two(last),
                None => two(&padded(rest)),
            };
            sum = fold(low ^ a ^ sum, high ^ b);
        }
        // The length apart from the octets: one could undo what the other does.
        spread(fold(sum ^ b, (a ^ (octets.len() as u64) << 32) | 1))
    }
}

#[cold]
fn padded(octets: &[u8]) -> [u8; 16] {
    let mut all = [0; 16];
    all[..octets.len()].copy_from_slice(octets);
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    fn key(n: u64) -> FoldKey {
        FoldKey::new(&HashKey::new(n, 9))
    }

    #[test]
    fn every_octet_and_the_length_count() {
        let (key, mut seen) = (key(1), HashSet::new());
        for len in 0..70_usize {
            assert!(seen.insert(key.octets(&vec![0; len])), "{len}");
            for at in 0..len {
                let mut octets = vec![0; len];
                octets[at] = 1;
                assert!(seen.insert(key.octets(&octets)), "{len}, {at}");
            }
        }
        assert_ne!(key.octets(b"a"), self::key(2).octets(b"a"));
    }

    #[test]
    fn names_that_differ_little_spread_over_shards_and_groups() {
        for seed in 0..20 {
            let key = key(seed);
            for shards in [2_u64, 3, 4, 8] {
                let mut count = vec![0_u32; usize::try_from(shards).unwrap()];
                for n in 0..4000_u32 {
                    let name = format!("\x08\x03edu\x08\x0auniversity\x08\x04file{n:06}");
                    count[usize::try_from(key.octets(name.as_bytes()) % shards).unwrap()] += 1;
                }
                let mean = 4000 / u32::try_from(shards).unwrap();
                let even = count.iter().all(|n| n.abs_diff(mean) < mean / 4);
                assert!(even, "seed {seed}, {shards} shards: {count:?}");
            }
            let mut groups = HashSet::new();
            for n in 0..1024 {
                groups.insert(key.words([1, 2, n]) >> 54);
            }
            // 647 of 1024 are met by chance.
            assert!(groups.len() > 560, "seed {seed}: {}", groups.len());
        }
    }
}
