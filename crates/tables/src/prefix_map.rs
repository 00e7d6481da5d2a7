//! A map from name prefixes to values with longest-prefix match: one hash index for all lengths,
//! and a mask of the lengths in use, so that a match probes only lengths that exist.

use crate::hash::{NameHashes, Prefix};
use crate::index::HashIndex;
use crate::room;
use onym_wire::NAME_COMPONENTS_MAX;
use std::ops::ControlFlow;

#[derive(Debug)]
struct Node<V> {
    hash: u64,
    name: Box<[u8]>,
    len: u8,
    value: Option<V>,
}

/// Prefix → value, bounded by the caller (see [`PrefixMap::len`]).
#[derive(Debug)]
pub struct PrefixMap<V> {
    index: HashIndex,
    nodes: Vec<Node<V>>,
    free: Vec<u32>,
    /// Entries of each length, and the lengths with any, as bits.
    counts: [u32; NAME_COMPONENTS_MAX + 1],
    lengths: u64,
}

impl<V> Default for PrefixMap<V> {
    fn default() -> Self {
        Self {
            index: HashIndex::new(),
            nodes: Vec::new(),
            free: Vec::new(),
            counts: [0; NAME_COMPONENTS_MAX + 1],
            lengths: 0,
        }
    }
}

impl<V> PrefixMap<V> {
    /// Entries in the map.
    #[must_use]
    pub fn len(&self) -> usize {
        self.index.len()
    }

