//! The layout of nearly every Interest, read straight through: name without digests, the two flags,
//! Nonce, lifetime, HopLimit, nothing else. What differs is left to the general parser, malformed
//! Interests too.

use super::{ForwardingHint, Interest, Offsets, offset};
use crate::name::NameRef;
use crate::tlv::{self, take};
use crate::types;

const CAN_BE_PREFIX: u8 = types::CAN_BE_PREFIX as u8;
const MUST_BE_FRESH: u8 = types::MUST_BE_FRESH as u8;
const NONCE: u8 = types::NONCE as u8;
const HOP_LIMIT: u8 = types::HOP_LIMIT as u8;

/// The Interest, if it has that layout. Then the general parser would find the same.
#[inline(always)]
pub(super) fn parse(wire: &[u8]) -> Option<Interest<'_>> {
    // Lengths of three octets at most: every offset fits.
    let (inner, []) = take(wire, types::INTEREST)? else { return None };
    let (name, mut rest) = take(inner, types::NAME)?;
    let mut interest = Interest {
        wire,
        name: NameRef::plain(name)?,
        can_be_prefix: false,
        must_be_fresh: false,
        forwarding_hint: ForwardingHint::default(),
        nonce: None,
        lifetime_ms: None,
        hop_limit: None,
        app_parameters: None,
        signature_value: None,
        signature_info: &[],
        at: Offsets::default(),
    };
    if let [CAN_BE_PREFIX, 0, tail @ ..] = rest {
        interest.can_be_prefix = true;
        rest = tail;
    }
    if let [MUST_BE_FRESH, 0, tail @ ..] = rest {
        interest.must_be_fresh = true;
        rest = tail;
    }
    if let [NONCE, 4, a, b, c, d, tail @ ..] = rest {
        interest.nonce = Some([*a, *b, *c, *d]);
        interest.at.nonce = offset(wire.len() - tail.len() - 4);
        rest = tail;
    }
    if let Some((lifetime, tail)) = take(rest, types::INTEREST_LIFETIME) {
        interest.lifetime_ms = Some(tlv::nni(lifetime).ok()?);
        rest = tail;
    }
    if let [HOP_LIMIT, 1, hop_limit, tail @ ..] = rest {
        interest.hop_limit = Some(*hop_limit);
        interest.at.hop_limit = offset(wire.len() - tail.len() - 1);
        rest = tail;
    }
    (rest.is_empty() && !interest.name.is_empty()).then_some(interest)
}
