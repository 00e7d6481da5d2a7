//! The pending Interest table of one shard.
//!
//! An entry is found by name, CanBePrefix, MustBeFresh and forwarding hint. Entries of one name
//! form a chain, so that Data finds all of them at once; the name that counts here leaves an
//! implicit digest out. Slots keep their buffers when they are used again.

mod access;
pub mod entry;
mod prefixes;
#[cfg(test)]
mod tests;
mod token;

pub use entry::{Entry, InRecord, Noted, OutRecord};
pub use prefixes::{ENDS, LONG, MARK_WORDS, Prefixes, has_end, mark_of};
pub use token::{SLOTS_MAX, TOKEN_LEN, TOKEN_LEN_MAX, Token, TokenCodec, TokenTooLong};

use crate::hash::{HashKey, NameHashes, component_count};
use crate::index::HashIndex;
use crate::wheel::Wheel;
use crate::{Tick, room};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::tlv::first_value_at;

const NONE: u32 = u32::MAX;

/// Entries of one name that differ in hint or implicit digest; more are refused, because Data of
/// that name must visit them all. Entries with neither do not count.
pub const VARIANTS_MAX: usize = 64;

/// A slot keeps the buffer of a usual Interest for the next one, a longer one is given back at once.
const KEPT_LEN: usize = 512;

/// A table of so many slots is in the processor's caches.
const CACHED: usize = 1 << 10;

/// What tells pending Interests apart.
#[derive(Debug, Clone, Copy)]
pub struct Key<'a> {
    /// Value of the name, a part of the Interest.
    pub name: &'a [u8],
    /// Its hash, and octets, without an implicit digest ([`NameHashes`]).
    pub hash: u64,
    /// Octets of the name without an implicit digest.
    pub undigested_len: usize,
    /// CanBePrefix.
    pub can_be_prefix: bool,
    /// MustBeFresh.
    pub must_be_fresh: bool,
    /// Components of the name; 0 where they were not counted.
    pub components: usize,
    /// Hash of the forwarding hint, 0 when there is none (any more).
    pub hint: u64,
}

impl<'a> Key<'a> {
    /// The key of an Interest with this name, whose hashes are `hashes`.
    #[must_use]
    pub fn new(name: &'a [u8], hashes: &NameHashes) -> Self {
        Self {
            name,
            hash: hashes.undigested,
            undigested_len: hashes.undigested_len,
            can_be_prefix: false,
            must_be_fresh: false,
            components: 0,
            hint: 0,
        }
    }
}

/// Why the PIT did not take an Interest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PitError {
    /// The configured limit of entries is reached.
    #[error("the PIT holds its limit of entries (pit.entries_max)")]
    Full,
    /// The configured limit of octets is reached.
    #[error("the PIT holds its limit of octets (pit.bytes_max)")]
    Octets,
    /// More than [`VARIANTS_MAX`] hints or digests for one name.
    #[error("too many hints or digests are pending for one name")]
    Variants,
}

/// Which timer of an entry fired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Due {
    /// The entry has ended.
    Expiry,
    /// The timer of the strategy.
    Strategy,
}

#[derive(Debug)]
struct Slot<I> {
    interest: Vec<u8>,
    hash: u64,
    hint: u64,
    next: u32,
    prev: u32,
    name_at: u16,
    name_len: u16,
    undigested_len: u16,
    /// Of the name without an implicit digest; 0 where they were not counted, and the entry has no
    /// CanBePrefix.
    components: u16,
    generation: u16,
    can_be_prefix: bool,
    must_be_fresh: bool,
    live: bool,
    entry: Entry<I>,
}

/// What a lookup found.
#[derive(Debug, Clone, Copy)]
pub struct Look {
    /// The entry.
    pub found: Option<u32>,
    head: u32,
    variants: usize,
}

impl Look {
    /// No entry has this name.
    pub const NOTHING: Self = Self { found: None, head: NONE, variants: 0 };
}

/// The octets of a pending Interest, out of the table for a while.
#[derive(Debug)]
pub struct Lent {
    interest: Vec<u8>,
    name_at: u16,
    name_len: u16,
}

impl Lent {
    /// The whole Interest.
    #[must_use]
    pub fn interest(&self) -> &[u8] {
        &self.interest
    }

    /// Value of its name.
    #[must_use]
    pub fn name(&self) -> &[u8] {
        &self.interest[self.name_at as usize..self.name_at as usize + self.name_len as usize]
    }
}

/// Three quarters of a bound.
pub const fn nearly(limit: usize) -> usize {
    limit - limit / 4
}

