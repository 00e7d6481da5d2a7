//! The shard as a driver of its engine: turns, back-pressure, batches in and out.

use super::{FaceState, Io, Order, Report, Shard};
use crate::cross::ToPeer;
use onym_engine::{Driver, FaceEvent, Idle, Slot, Turn};
use onym_forward::BATCH;
use onym_forward::verdict::Verdict;
use onym_frame::{Buf, FrameRow, RxFrame};
use onym_link::{Packet, glance};
use onym_tables::{FaceId, Tick};
use onym_wire::push::app::Message;
use onym_wire::types::PacketType;
use std::time::Duration;

/// Frames of one turn of a face, for each unit of its weight (1 to 16).
const TURN_UNIT: usize = 32;
/// How soon what nobody rings for is tried again.
const RETRY: Duration = Duration::from_millis(1);

impl Driver for Shard {
    type Face = FaceState;
    type Order = Order;

    #[inline]
    fn receive(&mut self, io: &mut Io, slot: Slot, packet: Packet) -> Option<&'static str> {
        let typ = PacketType::of(&packet.bytes);
        if typ.is_some_and(PacketType::is_push) {
            if self.shows_packets {
                self.watch_push(io.now, &packet);
            }
            self.push_packet(io, slot, packet);
            return None;
        }
        let kind = packet.kind_as(typ);
        match self.accept(io.now, kind, packet) {
            Some(verdict @ (Verdict::Malformed | Verdict::TooLarge)) => Some(verdict.label()),
            _ => None,
        }
    }

    fn poll_timeout(&self) -> Tick {
        let push = self.push.as_ref().and_then(|push| push.fib.next_timeout());
        let disk = self.disk.as_ref().map(|disk| disk.poll_timeout());
        let next = [self.fw.poll_timeout(), push, Some(self.paused.poll_timeout()), disk];
        next.into_iter().flatten().min().unwrap_or(Tick::NEVER)
    }

    fn handle_timeout(&mut self, io: &mut Io) {
        self.end_pauses(io);
        self.end_waits(io.now);
        self.fw.handle_timeout(io.now, &mut self.out);
        self.send_out(io);
        self.say_reached(io);
    }

    fn dispatch(&mut self, io: &mut Io) {
        self.hand_out_own(io);
        self.send_out(io);
        self.is_of_turn = false;
    }

    fn order(&mut self, io: &mut Io, order: Order) {
        self.obey(io, order);
    }

    fn face_event(&mut self, io: &mut Io, slot: Slot, id: FaceId, event: FaceEvent) {
        match event {
            FaceEvent::Connected => self.report(Report::FaceConnected { id }),
            FaceEvent::Failed { reason, is_fatal } => {
                if is_fatal {
                    self.push_leave(io, slot);
                }
                self.report(Report::FaceFailed { id, reason, fatal: is_fatal });
            }
            FaceEvent::Changed => {
                let Some(transport) = io.faces.peek(slot).and_then(|f| f.io.as_ref()) else {
                    return;
                };
                self.report(Report::FaceChanged {
                    id,
                    transport: transport.transport(),
                    local: transport.local_uri().to_string(),
                    remote: transport.remote_uri().to_string(),
                });
            }
            FaceEvent::Flushed => {
                self.note_flushed(io, slot);
                self.push_flushed(io, slot);
            }
        }
    }

    fn turn(&mut self, io: &mut Io, slot: Slot) -> Turn {
        let weight = io.faces.peek(slot).map_or(1, |face| self.fw.turn_weight(face.id));
        let frames = TURN_UNIT * weight as usize;
        Turn { receive: frames, handle: frames }
    }

    fn begin_round(&mut self, io: &mut Io) {
        if !self.is_alone() {
            self.take_crossings(io);
        }
        self.take_publications(io);
        self.release_held(io);
    }

    fn end_round(&mut self, _: &mut Io) {
        if !self.is_alone() {
            for peer in self.to.iter_mut().flatten() {
                peer.flush();
            }
        }
        if let Some(push) = &mut self.push {
            push.flush();
        }
        self.report_late();
        if std::mem::take(&mut self.reported) {
            self.control.ring();
        }
    }

    fn idle(&mut self, io: &mut Io) -> Idle {
        let has_batch = !self.is_alone() && self.from.iter().flatten().any(|p| p.waits());
        let has_work = has_batch || self.is_due();
        if has_work || self.push_waits(io) {
            Idle::Work
        } else if self.is_cramped() {
            Idle::Retry(RETRY)
        } else {
            Idle::Sleep
        }
    }

    /// Nothing is received while another shard is far behind: what waits in the sockets is then
    /// lost by those who send too much, and not by whoever is next.
    fn may_receive(&mut self) -> bool {
        self.to.iter().flatten().all(ToPeer::has_room)
    }

    #[inline]
    fn receive_row(&mut self, io: &mut Io, slot: Slot, frames: &[RxFrame]) -> usize {
        let count = self.take_front(io, slot, frames);
        if count > 0 && self.shows_packets {
            self.watch_frames(io, slot, &frames[..count]);
        }
        count
    }

    #[inline]
    fn foresee(&mut self, frames: &[RxFrame]) {
        // With several shards most belong to others, which look at what crosses.
        if self.is_alone() && self.fw.foresees() {
            let glances = frames.iter().filter_map(|frame| glance(&frame.bytes));
            self.fw.foresee(glances.map(|(token, packet)| (packet, token)));
        }
    }

    fn admit(&mut self, io: &mut Io, slot: Slot, frames: &[RxFrame]) -> usize {
        self.is_of_turn = true;
        let may_ask = self.may_ask(io, slot, frames);
        self.not_held(io, slot, &frames[..may_ask])
    }

    fn held(&mut self, io: &mut Io, slot: Slot) -> bool {
        self.is_paused(io, slot) || self.is_blocked(io, slot) && self.hold(slot)
    }

    fn given_up(&mut self, io: &mut Io, id: FaceId, interest: &Buf) {
        self.fw.interest_lost(io.now, id, interest, &mut self.out);
    }
}

