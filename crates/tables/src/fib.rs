//! The forwarding information base: name prefix → next hops, lowest cost first.

use crate::FaceId;
use crate::hash::{NameHashes, Prefix};
use crate::prefix_map::PrefixMap;
use smallvec::SmallVec;
use std::collections::HashMap;

/// Where Interests under a prefix may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextHop {
    /// The face.
    pub face: FaceId,
    /// Its cost; lower is preferred.
    pub cost: u64,
}

/// The next hops of one prefix, sorted by cost, equal costs by face.
pub type NextHops = SmallVec<[NextHop; 1]>;

/// Why the FIB did not take a route.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FibError {
    /// The configured limit of entries is reached.
    #[error("the FIB holds its limit of {0} prefixes (fib.routes_max)")]
    Full(usize),
}

/// The FIB of one shard, bounded by `entries_max` prefixes; a prefix beyond is refused.
#[derive(Debug)]
pub struct Fib {
    map: PrefixMap<NextHops>,
    entries_max: usize,
    /// Next hops over each face that has any.
    over: HashMap<FaceId, usize>,
}

impl Fib {
    /// An empty FIB of at most `entries_max` prefixes.
    #[must_use]
    pub fn new(entries_max: usize) -> Self {
        Self { map: PrefixMap::default(), entries_max, over: HashMap::new() }
    }

    /// Prefixes with a next hop.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether there is no prefix.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// Changes the bound; entries that are there stay.
    pub fn set_entries_max(&mut self, entries_max: usize) {
        self.entries_max = entries_max;
    }

    /// Prefix lengths in use, as bits: what [`NameHashes`] needs for a match.
    #[inline]
    #[must_use]
    pub fn lengths(&self) -> u64 {
        self.map.lengths()
    }

    /// Adds or changes a next hop. Says whether it is new.
    ///
    /// # Errors
    /// [`FibError::Full`] when the prefix would be one too many.
    pub fn add(&mut self, prefix: &Prefix<'_>, hop: NextHop) -> Result<bool, FibError> {
        if let Some(hops) = self.map.get_mut(prefix) {
            let known = hops.iter().position(|h| h.face == hop.face);
            if let Some(at) = known {
                hops.remove(at);
            }
            place(hops, hop);
            if known.is_none() {
                *self.over.entry(hop.face).or_default() += 1;
            }
            return Ok(known.is_none());
        }
        if self.map.len() >= self.entries_max {
            return Err(FibError::Full(self.entries_max));
        }
        self.map.insert(prefix, SmallVec::from_buf([hop]));
        *self.over.entry(hop.face).or_default() += 1;
        Ok(true)
    }

    /// Takes a next hop away, and the prefix with its last one. Says whether it was there.
    pub fn remove(&mut self, prefix: &Prefix<'_>, face: FaceId) -> bool {
        let Some(hops) = self.map.get_mut(prefix) else { return false };
        let Some(at) = hops.iter().position(|h| h.face == face) else { return false };
        hops.remove(at);
        if hops.is_empty() {
            self.map.remove(prefix);
        }
        if let Some(count) = self.over.get_mut(&face) {
            *count -= 1;
            if *count == 0 {
                self.over.remove(&face);
            }
        }
        true
    }

    /// Takes away every next hop over `face`. Visits the whole table when there is one.
    pub fn remove_face(&mut self, face: FaceId) {
        if self.over.remove(&face).is_none() {
            return;
        }
        self.map.retain(|_, hops| {
            hops.retain(|h| h.face != face);
            !hops.is_empty()
        });
    }

    /// Next hops of exactly this prefix.
    #[must_use]
    pub fn get(&self, prefix: &Prefix<'_>) -> Option<&[NextHop]> {
        self.map.get(prefix).map(SmallVec::as_slice)
    }

    /// The longest prefix of `name` with its next hops.
    #[inline(always)]
    #[must_use]
    pub fn lookup<'n>(
        &self,
        hashes: &NameHashes,
        name: &'n [u8],
    ) -> Option<(Prefix<'n>, &[NextHop])> {
        self.map.longest_match(hashes, name, |_| true).map(|(p, hops)| (p, hops.as_slice()))
    }

    /// Has the processor fetch where the prefixes of a name may be.
    #[inline(always)]
    pub fn prefetch(&self, hashes: &NameHashes) {
        self.map.prefetch(hashes);
    }

    /// Whether the processor may not have what a match meets.
    #[inline(always)]
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.map.is_large()
    }

    /// Has the processor fetch the entries of a name's prefixes, most likely.
    #[inline(always)]
    pub fn prefetch_found(&self, hashes: &NameHashes) {
        self.map.prefetch_found(hashes);
    }

    /// As [`Fib::prefetch_found`], when that is done, their names.
    #[inline(always)]
    pub fn prefetch_names(&self, hashes: &NameHashes) {
        self.map.prefetch_names(hashes);
    }

    /// Every prefix (its name's value) with its next hops, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[NextHop])> {
        self.map.iter().map(|(name, hops)| (name, hops.as_slice()))
    }
}

