//! The copy of an Interest that a forwarder sends on.

use super::Interest;
use crate::tlv;
use crate::types;

impl Interest<'_> {
    /// Appends this Interest as a forwarder sends it on, in one pass.
    ///
    /// The Nonce becomes `nonce`. `hop_limit` replaces the HopLimit or adds one; with `None` it
    /// stays as it is. `strip_hint` leaves the forwarding hint out.
    pub fn write_forwarded(
        &self,
        out: &mut Vec<u8>,
        nonce: [u8; 4],
        hop_limit: Option<u8>,
        strip_hint: bool,
    ) {
        let start = out.len();
        let has_place = self.nonce.is_some() && (hop_limit.is_none() || self.hop_limit.is_some());
        if has_place && !(strip_hint && self.at.hint_len > 0) {
            out.extend_from_slice(self.wire);
            patch(out, start + self.at.nonce, &nonce);
            if let Some(hop_limit) = hop_limit {
                patch(out, start + self.at.hop_limit, &[hop_limit]);
            }
            return;
        }
        self.write_rebuilt(out, nonce, hop_limit, strip_hint);
    }

    #[cold]
    fn write_rebuilt(
        &self,
        out: &mut Vec<u8>,
        nonce: [u8; 4],
        hop_limit: Option<u8>,
        strip_hint: bool,
    ) {
        const NONCE_LEN: usize = tlv::tlv_len(types::NONCE, 4);
        const HOP_LIMIT_LEN: usize = tlv::tlv_len(types::HOP_LIMIT, 1);
        let at = &self.at;
        let (hint, hint_len) = if strip_hint { (at.hint, at.hint_len) } else { (at.value, 0) };
        let added_hop_limit = hop_limit.filter(|_| self.hop_limit.is_none());
        let len = self.wire.len() - at.value - hint_len
            + if self.nonce.is_none() { NONCE_LEN } else { 0 }
            + if added_hop_limit.is_some() { HOP_LIMIT_LEN } else { 0 };
        let part = |from: usize, to: usize| self.wire.get(from..to).unwrap_or_default();

        tlv::put_head(out, types::INTEREST, len);
        let hint = if hint_len == 0 { at.nonce_slot } else { hint };
        out.extend_from_slice(part(at.value, hint));
        out.extend_from_slice(part(hint + hint_len, at.nonce_slot));
        if self.nonce.is_none() {
            tlv::put_tlv(out, types::NONCE, &nonce);
        }
        // `from` moves on where octets are replaced; the slots are in the order of the grammar.
        let mut from = at.nonce_slot;
        if self.nonce.is_some() {
            out.extend_from_slice(part(from, at.nonce));
            out.extend_from_slice(&nonce);
            from = at.nonce + 4;
        }
        match (hop_limit, self.hop_limit) {
            (Some(hop_limit), Some(_)) => {
                out.extend_from_slice(part(from, at.hop_limit));
                out.push(hop_limit);
                from = at.hop_limit + 1;
            }
            (Some(hop_limit), None) => {
                out.extend_from_slice(part(from, at.hop_limit_slot));
                tlv::put_tlv(out, types::HOP_LIMIT, &[hop_limit]);
                from = at.hop_limit_slot;
            }
            (None, _) => {}
        }
        out.extend_from_slice(part(from, self.wire.len()));
    }
}

/// Writes `with` over the octets of `out` from `at` on.
pub(super) fn patch(out: &mut [u8], at: usize, with: &[u8]) {
    if let Some(place) = out.get_mut(at..at + with.len()) {
        place.copy_from_slice(with);
    }
}
