//! In: an Interest with a Nack header.  Out: the reason in the out-record; the strategy tries
//! another upstream, waits, or passes it on.
//! Drops: malformed, unexpected_field, ingress_gone, nack_no_entry, nack_stale_nonce,
//! nack_not_point_to_point.  Counters: in_nacks of the face.

use super::{act, decide, finalize};
use crate::stage::{Pending, RouteStage};
use crate::{Forwarder, Verdict};
use onym_link::{Outbox, Packet};
use onym_tables::hash::NameHashes;
use onym_tables::pit::Key;
use onym_tables::{FaceId, Tick};
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;
use onym_wire::mgmt::LinkType;

pub(super) fn run<R: RouteStage, C>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    packet: &Packet,
    out: &mut Outbox,
) -> Verdict {
    let Forwarder { pending, strategies, routes, .. } = fw;
    pending.attention.meet();
    let (slot, reason) = match find(pending, packet) {
        Ok(found) => found,
        Err(verdict) => return verdict,
    };
    if !pending.pit.entry(slot).is_pending(now) {
        // No upstream is left: the entry ends with the next timers, unless the strategy retries.
        pending.pit.set_expiry(slot, now);
    }
    let face = packet.face;
    let (done, ended) =
        decide::pending(pending, strategies, routes, now, slot, out, |strategy, ctx| {
            strategy.after_receive_nack(ctx, face, reason);
        });
    if ended {
        finalize::run(pending, now, slot);
        return if done.nacked > 0 { Verdict::NackForwarded } else { Verdict::NackAbsorbed };
    }
    if done.sent > 0 {
        // Tried again: the entry lives as long as its downstreams wait.
        let latest = pending.pit.entry(slot).ins.iter().map(|r| r.expiry).max();
        pending.pit.set_expiry(slot, latest.unwrap_or(now));
        Verdict::NackRetried
    } else if done.nacked > 0 {
        Verdict::NackForwarded
    } else {
        Verdict::NackAbsorbed
    }
}

/// The entry that the Nack is about; notes the reason in its out-record.
fn find(pending: &mut Pending, packet: &Packet) -> Result<(u32, NackReason), Verdict> {
    let face = pending.faces.get_mut(packet.face).ok_or(Verdict::IngressGone)?;
    face.counters.in_nacks += 1;
    if face.info.link != LinkType::PointToPoint {
        return Err(Verdict::NackNotPointToPoint);
    }
    let lp = &packet.lp;
    if lp.next_hop_face.is_some()
        || lp.no_cache
        || lp.non_discovery
        || lp.prefix_announcement.is_some()
    {
        return Err(Verdict::UnexpectedField);
    }
    let interest = Interest::parse(&packet.bytes).map_err(|_| Verdict::Malformed)?;
    let slot = pending_at(pending, &interest).ok_or(Verdict::NackNoEntry)?;
    let record =
        pending.pit.entry_mut(slot).out_record_mut(packet.face).ok_or(Verdict::NackNoEntry)?;
    if interest.nonce.map(u32::from_be_bytes) != Some(record.nonce) {
        return Err(Verdict::NackStaleNonce);
    }
    let reason = lp.nack.unwrap_or(NackReason::NONE).known();
    record.nack = Some(u8::try_from(reason.0).unwrap_or(0));
    Ok((slot, reason))
}

/// The entry of exactly this Interest.
fn pending_at(pending: &Pending, interest: &Interest<'_>) -> Option<u32> {
    let name = interest.name.value();
    let key = Key {
        can_be_prefix: interest.can_be_prefix,
        must_be_fresh: interest.must_be_fresh,
        hint: pending.hint_of(interest),
        ..Key::new(name, &NameHashes::new(&pending.key, name, 0))
    };
    pending.pit.look(&key).found
}

/// In: an Interest that the link service of `face` gave up sending.  Out: what the strategy makes
/// of it. Nothing when the Interest is not pending there any more, or was sent again since.
pub(crate) fn lost<R: RouteStage, C>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    face: FaceId,
    wire: &[u8],
    out: &mut Outbox,
) {
    let Forwarder { pending, strategies, routes, .. } = fw;
    let Ok(interest) = Interest::parse(wire) else { return };
    let Some(slot) = pending_at(pending, &interest) else { return };
    let nonce = interest.nonce.map(u32::from_be_bytes);
    let sent = pending.pit.entry(slot).out_record(face);
    if sent.is_none_or(|r| Some(r.nonce) != nonce) {
        return;
    }
    let (_, ended) =
        decide::pending(pending, strategies, routes, now, slot, out, |strategy, ctx| {
            strategy.on_lost_interest(ctx, face);
        });
    if ended {
        finalize::run(pending, now, slot);
    }
}

/// In: a Nack of an upstream that decides for us, which says by its Nonce whose Interest it is.
/// Out: the same to that downstream, which stops waiting; the entry ends with its last one.
pub(crate) fn run_for_one(
    pending: &mut Pending,
    now: Tick,
    packet: &Packet,
    out: &mut Outbox,
) -> Verdict {
    let Ok(interest) = Interest::parse(&packet.bytes) else { return Verdict::Malformed };
    let Some(slot) = pending_at(pending, &interest) else { return Verdict::NackNoEntry };
    let nonce = interest.nonce.map(u32::from_be_bytes);
    let downstreams = &pending.pit.entry(slot).ins;
    let Some(face) = downstreams.iter().find(|r| Some(r.nonce) == nonce).map(|r| r.face) else {
        return Verdict::NackStaleNonce;
    };
    let reason = packet.lp.nack.unwrap_or(NackReason::NONE).known();
    act::nack(pending, slot, &interest, face, reason, out);
    if pending.pit.entry(slot).ins.is_empty() {
        finalize::run(pending, now, slot);
    }
    Verdict::NackForwarded
}
