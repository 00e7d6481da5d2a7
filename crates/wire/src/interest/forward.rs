//! The copy of an Interest that a forwarder sends on.

use super::Interest;
use crate::tlv::{self, Element, Reader};
use crate::types;

/// What becomes of the forwarding hint of an Interest that is sent on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Hint {
    /// It stays.
    Keep,
    /// It has led the Interest to its region and is left out.
    Strip,
}

impl Interest<'_> {
    /// Appends this Interest as a forwarder sends it on, in one pass.
    ///
    /// The Nonce becomes `nonce`. `hop_limit` replaces the HopLimit or adds one; with `None` it
    /// stays as it is. `hint` says whether the forwarding hint goes with it.
    pub fn write_forwarded(
        &self,
        out: &mut Vec<u8>,
        nonce: [u8; 4],
        hop_limit: Option<u8>,
        hint: Hint,
    ) {
        let start = out.len();
        let has_place = self.nonce.is_some() && (hop_limit.is_none() || self.hop_limit.is_some());
        if has_place && (hint == Hint::Keep || self.forwarding_hint.is_empty()) {
            out.extend_from_slice(self.wire);
            patch(out, start + self.at.nonce as usize, &nonce);
            if let Some(hop_limit) = hop_limit {
                patch(out, start + self.at.hop_limit as usize, &[hop_limit]);
            }
            return;
        }
        self.write_rebuilt(out, nonce, hop_limit, hint);
    }

    /// The same when elements come or go. Element by element: what is not known stays in its place.
    #[cold]
    fn write_rebuilt(&self, out: &mut Vec<u8>, nonce: [u8; 4], hop_limit: Option<u8>, hint: Hint) {
        let Ok(outer) = Element::parse(self.wire) else { return };
        // The first place where each can go: behind the last known element that precedes it.
        let (mut nonce_slot, mut hop_limit_slot) = (0, 0);
        for (index, element) in Reader::new(outer.value).filter_map(Result::ok).enumerate() {
            match element.typ {
                types::NAME
                | types::CAN_BE_PREFIX
                | types::MUST_BE_FRESH
                | types::FORWARDING_HINT => (nonce_slot, hop_limit_slot) = (index, index),
                types::NONCE | types::INTEREST_LIFETIME => hop_limit_slot = index,
                _ => {}
            }
        }
        let mut is_replaced = false;
        tlv::put_nested_sized(out, types::INTEREST, self.wire.len(), |out| {
            for (index, element) in Reader::new(outer.value).filter_map(Result::ok).enumerate() {
                match element.typ {
                    types::NONCE => tlv::put_tlv(out, types::NONCE, &nonce),
                    types::FORWARDING_HINT if hint == Hint::Strip => {}
                    // A second HopLimit was skipped by the parser: it stays, to no effect.
                    types::HOP_LIMIT if !is_replaced && self.hop_limit.is_some() => {
                        is_replaced = true;
                        let value = hop_limit.or(self.hop_limit).unwrap_or_default();
                        tlv::put_tlv(out, types::HOP_LIMIT, &[value]);
                    }
                    _ => out.extend_from_slice(element.wire),
                }
                if index == nonce_slot && self.nonce.is_none() {
                    tlv::put_tlv(out, types::NONCE, &nonce);
                }
                if index == hop_limit_slot
                    && self.hop_limit.is_none()
                    && let Some(hop_limit) = hop_limit
                {
                    tlv::put_tlv(out, types::HOP_LIMIT, &[hop_limit]);
                }
            }
        });
    }
}

/// Writes `with` over the octets of `out` from `at` on.
pub(super) fn patch(out: &mut [u8], at: usize, with: &[u8]) {
    if let Some(place) = out.get_mut(at..at + with.len()) {
        place.copy_from_slice(with);
    }
}
