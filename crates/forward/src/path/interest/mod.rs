//! The incoming Interest pipeline.

mod cs_lookup;
mod displace;
pub(crate) mod guard;
mod loops;
mod pit_insert;

use super::decide;
pub(crate) use super::incoming::Incoming;
use crate::stage::{CacheStage, Pending, RouteStage, Strategies};
use crate::{Forwarder, Verdict, fairness};
use onym_link::{Outbox, Packet};
use onym_tables::Tick;
use onym_tables::pit::{Key, Look};
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;

#[inline(never)]
pub(super) fn run<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    packet: &Packet,
    out: &mut Outbox,
) -> Verdict {
    let Forwarder { pending, strategies, routes, cache, hashes } = fw;
    let ingress = match guard::link_fields(pending, packet) {
        Ok(ingress) => ingress,
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
    if let Err(verdict) = guard::network_fields(pending, packet, ingress.info, interest) {
        return verdict;
    }
    let lengths = routes.lengths() | strategies.choices.lengths();
    if !pending.ahead.take(interest.name.value(), lengths, hashes) {
        hashes.fill(&pending.key, interest.name.value(), lengths);
        // All at once, and not one after the other as the stages come to them.
        pending.pit.prefetch(hashes.undigested);
        cache.prefetch(hashes.undigested);
        routes.prefetch(hashes);
    }
    let incoming = guard::incoming(pending, now, packet, ingress, interest, hashes);
    admitted(pending, strategies, routes, cache, now, &incoming, out)
}

/// An Interest that the guard let pass. Nearly always nothing of its name is pending, and its Nonce is new.
#[inline(always)]
fn admitted<R: RouteStage, C: CacheStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &mut R,
    cache: &mut C,
    now: Tick,
    incoming: &Incoming<'_>,
    out: &mut Outbox,
) -> Verdict {
    let key = incoming.key();
    if pending.pit.has_name(&key)
        || pending.dead.contains(now, incoming.hashes.whole, incoming.nonce)
    {
        return met(pending, strategies, routes, cache, now, incoming, out);
    }
    if cs_lookup::run(pending, cache, now, incoming, None, out) {
        return Verdict::CsHit;
    }
    match enter(pending, now, incoming, &key, &Look::NOTHING, out) {
        Ok(slot) => {
            routes.pending_at(slot);
            decide::interest(pending, strategies, routes, now, slot, incoming, out)
        }
        Err(verdict) => verdict,
    }
}

/// Something of its name is pending, or its Nonce was here before.
#[cold]
fn met<R: RouteStage, C: CacheStage>(
    pending: &mut Pending,
    strategies: &mut Strategies,
    routes: &mut R,
    cache: &mut C,
    now: Tick,
    incoming: &Incoming<'_>,
    out: &mut Outbox,
) -> Verdict {
    let key = incoming.key();
    let look = pending.pit.look(&key);
    if pending.dead.contains(now, incoming.hashes.whole, incoming.nonce) {
        // A copy that came over a longer way is no loop when the store still has its answer, and
        // others may have been aggregated to it.
        if look.found.is_none() && cs_lookup::run(pending, cache, now, incoming, None, out) {
            return Verdict::CsHit;
        }
        return loops::run(pending, strategies, incoming, Verdict::DeadNonce, out);
    }
    if look.found.is_some_and(|slot| loops::is_duplicate(pending, slot, incoming)) {
        return loops::run(pending, strategies, incoming, Verdict::DuplicateNonce, out);
    }
    let is_asked = look.found.is_some_and(|slot| !pending.pit.entry(slot).ins.is_empty());
    if !is_asked && cs_lookup::run(pending, cache, now, incoming, look.found, out) {
        return Verdict::CsHit;
    }
    let entered = match look.found {
        Some(slot) => {
            pit_insert::again(pending, now, incoming, slot);
            Ok(slot)
        }
        None => enter(pending, now, incoming, &key, &look, out),
    };
    match entered {
        Ok(slot) => {
            routes.pending_at(slot);
            decide::interest(pending, strategies, routes, now, slot, incoming, out)
        }
        Err(verdict) => verdict,
    }
}

/// Makes a PIT entry, for which another one may have to go.
#[inline(always)]
fn enter(
    pending: &mut Pending,
    now: Tick,
    incoming: &Incoming<'_>,
    key: &Key<'_>,
    look: &Look,
    out: &mut Outbox,
) -> Result<u32, Verdict> {
    if fairness::is_over_pit_share(pending, incoming.packet.face) {
        return enter_over_share(pending, now, incoming, key, out);
    }
    pit_insert::run(pending, now, incoming, key, look)
        .map_err(|verdict| refuse(pending, incoming, verdict, out))
}

#[cold]
fn enter_over_share(
    pending: &mut Pending,
    now: Tick,
    incoming: &Incoming<'_>,
    key: &Key<'_>,
    out: &mut Outbox,
) -> Result<u32, Verdict> {
    if !displace::run(pending, now, incoming.packet.face, out) {
        return Err(refuse(pending, incoming, Verdict::PitShare, out));
    }
    // The entry that went may have been one of this name.
    let look = pending.pit.look(key);
    pit_insert::run(pending, now, incoming, key, &look)
        .map_err(|verdict| refuse(pending, incoming, verdict, out))
}

/// There is no room.
#[cold]
fn refuse(
    pending: &mut Pending,
    incoming: &Incoming<'_>,
    verdict: Verdict,
    out: &mut Outbox,
) -> Verdict {
    loops::nack(pending, incoming, NackReason::CONGESTION, out);
    verdict
}
