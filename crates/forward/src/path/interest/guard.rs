//! In: a packet that is no Data and no Nack.  Out: [`Incoming`].
//! Drops: unexpected_field, ingress_gone, hop_limit_zero, scope, name_too_long (malformed between
//! its two halves).  Counters: in_interests and in_hop_limit_zero of the face.

use super::Incoming;
use crate::Verdict;
use crate::faces::{FaceInfo, FaceSlot};
use crate::stage::Pending;
use crate::stage::rules;
use onym_link::{LpIn, Packet};
use onym_tables::FaceId;
use onym_tables::Tick;
use onym_tables::hash::NameHashes;
use onym_wire::interest::Interest;
use onym_wire::trace;
use std::num::NonZeroU64;

/// The face that an Interest came from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ingress {
    from: FaceSlot,
    pub(super) info: FaceInfo,
}

/// What the face and the link-layer fields allow.
#[inline(always)]
pub(super) fn link_fields(pending: &mut Pending, packet: &Packet) -> Result<Ingress, Verdict> {
    let from = pending.faces.slot(packet.face).ok_or(Verdict::IngressGone)?;
    let face = pending.faces.at_mut(from);
    face.counters.in_interests += 1;
    let info = face.info;
    match rules::interest_fields(&packet.lp, info) {
        Ok(()) => Ok(Ingress { from, info }),
        Err(verdict) => match with_context(pending, packet, info) {
            Some(info) => Ok(Ingress { from, info }),
            None => Err(verdict),
        },
    }
}

/// Admits an Interest with a trace context. The link service passes the context in the field of a prefix
/// announcement, which an Interest never has.
#[cold]
fn with_context(pending: &mut Pending, packet: &Packet, info: FaceInfo) -> Option<FaceInfo> {
    let lp = LpIn { prefix_announcement: None, ..packet.lp.clone() };
    if !pending.takes_contexts || rules::interest_fields(&lp, info).is_err() {
        return None;
    }
    pending.attention.meet();
    Some(info)
}

/// What the Interest itself allows.
#[inline(always)]
pub(super) fn network_fields(
    pending: &mut Pending,
    packet: &Packet,
    info: FaceInfo,
    interest: &Interest<'_>,
) -> Result<(), Verdict> {
    // One test of two rare things.
    if interest.name.len() > pending.unseen_components {
        if interest.name.len() > pending.config.name_components_max {
            pending.attention.meet();
            return Err(Verdict::NameTooLong);
        }
        let (name, looked_at) = (interest.name.value(), &pending.looked_at);
        let is_met = match interest.can_be_prefix {
            true => looked_at.may_cover_or_be_above(name),
            false => looked_at.may_cover(name),
        };
        if is_met {
            pending.attention.meet();
        }
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
    now: Tick,
    packet: &'a Packet,
    ingress: Ingress,
    interest: &'a Interest<'a>,
    hashes: &'a NameHashes,
) -> Incoming<'a> {
    let Ingress { from, info } = ingress;
    let hop_limit = match interest.hop_limit {
        Some(limit) => Some(limit.saturating_sub(pending.config.hop)),
        None => Some(pending.config.default_hop_limit).filter(|limit| *limit > 0),
    };
    let next_hop = match hop_limit {
        Some(0) => last_hop(pending, now, packet, info, interest),
        _ => packet.lp.next_hop_face,
    };
    Incoming {
        packet,
        interest,
        from,
        hashes,
        nonce: interest.nonce.map_or_else(|| pending.rng.next_u32(), u32::from_be_bytes),
        hop_limit,
        next_hop,
        hint: pending.hint_of(interest),
    }
}

/// Where an Interest goes whose HopLimit this node used up: a trace request that its face may make
/// goes to management.
#[cold]
fn last_hop(
    pending: &mut Pending,
    now: Tick,
    packet: &Packet,
    info: FaceInfo,
    interest: &Interest<'_>,
) -> Option<NonZeroU64> {
    let asked = packet.lp.next_hop_face;
    let Some(gate) = &mut pending.traces else { return asked };
    let request = trace::Request::of(interest.name);
    let is_trace = request.is_some_and(|request| request.kind == trace::Kind::Trace);
    if asked.is_none() && is_trace && gate.admits(now, packet.face, info.scope) {
        return FaceId::INTERNAL.told();
    }
    asked
}
