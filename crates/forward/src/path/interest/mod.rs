//! The incoming Interest pipeline.

mod cs_lookup;
mod displace;
pub(crate) mod guard;
mod loops;
mod pit_insert;

use super::decide;
pub(crate) use super::incoming::Incoming;
use crate::stage::{CacheStage, RouteStage};
use crate::{Forwarder, Verdict, fairness};
use onym_link::{Outbox, Packet};
use onym_tables::Tick;
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;

#[inline(never)]
pub(super) fn run<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    packet: &Packet,
    out: &mut Outbox,
) -> Verdict {
    let pending = &mut fw.pending;
    let info = match guard::link_fields(pending, packet) {
        Ok(info) => info,
        Err(verdict) => {
            pending.attention.meet();
            return verdict;
        }
    };
    // Looked at where it is: the view is not small.
    let parsed = Interest::parse(&packet.bytes);
    let Ok(interest) = &parsed else {
        pending.attention.meet();
        return Verdict::Malformed;
    };
    if let Err(verdict) = guard::network_fields(pending, packet, info, interest) {
        return verdict;
    }
    // Kept between packets, because it is large; the hashes of one name are used by every stage.
    let mut hashes = pending.hashes.take().unwrap_or_default();
    let lengths = fw.routes.lengths() | fw.strategies.choices.lengths();
    if !pending.ahead.take(interest.name.value(), lengths, &mut hashes) {
        hashes.fill(&pending.key, interest.name.value(), lengths);
        // All at once, and not one after the other as the stages come to them.
        pending.pit.prefetch(hashes.undigested);
        fw.cache.prefetch(hashes.undigested);
        fw.routes.prefetch(&hashes);
    }
    let incoming = guard::incoming(pending, now, packet, info, interest, &hashes);
    let verdict = admitted(fw, now, &incoming, out);
    fw.pending.hashes = Some(hashes);
    verdict
}

fn admitted<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    incoming: &Incoming<'_>,
    out: &mut Outbox,
) -> Verdict {
    let Forwarder { pending, strategies, routes, cache } = fw;
    let key = incoming.key();
    let mut look = pending.pit.look(&key);
    if pending.dead.contains(now, incoming.hashes.whole, incoming.nonce) {
        // A copy that came over a longer way is no loop when the store still has its answer, and
        // others may have been aggregated to it.
        if look.found.is_none() && cs_lookup::run(pending, cache, now, incoming, None, out) {
            return Verdict::CsHit;
        }
        return loops::run(pending, strategies, incoming, Verdict::DeadNonce, out);
    }
    if look.found.is_some_and(|slot| loops::is_duplicate(pending.pit.entry(slot), incoming)) {
        return loops::run(pending, strategies, incoming, Verdict::DuplicateNonce, out);
    }
    let is_asked = look.found.is_some_and(|slot| !pending.pit.entry(slot).ins.is_empty());
    if !is_asked && cs_lookup::run(pending, cache, now, incoming, look.found, out) {
        return Verdict::CsHit;
    }
    if look.found.is_none() && fairness::is_over_pit_share(pending, incoming.ingress) {
        if !displace::run(pending, now, incoming.ingress, out) {
            loops::nack(pending, incoming, NackReason::CONGESTION, out);
            return Verdict::PitShare;
        }
        // The entry that went may have been one of this name.
        look = pending.pit.look(&key);
    }
    let slot = match pit_insert::run(pending, now, incoming, &key, &look) {
        Ok(slot) => slot,
        Err(verdict) => {
            loops::nack(pending, incoming, NackReason::CONGESTION, out);
            return verdict;
        }
    };
    routes.pending_at(slot);
    decide::interest(pending, strategies, routes, now, slot, incoming, out)
}
