//! What is known of a pending Interest, for who records it on its way or measures its round trip.

use crate::Forwarder;
use crate::stage::{Attention, Pending};
use onym_link::Packet;
use onym_tables::hash::NameHashes;
use onym_tables::pit::{Key, TOKEN_LEN};
use onym_tables::{FaceId, Tick};
use onym_wire::interest::Interest;
use onym_wire::name::Tail;

impl<R, C> Forwarder<R, C> {
    /// The token of the entry in which an Interest waits that was just taken in.
    #[must_use]
    pub fn token_of(&self, interest: &Interest<'_>) -> Option<[u8; TOKEN_LEN]> {
        let pending = &self.pending;
        let hashes = NameHashes::new(&pending.key, interest.name.value(), 0);
        let slot = pending.pit.look(&pending.key_of(interest, &hashes)).found?;
        Some(pending.tokens.encode(slot, pending.pit.generation(slot)))
    }

    /// From now on somebody looks at Interests with these names, those that are dropped before their name
    /// is known included ([`Self::has_met`]).
    pub fn look_out_for_names(&mut self, names: Tail) {
        let pending = &mut self.pending;
        pending.looked_at = names;
        let unseen = if names == Tail::NONE { pending.config.name_components_max } else { 0 };
        pending.unseen_components = unseen;
    }

    /// From now on somebody looks at what answers the entry with this token.
    pub fn look_out_for(&mut self, token: &[u8]) {
        let Pending { pit, tokens, .. } = &mut self.pending;
        let found = tokens.decode(token).and_then(|(slot, kept)| pit.at_token(slot, kept));
        if let Some(slot) = found {
            pit.entry_mut(slot).noted.get_or_insert_default().is_looked_at = true;
        }
    }

    /// The same of all entries that there are.
    pub fn look_out_for_all(&mut self) {
        let pit = &mut self.pending.pit;
        for slot in 0..pit.slots() {
            if pit.is_live(slot) {
                pit.entry_mut(slot).noted.get_or_insert_default().is_looked_at = true;
            }
        }
    }

    /// From now on somebody looks after so many packets ([`Self::is_due`]). What was met is forgotten.
    pub fn look_after(&mut self, packets: u64) {
        self.pending.attention = Attention::after(packets);
    }

    /// Packets that are left until then.
    #[must_use]
    pub const fn left(&self) -> u64 {
        self.pending.attention.left()
    }

    /// Counts a packet that was taken in: whether somebody looks, because it was the last one of those, or
    /// because something was met ([`Self::has_met`]).
    #[inline(always)]
    #[must_use]
    pub const fn is_due(&mut self) -> bool {
        self.pending.attention.is_due()
    }

    /// Whether, since this was forgotten last, something came that somebody may look at: an Interest with
    /// such a name, with the context of a trace, or one that was dropped; an entry ended that is looked
    /// at; Data did something else than to end entries; or a Nack came.
    #[must_use]
    pub const fn has_met(&self) -> bool {
        self.pending.attention.has_met()
    }

    /// Forgets it.
    pub const fn forget_met(&mut self) {
        self.pending.attention.forget_met();
    }

    /// Interests may come with the context of a trace in the place of an announcement, and are taken in
    /// as those without.
    pub const fn take_contexts(&mut self) {
        self.pending.takes_contexts = true;
    }

    /// Whether somebody waits in the entry with this token.
    #[must_use]
    pub fn waits(&self, token: &[u8]) -> bool {
        let pending = &self.pending;
        let found = pending.tokens.decode(token);
        let slot = found.and_then(|(slot, generation)| pending.pit.at_token(slot, generation));
        slot.is_some_and(|slot| !pending.pit.entry(slot).ins.is_empty())
    }

    /// Until when `face` waits in the entry with this token, and whether Data of longer names answer it;
    /// `None`: it does not.
    #[must_use]
    pub fn waits_until(&self, token: &[u8], face: FaceId) -> Option<(Tick, bool)> {
        let Pending { pit, tokens, .. } = &self.pending;
        let (slot, generation) = tokens.decode(token)?;
        let slot = pit.at_token(slot, generation)?;
        let expiry = pit.entry(slot).in_record(face)?.expiry;
        Some((expiry, pit.can_be_prefix(slot)))
    }

    /// When the Interest was sent to the face of `data`, which is about to be taken in; `name` is the
    /// VALUE of its name. `None` where the face was not asked, or where the Interest was sent later than
    /// it came: nobody knows which of the two is answered.
    #[must_use]
    pub fn asked_at(&self, data: &Packet, name: &[u8]) -> Option<Tick> {
        let Pending { pit, tokens, key, .. } = &self.pending;
        let slot = match tokens.decode(&data.lp.pit_token) {
            Some((slot, generation)) => pit.at_token(slot, generation)?,
            None => {
                let hashes = NameHashes::new(key, name, 0);
                let found = [false, true].into_iter().find_map(|must_be_fresh| {
                    pit.look(&Key { must_be_fresh, ..Key::new(name, &hashes) }).found
                });
                found?
            }
        };
        let entry = pit.entry(slot);
        let sent = entry.out_record(data.face)?.sent;
        (sent == entry.since).then_some(sent)
    }
}
