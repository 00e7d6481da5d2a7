//! In: a Data.  Out: the PIT entries it satisfies, in `fw.matched`, and the hash of its name.
//! A token of ours names the entry, and saves hashing when no other can match; a wrong token
//! falls back to the name.
//! Drops: none.  Counters: stale_tokens, foreign_tokens.

use crate::Forwarder;
use onym_link::Packet;
use onym_tables::hash::NameHashes;
use onym_wire::data::Data;

#[inline(always)]
pub(super) fn run(fw: &mut Forwarder, packet: &Packet, data: &Data<'_>) -> u64 {
    fw.matched.clear();
    let name = data.name.value();
    let token = &packet.lp.pit_token;
    if !token.is_empty() {
        match fw.tokens.decode(token) {
            None => fw.counters.foreign_tokens += 1,
            Some((slot, generation)) => match fw.pit.at_token(slot, generation) {
                None => fw.counters.stale_tokens += 1,
                Some(slot) => {
                    if let Some(hash) = fw.pit.only_match(slot, name) {
                        fw.matched.push(slot);
                        return hash;
                    }
                }
            },
        }
    }
    let hashes = NameHashes::new(&fw.key, name, fw.pit.prefix_lengths());
    let mut digest = None;
    fw.pit.matches(
        &fw.key,
        name,
        &hashes,
        || *digest.get_or_insert_with(|| onym_crypto::digest::implicit_digest(data.wire)),
        &mut fw.matched,
    );
    hashes.whole
}
