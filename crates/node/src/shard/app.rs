//! Messages of the push half into the queues of applications; what finds no room there.

use super::apps::Partial;
use super::hold::HOLD_AT;
use super::{Hold, Io, LocalFace, Shard};
use crate::push::Up;
use onym_engine::Slot;
use onym_frame::{Buf, FrameRow, Lane, TxQueue};
use onym_link::{AppMessage, Payload};
use onym_pubsub::AppId;
use onym_tables::Tick;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::push::app::{self, Message};
use onym_wire::push::{Id, Status};

/// Octets of the send queue of an application that are kept for messages other than data.
const RESERVE: usize = 1 << 20;

/// Octets in memory that what waits for an application may keep alive, as parts of what was
/// received: the rest of that stays, too. What comes behind them is copied.
const PINNED_MAX: usize = 8 << 20;

/// An application, and how far it is behind.
#[derive(Debug, Default)]
pub(crate) struct AppSide {
    /// Its number; none: it is not registered.
    pub(super) number: Option<AppId>,
    /// A publication of which pieces are still to come.
    pub(super) partial: Option<Partial>,
    /// For so many reasons it is not read: changes of what it retains that are not settled yet, and
    /// histories in which it waits for who is behind.
    pub(super) pauses: u32,
    /// The refusal told last without a tag.
    pub(super) refused: Option<(Id, Status, Tick)>,
    /// Publications that it did not get and was not told of.
    pub(super) missed: u64,
    /// A publication waits until no more octets than these wait for it.
    pub(super) until: Option<usize>,
    /// The push thread is to know when it has taken what waits for it.
    pub(super) is_marked: bool,
}

impl Shard {
    /// Puts a message into the queue of an application. Data that finds no room is missed whole;
    /// anything else that finds none ends the face.
    pub(super) fn transmit_app(
        &mut self,
        io: &mut Io,
        slot: Slot,
        message: AppMessage,
        arena: &[u8],
        bytes: &Payload,
    ) {
        let len = bytes.octets(arena).len();
        let Some(room) = self.ready_app(io, slot) else { return };
        let Some(face) = io.faces.get(slot) else { return };
        if message == AppMessage::Data && fitting(&face.queue, room, len) == 0 {
            return self.miss(io, slot, 1);
        }
        let is_taken = tell_missed(face) && put(&mut face.queue, arena, bytes);
        self.told(io, slot, is_taken);
    }

    /// Puts data into the queue of an application: for each of `row`, `head` and then what stands
    /// in it from `from` on.
    pub(super) fn data_to(
        &mut self,
        io: &mut Io,
        slot: Slot,
        head: &[u8],
        row: &FrameRow,
        from: usize,
    ) {
        let Some(room) = self.ready_app(io, slot) else { return };
        let Some(face) = io.faces.get(slot) else { return };
        let count = row.count();
        let fit = fitting(&face.queue, room, head.len() + row.frame_len() - from).min(count);
        let is_taken =
            fit > 0 && tell_missed(face) && put_row(&mut face.queue, head, &row.take(fit), from);
        if fit < count {
            self.miss(io, slot, count - fit);
        }
        if fit > 0 {
            self.told(io, slot, is_taken);
        }
    }

    /// Counts publications that found no room.
    fn miss(&mut self, io: &mut Io, slot: Slot, count: usize) {
        self.push_dropped.missed += count as u64;
        if let Some(face) = io.faces.get(slot) {
            miss(face, count);
        }
    }

    /// Something was said to an application, for which there was room or not.
    fn told(&mut self, io: &mut Io, slot: Slot, is_taken: bool) {
        if is_taken {
            self.note_hold(io, slot);
            return io.queued(slot);
        }
        io.end(slot, "the application does not read its messages".into());
    }

    /// Octets of data that may wait for an application; `None` when its face is down, which is
    /// counted.
    pub(super) fn ready_app(&mut self, io: &mut Io, slot: Slot) -> Option<usize> {
        let room = self.push.as_ref().map_or(0, |push| push.app_queue_bytes_max);
        let face = io.faces.get(slot)?;
        if face.io.is_none() {
            face.traffic.face_gone += 1;
            return None;
        }
        face.queue.set_bytes_max(room + RESERVE);
        face.queue.set_lane(Lane::PushHeldBack);
        Some(room)
    }

