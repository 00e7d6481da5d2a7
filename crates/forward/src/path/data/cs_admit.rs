//! In: a Data, solicited or not.  Out: perhaps in the content store.
//! Drops: unsolicited.  Counters: none of its own.

use crate::{Forwarder, UnsolicitedPolicy, Verdict};
use onym_link::Packet;
use onym_tables::Tick;
use onym_tables::cs::Inserted;
use onym_wire::data::Data;

#[inline(always)]
pub(super) fn run(fw: &mut Forwarder, now: Tick, packet: &Packet, data: &Data<'_>, hash: u64) {
    insert(fw, now, packet, data, hash, false);
}

/// Data that nobody asked for.
#[cold]
pub(super) fn unsolicited(
    fw: &mut Forwarder,
    now: Tick,
    packet: &Packet,
    data: &Data<'_>,
    hash: u64,
) -> Verdict {
    let is_local = fw.faces.get(packet.face).is_some_and(crate::Face::is_local);
    let admitted = match fw.config.unsolicited {
        UnsolicitedPolicy::DropAll => false,
        UnsolicitedPolicy::AdmitLocal => is_local,
        UnsolicitedPolicy::AdmitNetwork => !is_local,
        UnsolicitedPolicy::AdmitAll => true,
    };
    if admitted && insert(fw, now, packet, data, hash, true) {
        Verdict::Stored
    } else {
        Verdict::Unsolicited
    }
}

#[inline(always)]
fn insert(
    fw: &mut Forwarder,
    now: Tick,
    packet: &Packet,
    data: &Data<'_>,
    hash: u64,
    unsolicited: bool,
) -> bool {
    if packet.lp.no_cache || !fw.cs.config().admit {
        return false;
    }
    let name = data.name.value();
    let inserted = fw.cs.insert(now, &packet.bytes, name, hash, data.freshness_ms, unsolicited);
    inserted != Inserted::Refused
}
