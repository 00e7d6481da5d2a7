//! The keyed hash of names: NH, the universal hash of UMAC (RFC 4418), on words of 64 bits, folded
//! with further secret words.
//!
//! Sixteen octets are two words; each is added to a secret word, the two sums are multiplied, and the
//! products of 128 bits are added. Two names of one length have the same sum for one key in 2^64, whoever
//! chose them, as long as who chose them does not know the key: so nobody can prepare names that fall
//! together. What that leaves to be wished for is what a pseudo-random function has: who learned the
//! hashes of names of his choice could compute the secret words. Hashes never leave the process, and what
//! a lookup tells by its time is whether some names of thousands share a bucket of many, behind a fold
//! under two words that none of them is multiplied with.
//!
//! The step that ends a name of sixteen octets or more is its last sixteen, of which some were in the step
//! before: it has secret words of its own, so two names that differ there, or before, still meet once in
//! 2^64.
//!
//! The secret words are as many as 256 octets of a name need; for what is behind, the sum so far is
//! folded into the start of the next one.

use crate::mix::{fold, spread};
use crate::sip::Sip;

/// Octets that two secret words are for.
const STEP: usize = 16;
/// Steps for which there are secret words.
const STEPS: usize = 16;

/// The secret words.
#[derive(Clone, Copy)]
pub(crate) struct Secret {
    steps: [[u64; 2]; STEPS],
    last: [u64; 2],
}

impl Secret {
    /// Words that `key` hides.
    pub(crate) const fn new(key: [u64; 2]) -> Self {
        let mut words = [[0; 2]; STEPS + 1];
        let mut n = 0;
        while n < words.len() {
            words[n] = [Self::word(key, 2 * n as u64), Self::word(key, 2 * n as u64 + 1)];
            n += 1;
        }
        let mut secret = Self { steps: [[0; 2]; STEPS], last: words[STEPS] };
        n = 0;
        while n < STEPS {
            secret.steps[n] = words[n];
            n += 1;
        }
        secret
    }

    const fn word(key: [u64; 2], n: u64) -> u64 {
        let mut sip = Sip::start(key);
        sip.word(n);
        sip.word(u64::MAX - 1);
        sip.finish()
    }
}

/// The sum between two steps.
#[derive(Clone, Copy)]
pub(crate) struct Sum(u128);

impl Sum {
    #[inline(always)]
    pub(crate) const fn start() -> Self {
        Self(0)
    }

    // The halves of a sum, and of a step.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    const fn add(&mut self, step: u128, [a, b]: [u64; 2]) {
        let low = (step as u64).wrapping_add(a);
        let high = ((step >> 64) as u64).wrapping_add(b);
        self.0 = self.0.wrapping_add(low as u128 * high as u128);
    }

    // The halves of the sum.
    #[allow(clippy::cast_possible_truncation)]
    #[inline(always)]
    const fn folded(self, secret: &Secret, len: usize) -> u64 {
        let [a, b] = secret.last;
        fold(self.0 as u64 ^ a, ((self.0 >> 64) as u64 ^ b).wrapping_add(len as u64))
    }

    /// The hash of a name without octets.
    pub(crate) const fn of_nothing(self, secret: &Secret) -> u64 {
        spread(self.folded(secret, 0))
    }

    /// Takes the whole steps of `name[at..end]` in, where `at` is where the last ones ended; returns how
    /// far that was.
    #[inline(always)]
    pub(crate) fn absorb(&mut self, secret: &Secret, name: &[u8], at: usize, end: usize) -> usize {
        let (steps, _) = name[at..end].as_chunks::<STEP>();
        let first = at / STEP;
        match secret.steps.get(first..first + steps.len()) {
            Some(words) if first + steps.len() < STEPS => {
                for (step, words) in steps.iter().zip(words) {
                    self.add(u128::from_le_bytes(*step), *words);
                }
            }
            _ => self.absorb_many(secret, steps, first),
        }
        at + STEP * steps.len()
    }

    #[cold]
    fn absorb_many(&mut self, secret: &Secret, steps: &[[u8; STEP]], first: usize) {
        for (step, number) in steps.iter().zip(first..) {
            self.add(u128::from_le_bytes(*step), secret.steps[number % STEPS]);
            if number % STEPS == STEPS - 1 {
                self.0 = u128::from(self.folded(secret, 0));
            }
        }
    }

    /// The hash of `name[..end]`, of which the steps before `at` were taken in.
    #[inline(always)]
    pub(crate) fn finish_at(mut self, secret: &Secret, name: &[u8], at: usize, end: usize) -> u64 {
        if at < end {
            self.add(last_step(&name[..end]), secret.steps[at / STEP % STEPS]);
        }
        spread(self.folded(secret, end))
    }
}

/// The step that ends a name which does not end with a whole one: its last sixteen octets, of which
/// some were in the step before; of a shorter name all.
#[inline(always)]
fn last_step(name: &[u8]) -> u128 {
    match name.last_chunk::<STEP>() {
        Some(step) => u128::from_le_bytes(*step),
        None => short(name),
    }
}

