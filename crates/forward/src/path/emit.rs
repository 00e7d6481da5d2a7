//! In: a copy to send.  Out: one [`Transmit`] in the outbox.
//! Not sent, and counted: face_gone, out_hop_limit, out_scope.
//! Counters: asked, sent, unsent; out_interests, out_data, out_nacks, out_hop_limit_zero per face.

use crate::faces::FaceSlot;
use crate::{Forwarder, Unsent};
use onym_link::{LpOut, Outbox, Outgoing, PacketKind, Payload, Transmit};
use onym_tables::FaceId;
use onym_tables::pit::Token;
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;
use onym_wire::mgmt::LinkType;

#[cold]
fn unsent(fw: &mut Forwarder, kind: PacketKind, reason: Unsent) -> bool {
    fw.counters.asked[kind as usize] += 1;
    fw.counters.unsent[reason as usize] += 1;
    false
}

/// Whether an Interest with this HopLimit may leave by `face`. Counts it when not.
#[inline]
pub(crate) fn may_send_interest(
    fw: &mut Forwarder,
    face: FaceId,
    hop_limit: Option<u8>,
) -> Option<FaceSlot> {
    let Some(slot) = fw.faces.slot(face) else {
        unsent(fw, PacketKind::Interest, Unsent::FaceGone);
        return None;
    };
    let to = fw.faces.at_mut(slot);
    if hop_limit == Some(0) && !to.is_local() {
        to.counters.out_hop_limit_zero += 1;
        unsent(fw, PacketKind::Interest, Unsent::OutHopLimit);
        return None;
    }
    Some(slot)
}

/// Sends a Nack where the link has one peer; elsewhere Nacks are not sent.
pub(crate) fn nack_point_to_point(
    fw: &mut Forwarder,
    interest: &Interest<'_>,
    nonce: u32,
    face: FaceId,
    token: Token,
    reason: NackReason,
    out: &mut Outbox,
) -> bool {
    if !fw.faces.get(face).is_some_and(|f| f.info.link == LinkType::PointToPoint) {
        return false;
    }
    let lp = LpOut { pit_token: token, nack: Some(reason), ..LpOut::default() };
    nack(fw, interest, nonce, face, lp, out)
}

#[inline(always)]
fn push(
    fw: &mut Forwarder,
    kind: PacketKind,
    face: FaceId,
    bytes: Payload,
    lp: LpOut,
    out: &mut Outbox,
) {
    fw.counters.asked[kind as usize] += 1;
    fw.counters.sent[kind as usize] += 1;
    out.items.push(Transmit { face, what: Outgoing::Pull(kind, lp), bytes });
}

/// Sends an Interest by the face that [`may_send_interest`] found; `is_new` when an out-record was
/// made for it.
#[inline]
pub(crate) fn interest(
    fw: &mut Forwarder,
    bytes: Payload,
    to: FaceSlot,
    is_new: bool,
    lp: LpOut,
    out: &mut Outbox,
) {
    let to = fw.faces.at_mut(to);
    to.counters.out_interests += 1;
    to.load.out_pending += u32::from(is_new);
    let face = to.id;
    push(fw, PacketKind::Interest, face, bytes, lp, out);
}

/// Sends a Data, unless its scope ends here.
#[inline(always)]
pub(crate) fn data(
    fw: &mut Forwarder,
    bytes: Payload,
    face: FaceId,
    is_localhost: bool,
    lp: LpOut,
    out: &mut Outbox,
) -> bool {
    let Some(to) = fw.faces.get_mut(face) else {
        return unsent(fw, PacketKind::Data, Unsent::FaceGone);
    };
    if is_localhost && !to.is_local() {
        return unsent(fw, PacketKind::Data, Unsent::OutScope);
    }
    to.counters.out_data += 1;
    push(fw, PacketKind::Data, face, bytes, lp, out);
    true
}

/// Sends a Nack of `interest` with the Nonce of the downstream.
fn nack(
    fw: &mut Forwarder,
    interest: &Interest<'_>,
    nonce: u32,
    face: FaceId,
    lp: LpOut,
    out: &mut Outbox,
) -> bool {
    let Some(to) = fw.faces.get_mut(face) else {
        return unsent(fw, PacketKind::Nack, Unsent::FaceGone);
    };
    to.counters.out_nacks += 1;
    let bytes =
        out.write(|arena| interest.write_forwarded(arena, nonce.to_be_bytes(), None, false));
    push(fw, PacketKind::Nack, face, Payload::Arena(bytes), lp, out);
    true
}
