//! The path of a packet: a file per stage; this file wires them.
//!
//! ```text
//! Interest  guard ─ loops ─ cs_lookup ─ pit_insert ─ decide (routes, strategy) ─ act
//! Data      guard ─ pit_match ─ cs_admit ─ fan_out
//! Nack      nack ─ decide ─ act
//! timer     timers ─ finalize, or decide ─ act
//! ```

pub(crate) mod act;
pub(crate) mod ahead;
pub(crate) mod data;
pub(crate) mod decide;
pub(crate) mod emit;
pub(crate) mod finalize;
mod incoming;
pub(crate) mod interest;
pub(crate) mod nack;
pub(crate) mod scope;
pub(crate) mod timers;

pub use ahead::BATCH;
pub use data::Share;
pub(crate) use scope::{is_localhop, is_localhost};

use crate::stage::{CacheStage, RouteStage};
use crate::{Forwarder, Verdict, fairness};
use onym_link::{Outbox, Packet, PacketKind};
use onym_tables::Tick;
use onym_wire::PACKET_LEN_MAX;

/// Takes one packet to its verdict, and counts it.
pub(crate) fn run<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    kind: PacketKind,
    packet: &Packet,
    out: &mut Outbox,
) -> Verdict {
    fairness::tick(&mut fw.pending, now);
    let verdict = if packet.bytes.len() > PACKET_LEN_MAX {
        fw.pending.attention.meet();
        Verdict::TooLarge
    } else {
        match kind {
            PacketKind::Interest => interest::run(fw, now, packet, out),
            PacketKind::Data => data::run_own(fw, now, packet, out),
            PacketKind::Nack => nack::run(fw, now, packet, out),
        }
    };
    fw.pending.counters.note(kind, verdict);
    verdict
}

/// Takes a Data that concerns several shards; the verdict is counted by the shard that it belongs
/// to. `None` when it is only shown and nobody here waits for it, or when its token says nothing.
pub(crate) fn run_data<R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    now: Tick,
    packet: &Packet,
    share: Share,
    out: &mut Outbox,
) -> Option<Verdict> {
    fairness::tick(&mut fw.pending, now);
    let verdict = if packet.bytes.len() > PACKET_LEN_MAX {
        fw.pending.attention.meet();
        (share != Share::Shown).then_some(Verdict::TooLarge)
    } else {
        data::run(fw, now, packet, share, out)
    };
    if let (Some(verdict), true) = (verdict, share != Share::Shown) {
        fw.pending.counters.note(PacketKind::Data, verdict);
    }
    verdict
}
