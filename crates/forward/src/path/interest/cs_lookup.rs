//! In: an Interest that nobody waits for yet.  Out: hit → the Data goes to its face, and an entry
//! that was left over ends; miss → pit_insert.
//! Drops: none.  Counters: cs_hits, cs_misses.

use super::Incoming;
use crate::path::{emit, finalize, is_localhost};
use crate::{Forwarder, fairness};
use onym_link::{LpOut, Outbox, Payload};
use onym_tables::cs::{Body, Query};
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;
use onym_wire::interest::Interest;

use onym_tables::hash::NameHashes;

/// What the Interest asks of the store.
pub(crate) fn query<'a>(interest: &Interest<'a>, hashes: &NameHashes) -> Query<'a> {
    Query {
        name: &interest.name.value()[..hashes.undigested_len],
        hash: hashes.undigested,
        can_be_prefix: interest.can_be_prefix,
        must_be_fresh: interest.must_be_fresh,
        digest: interest.implicit_digest(),
    }
}

/// Charges a search to the face that asked: only those with CanBePrefix look at many packets.
#[inline(always)]
fn charge(fw: &mut Forwarder, incoming: &Incoming<'_>) {
    if incoming.interest.can_be_prefix {
        let steps = fw.cs.take_steps();
        fairness::charge_steps(fw, incoming.ingress, steps);
    }
}

#[inline(always)]
pub(super) fn run(
    fw: &mut Forwarder,
    now: Tick,
    incoming: &Incoming<'_>,
    left_over: Option<u32>,
    out: &mut Outbox,
) -> bool {
    let Some(body) = fw.cs.find(now, &query(incoming.interest, incoming.hashes)) else {
        fw.counters.cs_misses += 1;
        charge(fw, incoming);
        return false;
    };
    let bytes = match body {
        Body::Small(bytes) => out.copy(bytes),
        Body::Shared(buf) => Payload::Shared(buf.clone()),
    };
    let freshness = left_over.map(|_| Data::parse(body.bytes()).map_or(0, |d| d.freshness_ms));
    fw.counters.cs_hits += 1;
    charge(fw, incoming);
    if let (Some(slot), Some(freshness)) = (left_over, freshness) {
        let entry = fw.pit.entry_mut(slot);
        entry.satisfied = true;
        entry.freshness_ms = u32::try_from(freshness).unwrap_or(u32::MAX);
        finalize::run(fw, now, slot);
    }
    let lp = LpOut {
        pit_token: incoming.packet.lp.pit_token.clone(),
        incoming_face: Some(FaceId::CONTENT_STORE),
        ..LpOut::default()
    };
    let localhost = is_localhost(incoming.interest.name.value());
    emit::data(fw, bytes, incoming.ingress, localhost, lp, out);
    true
}
