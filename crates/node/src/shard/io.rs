//! Frames in, packets through the forwarder, frames out.

use super::local::Place;
use super::{Report, Shard, push};
use crate::cross::Leg;
use onym_face::{FaceError, Flush};
use onym_forward::{Share, Verdict};
use onym_frame::{Buf, Lane, RxFrame};
use onym_link::{Outgoing, Packet, Payload, Received, Transmit};
use onym_sys::epoll::{Interest, Ready};
use onym_tables::{FaceId, Tick};
use onym_wire::types::PacketType;
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Token of the bell in epoll; faces have their slot.
pub(super) const BELL: u64 = u64::MAX;
/// Frames in a send queue that leave at once, so that who waits for them starts while the round
/// goes on; a lone packet waits for the end of the round.
const FLUSH_AT: usize = 128;
/// How often errors that a face survives are told at most.
const TELL_INTERVAL: Duration = Duration::from_secs(1);
/// How often the octets waiting in a socket are asked for at most.
const PROBE_INTERVAL: Duration = Duration::from_millis(5);

impl Shard {
    pub(super) fn note_ready(&mut self, event: &Ready) {
        let Ok(slot) = u32::try_from(event.token) else { return };
        let Some(face) = self.faces.get(slot) else { return };
        if event.readable && !face.listed {
            face.listed = true;
            self.ready.push_back(slot);
        }
        // It would say so again and again.
        let mutes = event.readable && face.is_aside && !face.is_muted;
        face.is_muted |= mutes;
        if event.writable && !face.dirty {
            face.dirty = true;
            self.dirty.push(slot);
        }
        if mutes {
            self.watch_again(slot);
        }
    }

