//! An Interest on its way through the pipelines.

use crate::faces::FaceSlot;
use crate::stage::Target;
use onym_link::Packet;
use onym_tables::hash::NameHashes;
use onym_tables::pit::Key;
use onym_wire::interest::Interest;
use std::num::NonZeroU64;

/// An Interest that passed the guard.
#[derive(Debug)]
pub(crate) struct Incoming<'a> {
    pub(crate) packet: &'a Packet,
    pub(crate) interest: &'a Interest<'a>,
    /// Where that face is.
    pub(crate) from: FaceSlot,
    pub(crate) hashes: &'a NameHashes,
    pub(crate) nonce: u32,
    /// The HopLimit to send it with.
    pub(crate) hop_limit: Option<u8>,
    /// The one face that it is for, whatever the strategy says.
    pub(crate) next_hop: Option<NonZeroU64>,
    /// Hash of the forwarding hint; 0 when there is none or its region is ours.
    pub(crate) hint: u64,
}

impl<'a> Incoming<'a> {
    /// What routes are looked up for.
    #[inline(always)]
    pub(crate) fn target(&self) -> Target<'a> {
        Target { interest: self.interest, hashes: self.hashes, by_hint: self.hint != 0 }
    }

    pub(crate) fn key(&self) -> Key<'a> {
        Key {
            can_be_prefix: self.interest.can_be_prefix,
            must_be_fresh: self.interest.must_be_fresh,
            components: self.interest.name.len(),
            hint: self.hint,
            ..Key::new(self.interest.name.value(), self.hashes)
        }
    }

    /// Whether the hint is left out when the Interest is sent on.
    pub(crate) fn strips_hint(&self) -> bool {
        self.hint == 0 && !self.interest.forwarding_hint.is_empty()
    }
}