impl Shard {
    /// Takes frames at the front of `frames` together; how many.
    #[inline]
    fn take_front(&mut self, io: &mut Io, slot: Slot, frames: &[RxFrame]) -> usize {
        match frames.first().and_then(|frame| PacketType::of(&frame.bytes)) {
            Some(PacketType::PushApp) => {}
            Some(PacketType::PushFrame) => return self.push_row(io, slot, frames),
            _ => return 0,
        }
        let count = self.begin_messages(io, slot, frames);
        for frame in &frames[..count] {
            let message = Message::parse(&frame.bytes);
            let app = message.as_ref().ok().and_then(|m| self.publisher(io, slot, m));
            match (&message, app) {
                (Ok(message), Some(app)) => {
                    let row = FrameRow::one(frame.bytes.clone());
                    self.publish(io, slot, app, message.into(), &row);
                }
                _ => self.app_message(io, slot, &frame.bytes),
            }
        }
        count
    }

    /// Whether what found no room at a peer would find it now; later the peer rings.
    fn is_due(&self) -> bool {
        self.to.iter().flatten().any(ToPeer::is_due)
    }

    /// Whether something waits of which nobody tells: reports, faces that hold back.
    fn is_cramped(&self) -> bool {
        !self.late.is_empty() || self.is_kept_waiting()
    }

    fn take_crossings(&mut self, io: &mut Io) {
        for peer in 0..self.from.len() {
            // One batch each: a peer that sends all the time has its share of the round.
            let Some(mut batch) = self.from[peer].as_mut().and_then(|p| p.next()) else { continue };
            let (mut packets, mut seen) = (batch.packets.drain(..), 0);
            loop {
                if seen == 0 && self.fw.foresees() {
                    let next = packets.as_slice().iter();
                    self.fw.foresee(next.map(|(_, p)| (&*p.bytes, &*p.lp.pit_token)));
                }
                seen = (seen + 1) % BATCH;
                let Some((leg, packet)) = packets.next() else { break };
                let id = packet.face;
                if let Some(verdict @ (Verdict::Malformed | Verdict::TooLarge)) =
                    self.arrive(io.now, leg, packet)
                {
                    self.report(Report::Malformed { id, word: verdict.label() });
                }
            }
            drop(packets);
            self.send_out(io);
            let out = &mut batch.out;
            for item in &mut out.items {
                self.transmit(io, &out.arena, item);
            }
            if let Some(peer) = &mut self.from[peer] {
                peer.give_back(batch);
            }
        }
    }
}
