//! A shard's packets for viewers (`onym-watch`).

use super::{Io, Shard, WatchOrder, Watched};
use onym_engine::Slot;
use onym_forward::Verdict;
use onym_frame::RxFrame;
use onym_link::{LinkUnsent, LpIn, Outgoing, Packet, Transmit};
use onym_tables::{FaceId, Tick};
use onym_watch::{Direction, Fields, Kind, Outcome, Seen, Wanted, Watch, name_of};
use onym_wire::types::PacketType;

impl Shard {
    /// Whether somebody looks.
    #[inline]
    pub(super) const fn is_watched(&self) -> bool {
        self.watch.is_some()
    }

    /// What viewers are shown, where there are any.
    #[inline]
    fn looked_at(&mut self) -> Option<&mut Watch> {
        self.watch.as_deref_mut().filter(|watch| watch.has_viewers())
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
            WatchOrder::Spans { reply } => {
                let fw = &self.fw;
                let spans = watch.spans.as_mut();
                reply.send(spans.map(|s| s.take(now, |token| fw.waits(token))).unwrap_or_default());
            }
        }
        self.watch.take_if(|watch| watch.is_idle());
    }

    /// The forwarder decided about a packet; `None` while it is on its way over the shards.
    pub(super) fn watch_taken(&mut self, now: Tick, packet: &Packet, verdict: Option<Verdict>) {
        self.end_spans(now, packet);
        let (Some(watch), Some(verdict)) = (self.looked_at(), verdict) else { return };
        let (kind, token) = (packet.kind().into(), &packet.lp.pit_token);
        if let Some(wanted) = watch.glance(kind, Direction::In, token, &packet.bytes) {
            let outcome = Outcome { word: verdict.label(), is_drop: verdict.is_drop() };
            keep(watch, wanted, &Seen::received(now, packet, outcome));
        }
    }

    /// A frame of the push half, or a message of an application of it, came.
    pub(super) fn watch_push(&mut self, now: Tick, packet: &Packet) {
        let Some(watch) = self.looked_at() else { return };
        let kind = match PacketType::of(&packet.bytes) {
            Some(PacketType::PushFrame) => Kind::Push,
            _ => Kind::PushApp,
        };
        let outcome = Outcome { word: "received", is_drop: false };
        watch.note(&Seen { kind, name: None, ..Seen::received(now, packet, outcome) });
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
        let Some(watch) = self.looked_at() else { return };
        let octets = item.bytes.octets(arena);
        let (kind, token): (_, &[u8]) = match &item.what {
            Outgoing::Pull(kind, lp) => ((*kind).into(), &lp.pit_token),
            Outgoing::PushFrame => (Kind::Push, &[]),
            Outgoing::App(_) => (Kind::PushApp, &[]),
        };
        let Some(wanted) = watch.glance(kind, Direction::Out, token, octets) else { return };
        let (fields, name) = match item.as_pull() {
            Some((_, lp)) => (Fields::Out(lp), name_of(octets)),
            None => (Fields::Bare, None),
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
            fields,
            octets,
            name,
        };
        keep(watch, wanted, &seen);
    }
}

/// Management is not shown to those who look by it: each look would show the one before.
fn keep(watch: &mut Watch, wanted: Wanted, seen: &Seen<'_>) {
    if !seen.name.is_some_and(is_management) {
        watch.keep(wanted, seen);
    }
}

/// Whether a name is under `/localhost/nfd` or `/localhost/onym`.
#[inline]
pub(super) fn is_management(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"\x08\x09localhost");
    rest.is_some_and(|rest| rest.starts_with(b"\x08\x03nfd") || rest.starts_with(b"\x08\x04onym"))
}
