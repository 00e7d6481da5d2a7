//! A shard's packets for viewers (`onym-watch`).

use super::{Io, Shard, WatchOrder, Watched};
use onym_engine::Slot;
use onym_forward::Verdict;
use onym_frame::RxFrame;
use onym_link::{LinkUnsent, LpIn, Outbox, Outgoing, Packet, PacketKind, Transmit};
use onym_tables::pit::TOKEN_LEN;
use onym_tables::{FaceId, Tick};
use onym_watch::{Direction, Fields, Kind, Look, Named, Outcome, Sample, Seen, name_of};
use onym_wire::Interest;
use onym_wire::types::PacketType;

/// A packet before anything is decided about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Glance {
    /// Why it is looked at, where it was drawn.
    drawn: Option<Look>,
    /// Where its copies will be in the outbox.
    first: usize,
    /// When the Interest was sent that it answers, where that is of use.
    asked: Option<Tick>,
}

impl Glance {
    /// One that was not drawn.
    pub(super) const fn of_other(first: usize) -> Self {
        Self { drawn: None, first, asked: None }
    }
}

impl Shard {
    pub(super) fn obey_watch(&mut self, now: Tick, order: WatchOrder) {
        self.note_passed();
        let watch = self.watch.get_or_insert_default();
        let before = watch.tail();
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
        // A lease may have ended with a packet before.
        self.fw.look_out_for_names(watch.tail());
        if watch.tail() != before && self.shows_packets {
            self.fw.look_out_for_all();
        }
        self.watch.take_if(|watch| watch.is_idle());
        self.settle_draw();
    }

    /// The watch is told how many packets came since the forwarder began to count them.
    fn note_passed(&mut self) {
        let left = self.fw.left();
        if let Some(watch) = &mut self.watch {
            watch.pass(self.stretch - left);
        }
        self.stretch = left;
    }

    /// The forwarder counts packets until the next one that is drawn.
    pub(super) fn settle_draw(&mut self) {
        self.fw.look_after(self.watch.as_ref().map_or(u64::MAX, |watch| watch.left()));
        self.stretch = self.fw.left();
        self.settle_door();
    }

    /// Whether the next packet is one that was drawn.
    pub(super) const fn is_drawn(&self) -> bool {
        self.stretch == 0
    }

    /// Before anything is decided about a packet.
    pub(super) fn glance(&mut self, packet: &Packet) -> Glance {
        let first = self.out.items.len();
        let Some(watch) = self.watch.as_mut().filter(|_| self.stretch == 0) else {
            return Glance::of_other(first);
        };
        let look = watch.look();
        let is_answer = look.stands_for > 0 && packet.kind() == PacketKind::Data;
        let name = is_answer.then(|| name_of(&packet.bytes)).flatten();
        let asked = name.and_then(|name| self.fw.asked_at(packet, name));
        Glance { drawn: Some(look), first, asked }
    }

    /// The token of the entry in which an Interest waits whose copies are in the outbox from `first` on.
    pub(super) fn token_of(&self, packet: &Packet, first: usize) -> Option<[u8; TOKEN_LEN]> {
        let copies = self.out.items.get(first..).unwrap_or_default();
        let told = copies.iter().find_map(|copy| match &copy.what {
            Outgoing::Pull(PacketKind::Interest, lp) => lp.pit_token.as_ours().copied(),
            _ => None,
        });
        told.or_else(|| self.fw.token_of(&Interest::parse(&packet.bytes).ok()?))
    }

    /// The forwarder decided about a packet that was drawn.
    pub(super) fn watch_drawn(
        &mut self,
        now: Tick,
        packet: &Packet,
        glance: Glance,
        verdict: Verdict,
    ) {
        let Look { is_recorded, stands_for } = glance.drawn.unwrap_or_default();
        let is_recorded = is_recorded || packet.lp.prefix_announcement.is_some();
        if self.fw.has_met() || is_recorded && packet.kind() == PacketKind::Interest {
            self.show_taken(now, packet, glance, verdict);
        } else if stands_for > 0 {
            self.count_sample(now, packet, glance, verdict);
        }
        self.settle_draw();
    }

