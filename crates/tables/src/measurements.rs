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
