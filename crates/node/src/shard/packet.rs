//! Packets to their shard and through its forwarder, and what it produced to the faces.

use super::{Door, Io, LocalFace, Report, Shard, local};
use crate::cross::Leg;
use onym_engine::{Place, Slot};
use onym_forward::{Share, Verdict};
use onym_frame::{Buf, Lane};
use onym_link::{Outgoing, Packet, PacketKind, Payload, Transmit};
use onym_tables::{FaceId, Tick};

impl Shard {
    /// A packet that was just received from outside: it goes to its shard.
    #[inline(always)]
    pub(super) fn accept(
        &mut self,
        now: Tick,
        kind: PacketKind,
        packet: Packet,
    ) -> Option<Verdict> {
        match self.door {
            Door::Plain => Some(self.fw.receive_as(now, kind, &packet, &mut self.out)),
            Door::Watched => Some(self.forward_watched(now, kind, &packet)),
            Door::Drawn => Some(self.forward_drawn(now, kind, &packet)),
            Door::Disk => self.forward(now, packet),
            Door::Shards => self.choose_shard(now, packet),
        }
    }

    /// A packet that was just received goes to the shard that it belongs to.
    #[inline(always)]
    fn choose_shard(&mut self, now: Tick, packet: Packet) -> Option<Verdict> {
        match self.chooser.way(&packet, &self.wanted) {
            Some(way) if way.shard != self.index => {
                self.cross(way.shard, way.leg, packet);
                None
            }
            Some(way) => self.arrive(now, way.leg, packet),
            None => self.forward(now, packet),
        }
    }

    /// A packet on its way over the shards arrives at this one.
    pub(super) fn arrive(&mut self, now: Tick, leg: Leg, packet: Packet) -> Option<Verdict> {
        match leg {
            // Shard by shard: the one whose content store answers takes it, the last is shard 0.
            Leg::Probe if self.index > 0 && self.fw.cs_find(now, &packet.bytes).is_none() => {
                self.cross(self.index - 1, Leg::Probe, packet);
                None
            }
            Leg::Token => {
                let glance = self.glance(&packet);
                let verdict = self.fw.receive_data(now, &packet, Share::Hinted, &mut self.out);
                self.watch_taken(now, &packet, glance, verdict);
                if verdict.is_some() {
                    return verdict;
                }
                match self.chooser.home_elsewhere(&packet, self.index) {
                    Some(home) => {
                        self.cross(home, Leg::Home, packet);
                        None
                    }
                    None => self.forward(now, packet),
                }
            }
            Leg::Discovery(home) => {
                let first = self.out.items.len();
                let found = self.fw.receive_data(now, &packet, Share::Shown, &mut self.out);
                self.look_at(first);
                let leg = if found.is_some() { Leg::Solicited } else { Leg::Home };
                self.end_spans(now, &packet);
                if usize::from(home) == self.index {
                    return self.arrive(now, leg, packet);
                }
                self.cross(home.into(), leg, packet);
                None
            }
            Leg::Solicited => {
                let glance = self.glance(&packet);
                let verdict = self.fw.receive_data(now, &packet, Share::Wanted, &mut self.out);
                self.watch_taken(now, &packet, glance, verdict);
                verdict
            }
            Leg::Home | Leg::Probe => self.forward(now, packet),
        }
    }

    /// A packet that is here to stay goes through the forwarder, unless it waits for the disk.
    #[inline(always)]
    fn forward(&mut self, now: Tick, packet: Packet) -> Option<Verdict> {
        if self.disk.is_some() {
            let packet = self.wait_for_disk(now, packet)?;
            return Some(self.forward_at_once(now, packet));
        }
        Some(self.forward_at_once(now, packet))
    }

    /// A packet goes through the forwarder.
    #[inline(always)]
    pub(super) fn forward_at_once(&mut self, now: Tick, packet: Packet) -> Verdict {
        let kind = packet.kind();
        match self.watch {
            None => self.fw.receive_as(now, kind, &packet, &mut self.out),
            Some(_) if self.is_drawn() => self.forward_drawn(now, kind, &packet),
            Some(_) => self.forward_watched(now, kind, &packet),
        }
    }

    /// The same while somebody looks: afterwards at what the forwarder met that is wanted.
    #[inline(always)]
    fn forward_watched(&mut self, now: Tick, kind: PacketKind, packet: &Packet) -> Verdict {
        let first = self.out.items.len();
        let verdict = self.fw.receive_as(now, kind, packet, &mut self.out);
        if self.fw.is_due() {
            self.watch_due(now, packet, first, verdict);
        }
        verdict
    }

    /// A packet that was drawn, which is looked at before it is forwarded, too.
    #[cold]
    fn forward_drawn(&mut self, now: Tick, kind: PacketKind, packet: &Packet) -> Verdict {
        let glance = self.glance(packet);
        let verdict = self.fw.receive_as(now, kind, packet, &mut self.out);
        self.watch_drawn(now, packet, glance, verdict);
        verdict
    }

