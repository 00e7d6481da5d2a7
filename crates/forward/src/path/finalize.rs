//! In: a PIT entry that ends.  Out: nothing; its nonces may become dead ones, it is erased.
//! Drops: none.  Counters: satisfied_interests, unsatisfied_interests, and those of the faces.

use crate::fairness;
use crate::stage::Pending;
use onym_tables::pit::Noted;
use onym_tables::{FaceId, Tick};

/// Ends the entry in `slot`.
#[inline(always)]
pub(crate) fn run(pending: &mut Pending, now: Tick, slot: u32) {
    let entry = pending.pit.entry(slot);
    let is_done = entry.ins.is_empty() && entry.outs.is_empty();
    if entry.satisfied {
        pending.counters.satisfied_interests += 1;
    } else {
        pending.counters.unsatisfied_interests += 1;
    }
    let noted = entry.noted;
    if !is_done {
        give_up(pending, now, slot);
    }
    if let Some(noted) = noted {
        end_noted(pending, slot, noted);
    }
    pending.pit.erase(slot);
}

#[cold]
fn end_noted(pending: &mut Pending, slot: u32, noted: Noted) {
    if noted.is_looked_at {
        pending.attention.meet();
    }
    if let Some(face) = noted.charged {
        fairness::discharge(pending, slot, face);
    }
}

/// Ends what is still pending of the entry.
#[inline(never)]
fn give_up(pending: &mut Pending, now: Tick, slot: u32) {
    bury(pending, now, slot, None);
    while let Some(record) = pending.pit.entry_mut(slot).ins.pop() {
        note_unsatisfied(pending, record.face);
    }
    for record in &pending.pit.entry(slot).outs {
        if let Some(to) = pending.faces.get_mut(record.face) {
            to.load.out_pending = to.load.out_pending.saturating_sub(1);
        }
    }
}

/// Puts the nonces sent to `upstream` (to all, when `None`) into the dead nonce list, if they
/// could come back and find nothing that stops them: the entry was not satisfied, or so that a
/// cache will not answer for long, or another upstream has the Interest too. That one may send it
/// around, and when it comes back the store, which is small or off at some nodes, may have no
/// answer any more; in a circle of such nodes an Interest would run for ever.
#[inline(always)]
pub(crate) fn bury(pending: &mut Pending, now: Tick, slot: u32, upstream: Option<FaceId>) {
    let entry = pending.pit.entry(slot);
    if entry.outs.is_empty() {
        return;
    }
    let is_short = u64::from(entry.freshness_ms) < pending.dead.lifetime_ms();
    let is_spread = entry.outs.len() > 1 || pending.config.spreads;
    let is_answerable =
        entry.satisfied && !is_spread && !(is_short && pending.pit.must_be_fresh(slot));
    if !is_answerable {
        bury_asked(pending, now, slot, upstream.filter(|_| !is_spread));
    }
}

fn bury_asked(pending: &mut Pending, now: Tick, slot: u32, upstream: Option<FaceId>) {
    let hash = pending.pit.whole_hash(slot, &pending.key);
    // Copies of one Interest follow each other with one Nonce.
    let mut last = None;
    for record in &pending.pit.entry(slot).outs {
        // What went to this node's management cannot loop.
        let is_asked =
            upstream.is_none_or(|face| face == record.face) && record.face != FaceId::INTERNAL;
        if is_asked && last != Some(record.nonce) {
            pending.dead.insert(now, hash, record.nonce);
            last = Some(record.nonce);
        }
    }
}

/// A downstream stopped waiting without Data.
pub(crate) fn note_unsatisfied(pending: &mut Pending, face: FaceId) {
    if let Some(face) = pending.faces.get_mut(face) {
        face.counters.unsatisfied += 1;
        face.load.ended();
    }
}