fn place(hops: &mut NextHops, hop: NextHop) {
    let at = hops.partition_point(|h| (h.cost, h.face) < (hop.cost, hop.face));
    hops.insert(at, hop);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HashKey;
    use onym_wire::name::Name;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const KEY: HashKey = HashKey::new(3, 4);

    fn name(path: &[u8]) -> Name {
        let mut name = Name::new();
        for &c in path {
            name.append_generic([c]);
        }
        name
    }

    fn with_prefix<R>(path: &[u8], then: impl FnOnce(&Prefix<'_>) -> R) -> R {
        let name = name(path);
        let hash = KEY.name(name.value());
        then(&Prefix { bytes: name.value(), len: path.len(), hash })
    }

    #[derive(Debug, Clone)]
    enum Op {
        Add(Vec<u8>, u32, u64),
        Remove(Vec<u8>, u32),
        RemoveFace(u32),
        Look(Vec<u8>),
    }

    fn op() -> impl Strategy<Value = Op> {
        let path = || prop::collection::vec(0u8..3, 0..5);
        prop_oneof![
            5 => (path(), 0u32..4, 0u64..3).prop_map(|(p, face, cost)| Op::Add(p, face, cost)),
            2 => (path(), 0u32..4).prop_map(|(p, face)| Op::Remove(p, face)),
            1 => (0u32..4).prop_map(Op::RemoveFace),
            5 => prop::collection::vec(0u8..3, 0..8).prop_map(Op::Look),
        ]
    }

    /// Prefixes with face to cost, as a naive table keeps them.
    type Model = BTreeMap<Vec<u8>, BTreeMap<u32, u64>>;

    fn sorted(hops: &BTreeMap<u32, u64>) -> Vec<NextHop> {
        let mut hops: Vec<_> =
            hops.iter().map(|(&face, &cost)| NextHop { face: FaceId(face), cost }).collect();
        hops.sort_by_key(|h| (h.cost, h.face));
        hops
    }

    proptest! {
        #[test]
        fn the_longest_prefix_is_found_as_by_trying_all(
            ops in prop::collection::vec(op(), 1..150), entries_max in 1usize..20
        ) {
            let mut fib = Fib::new(entries_max);
            let mut model = Model::new();
            for op in ops {
                match op {
                    Op::Add(path, face, cost) => {
                        let hop = NextHop { face: FaceId(face), cost };
                        let added = with_prefix(&path, |p| fib.add(p, hop));
                        if !model.contains_key(&path) && model.len() >= entries_max {
                            prop_assert_eq!(added, Err(FibError::Full(entries_max)));
                        } else {
                            let old = model.entry(path).or_default().insert(face, cost);
                            prop_assert_eq!(added, Ok(old.is_none()));
                        }
                    }
                    Op::Remove(path, face) => {
                        let known = model.get_mut(&path).is_some_and(|h| h.remove(&face).is_some());
                        model.retain(|_, hops| !hops.is_empty());
                        prop_assert_eq!(with_prefix(&path, |p| fib.remove(p, FaceId(face))), known);
                    }
                    Op::RemoveFace(face) => {
                        fib.remove_face(FaceId(face));
                        for hops in model.values_mut() {
                            hops.remove(&face);
                        }
                        model.retain(|_, hops| !hops.is_empty());
                    }
                    Op::Look(path) => {
                        let name = name(&path);
                        let hashes = NameHashes::new(&KEY, name.value(), fib.lengths());
                        let found = fib.lookup(&hashes, name.value()).map(|(p, h)| (p.len, h.to_vec()));
                        let expected = (0..=path.len())
                            .rev()
                            .find_map(|len| model.get(&path[..len]).map(|h| (len, sorted(h))));
                        prop_assert_eq!(found, expected);
                    }
                }
                prop_assert_eq!(fib.len(), model.len());
                prop_assert_eq!(fib.iter().count(), model.len());
                let mut over = HashMap::new();
                for face in model.values().flat_map(BTreeMap::keys) {
                    *over.entry(FaceId(*face)).or_default() += 1;
                }
                prop_assert_eq!(&fib.over, &over, "else a face that is gone stays a next hop");
            }
        }
    }

    #[test]
    fn a_full_table_refuses_a_prefix_and_takes_a_next_hop() {
        let mut fib = Fib::new(1);
        let hop = |face| NextHop { face: FaceId(face), cost: 1 };
        assert_eq!(with_prefix(&[1], |p| fib.add(p, hop(1))), Ok(true));
        assert_eq!(with_prefix(&[2], |p| fib.add(p, hop(1))), Err(FibError::Full(1)));
        assert_eq!(with_prefix(&[1], |p| fib.add(p, hop(2))), Ok(true));
    }
}
