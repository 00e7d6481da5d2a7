//! A shard's packets for viewers (`onym-watch`).

use super::{Io, Shard, WatchOrder, Watched};
use onym_engine::Slot;
use onym_forward::Verdict;
use onym_frame::RxFrame;
use onym_link::{LinkUnsent, LpIn, Outbox, Outgoing, Packet, PacketKind, Transmit};
use onym_tables::{FaceId, Tick};
use onym_watch::{Direction, Fields, Kind, Look, Outcome, Sample, Seen, name_of};
use onym_wire::types::PacketType;

/// A packet that is looked at, before anything is decided about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glance {
    pub(super) look: Look,
    /// Where its copies will be in the outbox.
    first: usize,
    /// When the Interest was sent that it answers, where that is of use.
    asked: Option<Tick>,
}

impl Shard {
    pub(super) fn obey_watch(&mut self, now: Tick, order: WatchOrder) {
        let watch = self.watch.get_or_insert_default();
        match order {
            WatchOrder::Take { viewer, filter, unix_offset, reply } => {
                reply.send(watch.take(now, viewer, &filter, unix_offset));
            }
            WatchOrder::End { viewer } => watch.end(viewer),
            WatchOrder::Traffic { seed, depth, reply } => {
                let traffic = watch.traffic(now, seed, depth);
                let (prefixes, unseen_max) = (traffic.prefixes(), traffic.unseen_max());
                let round_trips = traffic.round_trips();
                reply.send(Watched { prefixes, unseen_max, round_trips });
            }
            WatchOrder::EndLeases => watch.end_leases(now),
            WatchOrder::Spans { reply } => {
                let fw = &self.fw;
                let spans = watch.spans_mut();
                reply.send(spans.map(|s| s.take(now, |token| fw.waits(token))).unwrap_or_default());
            }
        }
        watch.copies.clear();
        self.shows_packets = watch.has_captures();
        self.watch.take_if(|watch| watch.is_idle());
        self.settle_door();
    }

    /// Before anything is decided about a packet: whether it is looked at.
    pub(super) fn glance(&mut self, packet: &Packet) -> Option<Glance> {
        self.watch.as_mut()?.wants(packet).then(|| self.look(packet))
    }

    /// Before anything is decided about a packet that is looked at.
    pub(super) fn look(&mut self, packet: &Packet) -> Glance {
        let look = self.watch.as_mut().map(|watch| watch.look(packet)).unwrap_or_default();
        let is_answer = look.stands_for > 0 && packet.kind() == PacketKind::Data;
        let name = is_answer.then(|| name_of(&packet.bytes)).flatten();
        let asked = name.and_then(|name| self.fw.asked_at(packet, name));
        Glance { look, first: self.out.items.len(), asked }
    }

    /// The forwarder decided about a packet; `None` while it is on its way over the shards.
    pub(super) fn watch_taken(
        &mut self,
        now: Tick,
        packet: &Packet,
        glance: Option<Glance>,
        verdict: Option<Verdict>,
    ) {
        let Some(glance) = glance else { return };
        self.look_at(glance.first);
        self.end_spans(now, packet);
        let (Some(watch), Some(verdict)) = (&mut self.watch, verdict) else { return };
        let outcome = Outcome { word: verdict.label(), is_drop: verdict.is_drop() };
        let seen = Seen::received(now, packet, outcome);
        if seen.name.is_some_and(is_management) {
            return;
        }
        if watch.may_show(seen.octets) {
            watch.show(&seen);
        }
        if glance.look.stands_for > 0
            && let Some(name) = seen.name
        {
            let asked = glance.asked.filter(|_| verdict == Verdict::Satisfied);
            watch.count(&Sample {
                at: now,
                stands_for: glance.look.stands_for,
                name,
                is_interest: seen.kind == Kind::Interest,
                is_hit: verdict == Verdict::CsHit,
                is_drop: outcome.is_drop,
                data: data_since(&self.out, glance.first),
                round_trip: asked.map(|asked| (packet.face, now.since(asked))),
            });
        }
    }

    /// The copies in the outbox, from `first` on, are of a packet that viewers may want.
    pub(super) fn look_at(&mut self, first: usize) {
        if self.shows_packets
            && let Some(watch) = &mut self.watch
        {
            watch.copies.look_at(first..self.out.items.len());
        }
    }

    /// Sends what is in an outbox; what may be wanted is shown. Copies that were made for packets of a
    /// turn have their names, and so no viewer wants those of packets that none wanted. All others are
    /// looked at one by one: what timers, orders and other shards made, and what gave way to an Interest.
    pub(super) fn transmit_watched(&mut self, io: &mut Io, out: &mut Outbox) {
        let displaced = self.fw.counters().displaced_interests;
        let Some(watch) = &mut self.watch else { return };
        let mut copies = std::mem::take(&mut watch.copies);
        if std::mem::replace(&mut self.displaced, displaced) != displaced || !self.is_of_turn {
            copies.clear();
            copies.look_at(0..out.items.len());
        }
        for (places, is_looked_at) in copies.stretches(out.items.len()) {
            for item in &mut out.items[places] {
                match is_looked_at {
                    true => self.transmit_as::<true>(io, &out.arena, item),
                    false => self.transmit_as::<false>(io, &out.arena, item),
                }
            }
        }
        copies.clear();
        if let Some(watch) = &mut self.watch {
            watch.copies = copies;
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
        if watch.may_show(&packet.bytes) {
            watch.show(&Seen { kind, name: None, ..Seen::received(now, packet, outcome) });
        }
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
    #[inline(never)]
    pub(super) fn watch_sent(
        &mut self,
        at: Tick,
        face: FaceId,
        item: &Transmit,
        arena: &[u8],
        sent: Result<(), LinkUnsent>,
    ) {
        let octets = item.bytes.octets(arena);
        let Some(watch) = self.watch.as_mut().filter(|watch| watch.may_show(octets)) else {
            return;
        };
        let (kind, fields, name) = match &item.what {
            Outgoing::Pull(kind, lp) => ((*kind).into(), Fields::Out(lp), name_of(octets)),
            Outgoing::PushFrame => (Kind::Push, Fields::Bare, None),
            Outgoing::App(_) => (Kind::PushApp, Fields::Bare, None),
        };
        if name.is_some_and(is_management) {
            return;
        }
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
        watch.show(&seen);
    }
}

/// Data in an outbox from `first` on: packets and octets.
fn data_since(out: &Outbox, first: usize) -> [u64; 2] {
    let copies = out.items.get(first..).unwrap_or_default();
    let data =
        copies.iter().filter(|copy| matches!(copy.what, Outgoing::Pull(PacketKind::Data, _)));
    data.fold([0; 2], |[packets, octets], copy| {
        [packets + 1, octets + copy.bytes.octets(&out.arena).len() as u64]
    })
}

/// Whether a name is under `/localhost/nfd` or `/localhost/onym`. Management is not shown to those who
/// look by it: each look would show the one before.
#[inline]
pub(super) fn is_management(name: &[u8]) -> bool {
    let rest = name.strip_prefix(b"\x08\x09localhost");
    rest.is_some_and(|rest| rest.starts_with(b"\x08\x03nfd") || rest.starts_with(b"\x08\x04onym"))
}
