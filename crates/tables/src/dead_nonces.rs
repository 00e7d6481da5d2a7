//! Nonces that must not come back: those of Interests that ended, remembered for some seconds.

use crate::Tick;
use crate::index::HashIndex;
use std::collections::VecDeque;

/// How long a Nonce is remembered by default, in milliseconds.
pub const LIFETIME_MS: u64 = 6000;

/// Names with Nonces, as 64-bit hashes, oldest first. Full: the oldest is forgotten.
#[derive(Debug)]
pub struct DeadNonces {
    index: HashIndex,
    /// Ring of hashes; entry number `base` is at the front.
    ring: VecDeque<(u64, Tick)>,
    base: u32,
    entries_max: usize,
    lifetime_ms: u64,
}

/// Entries that one insertion forgets at most, so that its cost is bounded.
const SWEEP: usize = 64;

impl DeadNonces {
    /// An empty list of at most `entries_max` (at least 1, at most 2^24) entries.
    #[must_use]
    pub fn new(entries_max: usize, lifetime_ms: u64) -> Self {
        let entries_max = entries_max.clamp(1, 1 << 24);
        Self { index: HashIndex::new(), ring: VecDeque::new(), base: 0, entries_max, lifetime_ms }
    }

    /// How long a Nonce is remembered, in milliseconds.
    #[must_use]
    pub fn lifetime_ms(&self) -> u64 {
        self.lifetime_ms
    }

    /// Entries, those whose time is over included until an insertion sweeps them.
    #[must_use]
    pub fn len(&self) -> usize {
        self.ring.len()
    }

    /// Whether nothing is remembered.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.ring.is_empty()
    }

    /// The key of a name, given by its keyed hash, with a Nonce. For one name no two Nonces have
    /// the same key, and without the name's hash nobody can choose Nonces whose keys fall together.
    #[inline]
    fn key(name_hash: u64, nonce: u32) -> u64 {
        let mut key = name_hash ^ u64::from(nonce).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        key = (key ^ (key >> 32)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        (key ^ (key >> 29)).wrapping_mul(0x94d0_49bb_1331_11eb)
    }

    #[inline]
    fn find(&self, key: u64) -> Option<u32> {
        self.index.find(key, |slot| {
            self.ring.get(self.position(slot)).is_some_and(|(known, _)| *known == key)
        })
    }

    /// Where entry number `slot` is in the ring. Numbers wrap below the index's reserved one.
    fn position(&self, slot: u32) -> usize {
        let ahead = if slot >= self.base { slot - self.base } else { slot + (NUMBERS - self.base) };
        ahead as usize
    }

    /// Whether the Nonce of this name died less than the lifetime ago.
    #[inline]
    #[must_use]
    pub fn contains(&self, now: Tick, name_hash: u64, nonce: u32) -> bool {
        if self.ring.is_empty() {
            return false;
        }
        self.find(Self::key(name_hash, nonce))
            .and_then(|slot| self.ring.get(self.position(slot)))
            .is_some_and(|(_, until)| *until > now)
    }

    /// Remembers a Nonce; its lifetime starts again when it is known.
    pub fn insert(&mut self, now: Tick, name_hash: u64, nonce: u32) {
        for _ in 0..SWEEP {
            match self.ring.front() {
                Some((_, until)) if *until <= now || self.ring.len() >= self.entries_max => {
                    self.forget_first();
                }
                _ => break,
            }
        }
        let key = Self::key(name_hash, nonce);
        if let Some(slot) = self.find(key) {
            // The later entry takes over; the earlier one stays in the ring without an index.
            self.index.remove(key, slot);
        }
        // No truncation: the ring is below 2^24.
        #[allow(clippy::cast_possible_truncation)]
        let number = (self.base + self.ring.len() as u32) % NUMBERS;
        self.ring.push_back((key, now.plus_ms(self.lifetime_ms)));
        self.index.insert(key, number);
    }

    fn forget_first(&mut self) {
        if let Some((key, _)) = self.ring.pop_front() {
            self.index.remove(key, self.base);
            self.base = (self.base + 1) % NUMBERS;
        }
    }
}

/// Numbers of entries: more than the ring ever holds at once.
const NUMBERS: u32 = 1 << 30;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn a_nonce_is_remembered_for_its_lifetime_and_no_longer(
            ops in prop::collection::vec((0u64..6, 0u32..6, 0u64..3000, any::<bool>()), 0..200)
        ) {
            let mut list = DeadNonces::new(1 << 10, LIFETIME_MS);
            let mut model = BTreeMap::new();
            let mut now = Tick(0);
            for (name, nonce, step, insert) in ops {
                let hash = name.wrapping_mul(0xdead_beef_0bad_cafe);
                now = now.plus_ms(step);
                if insert {
                    list.insert(now, hash, nonce);
                    model.insert((name, nonce), now.plus_ms(LIFETIME_MS));
                }
                let known = model.get(&(name, nonce)).is_some_and(|until| *until > now);
                prop_assert_eq!(list.contains(now, hash, nonce), known);
            }
        }
    }

    #[test]
    fn a_full_list_forgets_the_oldest() {
        let mut list = DeadNonces::new(4, LIFETIME_MS);
        for nonce in 0..6 {
            list.insert(Tick(1), 9, nonce);
        }
        assert_eq!(list.len(), 4);
        let known: Vec<u32> = (0..6).filter(|n| list.contains(Tick(1), 9, *n)).collect();
        assert_eq!(known, [2, 3, 4, 5]);
    }
}
