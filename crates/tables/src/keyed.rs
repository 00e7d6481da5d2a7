//! Hash tables of what strangers name: each with a key of its own, for SipHash-1-3.

use crate::sip::Sip;
use std::collections::HashMap;
use std::hash::{BuildHasher, Hasher, RandomState};

/// A hash table whose key nobody outside of the process knows.
pub type KeyedMap<K, V> = HashMap<K, V, KeyedState>;

/// The key of one hash table, drawn when the table is made.
#[derive(Clone)]
pub struct KeyedState([u64; 2]);

impl std::fmt::Debug for KeyedState {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedState(..)")
    }
}

impl Default for KeyedState {
    #[expect(
        clippy::disallowed_methods,
        reason = "the key of a hash table, as `HashMap` draws its own: no outcome depends on it"
    )]
    fn default() -> Self {
        // Random, and another one each time.
        let random = RandomState::new();
        Self([random.hash_one(0_u8), random.hash_one(1_u8)])
    }
}

impl BuildHasher for KeyedState {
    type Hasher = KeyedHasher;

    #[inline]
    fn build_hasher(&self) -> KeyedHasher {
        KeyedHasher { sip: Sip::start(self.0), rest: 0, len: 0 }
    }
}

/// SipHash-1-3 of what is written, whatever pieces it comes in.
#[derive(Clone)]
pub struct KeyedHasher {
    sip: Sip,
    /// The last `len % 8` octets, the first one lowest.
    rest: u64,
    len: u64,
}

impl std::fmt::Debug for KeyedHasher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeyedHasher(..)")
    }
}

impl KeyedHasher {
    /// The lower `octets` octets of `word`, at most eight.
    #[inline(always)]
    fn take(&mut self, word: u64, octets: u32) {
        let held = 8 * (self.len % 8) as u32;
        self.len += u64::from(octets);
        self.rest |= word << held;
        if held + 8 * octets >= 64 {
            self.sip.word(self.rest);
            // What did not fit; nothing, where nothing was held.
            self.rest = word.checked_shr(64 - held).unwrap_or(0);
        }
    }
}

impl Hasher for KeyedHasher {
    #[inline]
    fn write(&mut self, octets: &[u8]) {
        let (words, rest) = octets.as_chunks::<8>();
        for word in words {
            self.take(u64::from_le_bytes(*word), 8);
        }
        let word = rest.iter().rev().fold(0, |word, octet| (word << 8) | u64::from(*octet));
        self.take(word, rest.len() as u32);
    }

    #[inline]
    fn write_u8(&mut self, n: u8) {
        self.take(n.into(), 1);
    }

    #[inline]
    fn write_u32(&mut self, n: u32) {
        self.take(n.into(), 4);
    }

    #[inline]
    fn write_u64(&mut self, n: u64) {
        self.take(n, 8);
    }

    #[inline]
    fn write_usize(&mut self, n: usize) {
        self.take(n as u64, 8);
    }

    #[inline]
    fn finish(&self) -> u64 {
        let mut sip = self.sip;
        sip.word(self.rest | self.len << 56);
        sip.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rng;

    #[test]
    fn the_hash_is_siphash_1_3_of_all_octets_in_whatever_pieces_they_come() {
        let mut rng = Rng::new(5);
        for _ in 0..2000 {
            let mut ours = KeyedHasher { sip: Sip::start([7, 9]), rest: 0, len: 0 };
            let mut reference = siphasher::sip::SipHasher13::new_with_keys(7, 9);
            for _ in 0..rng.below(9) {
                let number = rng.below(u64::MAX);
                let octets = number.to_le_bytes().repeat(4);
                let len = match rng.below(5) {
                    0 => {
                        ours.write_u8(octets[0]);
                        1
                    }
                    1 => {
                        ours.write_u32(u32::from_le_bytes(octets[..4].try_into().unwrap()));
                        4
                    }
                    2 => {
                        ours.write_u64(number);
                        8
                    }
                    _ => {
                        let len = rng.below(33) as usize;
                        ours.write(&octets[..len]);
                        len
                    }
                };
                reference.write(&octets[..len]);
            }
            assert_eq!(ours.finish(), reference.finish());
        }
    }
}
