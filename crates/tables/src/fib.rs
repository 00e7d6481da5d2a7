//! The forwarding information base: name prefix → next hops, lowest cost first.

use crate::FaceId;
use crate::hash::{NameHashes, Prefix};
use crate::prefix_map::PrefixMap;
use smallvec::SmallVec;

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
}

impl Fib {
    /// An empty FIB of at most `entries_max` prefixes.
    #[must_use]
    pub fn new(entries_max: usize) -> Self {
        Self { map: PrefixMap::default(), entries_max }
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
            return Ok(known.is_none());
        }
        if self.map.len() >= self.entries_max {
            return Err(FibError::Full(self.entries_max));
        }
        self.map.insert(prefix, SmallVec::from_buf([hop]));
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
        true
    }

    /// Takes away every next hop over `face`. Visits the whole table.
    pub fn remove_face(&mut self, face: FaceId) {
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
    #[inline]
    #[must_use]
    pub fn lookup<'n>(
        &self,
        hashes: &NameHashes,
        name: &'n [u8],
    ) -> Option<(Prefix<'n>, &[NextHop])> {
        self.map.longest_match(hashes, name, |_| true).map(|(p, hops)| (p, hops.as_slice()))
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