    fn cross(&mut self, shard: usize, leg: Leg, packet: Packet) {
        let sent = self.to[shard].as_mut().is_some_and(|peer| peer.packet(leg, packet).is_ok());
        if !sent {
            self.counters.crossing_full += 1;
        }
    }

    /// Sends what the forwarder produced.
    pub(super) fn send_out(&mut self, io: &mut Io) {
        for event in self.fw.take_events() {
            self.report(Report::Forwarder(event));
        }
        if self.fw.cache_mut().hands_out() {
            self.hand_out();
            self.hand_to_disk();
        }
        // Before anything leaves: an answer must not find the old state.
        if self.index == 0
            && !self.is_alone()
            && let Some(prefixes) = self.fw.changed_prefixes()
        {
            self.wanted.tell(prefixes);
        }
        if self.out.items.is_empty() {
            return;
        }
        let mut out = std::mem::take(&mut self.out);
        if self.shows_packets {
            self.transmit_watched(io, &mut out);
        } else {
            for item in &mut out.items {
                self.transmit_as::<false>(io, &out.arena, item);
            }
        }
        out.clear();
        self.out = out;
    }

    /// Asks for the judgement of Data that are verified before they are kept.
    #[cold]
    fn hand_out(&mut self) {
        while let Some(held) = self.fw.cache_mut().watch.as_mut().and_then(|w| w.hand_out()) {
            match self.reports.push(Report::Verify(Box::new(held))) {
                Ok(()) => self.reported = true,
                Err(rtrb::PushError::Full(Report::Verify(_))) => {
                    self.counters.management_full += 1;
                    self.fw.cache_mut().rejected();
                }
                Err(rtrb::PushError::Full(_)) => {}
            }
        }
    }

    /// Puts one packet into the send queue of its face, wherever that is; where it leaves this shard,
    /// it is taken out of `item`.
    pub(super) fn transmit(&mut self, io: &mut Io, arena: &[u8], item: &mut Transmit) {
        match self.shows_packets {
            true => self.transmit_as::<true>(io, arena, item),
            false => self.transmit_as::<false>(io, arena, item),
        }
    }

    /// The same; `LOOKS` says whether viewers may want it.
    #[inline]
    pub(super) fn transmit_as<const LOOKS: bool>(
        &mut self,
        io: &mut Io,
        arena: &[u8],
        item: &mut Transmit,
    ) {
        match io.faces.place(item.face) {
            Some(Place::Here(slot)) => self.transmit_here::<LOOKS>(io, slot, arena, item),
            Some(Place::There(shard)) => {
                let peer = self.to.get_mut(usize::from(shard)).and_then(Option::as_mut);
                if peer.is_none_or(|p| p.transmit(arena, item).is_err()) {
                    self.counters.crossing_full += 1;
                }
            }
            None if item.face == FaceId::INTERNAL => self.hand_to_management(arena, item),
            None => self.counters.face_gone += 1,
        }
    }

    fn transmit_here<const LOOKS: bool>(
        &mut self,
        io: &mut Io,
        slot: Slot,
        arena: &[u8],
        item: &Transmit,
    ) {
        let is_push = match item.what {
            Outgoing::App(message) => {
                return self.transmit_app(io, slot, message, arena, &item.bytes);
            }
            Outgoing::PushFrame => true,
            Outgoing::Pull(..) => false,
        };
        let is_answer = matches!(item.what, Outgoing::Pull(PacketKind::Data, _));
        let now = io.now;
        let Some(face) = io.faces.get(slot) else { return };
        if face.io.is_none() {
            face.traffic.face_gone += 1;
            return;
        }
        face.queue.set_lane(if is_push { push_lane(face) } else { Lane::Pull });
        // Refusals are counted by the link service.
        let sent = face.link.send(now, item, arena, &mut face.queue);
        if LOOKS {
            self.watch_sent(now, face.id, item, arena, sent);
        }
        // Nearly always there is nothing more to do.
        let is_paused = is_answer && local::is_to_pause(face);
        let is_settled = face.is_settled(&io.policy) && !is_paused && !is_push;
        if is_settled {
            return;
        }
        if is_push {
            self.note_hold(io, slot);
        }
        if is_paused {
            self.pause(io, slot);
        }
        io.queued(slot);
    }

    fn hand_to_management(&mut self, arena: &[u8], item: &mut Transmit) {
        let incoming = item.as_pull().and_then(|(_, lp)| lp.incoming_face);
        let bytes = match item.take().bytes {
            Payload::Shared(buf) => buf,
            own @ Payload::Arena(_) => Buf::copy_from(own.octets(arena)),
        };
        let incoming = incoming.map(FaceId::of_told);
        if let Some(face) = incoming {
            self.fw.charge_management(face);
        }
        self.report(Report::Management { bytes, incoming });
    }
}

/// Whose share of a queue a push frame takes: who sends such to a stream is held back.
pub(super) fn push_lane(face: &LocalFace) -> Lane {
    if face.is_stream { Lane::PushHeldBack } else { Lane::Push }
}
