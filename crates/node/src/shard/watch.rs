//! A shard's packets for viewers (`onym-watch`).

use super::{Io, Shard, WatchOrder, Watched};
use onym_engine::Slot;
use onym_forward::Verdict;
use onym_frame::RxFrame;
use onym_link::{LinkUnsent, LpIn, Outgoing, Packet, Transmit};
use onym_tables::{FaceId, Tick};
use onym_watch::{Direction, Kind, Outcome, Seen, Watch, header_out};
use onym_wire::lp::LpHeader;
use onym_wire::types::PacketType;

impl Shard {
    /// Whether somebody looks.
    #[inline]
    pub(super) const fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    pub(super) fn obey_watch(&mut self, now: Tick, order: WatchOrder) {
        let watch = self.watch.get_or_insert_default();
        match order {
            WatchOrder::Take { viewer, filter, reply } => {
                reply.send(watch.take(now, viewer, &filter));
            }
            WatchOrder::End { viewer } => watch.end(viewer),
            WatchOrder::Traffic { key, depth, reply } => {
                let traffic = watch.traffic(now, key, depth);
                let (prefixes, round_trips) = (traffic.prefixes(), traffic.round_trips());
                reply.send(Watched { prefixes, round_trips });
            }
            WatchOrder::EndLeases => watch.end_leases(now),
        }
        self.watch.take_if(|watch| watch.is_idle());
    }

    /// The forwarder decided about a packet; `None` while it is on its way over the shards.
    pub(super) fn watch_received(&mut self, now: Tick, packet: &Packet, verdict: Option<Verdict>) {
        if let (Some(watch), Some(verdict)) = (&mut self.watch, verdict) {
            let outcome = Outcome { word: verdict.label(), is_drop: verdict.is_drop() };
            note(watch, &Seen::received(now, packet, outcome));
        }
    }

    /// A frame of the push half, or a message of an application of it, came.
    pub(super) fn watch_push(&mut self, now: Tick, packet: &Packet) {
        let Some(watch) = &mut self.watch else { return };
        let kind = match PacketType::of(&packet.bytes) {
            Some(PacketType::PushFrame) => Kind::Push,
            _ => Kind::PushApp,
        };
        let outcome = Outcome { word: "received", is_drop: false };
        note(watch, &Seen { kind, ..Seen::received(now, packet, outcome) });
    }

    /// Frames of the push half came in a row, without link-layer fields.
    #[cold]
    pub(super) fn watch_frames(&mut self, io: &mut Io, slot: Slot, frames: &[RxFrame]) {
        let Some(face) = io.faces.peek(slot).map(|face| face.id) else { return };
        for frame in frames {
            let packet = Packet { face, bytes: frame.bytes.clone(), lp: LpIn::default() };
            self.watch_push(io.now, &packet);
        }
    }

    /// A packet went into the send queue of a face of this shard, or found no room in it.
    #[cold]
    pub(super) fn watch_sent(
        &mut self,
        at: Tick,
        face: FaceId,
        item: &Transmit,
        arena: &[u8],
        sent: Result<(), LinkUnsent>,
    ) {
        let Some(watch) = &mut self.watch else { return };
        let (kind, header) = match &item.what {
            Outgoing::Pull(kind, lp) => ((*kind).into(), header_out(lp)),
            Outgoing::PushFrame => (Kind::Push, LpHeader::default()),
            Outgoing::App(_) => (Kind::PushApp, LpHeader::default()),
        };
        let word = match sent {
            Ok(()) => "sent",
            Err(LinkUnsent::OverMtu) => "over_mtu",
            Err(LinkUnsent::QueueFull) => "queue_full",
        };
        let seen = Seen {
            at,
            face,
            direction: Direction::Out,
            kind,
            outcome: Outcome { word, is_drop: sent.is_err() },
            header,
            octets: item.bytes.octets(arena),
        };
        note(watch, &seen);
    }
}

/// Management is not shown to those who look by it: each look would show the one before.
fn note(watch: &mut Watch, seen: &Seen<'_>) {
    if !is_management(seen) {
        watch.note(seen);
    }
}

/// Whether a packet is about `/localhost/nfd` or `/localhost/onym`.
fn is_management(seen: &Seen<'_>) -> bool {
    const OURS: [&[u8]; 2] = [b"\x08\x09localhost\x08\x03nfd", b"\x08\x09localhost\x08\x04onym"];
    // The name is the first element: within the first octets of the packet.
    let start = seen.octets.get(..32.min(seen.octets.len())).unwrap_or_default();
    OURS.iter().any(|name| start.windows(name.len()).take(9).any(|window| window == *name))
}
