//! Frames in, packets through the function, frames out.

use super::Worker;
use onym_face::{FaceError, Flush, Ready as More};
use onym_frame::RxFrame;
use onym_link::{Received, Transmit};
use onym_services::verdict::Unsent;
use onym_sys::epoll::{Interest, Ready};
use onym_tables::Tick;

/// Frames of one turn of a face.
const TURN: usize = 64;
/// Frames in a send queue that leave at once.
const FLUSH_AT: usize = 64;
/// Octets in a send queue that leave at once.
const FLUSH_OCTETS: usize = 128 << 10;

impl Worker {
    pub(super) fn note_ready(&mut self, event: &Ready) {
        // The low half is the slot, the high half its generation.
        let at = usize::try_from(event.token & 0xffff_ffff).unwrap_or(usize::MAX);
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        if slot.epoll_token != event.token {
            return;
        }
        if event.readable && !slot.listed {
            slot.listed = true;
            self.ready.push_back(at);
        }
        if event.writable && !slot.dirty {
            slot.dirty = true;
            self.dirty.push(at);
        }
    }

    /// One turn of each face that is ready.
    pub(super) fn turns(&mut self) {
        for _ in 0..self.ready.len() {
            if self.is_full() {
                return;
            }
            let Some(at) = self.ready.pop_front() else { return };
            self.turn_of(at);
        }
    }

    fn turn_of(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        slot.listed = false;
        let Some(io) = &mut slot.io else { return };
        let mut frames = std::mem::take(&mut self.frames);
        let result = io.receive(&mut self.pool, TURN, &mut frames);
        let mut broken = None;
        for frame in frames.drain(..) {
            if let Some(reason) = self.frame(at, frame) {
                broken = Some(reason);
                break;
            }
        }
        self.frames = frames;
        self.after();
        self.note_timer(at);
        if let Some(reason) = broken {
            self.fail(at, &format!("the peer sent a malformed packet: {reason}"));
            return;
        }
        match result {
            Ok(More::Idle) => {}
            Ok(More::More | More::Changed) => self.list(at),
            Err(error) => self.face_error(at, &error),
        }
    }

    fn list(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut)
            && !slot.listed
        {
            slot.listed = true;
            self.ready.push_back(at);
        }
    }

    /// Takes one frame; a reason to end a stream when it is malformed.
    pub(super) fn frame(&mut self, at: usize, frame: RxFrame) -> Option<&'static str> {
        let now = self.now;
        let slot = self.slots.get_mut(at)?.as_mut()?;
        slot.in_bytes += frame.bytes.len() as u64;
        slot.in_frames += 1;
        slot.heard = now.tick;
        match slot.link.receive(now.tick, slot.id, frame) {
            Received::Packet(packet) => {
                let stream = slot.stream;
                let verdict = self.function.receive(now, packet, &mut self.out)?;
                let malformed = verdict == onym_services::Verdict::Malformed;
                (malformed && stream).then_some(verdict.label())
            }
            Received::Dropped(verdict) => {
                self.frames_dropped += 1;
                let stream = slot.stream;
                (stream && verdict.closes_stream()).then_some(verdict.label())
            }
            Received::Held | Received::Idle => None,
        }
    }

    /// Sends what the function produced.
    pub(super) fn dispatch(&mut self) {
        if self.out.items.is_empty() {
            return;
        }
        let mut out = std::mem::take(&mut self.out);
        for item in out.items.drain(..) {
            self.transmit(&out.arena, &item);
        }
        out.clear();
        self.out = out;
    }

    fn transmit(&mut self, arena: &[u8], item: &Transmit) {
        let now = self.now.tick;
        let at = self.by_id.get(&item.face).copied();
        let slot = at.and_then(|at| self.slots.get_mut(at)?.as_mut().map(|s| (at, s)));
        let Some((at, slot)) = slot else {
            self.function.count_unsent(Unsent::FaceGone);
            return;
        };
        if slot.io.is_none() {
            slot.dropped_down += 1;
            self.function.count_unsent(Unsent::FaceGone);
            return;
        }
        if let Err(reason) = slot.link.send(now, item, arena, &mut slot.queue) {
            let reason = match reason {
                onym_link::LinkUnsent::QueueFull => Unsent::QueueFull,
                onym_link::LinkUnsent::OverMtu => Unsent::OverMtu,
            };
            self.function.count_unsent(reason);
            return;
        }
        if slot.blocked {
            return;
        }
        let is_batch = slot.queue.len() >= FLUSH_AT || slot.queue.bytes() >= FLUSH_OCTETS;
        if !slot.dirty {
            slot.dirty = true;
            self.dirty.push(at);
        }
        if is_batch {
            self.flush(at);
        }
    }

    pub(super) fn flush_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for at in dirty.drain(..) {
            let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { continue };
            slot.dirty = false;
            if !slot.queue.is_empty() || slot.blocked || slot.connecting {
                self.flush(at);
            }
        }
        self.dirty = dirty;
    }

    pub(super) fn flush(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        let Some(io) = &mut slot.io else { return };
        let before = slot.queue.bytes();
        let result = io.flush(&mut slot.queue);
        slot.out_bytes += (before - slot.queue.bytes()) as u64;
        let connected = slot.connecting && !io.is_connecting();
        match result {
            Ok(flush) => self.watch(at, flush),
            Err(error) => {
                self.face_error(at, &error);
                return;
            }
        }
        if connected {
            self.face_is_up(at);
        }
        self.note_timer(at);
    }

    /// Watches for writability exactly while the transport is full.
    fn watch(&mut self, at: usize, flush: Flush) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        let Some(io) = &slot.io else { return };
        let blocked = flush == Flush::Blocked;
        if blocked == slot.blocked {
            return;
        }
        slot.blocked = blocked;
        let for_room = blocked && io.room_is_writable();
        let interest = if for_room { Interest::ReadWrite } else { Interest::Read };
        if let Err(error) = self.epoll.modify(io.fd(), slot.epoll_token, interest) {
            self.fail(at, &format!("watching its descriptor: {error}"));
        }
    }

    fn face_error(&mut self, at: usize, error: &FaceError) {
        if error.is_fatal() {
            self.fail(at, &error.to_string());
        } else if let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) {
            slot.last_error = Some(error.to_string());
        }
    }

    pub(super) fn note_timer(&mut self, at: usize) {
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        if !slot.timed && slot.link.poll_timeout() != Tick::NEVER {
            slot.timed = true;
            self.timed.push(at);
        }
    }
}
