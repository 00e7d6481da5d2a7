//! In: a Data, solicited or not.  Out: perhaps in the content store.
//! Drops: unsolicited.  Counters: none of its own.

use crate::Verdict;
use crate::stage::{Arrival, CacheStage, Pending};
use onym_link::Packet;
use onym_tables::Tick;
use onym_tables::cs::{Demand, Inserted};
use onym_wire::data::DataHead;
use onym_wire::mgmt::Scope;

#[inline(always)]
pub(super) fn run<C: CacheStage>(
    cache: &mut C,
    now: Tick,
    packet: &Packet,
    data: &DataHead<'_>,
    hash: u64,
) {
    cache.admit(now, &Arrival { packet, data, hash, demand: Demand::Asked });
}

/// Data that nobody asked for.
#[cold]
pub(super) fn unsolicited<C: CacheStage>(
    pending: &Pending,
    cache: &mut C,
    now: Tick,
    packet: &Packet,
    data: &DataHead<'_>,
    hash: u64,
) -> Verdict {
    let scope = pending.faces.get(packet.face).map_or(Scope::NonLocal, |face| face.info.scope);
    let arrival = Arrival { packet, data, hash, demand: Demand::Unsolicited };
    let is_kept =
        pending.config.unsolicited.admits(scope) && cache.admit(now, &arrival) != Inserted::Refused;
    if is_kept { Verdict::Stored } else { Verdict::Unsolicited }
}