/// The table. Full: an Interest that needs a new entry is refused, entries that are there stay.
#[derive(Debug)]
pub struct Pit<I> {
    slots: Vec<Slot<I>>,
    free: Vec<u32>,
    /// Name without digest → first entry of the name's chain.
    index: HashIndex,
    wheel: Wheel,
    entries_max: usize,
    /// CanBePrefix entries.
    prefixes: Prefixes,
    octets: usize,
    octets_max: usize,
    /// Entries and octets from which on it is nearly full.
    nearly: [usize; 2],
}

impl<I: Default> Pit<I> {
    /// An empty table of at most `entries_max` entries, at most [`SLOTS_MAX`].
    #[must_use]
    pub fn new(entries_max: usize) -> Self {
        Self {
            slots: Vec::new(),
            free: Vec::new(),
            index: HashIndex::new(),
            wheel: Wheel::default(),
            entries_max: entries_max.min(SLOTS_MAX),
            prefixes: Prefixes::new(),
            octets: 0,
            octets_max: usize::MAX,
            nearly: [nearly(entries_max.min(SLOTS_MAX)), nearly(usize::MAX)],
        }
    }

    /// The same with a bound of the octets of pending Interests.
    #[must_use]
    pub fn with_octets_max(mut self, octets_max: usize) -> Self {
        self.octets_max = octets_max;
        self.count_nearly();
        self
    }

    fn count_nearly(&mut self) {
        // A further Interest has room below.
        let octets = self.octets_max.saturating_sub(PACKET_LEN_MAX);
        self.nearly = [nearly(self.entries_max), octets.min(nearly(self.octets_max))];
    }

    /// Whether three quarters of a bound are used, or a further Interest may have no room.
    #[inline(always)]
    #[must_use]
    pub fn is_nearly_full(&self) -> bool {
        self.len() >= self.nearly[0] || self.octets >= self.nearly[1]
    }

    /// Entries.
    #[inline]
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether nothing is pending.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The bound.
    #[must_use]
    pub fn entries_max(&self) -> usize {
        self.entries_max
    }

    /// Changes the bound; entries that are there stay.
    pub fn set_entries_max(&mut self, entries_max: usize) {
        self.entries_max = entries_max.min(SLOTS_MAX);
        self.count_nearly();
    }

    /// Octets of the pending Interests.
    #[inline]
    #[must_use]
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// The bound of [`Pit::octets`].
    #[inline]
    #[must_use]
    pub fn octets_max(&self) -> usize {
        self.octets_max
    }

    /// Octets of buffers that free slots keep for the next Interests.
    #[must_use]
    pub fn kept_octets(&self) -> usize {
        self.free.iter().map(|slot| self.slots[*slot as usize].interest.capacity()).sum()
    }

    /// Gives the buffers of free slots back, after many entries ended at once.
    pub fn give_back_buffers(&mut self) {
        for slot in &self.free {
            self.slots[*slot as usize].interest = Vec::new();
        }
    }

    /// Numbers of components, as bits, for which CanBePrefix entries exist: what Data must be
    /// hashed for.
    #[inline]
    #[must_use]
    pub fn prefix_lengths(&self) -> u64 {
        self.prefixes.lengths() & !LONG
    }

    /// Whether a CanBePrefix entry exists.
    #[must_use]
    pub fn has_prefix_entries(&self) -> bool {
        self.prefixes.summary() != 0
    }

    /// What CanBePrefix entries wait for.
    #[inline]
    pub fn prefixes_mut(&mut self) -> &mut Prefixes {
        &mut self.prefixes
    }

    #[inline(always)]
    fn name(&self, slot: u32) -> &[u8] {
        let s = &self.slots[slot as usize];
        &s.interest[s.name_at as usize..s.name_at as usize + s.name_len as usize]
    }

    #[inline]
    fn head(&self, hash: u64, undigested: &[u8]) -> Option<u32> {
        self.index.find(hash, |slot| {
            let s = &self.slots[slot as usize];
            let at = s.name_at as usize;
            s.hash == hash && s.interest[at..at + s.undigested_len as usize] == *undigested
        })
    }

    /// Whether an entry has the name of `key`, whatever else differs.
    #[inline(always)]
    #[must_use]
    pub fn has_name(&self, key: &Key<'_>) -> bool {
        self.head(key.hash, &key.name[..key.undigested_len]).is_some()
    }

