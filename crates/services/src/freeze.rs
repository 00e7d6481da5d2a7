//! Packets kept while a side is frozen (the second insertion strategy of the paper).
//!
//! Bounded in packets, octets and time. At a bound further packets are dropped (`freeze_full`);
//! when the time is over the kept packets are sent.

use crate::ports::Side;
use crate::verdict::Verdict;
use onym_link::Packet;
use onym_tables::Tick;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// The bounds of one freeze.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Limits {
    /// Most packets.
    pub packets_max: usize,
    /// Most octets.
    pub bytes_max: usize,
    /// Longest time, in milliseconds.
    pub ms_max: u64,
}

impl Default for Limits {
    fn default() -> Self {
        Self { packets_max: 10_000, bytes_max: 64 << 20, ms_max: 5000 }
    }
}

#[derive(Debug)]
struct Frozen {
    limits: Limits,
    since: Tick,
    packets: VecDeque<Packet>,
    bytes: usize,
}

/// What a side shows of its freeze.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct FreezeState {
    /// Whether it is frozen.
    pub frozen: bool,
    /// Packets kept now.
    pub packets: usize,
    /// Their octets.
    pub bytes: usize,
    /// Packets dropped at the bound, all freezes together.
    pub dropped: u64,
    /// Packets sent when a freeze ended, all together.
    pub sent: u64,
}

/// The freezes of both sides.
#[derive(Debug, Default)]
pub struct Freeze {
    sides: [Option<Frozen>; 2],
    dropped: [u64; 2],
    sent: [u64; 2],
}

impl Freeze {
    /// Freezes a side. One that is frozen keeps what it has and gets the new bounds; false then.
    pub fn start(&mut self, now: Tick, side: Side, limits: Limits) -> bool {
        match &mut self.sides[side as usize] {
            Some(frozen) => {
                frozen.limits = limits;
                false
            }
            none => {
                let packets = VecDeque::new();
                *none = Some(Frozen { limits, since: now, packets, bytes: 0 });
                true
            }
        }
    }

    /// Ends it: the packets in their order; `None` when it was not frozen.
    pub fn end(&mut self, side: Side) -> Option<VecDeque<Packet>> {
        let frozen = self.sides[side as usize].take()?;
        self.sent[side as usize] += frozen.packets.len() as u64;
        Some(frozen.packets)
    }

    /// When the next freeze ends by itself.
    #[must_use]
    pub fn due(&self) -> Option<Tick> {
        self.sides.iter().flatten().map(|f| f.since.plus_ms(f.limits.ms_max)).min()
    }

    /// A side whose time is over.
    #[must_use]
    pub fn over(&self, now: Tick) -> Option<Side> {
        [Side::Consumer, Side::Producer].into_iter().find(|side| {
            let frozen = self.sides[*side as usize].as_ref();
            frozen.is_some_and(|f| f.since.plus_ms(f.limits.ms_max) <= now)
        })
    }

    /// Whether a side is frozen.
    #[must_use]
    pub fn is_frozen(&self, side: Side) -> bool {
        self.sides[side as usize].is_some()
    }

    /// Keeps `packet` when `side` is frozen.
    ///
    /// # Errors
    /// The verdict, when it is.
    pub fn hold(&mut self, side: Side, packet: Packet) -> Result<Packet, Verdict> {
        let Some(frozen) = &mut self.sides[side as usize] else { return Ok(packet) };
        let limits = frozen.limits;
        if frozen.packets.len() >= limits.packets_max
            || frozen.bytes + packet.bytes.len() > limits.bytes_max
        {
            self.dropped[side as usize] += 1;
            return Err(Verdict::FreezeFull);
        }
        frozen.bytes += packet.bytes.len();
        frozen.packets.push_back(packet);
        Err(Verdict::Held)
    }

    /// The state of a side.
    #[must_use]
    pub fn state(&self, side: Side) -> FreezeState {
        let frozen = self.sides[side as usize].as_ref();
        FreezeState {
            frozen: frozen.is_some(),
            packets: frozen.map_or(0, |f| f.packets.len()),
            bytes: frozen.map_or(0, |f| f.bytes),
            dropped: self.dropped[side as usize],
            sent: self.sent[side as usize],
        }
    }
}
