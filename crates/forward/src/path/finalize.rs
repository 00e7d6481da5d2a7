//! In: a PIT entry that ends.  Out: nothing; its nonces may become dead ones, it is erased.
//! Drops: none.  Counters: satisfied_interests, unsatisfied_interests, and those of the faces.

use crate::Forwarder;
use onym_tables::{FaceId, Tick};

/// Ends the entry in `slot`.
pub(crate) fn run(fw: &mut Forwarder, now: Tick, slot: u32) {
    bury(fw, now, slot, None);
    if fw.pit.entry(slot).satisfied {
        fw.counters.satisfied_interests += 1;
    } else {
        fw.counters.unsatisfied_interests += 1;
    }
    while let Some(record) = fw.pit.entry_mut(slot).ins.pop() {
        note_unsatisfied(fw, record.face);
    }
    release_upstreams(fw, slot, None);
    fw.pit.erase(slot);
}

/// The out-record of `face` (all, when `None`) is no longer pending.
pub(crate) fn release_upstreams(fw: &mut Forwarder, slot: u32, face: Option<FaceId>) {
    for record in &fw.pit.entry(slot).outs {
        if face.is_none_or(|face| face == record.face)
            && let Some(to) = fw.faces.get_mut(record.face)
        {
            to.load.out_pending = to.load.out_pending.saturating_sub(1);
        }
    }
}

/// Puts the nonces sent to `upstream` (to all, when `None`) into the dead nonce list, if they
/// could come back: the entry was not satisfied, or so that a cache will not answer for long.
pub(crate) fn bury(fw: &mut Forwarder, now: Tick, slot: u32, upstream: Option<FaceId>) {
    let entry = fw.pit.entry(slot);
    let is_short = u64::from(entry.freshness_ms) < fw.dead.lifetime_ms();
    if entry.outs.is_empty() || (entry.satisfied && !(is_short && fw.pit.must_be_fresh(slot))) {
        return;
    }
    let hash = fw.pit.whole_hash(slot, &fw.key);
    for record in &fw.pit.entry(slot).outs {
        if upstream.is_none_or(|face| face == record.face) {
            fw.dead.insert(now, hash, record.nonce);
        }
    }
}

/// A downstream stopped waiting without Data.
pub(crate) fn note_unsatisfied(fw: &mut Forwarder, face: FaceId) {
    if let Some(face) = fw.faces.get_mut(face) {
        face.counters.unsatisfied += 1;
        face.load.pending = face.load.pending.saturating_sub(1);
    }
}
