//! In: an Interest that the cache did not answer.  Out: its PIT entry with the in-record of its
//! face new or refreshed, and the entry's end moved.
//! Drops: pit_full.  Counters: pending of the face.

use super::Incoming;
use crate::{Forwarder, Verdict};
use onym_tables::Tick;
use onym_tables::pit::{InRecord, Key, Look};

pub(super) fn run(
    fw: &mut Forwarder,
    now: Tick,
    incoming: &Incoming<'_>,
    key: &Key<'_>,
    look: &Look,
) -> Result<u32, Verdict> {
    let slot = match look.found {
        Some(slot) => slot,
        None => fw.pit.insert(look, key, &incoming.packet.bytes).map_err(|_| Verdict::PitFull)?,
    };
    let lifetime_ms = incoming.interest.lifetime_or_default().min(fw.config.lifetime_max_ms);
    let lp = &incoming.packet.lp;
    let record = InRecord {
        face: incoming.ingress,
        nonce: incoming.nonce,
        expiry: now.plus_ms(lifetime_ms),
        token: lp.pit_token.clone(),
        non_discovery: lp.non_discovery,
    };
    let entry = fw.pit.entry_mut(slot);
    match entry.ins.iter_mut().find(|r| r.face == incoming.ingress) {
        Some(known) => *known = record,
        None => entry.ins.push(record),
    }
    let expiry = entry.ins.iter().map(|r| r.expiry).max().unwrap_or(now);
    fw.pit.set_expiry(slot, expiry);
    Ok(slot)
}
