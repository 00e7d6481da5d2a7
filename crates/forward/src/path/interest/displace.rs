//! In: a face that holds more than its share of a contended PIT and wants one more.  Out: room, in
//! place of one of its own entries that is overdue; the face is told by Nack Congestion.
//! Drops: none (the caller drops as pit_share where none of the entries looked at is overdue).
//! Counters: displaced_interests, and those of finalize.

use crate::fairness;
use crate::path::{act, finalize};
use crate::stage::Pending;
use onym_link::Outbox;
use onym_tables::{FaceId, Tick};
use onym_wire::interest::Interest;
use onym_wire::lp::NackReason;

/// Entries looked at, anywhere in the table. Where three quarters of it are overdue, one chance in
/// 65,536 is left to find none.
const LOOKS: u32 = 8;

/// Whether there is room now.
#[cold]
pub(super) fn run(pending: &mut Pending, now: Tick, face: FaceId, out: &mut Outbox) -> bool {
    let Some(slot) = find(pending, now, face) else { return false };
    let lent = pending.pit.lend(slot);
    let interest = Interest::parse(lent.interest())
        .expect("invariant: the Interest parsed when it came, and was not changed");
    act::nack(pending, slot, &interest, face, NackReason::CONGESTION, out);
    pending.pit.give_back(slot, lent);
    finalize::run(pending, now, slot);
    pending.counters.displaced_interests += 1;
    true
}

/// The longest pending of a few entries for which this face alone waits, and for longer than its
/// answers take.
fn find(pending: &mut Pending, now: Tick, face: FaceId) -> Option<u32> {
    let patience = fairness::patience(pending, face);
    let slots = u64::from(pending.pit.slots());
    let mut found = None;
    for _ in 0..LOOKS {
        let Ok(slot) = u32::try_from(pending.rng.below(slots)) else { continue };
        let entry = pending.pit.entry(slot);
        let [waiting] = &entry.ins[..] else { continue };
        let is_overdue = waiting.face == face && entry.since + patience < now;
        if pending.pit.is_live(slot)
            && is_overdue
            && found.is_none_or(|(since, _)| entry.since < since)
        {
            found = Some((entry.since, slot));
        }
    }
    found.map(|(_, slot)| slot)
}
