//! Messages of the push half into the queues of applications; what finds no room there.

use super::Shard;
use super::local::LocalFace;
use onym_forward::packet::{Delivery, Payload, Transmit};
use onym_wire::push::app::{self, Message};
use onym_wire::{Buf, Lane, PACKET_LEN_MAX, TxQueue};

/// Octets of the send queue of an application that are kept for messages other than data.
const RESERVE: usize = 1 << 20;

/// Octets in memory that what waits for an application may keep alive, as parts of what was
/// received: the rest of that stays, too. What comes behind them is copied.
const PINNED_MAX: usize = 8 << 20;

/// How far an application is behind.
#[derive(Debug, Default)]
pub(crate) struct AppSide {
    /// Publications that it did not get and was not told of.
    pub(super) missed: u64,
}

impl Shard {
    /// Puts a message into the queue of an application. Data that finds no room is missed whole;
    /// anything else that finds none ends the face.
    pub(super) fn transmit_app(&mut self, slot: u32, item: &Transmit) {
        let Payload::Shared(bytes) = &item.bytes else { return };
        let is_data = item.lp.delivery == Delivery::AppData;
        self.messages_to(slot, is_data, std::iter::once((bytes.len(), bytes)), put);
    }

    /// Puts messages, each with its length in octets, into the queue of an application with `put`,
    /// which says whether there was room.
    fn messages_to<M>(
        &mut self,
        slot: u32,
        is_data: bool,
        messages: impl Iterator<Item = (usize, M)>,
        put: impl Fn(&mut TxQueue, M) -> bool,
    ) {
        let Some(room) = self.ready_app(slot) else { return };
        let Some(face) = self.faces.get(slot) else { return };
        for (len, message) in messages {
            let fits = face.queue.is_empty() || face.queue.bytes() + len <= room;
            if is_data && !fits {
                self.push_dropped.missed += 1;
                face.app.iter_mut().for_each(|app| app.missed += 1);
                continue;
            }
            let is_taken = tell_missed(face) && put(&mut face.queue, message);
            if !is_taken {
                let (id, reason) = (face.id, "the application does not read its messages");
                return self.fail(slot, id, reason.into(), true);
            }
        }
        self.note_hold(slot);
        self.queued(slot);
    }

    /// Octets of data that may wait for an application; `None` when its face is down, which is
    /// counted.
    pub(super) fn ready_app(&mut self, slot: u32) -> Option<usize> {
        let room = self.push.as_ref().map_or(0, |push| push.app_queue_bytes_max);
        let face = self.faces.get(slot)?;
        if face.io.is_none() {
            face.traffic.face_gone += 1;
            return None;
        }
        face.queue.set_bytes_max(room + RESERVE);
        face.queue.set_lane(Lane::PushHeldBack);
        Some(room)
    }

    /// Puts data into the queue of an application: for each packet `head` and then what stands in it
    /// from `from` on.
    pub(super) fn data_to<'a>(
        &mut self,
        slot: u32,
        head: &[u8],
        packets: impl Iterator<Item = &'a Buf>,
        from: usize,
    ) {
        let messages = packets.map(|bytes| (head.len() + bytes.len() - from, bytes));
        self.messages_to(slot, true, messages, |queue, bytes| {
            if queue.pinned() < PINNED_MAX {
                return queue.push_rest(head, bytes, from).is_ok();
            }
            queue.push(&[], Some(&Buf::joined(head, &bytes[from..]))).is_ok()
        });
    }

    /// An application that catches up hears what it missed.
    pub(super) fn push_flushed(&mut self, slot: u32) {
        self.note_caught_up(slot);
        let Some(face) = self.faces.get(slot) else { return };
        if face.app.as_ref().is_none_or(|app| app.missed == 0) {
            return;
        }
        let room = self.push.as_ref().map_or(0, |push| push.app_queue_bytes_max);
        if face.queue.bytes() <= room / 2 && tell_missed(face) {
            // At once: this flush may have been the last one of the round.
            self.flush(slot);
        }
    }
}

/// Says what the application missed, in its place; whether there was room for it.
pub(super) fn tell_missed(face: &mut LocalFace) -> bool {
    let Some(app) = &mut face.app else { return true };
    if app.missed == 0 {
        return true;
    }
    let number = std::mem::take(&mut app.missed);
    let message = Message { number, ..Message::new(app::kind::MISSED, 0) };
    face.queue.push(&message.octets(), None).is_ok()
}

/// Queues a message; a long publication in pieces that share its octets.
fn put(queue: &mut TxQueue, bytes: &Buf) -> bool {
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
