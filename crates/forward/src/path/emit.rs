//! In: a copy to send.  Out: one [`Transmit`] in the outbox.
//! Not sent, and counted: face_gone, out_hop_limit, out_scope.
//! Counters: asked, sent, unsent; out_interests, out_data, out_nacks, out_hop_limit_zero per face.

use crate::faces::{FaceSlot, Faces};
use crate::path::scope::is_localhost;
use crate::stage::Pending;
use crate::{Counters, Unsent};
use onym_link::{LpOut, Outbox, Outgoing, PacketKind, Payload, Transmit};
use onym_tables::FaceId;
use onym_tables::pit::Token;
use onym_wire::interest::{Hint, Interest};
use onym_wire::lp::NackReason;
use onym_wire::mgmt::LinkType;

/// Whether a PIT entry leaves by a face for the first time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Sent {
    First,
    Again,
}

#[cold]
fn unsent(counters: &mut Counters, kind: PacketKind, reason: Unsent) -> bool {
    counters.asked[kind as usize] += 1;
    counters.unsent[reason as usize] += 1;
    false
}

/// Whether an Interest with this HopLimit may leave by `face`. Counts it when not.
#[inline]
pub(crate) fn may_send_interest(
    pending: &mut Pending,
    face: FaceId,
    hop_limit: Option<u8>,
) -> Option<FaceSlot> {
    let Some(slot) = pending.faces.slot(face) else {
        unsent(&mut pending.counters, PacketKind::Interest, Unsent::FaceGone);
        return None;
    };
    let to = pending.faces.at_mut(slot);
    if hop_limit == Some(0) && !to.is_local() {
        to.counters.out_hop_limit_zero += 1;
        unsent(&mut pending.counters, PacketKind::Interest, Unsent::OutHopLimit);
        return None;
    }
    Some(slot)
}

/// Sends a Nack where the link has one peer; elsewhere Nacks are not sent.
pub(crate) fn nack_point_to_point(
    pending: &mut Pending,
    interest: &Interest<'_>,
    nonce: u32,
    face: FaceId,
    token: Token,
    reason: NackReason,
    out: &mut Outbox,
) -> bool {
    if !pending.faces.get(face).is_some_and(|f| f.info.link == LinkType::PointToPoint) {
        return false;
    }
    let lp = LpOut { pit_token: token, nack: Some(reason), ..LpOut::default() };
    nack(pending, interest, nonce, face, || lp, out)
}

#[inline(always)]
fn push(
    counters: &mut Counters,
    kind: PacketKind,
    face: FaceId,
    bytes: Payload,
    lp: impl FnOnce() -> LpOut,
    out: &mut Outbox,
) {
    counters.asked[kind as usize] += 1;
    counters.sent[kind as usize] += 1;
    out.push_with(move || Transmit { face, what: Outgoing::Pull(kind, lp()), bytes });
}

/// Sends an Interest by the face that [`may_send_interest`] found.
#[inline]
pub(crate) fn interest(
    pending: &mut Pending,
    bytes: Payload,
    to: FaceSlot,
    sent: Sent,
    lp: impl FnOnce() -> LpOut,
    out: &mut Outbox,
) {
    let to = pending.faces.at_mut(to);
    to.counters.out_interests += 1;
    to.load.out_pending += u32::from(sent == Sent::First);
    let face = to.id;
    push(&mut pending.counters, PacketKind::Interest, face, bytes, lp, out);
}

/// Sends a Data of this name (its value), unless its scope ends here.
#[inline(always)]
pub(crate) fn data(
    faces: &mut Faces,
    counters: &mut Counters,
    bytes: Payload,
    to: FaceSlot,
    name: &[u8],
    lp: impl FnOnce() -> LpOut,
    out: &mut Outbox,
) -> bool {
    let to = faces.at_mut(to);
    if !to.is_local() && is_localhost(name) {
        return unsent(counters, PacketKind::Data, Unsent::OutScope);
    }
    to.counters.out_data += 1;
    let face = to.id;
    push(counters, PacketKind::Data, face, bytes, lp, out);
    true
}

/// Sends a Nack of `interest` with the Nonce of the downstream.
fn nack(
    pending: &mut Pending,
    interest: &Interest<'_>,
    nonce: u32,
    face: FaceId,
    lp: impl FnOnce() -> LpOut,
    out: &mut Outbox,
) -> bool {
    let Some(to) = pending.faces.get_mut(face) else {
        return unsent(&mut pending.counters, PacketKind::Nack, Unsent::FaceGone);
    };
    to.counters.out_nacks += 1;
    let bytes =
        out.write(|arena| interest.write_forwarded(arena, nonce.to_be_bytes(), None, Hint::Keep));
    push(&mut pending.counters, PacketKind::Nack, face, Payload::Arena(bytes), lp, out);
    true
}
