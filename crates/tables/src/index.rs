//! An open-addressing index from keyed 64-bit hashes to slots of a slab.
//!
//! Linear probing with deletion by shifting back: no tombstones, so that a table which lives for
//! months at its bound never needs to be rebuilt. Half of the hash is kept beside each slot, and
//! a table grows without looking at the entries.

/// Marks a bucket that holds nothing.
const EMPTY: u32 = u32::MAX;

/// An index up to this size is in the processor's caches.
const CACHED: usize = 1 << 13;

/// Buckets of a new index once something is inserted.
const BUCKETS_MIN: usize = 16;

#[derive(Debug, Clone, Copy)]
struct Bucket {
    tag: u32,
    slot: u32,
}

/// Hash → slot. Equal hashes may be present several times; the caller's comparison decides.
#[derive(Debug, Default)]
pub struct HashIndex {
    buckets: Vec<Bucket>,
    len: usize,
    /// So many entries need no more buckets.
    len_max: usize,
}

// The upper half decides the bucket and is kept, so that growing needs no entry.
#[allow(clippy::cast_possible_truncation)]
#[inline(always)]
fn tag(hash: u64) -> u32 {
    (hash >> 32) as u32
}

impl HashIndex {
    /// An empty index that owns no memory.
    #[must_use]
    pub const fn new() -> Self {
        Self { buckets: Vec::new(), len: 0, len_max: 0 }
    }

    /// Entries in the index.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether nothing is in the index.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    #[inline(always)]
    fn mask(&self) -> usize {
        self.buckets.len().wrapping_sub(1)
    }

    /// Has the processor fetch the bucket of `hash`, where it may not have it.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        if self.buckets.len() > CACHED {
            onym_mem::prefetch(&self.buckets[tag(hash) as usize & self.mask()]);
        }
    }

    /// The first slot with this hash for which `same` holds.
    #[inline(always)]
    pub fn find(&self, hash: u64, mut same: impl FnMut(u32) -> bool) -> Option<u32> {
        if self.len == 0 {
            return None;
        }
        let (tag, mask) = (tag(hash), self.mask());
        let mut at = tag as usize & mask;
        loop {
            let bucket = self.buckets[at];
            if bucket.slot == EMPTY {
                return None;
            }
            if bucket.tag == tag && same(bucket.slot) {
                return Some(bucket.slot);
            }
            at = (at + 1) & mask;
        }
    }

    /// The slot under this hash, most likely: half of the hash is compared and nothing else.
    #[inline(always)]
    pub fn likely(&self, hash: u64) -> Option<u32> {
        self.find(hash, |_| true)
    }

    /// Adds `slot` under `hash`. Grows, which allocates, when five eighths are in use.
    #[inline]
    pub fn insert(&mut self, hash: u64, slot: u32) {
        debug_assert_ne!(slot, EMPTY);
        if self.len >= self.len_max {
            self.grow();
        }
        self.len += 1;
        self.place(Bucket { tag: tag(hash), slot });
    }

    #[inline(always)]
    fn place(&mut self, bucket: Bucket) {
        let mask = self.mask();
        let mut at = bucket.tag as usize & mask;
        while self.buckets[at].slot != EMPTY {
            at = (at + 1) & mask;
        }
        self.buckets[at] = bucket;
    }

    #[cold]
    fn grow(&mut self) {
        let count = (self.buckets.len() * 2).max(BUCKETS_MIN);
        self.len_max = count * 5 / 8;
        let empty = onym_mem::filled(count, Bucket { tag: 0, slot: EMPTY });
        for bucket in std::mem::replace(&mut self.buckets, empty) {
            if bucket.slot != EMPTY {
                self.place(bucket);
            }
        }
    }

    /// Makes `slot`, which is in the index under `hash`, answer as `to` from now on.
    #[inline]
    pub fn replace(&mut self, hash: u64, slot: u32, to: u32) {
        if let Some(at) = self.position(hash, slot) {
            self.buckets[at].slot = to;
        }
    }

    /// Takes `slot` out; says whether it was there.
    #[inline(always)]
    pub fn remove(&mut self, hash: u64, slot: u32) -> bool {
        let Some(mut hole) = self.position(hash, slot) else { return false };
        let buckets = &mut self.buckets[..];
        let mask = buckets.len() - 1;
        let (mut at, mut distance) = (hole, 0);
        loop {
            (at, distance) = ((at + 1) & mask, distance + 1);
            let bucket = buckets[at];
            if bucket.slot == EMPTY {
                break;
            }
            // A bucket may fill the hole when its home is not behind the hole on the way to it.
            if (bucket.tag as usize).wrapping_sub(hole + 1) & mask >= distance {
                buckets[hole] = bucket;
                (hole, distance) = (at, 0);
            }
        }
        buckets[hole].slot = EMPTY;
        self.len -= 1;
        true
    }

    #[inline(always)]
    fn position(&self, hash: u64, slot: u32) -> Option<usize> {
        if self.len == 0 {
            return None;
        }
        let mask = self.mask();
        let mut at = tag(hash) as usize & mask;
        loop {
            let found = self.buckets[at].slot;
            if found == slot {
                return Some(at);
            }
            if found == EMPTY {
                return None;
            }
            at = (at + 1) & mask;
        }
    }

    /// Forgets everything and keeps the memory.
    pub fn clear(&mut self) {
        self.buckets.fill(Bucket { tag: 0, slot: EMPTY });
        self.len = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_index_answers_as_a_map_does(ops in prop::collection::vec((0u64..40, any::<bool>()), 0..400)) {
            let mut index = HashIndex::new();
            let mut model = BTreeMap::new();
            for (step, (key, add)) in ops.into_iter().enumerate() {
                // Few homes, so that runs collide and wrap around.
                let hash = (key % 5) << 32 | (key % 5) << 60;
                let slot = u32::try_from(key).unwrap();
                if add {
                    if model.insert(key, step).is_none() {
                        index.insert(hash, slot);
                    }
                } else {
                    prop_assert_eq!(index.remove(hash, slot), model.remove(&key).is_some());
                }
                for k in 0..40u64 {
                    let hash = (k % 5) << 32 | (k % 5) << 60;
                    let found = index.find(hash, |s| u64::from(s) == k).is_some();
                    prop_assert_eq!(found, model.contains_key(&k));
                }
                prop_assert_eq!(index.len(), model.len());
            }
        }
    }
}
