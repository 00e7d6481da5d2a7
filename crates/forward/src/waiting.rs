//! Whether somebody still waits for an Interest, for who records it on its way.

use crate::Forwarder;
use onym_tables::hash::NameHashes;
use onym_tables::pit::TOKEN_LEN;
use onym_wire::interest::Interest;

impl<R, C> Forwarder<R, C> {
    /// The token of the entry in which an Interest waits that was just taken in.
    #[must_use]
    pub fn token_of(&self, interest: &Interest<'_>) -> Option<[u8; TOKEN_LEN]> {
        let pending = &self.pending;
        let hashes = NameHashes::new(&pending.key, interest.name.value(), 0);
        let slot = pending.pit.look(&pending.key_of(interest, &hashes)).found?;
        Some(pending.tokens.encode(slot, pending.pit.generation(slot)))
    }

    /// Whether somebody waits in the entry with this token.
    #[must_use]
    pub fn waits(&self, token: &[u8]) -> bool {
        let pending = &self.pending;
        let found = pending.tokens.decode(token);
        let slot = found.and_then(|(slot, generation)| pending.pit.at_token(slot, generation));
        slot.is_some_and(|slot| !pending.pit.entry(slot).ins.is_empty())
    }
}
