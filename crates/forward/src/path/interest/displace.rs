//! In: a new Interest of a face that holds more than its share of a contended PIT.  Out: its PIT
//! entry, in place of one of the face's own that is overdue; the face is told by Nack Congestion.
//! Drops: pit_share, when none of the entries looked at is overdue.  Counters: displaced_interests.

use super::Incoming;
use crate::path::{act, finalize};
use crate::strategy::NackReason;
use crate::{Forwarder, Outbox, Verdict, fairness};
use onym_tables::Tick;
use onym_tables::pit::Key;
use onym_wire::interest::Interest;

/// Entries looked at, anywhere in the table. Where three quarters of it are overdue, one chance in
/// 65,536 is left to find none.
const LOOKS: u32 = 8;

#[cold]
pub(super) fn run(
    fw: &mut Forwarder,
    now: Tick,
    incoming: &Incoming<'_>,
    key: &Key<'_>,
    out: &mut Outbox,
) -> Result<u32, Verdict> {
    let slot = find(fw, now, incoming).ok_or(Verdict::PitShare)?;
    let lent = fw.pit.lend(slot);
    let interest = Interest::parse(lent.interest())
        .expect("invariant: the Interest parsed when it came, and was not changed");
    act::nack(fw, slot, &interest, incoming.ingress, NackReason::Congestion, out);
    fw.pit.give_back(slot, lent);
    finalize::run(fw, now, slot);
    fw.counters.displaced_interests += 1;
    // The entry that went may have been one of this name.
    let look = fw.pit.look(key);
    fw.pit.insert(&look, key, &incoming.packet.bytes).map_err(|_| Verdict::PitFull)
}

/// The longest pending of a few entries for which this face alone waits, and for longer than its
/// answers take.
fn find(fw: &mut Forwarder, now: Tick, incoming: &Incoming<'_>) -> Option<u32> {
    let patience = fairness::patience(fw, incoming.ingress);
    let slots = u64::from(fw.pit.slots());
    let mut found = None;
    for _ in 0..LOOKS {
        let Ok(slot) = u32::try_from(fw.rng.below(slots)) else { continue };
        let entry = fw.pit.entry(slot);
        let [waiting] = &entry.ins[..] else { continue };
        let is_overdue = waiting.face == incoming.ingress && entry.since + patience < now;
        if fw.pit.is_live(slot) && is_overdue && found.is_none_or(|(since, _)| entry.since < since)
        {
            found = Some((entry.since, slot));
        }
    }
    found.map(|(_, slot)| slot)
}
