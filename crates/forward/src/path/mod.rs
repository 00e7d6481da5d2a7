//! The way of a packet: one folder, a file per stage; this file wires them.
//!
//! ```text
//! Interest  guard ─ loops ─ cs_lookup ─ pit_insert ─ fib_lookup ─ decide ─ act
//! Data      guard ─ pit_match ─ cs_admit ─ fan_out
//! Nack      nack ─ decide ─ act
//! timer     timers ─ finalize, or decide ─ act
//! ```

pub(crate) mod act;
pub(crate) mod data;
pub(crate) mod decide;
pub(crate) mod emit;
pub(crate) mod finalize;
pub(crate) mod interest;
pub(crate) mod nack;
pub(crate) mod timers;

use crate::{Forwarder, Verdict, fairness};
use onym_link::{Outbox, Packet, PacketKind};
use onym_tables::Tick;
use onym_wire::PACKET_LEN_MAX;

/// Takes one packet to its verdict, and counts it.
pub(crate) fn run(fw: &mut Forwarder, now: Tick, packet: &Packet, out: &mut Outbox) -> Verdict {
    fairness::tick(fw, now);
    let kind = packet.kind();
    let verdict = if packet.bytes.len() > PACKET_LEN_MAX {
        Verdict::TooLarge
    } else {
        match kind {
            PacketKind::Interest => interest::run(fw, now, packet, out),
            PacketKind::Data => data::run(fw, now, packet, out),
            PacketKind::Nack => nack::run(fw, now, packet, out),
        }
    };
    fw.counters.received[kind as usize] += 1;
    fw.counters.verdicts[kind as usize][verdict as usize] += 1;
    verdict
}

/// As [`run`] for a Data that [`data::show`] found wanted in another shard.
pub(crate) fn run_shown(
    fw: &mut Forwarder,
    now: Tick,
    packet: &Packet,
    out: &mut Outbox,
) -> Verdict {
    let verdict = data::run_shown(fw, now, packet, out);
    fw.counters.received[PacketKind::Data as usize] += 1;
    fw.counters.verdicts[PacketKind::Data as usize][verdict as usize] += 1;
    verdict
}

/// The component `localhost` as the first of a name's value.
const LOCALHOST: &[u8] = b"\x08\x09localhost";
/// The component `localhop`.
const LOCALHOP: &[u8] = b"\x08\x08localhop";

/// Whether a name (its value) may not leave this host.
#[inline]
pub(crate) fn is_localhost(name: &[u8]) -> bool {
    name.starts_with(LOCALHOST)
}

/// Whether a name (its value) may go one hop only.
#[inline]
pub(crate) fn is_localhop(name: &[u8]) -> bool {
    name.starts_with(LOCALHOP)
}