    /// An application that catches up hears what it missed.
    pub(super) fn push_flushed(&mut self, io: &mut Io, slot: Slot) {
        self.note_caught_up(io, slot);
        let Some(face) = io.faces.get(slot) else { return };
        let has_missed = face.state.app.as_ref().is_some_and(|app| app.missed > 0);
        let room = self.push.as_ref().map_or(0, |push| push.app_queue_bytes_max);
        if has_missed && face.queue.bytes() <= room / 2 && tell_missed(face) {
            // At once: this flush may have been the last one of the round.
            io.flush(slot);
        } else if has_missed || face.state.hold == Hold::Slow {
            face.tell_flushed();
        }
        self.say_taken(io, slot);
    }

    /// So many publications that an application had no room for are told in their place.
    pub(super) fn no_room(&mut self, io: &mut Io, app: AppId, count: u64) {
        let face = self.push.as_ref().and_then(|push| push.apps.face(app));
        if let Some((slot, _)) = face.and_then(|face| io.faces.by_id(face)) {
            self.miss(io, slot, usize::try_from(count).unwrap_or(usize::MAX));
        }
    }

    /// The push thread is to know when an application has taken what waits for it.
    pub(super) fn mark(&mut self, io: &mut Io, app: AppId) {
        let face = self.push.as_ref().and_then(|push| push.apps.face(app));
        let Some((slot, face)) = face.and_then(|face| io.faces.by_id(face)) else { return };
        if let Some(app) = &mut face.state.app {
            app.is_marked = true;
        }
        self.say_taken(io, slot);
    }

    /// Tells the push thread that an application has taken nearly everything, where it is to know.
    fn say_taken(&mut self, io: &mut Io, slot: Slot) {
        let (Some(push), Some(face)) = (&mut self.push, io.faces.get(slot)) else { return };
        let Some(app) = face.state.app.as_mut().filter(|app| app.is_marked) else { return };
        if face.queue.bytes() > (push.app_queue_bytes_max / 4).min(HOLD_AT / 4) {
            return face.tell_flushed();
        }
        app.is_marked = false;
        if let Some(number) = app.number {
            push.send_up(Up::Took(number), 0);
        }
    }
}

/// What an application did not get is noted with its face, and told when it catches up.
pub(super) fn miss(face: &mut LocalFace, count: usize) {
    if let Some(app) = &mut face.state.app {
        app.missed += count as u64;
        face.tell_flushed();
    }
}

/// Says what the application missed, in its place; whether there was room for it.
pub(super) fn tell_missed(face: &mut LocalFace) -> bool {
    let Some(app) = &mut face.state.app else { return true };
    if app.missed == 0 {
        return true;
    }
    let number = std::mem::take(&mut app.missed);
    let message = Message { number, ..Message::new(app::kind::MISSED, 0) };
    face.queue.push(&message.octets(), None).is_ok()
}

/// How many messages of `len` octets an application's queue takes, whose data may have `room`
/// octets; an empty one takes any.
fn fitting(queue: &TxQueue, room: usize, len: usize) -> usize {
    let fit = room.saturating_sub(queue.bytes()).checked_div(len).unwrap_or(usize::MAX);
    fit.max(usize::from(queue.is_empty()))
}

/// Queues a message for each of `row`; whether there was room for all.
fn put_row(queue: &mut TxQueue, head: &[u8], row: &FrameRow, from: usize) -> bool {
    if queue.pinned() < PINNED_MAX {
        return queue.push_row(head, row, from) == row.count();
    }
    row.iter().all(|frame| queue.push(&[], Some(&Buf::joined(head, &frame[from..]))).is_ok())
}

/// Queues a message; a long publication in pieces that share its octets.
fn put(queue: &mut TxQueue, arena: &[u8], bytes: &Payload) -> bool {
    let Payload::Shared(bytes) = bytes else {
        return queue.push(bytes.octets(arena), None).is_ok();
    };
    if bytes.len() <= PACKET_LEN_MAX {
        return queue.push(&[], Some(bytes)).is_ok();
    }
    let Ok(message) = Message::parse(bytes) else { return false };
    let payload = bytes.slice_of(message.payload);
    // The queue takes the whole of it or nothing: nobody else fills it meanwhile.
    let mut offset = 0;
    while offset < payload.len() {
        let piece = payload.slice(offset..payload.len().min(offset + app::PIECE_MAX));
        let head = message.piece_head(payload.len(), offset, piece.len());
        queue.push_over(&head, Some(&piece));
        offset += piece.len();
    }
    true
}
