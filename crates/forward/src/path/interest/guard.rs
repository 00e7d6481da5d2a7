//! In: a packet that is no Data and no Nack.  Out: [`Incoming`].
//! Drops: unexpected_field, ingress_gone, hop_limit_zero, scope, name_too_long (malformed between
//! its two halves).  Counters: in_interests and in_hop_limit_zero of the face.

use super::Incoming;
use crate::Verdict;
use crate::faces::FaceInfo;
use crate::stage::Pending;
use crate::stage::rules;
use onym_link::Packet;
use onym_tables::hash::NameHashes;
use onym_wire::interest::Interest;

/// What the face and the link-layer fields allow.
pub(super) fn link_fields(pending: &mut Pending, packet: &Packet) -> Result<FaceInfo, Verdict> {
    let face = pending.faces.get_mut(packet.face).ok_or(Verdict::IngressGone)?;
    face.counters.in_interests += 1;
    let info = face.info;
    rules::interest_fields(&packet.lp, info)?;
    Ok(info)
}

/// What the Interest itself allows.
pub(super) fn network_fields(
    pending: &mut Pending,
    packet: &Packet,
    info: FaceInfo,
    interest: &Interest<'_>,
) -> Result<(), Verdict> {
    if interest.name.len() > pending.config.name_components_max {
        return Err(Verdict::NameTooLong);
    }
    let judged = rules::interest(interest, info, pending.config.hop);
    if judged == Err(Verdict::HopLimitZero)
        && let Some(face) = pending.faces.get_mut(packet.face)
    {
        face.counters.in_hop_limit_zero += 1;
    }
    judged
}

pub(super) fn incoming<'a>(
    pending: &mut Pending,
    packet: &'a Packet,
    info: FaceInfo,
    interest: &'a Interest<'a>,
    hashes: &'a NameHashes,
) -> Incoming<'a> {
    let hop_limit = match interest.hop_limit {
        Some(limit) => Some(limit.saturating_sub(pending.config.hop)),
        None => Some(pending.config.default_hop_limit).filter(|limit| *limit > 0),
    };
    Incoming {
        packet,
        interest,
        ingress: packet.face,
        info,
        hashes,
        nonce: interest.nonce.map_or_else(|| pending.rng.next_u32(), u32::from_be_bytes),
        hop_limit,
        hint: pending.hint_of(interest),
    }
}
