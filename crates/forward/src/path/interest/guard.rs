//! In: a packet that is no Data and no Nack.  Out: [`Incoming`].
//! Drops: unexpected_field, ingress_gone, hop_limit_zero, scope, name_too_long (malformed between
//! its two halves).  Counters: in_interests and in_hop_limit_zero of the face.

use super::Incoming;
use crate::faces::FaceInfo;
use crate::path::is_localhost;
use crate::{Forwarder, Verdict};
use onym_link::Packet;
use onym_tables::hash::NameHashes;
use onym_wire::interest::{ForwardingHint, Interest};
use onym_wire::mgmt::Scope;

/// What the face and the link-layer fields allow.
pub(super) fn link_fields(fw: &mut Forwarder, packet: &Packet) -> Result<FaceInfo, Verdict> {
    let face = fw.faces.get_mut(packet.face).ok_or(Verdict::IngressGone)?;
    face.counters.in_interests += 1;
    let info = face.info;
    let lp = &packet.lp;
    if lp.no_cache
        || lp.prefix_announcement.is_some()
        || (lp.next_hop_face.is_some() && !info.local_fields)
    {
        return Err(Verdict::UnexpectedField);
    }
    Ok(info)
}

/// What the Interest itself allows.
pub(super) fn network_fields(
    fw: &mut Forwarder,
    packet: &Packet,
    info: FaceInfo,
    interest: &Interest<'_>,
) -> Result<(), Verdict> {
    if interest.name.len() > fw.config.name_components_max {
        return Err(Verdict::NameTooLong);
    }
    if interest.hop_limit == Some(0) {
        if let Some(face) = fw.faces.get_mut(packet.face) {
            face.counters.in_hop_limit_zero += 1;
        }
        return Err(Verdict::HopLimitZero);
    }
    if info.scope == Scope::NonLocal && is_localhost(interest.name.value()) {
        return Err(Verdict::Scope);
    }
    Ok(())
}

pub(super) fn incoming<'a>(
    fw: &mut Forwarder,
    packet: &'a Packet,
    info: FaceInfo,
    interest: &'a Interest<'a>,
    hashes: &'a NameHashes,
) -> Incoming<'a> {
    let hop_limit = match interest.hop_limit {
        Some(limit) => Some(limit - 1),
        None => Some(fw.config.default_hop_limit).filter(|limit| *limit > 0),
    };
    let hint = &interest.forwarding_hint;
    Incoming {
        packet,
        interest,
        ingress: packet.face,
        info,
        hashes,
        nonce: interest.nonce.map_or_else(|| fw.rng.next_u32(), u32::from_be_bytes),
        hop_limit,
        hint: if hint.is_empty() { 0 } else { hint_key(fw, hint) },
    }
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
