//! In: an Interest that the cache did not answer.  Out: its PIT entry with the in-record of its
//! face new or refreshed, and the entry's end moved.
//! Drops: pit_full (the caller answers with Nack Congestion).  Counters: pending of the
//! face.

use super::Incoming;
use crate::stage::Pending;
use crate::{Verdict, fairness};
use onym_tables::Tick;
use onym_tables::pit::{InRecord, Key, Look};

#[inline(always)]
pub(super) fn run(
    pending: &mut Pending,
    now: Tick,
    incoming: &Incoming<'_>,
    key: &Key<'_>,
    look: &Look,
) -> Result<u32, Verdict> {
    let slot = match look.found {
        Some(slot) => slot,
        None => {
            pending.pit.insert(look, key, &incoming.packet.bytes).map_err(|_| Verdict::PitFull)?
        }
    };
    let lifetime_ms = incoming.interest.lifetime_or_default().min(pending.config.lifetime_max_ms);
    let lp = &incoming.packet.lp;
    let record = InRecord {
        face: incoming.ingress,
        nonce: incoming.nonce,
        expiry: now.plus_ms(lifetime_ms),
        token: lp.pit_token.clone(),
        non_discovery: lp.non_discovery,
    };
    let expiry = record.expiry;
    let entry = pending.pit.entry_mut(slot);
    if look.found.is_none() {
        entry.ins.push(record);
        entry.since = now;
        pending.pit.set_expiry(slot, expiry);
        if incoming.packet.bytes.len() >= fairness::LONG_LEN {
            fairness::charge(pending, slot, incoming.ingress);
        }
    } else {
        let known = entry.ins.iter_mut().find(|r| r.face == incoming.ingress);
        let is_known = known.map(|known| *known = record.clone()).is_some();
        if !is_known {
            entry.ins.push(record);
        }
        let latest = entry.ins.iter().map(|r| r.expiry).max();
        pending.pit.set_expiry(slot, latest.unwrap_or(expiry));
        if is_known {
            return Ok(slot);
        }
    }
    if let Some(face) = pending.faces.get_mut(incoming.ingress) {
        face.load.pending += 1;
    }
    Ok(slot)
}
