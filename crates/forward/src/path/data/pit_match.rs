//! In: a Data.  Out: the PIT entries it satisfies, in `pending.matched`, and the hash of its name.
//! A token of ours names the entry, and saves hashing when no other can match; a wrong token
//! falls back to the name.
//! Drops: none.  Counters: stale_tokens, foreign_tokens.
//!
//! The token is read before the Data is parsed: where the name is that of the entry, which was checked
//! with its Interest, nothing of it is checked again.

use crate::stage::Pending;
use onym_link::Packet;
use onym_tables::hash::NameHashes;
use onym_wire::data::DataHead;

/// What the token of a Data says.
#[derive(Debug, Clone, Copy)]
pub(super) enum Told {
    /// There is none.
    Nothing,
    /// Octets that are no token of ours.
    Foreign,
    /// An entry that has ended.
    Stale,
    /// This entry.
    Entry(u32),
}

/// Reads the token.
#[inline(always)]
pub(super) fn told(pending: &Pending, packet: &Packet) -> Told {
    let token = &packet.lp.pit_token;
    if token.is_empty() {
        return Told::Nothing;
    }
    let Some((slot, generation)) = pending.tokens.decode(token) else { return Told::Foreign };
    pending.pit.prefetch_slot(slot);
    pending.pit.at_token(slot, generation).map_or(Told::Stale, Told::Entry)
}

/// An entry that a Data satisfies and no other one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Only {
    pub(super) slot: u32,
    /// Hash of its name, which is that of the Data.
    pub(super) hash: u64,
}

/// The entry that the token names, where the Data satisfies it and no other.
#[inline(always)]
pub(super) fn only(pending: &Pending, told: Told, data: &DataHead<'_>) -> Option<Only> {
    let Told::Entry(slot) = told else { return None };
    let hash = pending.pit.only_match(slot, data.name.value())?;
    Some(Only { slot, hash })
}

/// The same for a Data whose name was found to be that of the entry.
#[inline(always)]
pub(super) fn only_named(pending: &Pending, told: Told) -> Option<Only> {
    let Told::Entry(slot) = told else { return None };
    let hash = pending.pit.only_one(slot)?;
    Some(Only { slot, hash })
}

/// Finds all entries by the name. Returns its hash.
pub(super) fn run(pending: &mut Pending, told: Told, packet: &Packet, data: &DataHead<'_>) -> u64 {
    pending.matched.clear();
    match told {
        Told::Nothing | Told::Entry(_) => {}
        Told::Foreign => pending.counters.foreign_tokens += 1,
        Told::Stale => pending.counters.stale_tokens += 1,
    }
    let name = data.name.value();
    let hashes = NameHashes::new(&pending.key, name, pending.pit.prefix_lengths());
    let mut digest = None;
    pending.pit.matches(
        &pending.key,
        name,
        &hashes,
        || *digest.get_or_insert_with(|| onym_crypto::digest::implicit_digest(&packet.bytes)),
        &mut pending.matched,
    );
    hashes.whole
}
