//! In: an Interest with a Nack header.  Out: the reason in the out-record; the strategy tries
//! another upstream, waits, or passes it on.
//! Drops: malformed, unexpected_field, ingress_gone, nack_no_entry, nack_stale_nonce,
//! nack_not_point_to_point.  Counters: in_nacks of the face.

use super::interest::guard::hint_key;
use super::{decide, finalize};
use crate::{Forwarder, Verdict};
use onym_link::{Outbox, Packet};
use onym_tables::hash::NameHashes;
use onym_tables::pit::Key;
use onym_tables::{FaceId, Tick};
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;
use onym_wire::mgmt::LinkType;

pub(super) fn run(fw: &mut Forwarder, now: Tick, packet: &Packet, out: &mut Outbox) -> Verdict {
    let (slot, reason) = match find(fw, packet) {
        Ok(found) => found,
        Err(verdict) => return verdict,
    };
    if !fw.pit.entry(slot).is_pending(now) {
        // No upstream is left: the entry ends with the next timers, unless the strategy retries.
        fw.pit.set_expiry(slot, now);
    }
    let face = packet.face;
    let (done, ended) = decide::pending(fw, now, slot, out, |strategy, ctx| {
        strategy.after_receive_nack(ctx, face, reason);
    });
    if ended {
        finalize::run(fw, now, slot);
        return if done.nacked > 0 { Verdict::NackForwarded } else { Verdict::NackAbsorbed };
    }
    if done.sent > 0 {
        // Tried again: the entry lives as long as its downstreams wait.
        let latest = fw.pit.entry(slot).ins.iter().map(|r| r.expiry).max();
        fw.pit.set_expiry(slot, latest.unwrap_or(now));
        Verdict::NackRetried
    } else if done.nacked > 0 {
        Verdict::NackForwarded
    } else {
        Verdict::NackAbsorbed
    }
}

/// The entry that the Nack is about; notes the reason in its out-record.
fn find(fw: &mut Forwarder, packet: &Packet) -> Result<(u32, NackReason), Verdict> {
    let face = fw.faces.get_mut(packet.face).ok_or(Verdict::IngressGone)?;
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
    let slot = pending_at(fw, &interest).ok_or(Verdict::NackNoEntry)?;
    let record = fw.pit.entry_mut(slot).out_record_mut(packet.face).ok_or(Verdict::NackNoEntry)?;
    if interest.nonce.map(u32::from_be_bytes) != Some(record.nonce) {
        return Err(Verdict::NackStaleNonce);
    }
    let reason = lp.nack.unwrap_or(NackReason::NONE).known();
    record.nack = Some(u8::try_from(reason.0).unwrap_or(0));
    Ok((slot, reason))
}

/// The entry of exactly this Interest.
fn pending_at(fw: &Forwarder, interest: &Interest<'_>) -> Option<u32> {
    let name = interest.name.value();
    let hint = &interest.forwarding_hint;
    let key = Key {
        can_be_prefix: interest.can_be_prefix,
        must_be_fresh: interest.must_be_fresh,
        hint: if hint.is_empty() { 0 } else { hint_key(fw, hint) },
        ..Key::new(name, &NameHashes::new(&fw.key, name, 0))
    };
    fw.pit.look(&key).found
}

/// In: an Interest that the link service of `face` gave up sending.  Out: what the strategy makes
/// of it. Nothing when the Interest is not pending there any more, or was sent again since.
pub(crate) fn lost(fw: &mut Forwarder, now: Tick, face: FaceId, wire: &[u8], out: &mut Outbox) {
    let Ok(interest) = Interest::parse(wire) else { return };
    let Some(slot) = pending_at(fw, &interest) else { return };
    let nonce = interest.nonce.map(u32::from_be_bytes);
    let is_latest = |fw: &Forwarder| {
        fw.pit.entry(slot).out_record(face).is_some_and(|r| Some(r.nonce) == nonce)
    };
    if !is_latest(fw) {
        return;
    }
    let (_, ended) = decide::pending(fw, now, slot, out, |strategy, ctx| {
        strategy.on_lost_interest(ctx, face);
    });
    if ended {
        finalize::run(fw, now, slot);
    }
}
