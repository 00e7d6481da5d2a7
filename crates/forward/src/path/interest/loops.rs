//! In: an Interest whose Nonce was seen before.  Out: Nack Duplicate on point-to-point faces, when
//! the strategy sends one; the PIT is not touched.
//! Drops: dead_nonce, duplicate_nonce (as the caller found).  Counters: those of Nacks sent.

use super::Incoming;
use crate::Verdict;
use crate::path::emit;
use crate::stage::{Pending, Strategies};
use onym_link::Outbox;
use onym_wire::lp::NackReason;
use onym_wire::mgmt::LinkType;

/// Whether the Nonce is one that this entry knows from elsewhere. On a point-to-point face the
/// same Nonce from the same downstream is a retransmission; on others any match is a loop.
pub(super) fn is_duplicate(pending: &Pending, slot: u32, incoming: &Incoming<'_>) -> bool {
    let (entry, nonce) = (pending.pit.entry(slot), incoming.nonce);
    let point_to_point = pending.faces.at(incoming.from).info.link == LinkType::PointToPoint;
    // Its own Nonce is also upstream then, which says nothing.
    let again = point_to_point
        && entry.ins.iter().any(|r| r.nonce == nonce && r.face == incoming.packet.face);
    !again
        && (entry.ins.iter().any(|r| r.nonce == nonce)
            || entry.outs.iter().any(|r| r.nonce == nonce))
}

#[cold]
pub(super) fn run(
    pending: &mut Pending,
    strategies: &Strategies,
    incoming: &Incoming<'_>,
    verdict: Verdict,
    out: &mut Outbox,
) -> Verdict {
    let (_, choice) = strategies.choices.effective(incoming.hashes, incoming.interest.name.value());
    if choice.strategy.nacks_loops() {
        nack(pending, incoming, NackReason::DUPLICATE, out);
    }
    verdict
}

/// Sends a Nack for an Interest that has no in-record.
pub(super) fn nack(
    pending: &mut Pending,
    incoming: &Incoming<'_>,
    reason: NackReason,
    out: &mut Outbox,
) {
    let (face, token) = (incoming.packet.face, incoming.packet.lp.pit_token.clone());
    let (interest, nonce) = (incoming.interest, incoming.nonce);
    emit::nack_point_to_point(pending, interest, nonce, face, token, reason, out);
}