/// All octets of a name of fewer than sixteen: two words that may overlap.
#[inline(always)]
fn short(name: &[u8]) -> u128 {
    let words = match (name.first_chunk(), name.last_chunk()) {
        (Some(first), Some(last)) => [u64::from_le_bytes(*first), u64::from_le_bytes(*last)],
        _ => match (name.first_chunk(), name.last_chunk()) {
            (Some(first), Some(last)) => {
                [u32::from_le_bytes(*first).into(), u32::from_le_bytes(*last).into()]
            }
            _ => [name.iter().fold(0, |word, octet| word << 8 | u64::from(*octet)), 0],
        },
    };
    u128::from(words[0]) | u128::from(words[1]) << 64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{HashKey, Rng};
    use std::collections::HashSet;

    /// The hash by its definition: all octets first.
    fn by_definition(secret: &Secret, name: &[u8]) -> u64 {
        let mut sum = 0_u128;
        let (steps, left) = name.as_chunks::<STEP>();
        let product = |number: usize, [low, high]: [u64; 2]| {
            let [a, b] = secret.steps[number % STEPS];
            u128::from(low.wrapping_add(a)) * u128::from(high.wrapping_add(b))
        };
        let words = |step: &[u8]| {
            let word = |at: usize| u64::from_le_bytes(step[at..at + 8].try_into().unwrap());
            [word(0), word(step.len() - 8)]
        };
        for (number, step) in steps.iter().enumerate() {
            sum = sum.wrapping_add(product(number, words(step)));
            if number % STEPS == STEPS - 1 {
                sum = u128::from(Sum(sum).folded(secret, 0));
            }
        }
        if !left.is_empty() {
            let words = match name.len() {
                16.. => words(&name[name.len() - STEP..]),
                8..16 => words(name),
                4..8 => {
                    let word = |at: usize| u32::from_le_bytes(name[at..at + 4].try_into().unwrap());
                    [word(0).into(), word(name.len() - 4).into()]
                }
                _ => [name.iter().fold(0, |word, octet| word * 256 + u64::from(*octet)), 0],
            };
            sum = sum.wrapping_add(product(steps.len(), words));
        }
        spread(Sum(sum).folded(secret, name.len()))
    }

    #[test]
    fn the_hash_is_what_it_is_defined_as_whatever_pieces_a_name_is_taken_in() {
        let (mut rng, secret) = (Rng::new(1), Secret::new([5, 6]));
        for len in (0..70).chain([255, 256, 257, 511, 512, 600, 8800]) {
            let name: Vec<u8> = (0..len).map(|_| rng.next_u32().to_be_bytes()[0]).collect();
            let expected = by_definition(&secret, &name);
            for _ in 0..20 {
                let (mut sum, mut at, mut end) = (Sum::start(), 0, 0);
                while end < len {
                    end += usize::try_from(rng.below(40)).unwrap();
                    end = end.min(len);
                    at = sum.absorb(&secret, &name, at, end);
                    assert_eq!(sum.finish_at(&secret, &name, at, end), {
                        by_definition(&secret, &name[..end])
                    });
                }
                assert_eq!(sum.finish_at(&secret, &name, at, len), expected, "{len}");
            }
        }
        assert_eq!(Sum::start().of_nothing(&secret), by_definition(&secret, &[]));
    }

    #[test]
    fn every_octet_the_length_and_the_key_count() {
        let (secret, mut seen) = (Secret::new([1, 2]), HashSet::new());
        let hash = |name: &[u8]| by_definition(&secret, name);
        for len in (0..40_usize).chain([256, 300]) {
            assert!(seen.insert(hash(&vec![0; len])), "{len}");
            for at in 0..len {
                let mut name = vec![0; len];
                name[at] = 1;
                assert!(seen.insert(hash(&name)), "{len}, {at}");
            }
        }
        assert_ne!(hash(b"a"), by_definition(&Secret::new([1, 3]), b"a"));
    }

    /// The longest run of names in one bucket of as many as there are names, for the part of the hash
    /// that chooses buckets.
    fn longest(key: &HashKey, names: impl Iterator<Item = Vec<u8>>) -> u32 {
        let mut buckets = vec![0_u32; 1 << 14];
        for name in names {
            buckets[usize::try_from(key.name(&name) >> 32).unwrap() % (1 << 14)] += 1;
        }
        buckets.into_iter().max().unwrap()
    }

    /// Law: families of names that make weak hashes fall together fall as chance has it: with as many
    /// buckets as names, twelve in one is a chance of one in 70,000.
    #[test]
    fn no_family_of_names_fills_a_bucket() {
        let number = |n: u32| u64::from(n).to_le_bytes();
        let name = |parts: &[&[u8]]| parts.concat();
        for seed in 0..8 {
            let key = HashKey::new(seed, 77);
            let all = || 0..1_u32 << 14;
            let longest = [
                // Numbers at the end, at the beginning, in the middle, in steps of powers of two.
                longest(&key, all().map(|n| name(&[b"\x08\x03edu\x08\x04", &n.to_be_bytes()]))),
                longest(&key, all().map(|n| name(&[&number(n), &[0; 40]]))),
                longest(&key, all().map(|n| name(&[&[7; 24], &number(n), &[9; 24]]))),
                longest(&key, all().map(|n| name(&[&(u64::from(n) << 50).to_le_bytes(), &[1; 8]]))),
                // One word against the other of a step, and a step against the next.
                longest(&key, all().map(|n| name(&[&number(n), &number(n)]))),
                longest(&key, all().map(|n| name(&[&number(n), &number(!n)]))),
                longest(&key, all().map(|n| name(&[&number(n), &[0; 8], &number(!n), &[0; 8]]))),
                // Few octets that differ, zeroes of many lengths, and long names.
                longest(
                    &key,
                    all().map(|n| {
                        [&vec![0; n as usize / 64][..], &[n.to_le_bytes()[0] & 63]].concat()
                    }),
                ),
                longest(&key, all().map(|n| name(&[&[3; 300], &number(n), &[4; 300]]))),
            ];
            assert!(longest.iter().all(|n| *n <= 11), "{seed}: {longest:?}");
        }
    }
}