    /// The forwarder decided about a packet that was not drawn, and is due: it met what is looked at, or
    /// the next packet is drawn.
    #[cold]
    pub(super) fn watch_due(&mut self, now: Tick, packet: &Packet, first: usize, verdict: Verdict) {
        if self.fw.has_met() {
            self.show_taken(now, packet, Glance::of_other(first), verdict);
        }
        if self.fw.left() == 0 {
            self.note_passed();
            self.settle_door();
        }
    }

    /// The forwarder decided about a packet that came over the shards; `None` where it goes on.
    pub(super) fn watch_taken(
        &mut self,
        now: Tick,
        packet: &Packet,
        glance: Glance,
        verdict: Option<Verdict>,
    ) {
        if self.watch.is_none() {
            return;
        }
        match verdict {
            Some(verdict) if glance.drawn.is_some() => {
                self.watch_drawn(now, packet, glance, verdict);
            }
            Some(verdict) if self.fw.is_due() => {
                self.watch_due(now, packet, glance.first, verdict);
            }
            None if glance.drawn.is_some() => self.settle_draw(),
            _ => {}
        }
    }

    /// Shows a packet that is looked at, and looks out for its answer.
    fn show_taken(&mut self, now: Tick, packet: &Packet, glance: Glance, verdict: Verdict) {
        let has_met = self.fw.has_met();
        self.fw.forget_met();
        let Look { is_recorded, stands_for } = glance.drawn.unwrap_or_default();
        let kind = packet.kind();
        let named = Named::of(&packet.bytes);
        let name = named.map(|named| named.name);
        // What captures want the forwarder meets.
        let shows = has_met && self.watch.as_ref().is_some_and(|watch| watch.may_show(named));
        if kind == PacketKind::Interest {
            let is_to_record = is_recorded || packet.lp.prefix_announcement.is_some();
            let waits = (shows || is_to_record) && verdict != Verdict::CsHit;
            let token = waits.then(|| self.token_of(packet, glance.first)).flatten();
            let is_recorded =
                is_to_record && self.record(now, packet, name, verdict, glance.first, token);
            if let Some(token) = token.filter(|_| shows || is_recorded) {
                self.fw.look_out_for(&token);
            }
        } else {
            self.end_spans(now, packet);
        }
        if shows {
            self.look_at(glance.first);
        }
        if shows
            && !name.is_some_and(is_management)
            && let Some(watch) = &mut self.watch
        {
            let outcome = Outcome { word: verdict.label(), is_drop: verdict.is_drop() };
            watch.show(&Seen::received(now, packet, name, outcome));
        }
        if stands_for > 0 {
            self.count_sample(now, packet, glance, verdict);
        }
    }

    /// Counts a packet that was drawn as a sample of the traffic.
    fn count_sample(&mut self, now: Tick, packet: &Packet, glance: Glance, verdict: Verdict) {
        let name = name_of(&packet.bytes).filter(|name| !is_management(name));
        let (Some(watch), Some(name)) = (&mut self.watch, name) else { return };
        let asked = glance.asked.filter(|_| verdict == Verdict::Satisfied);
        watch.count(&Sample {
            at: now,
            stands_for: glance.drawn.unwrap_or_default().stands_for,
            name,
            is_interest: packet.kind() == PacketKind::Interest,
            is_hit: verdict == Verdict::CsHit,
            is_drop: verdict.is_drop(),
            data: data_since(&self.out, glance.first),
            round_trip: asked.map(|asked| (packet.face, now.since(asked))),
        });
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
        copies.each_stretch(out.items.len(), |places, is_looked_at| {
            for item in &mut out.items[places] {
                match is_looked_at {
                    true => self.transmit_as::<true>(io, &out.arena, item),
                    false => self.transmit_as::<false>(io, &out.arena, item),
                }
            }
        });
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
        if watch.may_show(None) {
            watch.show(&Seen { kind, ..Seen::received(now, packet, None, outcome) });
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
        let (kind, fields, name) = match &item.what {
            Outgoing::Pull(kind, lp) => ((*kind).into(), Fields::Out(lp), name_of(octets)),
            Outgoing::PushFrame => (Kind::Push, Fields::Bare, None),
            Outgoing::App(_) => (Kind::PushApp, Fields::Bare, None),
        };
        if name.is_some_and(is_management) {
            return;
        }
        let Some(watch) = &mut self.watch else { return };
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