    /// Looks `key` up: its entry, and what an insertion needs to know.
    #[inline(always)]
    #[must_use]
    pub fn look(&self, key: &Key<'_>) -> Look {
        let Some(head) = self.head(key.hash, &key.name[..key.undigested_len]) else {
            return Look::NOTHING;
        };
        let mut variants = 0;
        let mut at = head;
        while at != NONE {
            let s = &self.slots[at as usize];
            if s.can_be_prefix == key.can_be_prefix
                && s.must_be_fresh == key.must_be_fresh
                && s.hint == key.hint
                && s.name_len as usize == key.name.len()
                && (s.name_len == s.undigested_len || self.name(at) == key.name)
            {
                return Look { found: Some(at), head, variants };
            }
            variants += usize::from(s.hint != 0 || s.name_len != s.undigested_len);
            at = s.next;
        }
        Look { found: None, head, variants }
    }

    /// Makes an entry for `key`, which was not found. `interest` is the whole Interest;
    /// `key.name` must be a part of it. The table must not have changed since `look`.
    ///
    /// # Errors
    /// [`PitError`] at one of the bounds.
    #[inline(always)]
    pub fn insert(&mut self, look: &Look, key: &Key<'_>, interest: &[u8]) -> Result<u32, PitError> {
        debug_assert!(look.found.is_none());
        let is_variant = key.hint != 0 || key.name.len() != key.undigested_len;
        if is_variant && look.variants >= VARIANTS_MAX {
            return Err(PitError::Variants);
        }
        if self.is_nearly_full() {
            if self.octets + interest.len() > self.octets_max {
                return Err(PitError::Octets);
            }
            if self.len() >= self.entries_max {
                return Err(PitError::Full);
            }
        }
        let slot = self.allocate()?;
        self.fill(slot, key, interest);
        match look.head {
            NONE => self.index.insert(key.hash, slot),
            head => self.link_behind(head, slot),
        }
        if key.can_be_prefix {
            let name = &key.name[..key.undigested_len];
            let components = component_count(name);
            self.slots[slot as usize].components = u16::try_from(components).unwrap_or(u16::MAX);
            self.prefixes.count(name, components, key.hash, 1);
        }
        Ok(slot)
    }

    #[inline(always)]
    fn allocate(&mut self) -> Result<u32, PitError> {
        match self.free.pop() {
            Some(slot) => Ok(slot),
            None => self.add_slot(),
        }
    }

    #[cold]
    fn add_slot(&mut self) -> Result<u32, PitError> {
        let slot = u32::try_from(self.slots.len()).map_err(|_| PitError::Full)?;
        room::push(
            &mut self.slots,
            Slot {
                interest: Vec::new(),
                hash: 0,
                hint: 0,
                next: NONE,
                prev: NONE,
                name_at: 0,
                name_len: 0,
                undigested_len: 0,
                components: 0,
                generation: 0,
                can_be_prefix: false,
                must_be_fresh: false,
                live: false,
                entry: Entry::default(),
            },
        );
        room::match_free(&self.slots, &mut self.free);
        Ok(slot)
    }

