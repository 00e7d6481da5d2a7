//! In: an Interest that the cache did not answer.  Out: its PIT entry with the in-record of its
//! face new or refreshed, and the entry's end moved.
//! Drops: pit_full (the caller answers with Nack Congestion).  Counters: pending of the
//! face.

use super::Incoming;
use crate::stage::Pending;
use crate::{Verdict, fairness};
use onym_tables::Tick;
use onym_tables::pit::{InRecord, Key, Look};

/// Makes the entry, which was not found.
#[inline(always)]
pub(super) fn run(
    pending: &mut Pending,
    now: Tick,
    incoming: &Incoming<'_>,
    key: &Key<'_>,
    look: &Look,
) -> Result<u32, Verdict> {
    let bytes = &incoming.packet.bytes;
    let slot = pending.pit.insert(look, key, bytes).map_err(|_| Verdict::PitFull)?;
    let record = record(pending, now, incoming);
    let expiry = record.expiry;
    let entry = pending.pit.entry_mut(slot);
    entry.ins.push(record);
    entry.since = now;
    pending.pit.set_expiry(slot, expiry);
    if bytes.len() >= fairness::LONG_LEN {
        fairness::charge(pending, slot, incoming.packet.face);
    }
    pending.faces.at_mut(incoming.from).load.pending += 1;
    Ok(slot)
}

/// Adds to an entry that was found.
pub(super) fn again(pending: &mut Pending, now: Tick, incoming: &Incoming<'_>, slot: u32) {
    let record = record(pending, now, incoming);
    let entry = pending.pit.entry_mut(slot);
    match entry.ins.iter_mut().find(|r| r.face == incoming.packet.face) {
        Some(known) => *known = InRecord { repeats: true, ..record },
        None => {
            entry.ins.push(record);
            pending.faces.at_mut(incoming.from).load.pending += 1;
        }
    }
    let latest = entry.ins.iter().map(|r| r.expiry).max().unwrap_or(now);
    pending.pit.set_expiry(slot, latest);
}

#[inline(always)]
fn record(pending: &Pending, now: Tick, incoming: &Incoming<'_>) -> InRecord {
    let lifetime_ms = incoming.interest.lifetime_or_default().min(pending.config.lifetime_max_ms);
    let lp = &incoming.packet.lp;
    InRecord {
        face: incoming.packet.face,
        nonce: incoming.nonce,
        expiry: now.plus_ms(lifetime_ms),
        token: lp.pit_token.clone(),
        non_discovery: lp.non_discovery,
        repeats: false,
    }
}
