//! In: an Interest that nobody waits for yet.  Out: hit → the Data goes to its face, and an entry
//! that was left over ends; miss → pit_insert.
//! Drops: none.  Counters: cs_hits, cs_misses.

use super::Incoming;
use crate::fairness;
use crate::path::{emit, finalize};
use crate::stage::{CacheStage, Pending, query};
use onym_link::{LpOut, Outbox, Payload};
use onym_tables::cs::Body;
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;

/// Charges a search to the face that asked: only those with CanBePrefix look at many packets.
#[inline(always)]
fn charge<C: CacheStage>(pending: &mut Pending, cache: &mut C, incoming: &Incoming<'_>) {
    if incoming.interest.can_be_prefix {
        let steps = cache.take_steps();
        fairness::charge_steps(pending, incoming.packet.face, steps);
    }
}

#[inline(always)]
pub(super) fn run<C: CacheStage>(
    pending: &mut Pending,
    cache: &mut C,
    now: Tick,
    incoming: &Incoming<'_>,
    left_over: Option<u32>,
    out: &mut Outbox,
) -> bool {
    let Incoming { interest, hashes, .. } = *incoming;
    let found = if interest.can_be_prefix || cache.may_have(hashes.undigested) {
        cache.find(now, &query(interest, hashes))
    } else {
        None
    };
    let Some(body) = found else {
        pending.counters.cs_misses += 1;
        charge(pending, cache, incoming);
        return false;
    };
    let bytes = match body {
        Body::Small(bytes) => out.copy(bytes),
        Body::Shared(buf) => Payload::Shared(buf.clone()),
    };
    let freshness = left_over.map(|_| freshness_ms(body.bytes()));
    pending.counters.cs_hits += 1;
    charge(pending, cache, incoming);
    if let (Some(slot), Some(freshness)) = (left_over, freshness) {
        let entry = pending.pit.entry_mut(slot);
        entry.satisfied = true;
        entry.freshness_ms = u32::try_from(freshness).unwrap_or(u32::MAX);
        finalize::run(pending, now, slot);
    }
    let lp = || LpOut {
        pit_token: incoming.packet.lp.pit_token.clone(),
        incoming_face: FaceId::CONTENT_STORE.told(),
        ..LpOut::default()
    };
    let name = incoming.interest.name.value();
    let Pending { faces, counters, .. } = pending;
    emit::data(faces, counters, bytes, incoming.from, name, lp, out);
    true
}

#[cold]
fn freshness_ms(data: &[u8]) -> u64 {
    Data::parse(data).map_or(0, |data| data.freshness_ms)
}