    // Offsets within an Interest, which is at most 8800 octets.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn fill(&mut self, slot: u32, key: &Key<'_>, interest: &[u8]) {
        let name_at = first_value_at(interest.len(), key.name.len());
        debug_assert!(interest.get(name_at..name_at + key.name.len()) == Some(key.name));
        let s = &mut self.slots[slot as usize];
        // Exactly: room that doubles would stay with the slot. Nearly always there is enough.
        if s.interest.capacity() < interest.len() {
            s.interest.reserve_exact(interest.len());
        }
        s.interest.extend_from_slice(interest);
        s.hash = key.hash;
        s.hint = key.hint;
        (s.next, s.prev) = (NONE, NONE);
        s.name_at = name_at as u16;
        s.name_len = key.name.len() as u16;
        s.undigested_len = key.undigested_len as u16;
        s.components = key.components as u16;
        s.can_be_prefix = key.can_be_prefix;
        s.must_be_fresh = key.must_be_fresh;
        s.live = true;
        self.octets += interest.len();
    }

    fn link_behind(&mut self, head: u32, slot: u32) {
        let next = std::mem::replace(&mut self.slots[head as usize].next, slot);
        if next != NONE {
            self.slots[next as usize].prev = slot;
        }
        let s = &mut self.slots[slot as usize];
        (s.prev, s.next) = (head, next);
    }

    /// Erases the entry in `slot` with its timers.
    pub fn erase(&mut self, slot: u32) {
        self.wheel.cancel(slot * 2);
        self.wheel.cancel(slot * 2 + 1);
        let s = &mut self.slots[slot as usize];
        debug_assert!(s.live);
        if s.can_be_prefix {
            let at = s.name_at as usize;
            let name = &s.interest[at..at + s.undigested_len as usize];
            self.prefixes.count(name, s.components as usize, s.hash, -1);
        }
        s.live = false;
        s.generation = s.generation.wrapping_add(1);
        self.octets -= s.interest.len();
        if s.interest.capacity() > KEPT_LEN {
            s.interest = Vec::new();
        } else {
            s.interest.clear();
        }
        s.entry.reset();
        let (hash, prev, next) = (s.hash, s.prev, s.next);
        if next != NONE {
            self.slots[next as usize].prev = prev;
        }
        match (prev, next) {
            (NONE, NONE) => {
                self.index.remove(hash, slot);
            }
            (NONE, next) => self.index.replace(hash, slot, next),
            (prev, next) => self.slots[prev as usize].next = next,
        }
        self.free.push(slot);
    }

    /// The pending Interest of `slot`, as it was received first.
    #[must_use]
    pub fn interest(&self, slot: u32) -> &[u8] {
        &self.slots[slot as usize].interest
    }

    /// Whether Data named `data_name` can only satisfy the entry in `slot`: it is exactly its
    /// name, no other entry has that name, and no CanBePrefix entry may wait for it. Then its hash is
    /// returned, and the Data needs not be hashed.
    #[inline]
    #[must_use]
    pub fn only_match(&self, slot: u32, data_name: &[u8]) -> Option<u64> {
        self.only_one(slot).filter(|_| self.name(slot) == data_name)
    }

    /// As [`Pit::only_match`], of Data that has the name of the entry.
    #[inline]
    #[must_use]
    pub fn only_one(&self, slot: u32) -> Option<u64> {
        let s = &self.slots[slot as usize];
        let alone = s.prev == NONE && s.next == NONE && s.name_len == s.undigested_len;
        // The entry itself may be a CanBePrefix one.
        let may_wait = self.has_prefix_entries() && self.may_be_prefix_of(slot);
        (alone && !may_wait).then_some(s.hash)
    }

    /// Whether a CanBePrefix entry may wait for the name of the entry in `slot`.
    #[cold]
    fn may_be_prefix_of(&self, slot: u32) -> bool {
        self.prefixes.may_be(self.name(slot))
    }

    /// Pushes the slots of all entries that Data of this name satisfies. `hashes` must cover
    /// [`Pit::prefix_lengths`]; `digest` gives the implicit digest when one is asked for.
    pub fn matches(
        &self,
        key: &HashKey,
        name: &[u8],
        hashes: &NameHashes,
        mut digest: impl FnMut() -> [u8; 32],
        out: &mut Vec<u32>,
    ) {
        if let Some(head) = self.head(hashes.whole, name) {
            self.each_in_chain(head, |slot, s| {
                let wanted = &self.name(slot)[s.undigested_len as usize..];
                // An implicit digest is type 1, length 32, then the digest.
                if wanted.is_empty() || wanted[2..] == digest() {
                    out.push(slot);
                }
            });
        }
        let mut lengths = self.prefix_lengths() & hashes.lengths();
        while lengths != 0 {
            let len = lengths.trailing_zeros() as usize;
            lengths &= lengths - 1;
            if let Some(prefix) = hashes.prefix(name, len)
                && prefix.bytes.len() < name.len()
            {
                self.prefix_matches(prefix.hash, prefix.bytes, out);
            }
        }
        if self.prefixes.lengths() & LONG != 0 {
            key.each_long_prefix(name, |hash, prefix| self.prefix_matches(hash, prefix, out));
        }
    }

    fn prefix_matches(&self, hash: u64, prefix: &[u8], out: &mut Vec<u32>) {
        if let Some(head) = self.head(hash, prefix) {
            self.each_in_chain(head, |slot, s| {
                if s.can_be_prefix && s.name_len == s.undigested_len {
                    out.push(slot);
                }
            });
        }
    }

    fn each_in_chain(&self, head: u32, mut visit: impl FnMut(u32, &Slot<I>)) {
        let mut at = head;
        while at != NONE {
            let s = &self.slots[at as usize];
            visit(at, s);
            at = s.next;
        }
    }

    /// Sets the moment at which the entry in `slot` ends.
    #[inline]
    pub fn set_expiry(&mut self, slot: u32, at: Tick) {
        self.wheel.arm(slot * 2, at);
    }

    /// Sets the strategy's timer of `slot`; [`Tick::NEVER`] stops it.
    pub fn set_timer(&mut self, slot: u32, at: Tick) {
        self.wheel.arm(slot * 2 + 1, at);
    }

    /// Takes one timer that is due at `now`.
    pub fn pop_due(&mut self, now: Tick) -> Option<(u32, Due)> {
        let id = self.wheel.pop(now)?;
        Some((id / 2, if id % 2 == 0 { Due::Expiry } else { Due::Strategy }))
    }

    /// When [`Pit::pop_due`] should be asked next.
    #[inline]
    #[must_use]
    pub fn next_due(&self) -> Option<Tick> {
        self.wheel.next()
    }
}
