//! In: a packet that is no Data and no Nack.  Out: [`Incoming`], its name hashed.
//! Drops: malformed, unexpected_field, ingress_gone, hop_limit_zero, scope, name_too_long.
//! Counters: in_interests and in_hop_limit_zero of the face.

use super::Incoming;
use crate::path::is_localhost;
use crate::{Forwarder, Packet, Verdict};
use onym_tables::hash::NameHashes;
use onym_wire::interest::{ForwardingHint, Interest};

pub(super) fn run<'a>(fw: &mut Forwarder, packet: &'a Packet) -> Result<Incoming<'a>, Verdict> {
    let face = fw.faces.get_mut(packet.face).ok_or(Verdict::IngressGone)?;
    face.counters.in_interests += 1;
    let info = face.info;
    let is_local = face.is_local();
    let lp = &packet.lp;
    if lp.no_cache
        || lp.prefix_announcement.is_some()
        || (lp.next_hop_face.is_some() && !info.local_fields)
    {
        return Err(Verdict::UnexpectedField);
    }
    let interest = Interest::parse(&packet.bytes).map_err(|_| Verdict::Malformed)?;
    if interest.name.len() > fw.config.name_components_max {
        return Err(Verdict::NameTooLong);
    }
    if interest.hop_limit == Some(0) {
        face.counters.in_hop_limit_zero += 1;
        return Err(Verdict::HopLimitZero);
    }
    let name = interest.name.value();
    if !is_local && is_localhost(name) {
        return Err(Verdict::Scope);
    }
    let hop_limit = match interest.hop_limit {
        Some(limit) => Some(limit - 1),
        None => Some(fw.config.default_hop_limit).filter(|limit| *limit > 0),
    };
    let hint = &interest.forwarding_hint;
    let hint = if hint.is_empty() { 0 } else { hint_key(fw, hint) };
    Ok(Incoming {
        packet,
        ingress: packet.face,
        info,
        hashes: NameHashes::new(&fw.key, name, fw.fib.lengths() | fw.choices.lengths()),
        nonce: interest.nonce.map_or_else(|| fw.rng.next_u32(), u32::from_be_bytes),
        hop_limit,
        hint,
        interest,
    })
}

/// What tells hints apart in the PIT: a hash of the delegations, never 0; 0 when one of them is a
/// prefix of a region that this node is in, so that the Interest goes on by its own name.
pub(crate) fn hint_key(fw: &Forwarder, hint: &ForwardingHint<'_>) -> u64 {
    let mut reached = false;
    let mut key = 1_u64;
    for delegation in hint.iter() {
        reached |= fw.regions.iter().any(|region| delegation.is_prefix_of(region.as_ref()));
        key = fw.key.words([key, fw.key.name(delegation.value())]);
    }
    if reached { 0 } else { key | 1 }
}