    /// Takes one frame of the face in `slot`; a reason to close the face when it is malformed.
    pub(super) fn frame(&mut self, slot: u32, frame: RxFrame) -> Option<&'static str> {
        let face = self.faces.get(slot)?;
        face.traffic.in_bytes += frame.bytes.len() as u64;
        face.traffic.in_frames += 1;
        let pressed = face.pressed;
        match face.link.receive(self.now, face.id, frame) {
            Received::Packet(packet) if push::is_push(&packet) => {
                self.push_packet(slot, packet);
                None
            }
            Received::Packet(mut packet) => {
                if pressed && PacketType::of(&packet.bytes) == Some(PacketType::Data) {
                    face.mark(&mut packet);
                }
                match self.accept(packet) {
                    Some(verdict @ (Verdict::Malformed | Verdict::TooLarge)) => {
                        Some(verdict.label())
                    }
                    _ => None,
                }
            }
            Received::Dropped(verdict) if verdict.closes_stream() => Some(verdict.label()),
            Received::Held | Received::Idle | Received::Dropped(_) => None,
        }
    }

    /// A packet that was just received from outside: it goes to its shard.
    pub(super) fn accept(&mut self, packet: Packet) -> Option<Verdict> {
        if self.is_alone() {
            return Some(self.fw.receive(self.now, packet, &mut self.out));
        }
        let discovery = self.discovery.load(Ordering::Acquire);
        match self.chooser.way(&packet, discovery) {
            Some(way) if way.shard != self.index => {
                self.cross(way.shard, way.leg, packet);
                None
            }
            Some(way) => self.arrive(way.leg, packet),
            None => Some(self.fw.receive(self.now, packet, &mut self.out)),
        }
    }

    /// A packet on its way over the shards arrives at this one.
    pub(super) fn arrive(&mut self, leg: Leg, packet: Packet) -> Option<Verdict> {
        match leg {
            // Shard by shard: the one whose content store answers takes it, the last is shard 0.
            Leg::Probe if self.index > 0 && self.fw.cs_find(self.now, &packet.bytes).is_none() => {
                self.cross(self.index - 1, Leg::Probe, packet);
                None
            }
            Leg::Token => {
                let fits = |token: &[u8], name: &[u8]| self.fw.token_fits(token, name);
                match self.chooser.misled(&packet, self.index, fits) {
                    Some(home) => {
                        self.cross(home, Leg::Home, packet);
                        None
                    }
                    None => Some(self.fw.receive(self.now, packet, &mut self.out)),
                }
            }
            Leg::Discovery(home) => {
                let found = self.fw.receive_data(self.now, &packet, Share::Shown, &mut self.out);
                let leg = if found.is_some() { Leg::Solicited } else { Leg::Home };
                if usize::from(home) == self.index {
                    return self.arrive(leg, packet);
                }
                self.cross(home.into(), leg, packet);
                None
            }
            Leg::Solicited => self.fw.receive_data(self.now, &packet, Share::Wanted, &mut self.out),
            Leg::Home | Leg::Probe | Leg::Push => {
                Some(self.fw.receive(self.now, packet, &mut self.out))
            }
        }
    }

    fn cross(&mut self, shard: usize, leg: Leg, packet: Packet) {
        let sent = self.to[shard].as_mut().is_some_and(|peer| peer.packet(leg, packet).is_ok());
        if !sent {
            self.counters.crossing_full += 1;
        }
    }

    /// Sends what the forwarder produced.
    pub(crate) fn dispatch(&mut self) {
        for event in self.fw.take_events() {
            self.report(Report::Forwarder(event));
        }
        // Before anything leaves: an answer must not find the old state.
        if self.index == 0 && !self.is_alone() {
            self.discovery.store(self.fw.has_discovery_entries(), Ordering::Release);
        }
        if self.out.items.is_empty() {
            return;
        }
        let mut out = std::mem::take(&mut self.out);
        for item in out.items.drain(..) {
            self.transmit(&out.arena, item);
        }
        out.clear();
        self.out = out;
    }

    /// Puts one packet into the send queue of its face, wherever that is.
    pub(super) fn transmit(&mut self, arena: &[u8], item: Transmit) {
        match self.faces.place(item.face) {
            Some(Place::Here(slot)) => self.transmit_here(slot, arena, &item),
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

    fn transmit_here(&mut self, slot: u32, arena: &[u8], item: &Transmit) {
        let is_push = match item.what {
            Outgoing::App(message) => return self.transmit_app(slot, message, arena, &item.bytes),
            Outgoing::PushFrame => true,
            Outgoing::Pull(..) => false,
        };
        let now = self.now;
        let Some(face) = self.faces.get(slot) else { return };
        if face.io.is_none() {
            face.traffic.face_gone += 1;
            return;
        }
        face.queue.set_lane(lane(is_push, face.stream));
        // Refusals are counted by the link service.
        let _ = face.link.send(now, item, arena, &mut face.queue);
        if is_push {
            self.note_hold(slot);
        }
        self.queued(slot);
    }

    /// Something was put into the send queue of a face: it is flushed in this round.
    pub(super) fn queued(&mut self, slot: u32) {
        let Some(face) = self.faces.get(slot) else { return };
        if face.blocked {
            return;
        }
        let is_batch = face.queue.len() >= FLUSH_AT;
        if !face.dirty {
            face.dirty = true;
            self.dirty.push(slot);
        }
        if is_batch {
            self.flush(slot);
        }
    }

    fn hand_to_management(&mut self, arena: &[u8], item: Transmit) {
        let incoming = item.as_pull().and_then(|(_, lp)| lp.incoming_face);
        let bytes = match item.bytes {
            Payload::Shared(buf) => buf,
            own @ Payload::Arena(_) => Buf::copy_from(own.octets(arena)),
        };
        let incoming = incoming.map(FaceId::of_told);
        self.report(Report::Management { bytes, incoming });
    }

    /// Hands the queues that got something to their transports.
    pub(super) fn flush_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            let Some(face) = self.faces.get(slot) else { continue };
            face.dirty = false;
            // What left as whole batches needs nothing more; a blocked transport is tried again.
            if !face.queue.is_empty() || face.blocked {
                self.flush(slot);
            }
        }
        self.dirty = dirty;
    }

    pub(super) fn flush(&mut self, slot: u32) {
        let now = self.now;
        let Some(face) = self.faces.get(slot) else { return };
        let id = face.id;
        let Some(io) = &mut face.io else { return };
        let (before, connecting) = (face.queue.bytes(), io.is_connecting());
        let result = io.flush(&mut face.queue);
        let connected = connecting && !io.is_connecting();
        face.traffic.out_bytes += (before - face.queue.bytes()) as u64;
        if face.link.wants_socket_queue() && now.since(face.probed) >= PROBE_INTERVAL {
            face.probed = now;
            face.link.set_socket_queue(io.queue_octets());
        }
        match result {
            Ok(flush) => {
                self.watch(slot, flush);
                self.push_flushed(slot);
            }
            Err(error) => self.face_error(slot, id, &error),
        }
        if connected {
            self.report(Report::FaceConnected { id });
        }
        self.note_timer(slot);
    }

    /// Watches for writability exactly while the transport is full.
    pub(super) fn watch(&mut self, slot: u32, flush: Flush) {
        let Some(face) = self.faces.get(slot) else { return };
        let blocked = flush == Flush::Blocked;
        if face.io.is_none() || blocked == face.blocked {
            return;
        }
        face.blocked = blocked;
        self.watch_again(slot);
    }

    /// Tells the kernel what this face waits for.
    pub(super) fn watch_again(&mut self, slot: u32) {
        let Some(face) = self.faces.get(slot) else { return };
        let Some(io) = &face.io else { return };
        let for_room = face.blocked && io.room_is_writable();
        let interest = match (face.is_muted, for_room) {
            (false, false) => Interest::Read,
            (false, true) => Interest::ReadWrite,
            (true, false) => Interest::Nothing,
            (true, true) => Interest::Write,
        };
        if let Err(error) = self.epoll.modify(io.fd(), u64::from(slot), interest) {
            let id = face.id;
            self.fail(slot, id, format!("watching its descriptor: {error}"), true);
        }
    }

    pub(super) fn face_error(&mut self, slot: u32, id: FaceId, error: &FaceError) {
        self.fail(slot, id, error.to_string(), error.is_fatal());
    }

    /// The transport of a face ended or had an error: the control thread decides what becomes of
    /// it. After a fatal error no more is received or sent.
    pub(super) fn fail(&mut self, slot: u32, id: FaceId, reason: String, fatal: bool) {
        let now = self.now;
        let Some(face) = self.faces.get(slot) else { return };
        if fatal {
            let Some(io) = face.io.take() else { return };
            face.blocked = false;
            face.backlog.clear();
            let _ = self.epoll.delete(io.fd());
        } else if now < face.tell_after {
            return;
        }
        face.tell_after = now + TELL_INTERVAL;
        if fatal {
            self.push_leave(slot);
        }
        self.report(Report::FaceFailed { id, reason, fatal });
    }

    /// Remembers that the link service of a face has something to do later.
    pub(super) fn note_timer(&mut self, slot: u32) {
        let Some(face) = self.faces.get(slot) else { return };
        if !face.timed && face.link.poll_timeout() != Tick::NEVER {
            face.timed = true;
            self.timed.push(slot);
        }
    }

    /// Does what is due: forwarder and link services.
    pub(super) fn timers(&mut self) {
        let now = self.now;
        if self.fw.poll_timeout().is_some_and(|at| at <= now) {
            self.fw.handle_timeout(now, &mut self.out);
            self.dispatch();
        }
        let mut i = 0;
        while let Some(&slot) = self.timed.get(i) {
            let Some(face) = self.faces.get(slot) else {
                self.timed.swap_remove(i);
                continue;
            };
            if face.link.poll_timeout() <= now {
                face.link.handle_timeout(now, &mut face.queue);
                let id = face.id;
                while let Some(lost) = face.link.next_given_up() {
                    self.fw.interest_lost(now, id, &lost, &mut self.out);
                }
                if !face.dirty && !face.blocked && !face.queue.is_empty() {
                    face.dirty = true;
                    self.dirty.push(slot);
                }
            }
            if face.link.poll_timeout() == Tick::NEVER {
                face.timed = false;
                self.timed.swap_remove(i);
                continue;
            }
            i += 1;
        }
        self.dispatch();
    }
}

/// Whose share of a queue a packet takes: who sends push frames to a stream is held back.
pub(super) const fn lane(is_push: bool, is_stream: bool) -> Lane {
    match (is_push, is_stream) {
        (false, _) => Lane::Pull,
        (true, false) => Lane::Push,
        (true, true) => Lane::PushHeldBack,
    }
}
