//! Tables by identifier that share one hash. A request, its answer and the changes that they cause
//! at a shard look up the same identifier in several tables; it is hashed once.

use crate::shrink::Shrink;
use hashbrown::HashTable;
use onym_tables::KeyedState;
use onym_wire::push::Id;
use std::hash::{BuildHasher, Hasher};
use std::ops::Deref;

/// Entries that a table has room for from the start: one that is filled and emptied by turns would
/// otherwise be rebuilt every few changes.
const CAPACITY: usize = 48;

/// How the identifiers of one node are hashed; a clone hashes alike.
#[derive(Debug, Clone, Default)]
pub struct Hashing(KeyedState);

impl Hashing {
    /// The identifier with its hash.
    #[must_use]
    pub fn key(&self, id: Id) -> Key {
        Key { hash: self.of(id.octets()), id }
    }

    #[inline]
    fn of(&self, octets: &[u8]) -> u64 {
        let mut hasher = self.0.build_hasher();
        hasher.write(octets);
        hasher.finish()
    }
}

/// An identifier with its hash.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    hash: u64,
    id: Id,
}

impl Deref for Key {
    type Target = Id;

    fn deref(&self) -> &Id {
        &self.id
    }
}

/// What a table can be asked for.
pub(crate) trait Named: Copy {
    /// Octets of the identifier.
    fn octets(&self) -> &[u8];
    /// Their hash.
    fn hash(self, hashing: &Hashing) -> u64;
}

impl Named for &Key {
    #[inline]
    fn octets(&self) -> &[u8] {
        self.id.octets()
    }

    #[inline]
    fn hash(self, _: &Hashing) -> u64 {
        self.hash
    }
}

impl Named for &Id {
    #[inline]
    fn octets(&self) -> &[u8] {
        Id::octets(self)
    }

    #[inline]
    fn hash(self, hashing: &Hashing) -> u64 {
        hashing.of(Id::octets(self))
    }
}

impl Named for &[u8] {
    #[inline]
    fn octets(&self) -> &[u8] {
        self
    }

    #[inline]
    fn hash(self, hashing: &Hashing) -> u64 {
        hashing.of(self)
    }
}

/// A table by identifier.
#[derive(Debug)]
pub(crate) struct Names<V> {
    table: HashTable<(Key, V)>,
    hashing: Hashing,
    shrink: Shrink,
}

impl<V> Names<V> {
    pub(crate) fn new(hashing: &Hashing) -> Self {
        let table = HashTable::with_capacity(CAPACITY);
        Self { table, hashing: hashing.clone(), shrink: Shrink::default() }
    }

    pub(crate) const fn hashing(&self) -> &Hashing {
        &self.hashing
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (&Id, &V)> {
        self.table.iter().map(|(key, value)| (&key.id, value))
    }

    #[inline]
    pub(crate) fn get(&self, name: impl Named) -> Option<&V> {
        let hash = name.hash(&self.hashing);
        let found = self.table.find(hash, |(key, _)| key.id.octets() == name.octets());
        found.map(|(_, value)| value)
    }

    #[inline]
    pub(crate) fn get_mut(&mut self, name: impl Named) -> Option<&mut V> {
        self.entry(name).map(|(_, value)| value)
    }

    /// The value with its key.
    #[inline]
    pub(crate) fn entry(&mut self, name: impl Named) -> Option<(&Key, &mut V)> {
        let hash = name.hash(&self.hashing);
        let found = self.table.find_mut(hash, |(key, _)| key.id.octets() == name.octets());
        found.map(|(key, value)| (&*key, value))
    }

    pub(crate) fn contains(&self, name: impl Named) -> bool {
        self.get(name).is_some()
    }

    /// Adds an entry, whose identifier is not there yet.
    pub(crate) fn insert(&mut self, key: Key, value: V) -> &mut V {
        debug_assert!(!self.contains(&key), "{:?} is there already", key.id);
        let hash = key.hash;
        self.shrink.grew(self.table.len() + 1);
        let entry = self.table.insert_unique(hash, (key, value), |(key, _)| key.hash);
        &mut entry.into_mut().1
    }

    /// The value, made by `make` where there is none.
    pub(crate) fn get_or_insert(&mut self, key: Key, make: impl FnOnce() -> V) -> &mut V {
        self.shrink.grew(self.table.len());
        let is_same = |(known, _): &(Key, V)| known.id == key.id;
        match self.table.entry(key.hash, is_same, |(known, _)| known.hash) {
            hashbrown::hash_table::Entry::Occupied(entry) => &mut entry.into_mut().1,
            hashbrown::hash_table::Entry::Vacant(entry) => {
                &mut entry.insert((key, make())).into_mut().1
            }
        }
    }

    pub(crate) fn remove(&mut self, name: impl Named) -> Option<V> {
        self.remove_if(name, |_| true)
    }

    /// Removes the value if `is_over` says so of it.
    pub(crate) fn remove_if(
        &mut self,
        name: impl Named,
        is_over: impl FnOnce(&mut V) -> bool,
    ) -> Option<V> {
        let hash = name.hash(&self.hashing);
        let same = |(key, _): &(Key, V)| key.id.octets() == name.octets();
        let mut entry = self.table.find_entry(hash, same).ok()?;
        if !is_over(&mut entry.get_mut().1) {
            return None;
        }
        let removed = entry.remove().0.1;
        if let Some(room) = self.shrink.fell(self.table.len()) {
            self.table.shrink_to(room, |(key, _)| key.hash);
        }
        Some(removed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_an_identifier_and_its_octets_find_the_same_entry() {
        let hashing = Hashing::default();
        let mut names = Names::new(&hashing);
        let ids: Vec<Id> = (1..200).map(|n| format!("/1/{n:x}").parse().unwrap()).collect();
        for (n, id) in ids.iter().enumerate() {
            *names.get_or_insert(hashing.key(id.clone()), || 0) += n;
        }
        for (n, id) in ids.iter().enumerate() {
            assert_eq!(names.get(id), Some(&n));
            assert_eq!(names.get(id.octets()), Some(&n));
            assert_eq!(names.get_mut(&hashing.key(id.clone())), Some(&mut { n }));
        }
        assert_eq!(names.remove_if(&ids[7], |n| *n == 8), None);
        assert_eq!(names.remove(&ids[7]), Some(7));
        assert!(!names.contains(&ids[7]) && names.iter().count() == 198);
    }
}
