//! In: a Data.  Out: the PIT entries it satisfies, in `pending.matched`, and the hash of its name.
//! A token of ours names the entry, and saves hashing when no other can match; a wrong token
//! falls back to the name.
//! Drops: none.  Counters: stale_tokens, foreign_tokens.

use crate::stage::Pending;
use onym_link::Packet;
use onym_tables::hash::NameHashes;
use onym_wire::data::Data;

#[inline(always)]
pub(super) fn run(pending: &mut Pending, packet: &Packet, data: &Data<'_>) -> u64 {
    pending.matched.clear();
    let name = data.name.value();
    let token = &packet.lp.pit_token;
    if !token.is_empty() {
        match pending.tokens.decode(token) {
            None => pending.counters.foreign_tokens += 1,
            Some((slot, generation)) => match pending.pit.at_token(slot, generation) {
                None => pending.counters.stale_tokens += 1,
                Some(slot) => {
                    if let Some(hash) = pending.pit.only_match(slot, name) {
                        pending.matched.push(slot);
                        return hash;
                    }
                }
            },
        }
    }
    let hashes = NameHashes::new(&pending.key, name, pending.pit.prefix_lengths());
    let mut digest = None;
    pending.pit.matches(
        &pending.key,
        name,
        &hashes,
        || *digest.get_or_insert_with(|| onym_crypto::digest::implicit_digest(data.wire)),
        &mut pending.matched,
    );
    hashes.whole
}
