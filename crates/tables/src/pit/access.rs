//! Entries by their slot, and which are live.

use super::{CACHED, Entry, Lent, Pit};
use crate::hash::HashKey;
use onym_wire::name::NameRef;

impl<I: Default> Pit<I> {
    /// The entry in `slot`.
    #[inline]
    #[must_use]
    pub fn entry(&self, slot: u32) -> &Entry<I> {
        &self.slots[slot as usize].entry
    }

    /// The entry in `slot`, to change.
    #[inline]
    pub fn entry_mut(&mut self, slot: u32) -> &mut Entry<I> {
        &mut self.slots[slot as usize].entry
    }

    /// Interest, value of its name, and entry of `slot`.
    #[inline]
    pub fn parts(&mut self, slot: u32) -> (&[u8], &[u8], &mut Entry<I>) {
        let s = &mut self.slots[slot as usize];
        let name = &s.interest[s.name_at as usize..s.name_at as usize + s.name_len as usize];
        (&s.interest, name, &mut s.entry)
    }

    /// Takes the pending Interest of `slot` out, so that the table can change while it is read;
    /// to be given back with [`Pit::give_back`] before the entry is looked at again.
    #[must_use]
    pub fn lend(&mut self, slot: u32) -> Lent {
        let s = &mut self.slots[slot as usize];
        Lent { interest: std::mem::take(&mut s.interest), name_at: s.name_at, name_len: s.name_len }
    }

    /// Puts a lent Interest back.
    pub fn give_back(&mut self, slot: u32, lent: Lent) {
        self.slots[slot as usize].interest = lent.interest;
    }

    /// Whether the Interest in `slot` has MustBeFresh.
    #[must_use]
    pub fn must_be_fresh(&self, slot: u32) -> bool {
        self.slots[slot as usize].must_be_fresh
    }

    /// Hash of the forwarding hint of the Interest in `slot`, 0 for none.
    #[must_use]
    pub fn hint(&self, slot: u32) -> u64 {
        self.slots[slot as usize].hint
    }

    /// Hash of the whole name in `slot`, its digest included.
    #[inline]
    #[must_use]
    pub fn whole_hash(&self, slot: u32, key: &HashKey) -> u64 {
        let s = &self.slots[slot as usize];
        if s.name_len == s.undigested_len { s.hash } else { key.name(self.name(slot)) }
    }

    /// The generation of `slot`, for its token.
    #[inline]
    #[must_use]
    pub fn generation(&self, slot: u32) -> u16 {
        self.slots[slot as usize].generation
    }

    /// Has the processor fetch what a lookup of a name with this hash, or its removal, meets.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Has the processor fetch the entry in `slot`, which may be none, and its timer.
    #[inline(always)]
    pub fn prefetch_slot(&self, slot: u32) {
        if self.is_large()
            && let Some(s) = self.slots.get(slot as usize)
        {
            onym_mem::prefetch(&s.interest);
            onym_mem::prefetch(&s.entry.ins);
            onym_mem::prefetch(&s.entry.outs);
            self.wheel.prefetch(slot * 2);
        }
    }

    /// Whether the processor may not have what a lookup meets.
    #[inline(always)]
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.slots.len() > CACHED
    }

    /// Has the processor fetch the entry that a lookup of a name with this hash finds, if any.
    #[inline(always)]
    pub fn prefetch_found(&self, hash: u64) {
        if let Some(slot) = self.index.likely(hash) {
            self.prefetch_slot(slot);
        }
    }

    /// Has the processor fetch what the end of the entry in `slot` meets beside the entry: its
    /// Interest and its place in the index. The hash of its name.
    #[inline(always)]
    pub fn prefetch_end(&self, slot: u32) -> Option<u64> {
        let s = self.slots.get(slot as usize).filter(|s| s.live)?;
        onym_mem::prefetch_whole(&s.interest);
        self.index.prefetch(s.hash);
        Some(s.hash)
    }

    /// The name that Data for the entry in `slot` most likely has: one without digest, which was
    /// checked as part of its Interest.
    #[inline]
    #[must_use]
    pub fn likely_name(&self, slot: u32) -> Option<NameRef<'_>> {
        let s = &self.slots[slot as usize];
        let is_plain = s.name_len == s.undigested_len && s.components > 0;
        is_plain.then(|| NameRef::known(self.name(slot), s.components.into()))
    }

    /// Whether Data of longer names satisfies the entry in `slot`, too.
    #[must_use]
    pub fn can_be_prefix(&self, slot: u32) -> bool {
        self.slots[slot as usize].can_be_prefix
    }

    /// The slot that a token names, when it still is in that generation.
    #[inline]
    #[must_use]
    pub fn at_token(&self, slot: u32, generation: u16) -> Option<u32> {
        let s = self.slots.get(slot as usize)?;
        (s.live && s.generation == generation).then_some(slot)
    }

    /// Slots with an entry, in no particular order.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        (0u32..).zip(&self.slots).filter(|(_, s)| s.live).map(|(slot, _)| slot)
    }

    /// Number of slots, used and free; see [`Pit::is_live`].
    #[must_use]
    pub fn slots(&self) -> u32 {
        u32::try_from(self.slots.len()).unwrap_or(u32::MAX)
    }

    /// Whether `slot` holds an entry.
    #[must_use]
    pub fn is_live(&self, slot: u32) -> bool {
        self.slots.get(slot as usize).is_some_and(|s| s.live)
    }
}