    /// Whether the map has no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.index.is_empty()
    }

    /// Lengths in use, as bits.
    #[inline]
    #[must_use]
    pub fn lengths(&self) -> u64 {
        self.lengths
    }

    /// Has the processor fetch where the prefixes of a name may be, in a map that it does not have.
    #[inline(always)]
    pub fn prefetch(&self, hashes: &NameHashes) {
        if self.is_large() {
            hashes.each(self.lengths, |hash| self.index.prefetch(hash));
        }
    }

    /// Whether the processor may not have what a match meets.
    #[inline(always)]
    #[must_use]
    pub fn is_large(&self) -> bool {
        const CACHED: usize = 1 << 10;
        self.nodes.len() > CACHED
    }

    /// Has the processor fetch the entries of the prefixes of a name, most likely.
    #[inline(always)]
    pub fn prefetch_found(&self, hashes: &NameHashes) {
        self.each_likely(hashes, |node| {
            onym_mem::prefetch(node);
            onym_mem::prefetch(&node.value);
        });
    }

    /// As [`PrefixMap::prefetch_found`], when that is done, their names.
    #[inline(always)]
    pub fn prefetch_names(&self, hashes: &NameHashes) {
        self.each_likely(hashes, |node| onym_mem::prefetch_whole(&node.name));
    }

    #[inline(always)]
    fn each_likely(&self, hashes: &NameHashes, visit: impl Fn(&Node<V>)) {
        if !self.is_large() {
            return;
        }
        hashes.each(self.lengths, |hash| {
            if let Some(slot) = self.index.likely(hash) {
                visit(&self.nodes[slot as usize]);
            }
        });
    }

    #[inline(always)]
    fn slot(&self, prefix: &Prefix<'_>) -> Option<u32> {
        self.index.find(prefix.hash, |slot| {
            let node = &self.nodes[slot as usize];
            node.hash == prefix.hash && *node.name == *prefix.bytes
        })
    }

    /// The value of exactly this prefix.
    #[must_use]
    #[inline(always)]
    pub fn get(&self, prefix: &Prefix<'_>) -> Option<&V> {
        self.slot(prefix).and_then(|slot| self.nodes[slot as usize].value.as_ref())
    }

    /// The value of exactly this prefix, to change.
    pub fn get_mut(&mut self, prefix: &Prefix<'_>) -> Option<&mut V> {
        self.slot(prefix).and_then(|slot| self.nodes[slot as usize].value.as_mut())
    }

    /// The entry of the longest prefix of `name`, whose hashes are `hashes`, for which `accept`
    /// holds. Lengths whose hash was not asked for are not seen.
    #[inline(always)]
    pub fn longest_match<'n>(
        &self,
        hashes: &NameHashes,
        name: &'n [u8],
        mut accept: impl FnMut(&V) -> bool,
    ) -> Option<(Prefix<'n>, &V)> {
        let mut lengths = self.lengths & hashes.lengths();
        while lengths != 0 {
            let len = 63 - lengths.leading_zeros() as usize;
            lengths &= !(1 << len);
            let Some(prefix) = hashes.prefix(name, len) else { continue };
            if let Some(value) = self.get(&prefix)
                && accept(value)
            {
                return Some((prefix, value));
            }
        }
        None
    }

    /// Shows the entries of all prefixes of `name` to `visit` with their numbers of components, the
    /// longest first, until it breaks.
    pub fn walk_mut(
        &mut self,
        hashes: &NameHashes,
        name: &[u8],
        mut visit: impl FnMut(usize, &mut V) -> ControlFlow<()>,
    ) {
        let mut lengths = self.lengths & hashes.lengths();
        while lengths != 0 {
            let len = 63 - lengths.leading_zeros() as usize;
            lengths &= !(1 << len);
            let Some(prefix) = hashes.prefix(name, len) else { continue };
            if let Some(value) = self.get_mut(&prefix)
                && visit(len, value).is_break()
            {
                return;
            }
        }
    }

    /// Sets the value of `prefix` and returns the one it replaces.
    ///
    /// # Panics
    /// If the prefix has more than [`NAME_COMPONENTS_MAX`] components: no [`Prefix`] has.
    pub fn insert(&mut self, prefix: &Prefix<'_>, value: V) -> Option<V> {
        if let Some(slot) = self.slot(prefix) {
            return self.nodes[slot as usize].value.replace(value);
        }
        let len = u8::try_from(prefix.len).expect("invariant: at most 32 components");
        let node = Node { hash: prefix.hash, name: prefix.bytes.into(), len, value: Some(value) };
        let slot = match self.free.pop() {
            Some(slot) => {
                self.nodes[slot as usize] = node;
                slot
            }
            None => self.push(node),
        };
        self.index.insert(prefix.hash, slot);
        self.counts[prefix.len] += 1;
        self.lengths |= 1 << prefix.len;
        None
    }

    fn push(&mut self, node: Node<V>) -> u32 {
        room::push(&mut self.nodes, node);
        u32::try_from(self.nodes.len() - 1).expect("invariant: fewer than 2^32 prefixes")
    }

    /// Takes `prefix` out.
    pub fn remove(&mut self, prefix: &Prefix<'_>) -> Option<V> {
        let slot = self.slot(prefix)?;
        self.take(slot)
    }

    fn take(&mut self, slot: u32) -> Option<V> {
        let node = &mut self.nodes[slot as usize];
        let value = node.value.take()?;
        node.name = Box::default();
        let (hash, len) = (node.hash, node.len as usize);
        self.index.remove(hash, slot);
        self.free.push(slot);
        self.counts[len] -= 1;
        if self.counts[len] == 0 {
            self.lengths &= !(1 << len);
        }
        Some(value)
    }

    /// Every prefix (its name's value) with its value, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &V)> + Clone {
        self.nodes.iter().filter_map(|n| n.value.as_ref().map(|v| (&*n.name, v)))
    }

    /// Keeps the entries for which `keep` holds; it may change them.
    pub fn retain(&mut self, mut keep: impl FnMut(&[u8], &mut V) -> bool) {
        for slot in 0..self.nodes.len() {
            let node = &mut self.nodes[slot];
            if let Some(value) = &mut node.value
                && !keep(&node.name, value)
            {
                let slot = u32::try_from(slot).expect("invariant: fewer than 2^32 prefixes");
                self.take(slot);
            }
        }
    }

    /// Number of slots, used and free: the positions that [`PrefixMap::at`] knows.
    #[must_use]
    pub fn slots(&self) -> usize {
        self.nodes.len()
    }

    /// The entry in slot `slot`, for listings that continue from where they were.
    #[must_use]
    pub fn at(&self, slot: usize) -> Option<(&[u8], &V)> {
        self.nodes.get(slot).and_then(|n| n.value.as_ref().map(|v| (&*n.name, v)))
    }

    /// Takes out the entry in slot `slot`.
    pub fn remove_at(&mut self, slot: usize) -> Option<V> {
        self.nodes.get(slot)?;
        self.take(u32::try_from(slot).ok()?)
    }

    /// The value in slot `slot`, to change.
    pub fn at_mut(&mut self, slot: usize) -> Option<(&[u8], &mut V)> {
        self.nodes.get_mut(slot).and_then(|n| n.value.as_mut().map(|v| (&*n.name, v)))
    }
}
