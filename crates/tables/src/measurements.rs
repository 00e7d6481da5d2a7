//! What strategies remember about prefixes: bounded, forgotten after a lifetime.

use crate::Tick;
use crate::hash::{HashKey, NameHashes, Prefix};
use crate::prefix_map::PrefixMap;

#[derive(Debug, Clone)]
struct Entry<I> {
    until: Tick,
    info: I,
}

/// Prefix → information of type `I`, at most `entries_max` prefixes. At the bound expired entries
/// are forgotten first, then whichever the sweep meets next.
#[derive(Debug)]
pub struct Measurements<I> {
    map: PrefixMap<Entry<I>>,
    entries_max: usize,
    sweep_at: usize,
}

/// Slots that one insertion at the bound examines for an expired entry.
const SWEEP: usize = 8;

impl<I: Default> Measurements<I> {
    /// An empty table of at most `entries_max` (at least 1) prefixes.
    #[must_use]
    pub fn new(entries_max: usize) -> Self {
        Self { map: PrefixMap::default(), entries_max: entries_max.max(1), sweep_at: 0 }
    }

    /// Prefixes known, expired ones that were not swept included.
    #[must_use]
    pub fn len(&self) -> usize {
        self.map.len()
    }

    /// Whether nothing is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.map.is_empty()
    }

    /// What is known of exactly this prefix, unless it has expired.
    pub fn get(&self, now: Tick, prefix: &Prefix<'_>) -> Option<&I> {
        self.map.get(prefix).filter(|e| e.until > now).map(|e| &e.info)
    }

    /// As [`Measurements::get`], to change.
    pub fn get_mut(&mut self, now: Tick, prefix: &Prefix<'_>) -> Option<&mut I> {
        self.map.get_mut(prefix).filter(|e| e.until > now).map(|e| &mut e.info)
    }

    /// What is known of the longest prefix of `name` that has not expired and that `accept`s.
    /// Hashes the name for the lengths in use.
    pub fn longest_match<'n>(
        &self,
        now: Tick,
        key: &HashKey,
        name: &'n [u8],
        mut accept: impl FnMut(&I) -> bool,
    ) -> Option<(Prefix<'n>, &I)> {
        let hashes = NameHashes::new(key, name, self.map.lengths());
        self.map
            .longest_match(&hashes, name, |e| e.until > now && accept(&e.info))
            .map(|(prefix, e)| (prefix, &e.info))
    }

    /// What is known of exactly this prefix, made anew when it is missing or has expired; it is
    /// kept at least until `until`.
    pub fn get_or_insert(&mut self, now: Tick, prefix: &Prefix<'_>, until: Tick) -> &mut I {
        match self.map.get_mut(prefix) {
            Some(entry) if entry.until > now => entry.until = entry.until.max(until),
            Some(entry) => *entry = Entry { until, info: I::default() },
            None => {
                if self.map.len() >= self.entries_max {
                    self.forget_one(now);
                }
                self.map.insert(prefix, Entry { until, info: I::default() });
            }
        }
        let entry = self.map.get_mut(prefix).expect("invariant: was there or was inserted");
        &mut entry.info
    }

    fn forget_one(&mut self, now: Tick) {
        let slots = self.map.slots();
        let mut candidate = None;
        for step in 0..slots {
            self.sweep_at = (self.sweep_at + 1) % slots;
            let Some((_, entry)) = self.map.at(self.sweep_at) else { continue };
            candidate = Some(self.sweep_at);
            if entry.until <= now || step >= SWEEP {
                break;
            }
        }
        if let Some(slot) = candidate {
            self.map.remove_at(slot);
        }
    }

    /// A table that knows what this one knows of `name` and its prefixes, to try things on.
    #[must_use]
    pub fn copy_for(&self, key: &HashKey, name: &[u8]) -> Self
    where
        I: Clone,
    {
        let mut copy = Self::new(self.entries_max);
        let hashes = NameHashes::new(key, name, self.map.lengths());
        for len in 0..64 {
            if let Some(prefix) = hashes.prefix(name, len)
                && let Some(entry) = self.map.get(&prefix)
            {
                copy.map.insert(&prefix, entry.clone());
            }
        }
        copy
    }

    /// Forgets what is known of names under `prefix` (its name's value), as when its strategy
    /// changes.
    pub fn clear_under(&mut self, prefix: &[u8]) {
        self.map.retain(|name, _| !name.starts_with(prefix));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::name::Name;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    const KEY: HashKey = HashKey::new(5, 6);

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

    proptest! {
        #[test]
        fn what_was_noted_is_known_until_it_expires(
            ops in prop::collection::vec(
                (prop::collection::vec(0u8..3, 0..5), 0u64..40, 0u64..10, any::<bool>()), 1..150
            )
        ) {
            let mut table: Measurements<u64> = Measurements::new(1000);
            let mut model: BTreeMap<Vec<u8>, (Tick, u64)> = BTreeMap::new();
            let mut now = Tick::from_ms(1);
            for (step, (path, keep_ms, wait_ms, note)) in (0u64..).zip(ops) {
                now = now.plus_ms(wait_ms);
                if note {
                    let until = now.plus_ms(keep_ms);
                    *with_prefix(&path, |p| table.get_or_insert(now, p, until)) += step;
                    let known = model.get(&path).filter(|(old, _)| *old > now).copied();
                    let (old, info) = known.unwrap_or((until, 0));
                    model.insert(path.clone(), (old.max(until), info + step));
                }
                let expected = model.get(&path).filter(|(until, _)| *until > now).map(|(_, i)| *i);
                prop_assert_eq!(with_prefix(&path, |p| table.get(now, p).copied()), expected);
                let longest = (0..=path.len()).rev().find_map(|len| {
                    model.get(&path[..len]).filter(|(until, _)| *until > now).map(|(_, i)| (len, *i))
                });
                let name = name(&path);
                let found = table
                    .longest_match(now, &KEY, name.value(), |_| true)
                    .map(|(prefix, info)| (prefix.len, *info));
                prop_assert_eq!(found, longest);
            }
        }
    }

    #[test]
    fn a_full_table_forgets_what_has_expired_and_else_something_old_for_the_new() {
        let mut table: Measurements<u8> = Measurements::new(4);
        let (early, late) = (Tick::from_ms(10), Tick::from_ms(1000));
        for n in 0..4 {
            let until = if n == 2 { early } else { late };
            *with_prefix(&[n], |p| table.get_or_insert(Tick(0), p, until)) = n;
        }
        let now = Tick::from_ms(20);
        with_prefix(&[9], |p| *table.get_or_insert(now, p, late) = 9);
        let known = |table: &Measurements<u8>| {
            (0..10).filter(|n| with_prefix(&[*n], |p| table.get(now, p).is_some())).count()
        };
        assert_eq!((table.len(), known(&table)), (4, 4), "the expired one went");
        with_prefix(&[8], |p| *table.get_or_insert(now, p, late) = 8);
        assert_eq!((table.len(), known(&table)), (4, 4), "a live one went");
        assert_eq!(with_prefix(&[8], |p| table.get(now, p).copied()), Some(8));
        table.clear_under(name(&[8]).value());
        assert_eq!((table.len(), known(&table)), (3, 3));
    }
}
