//! What the push thread sends, into the queues of faces; and holding back while those are long.
//!
//! A face in whose queue more than [`HOLD_AT`] octets of the push half wait holds the push half of its shard back: nothing is
//! taken from the push thread, from applications and from neighbours on streams, so that who
//! publishes waits, until the queue is half as long. An application does so for `push.hold_ms` only;
//! a neighbour, behind which applications may do the same, as long as anything leaves to it, and
//! [`NEIGHBOUR`] times as long without. What takes longer is slow, and until it has caught up nobody
//! waits for it. What does not find room in its queue then is lost to it alone, and applications are
//! told (P-56, P-59).

use super::app::{miss, tell_missed};
use super::{Hold, Io, LocalFace, Shard};
use crate::cross::{Batch, Fan};
use onym_engine::Slot;
use onym_face::Transport;
use onym_frame::{Buf, TxQueue};
use onym_link::{AppMessage, Outgoing, Transmit};
use std::ops::Range;

/// Octets in the queue of a face that hold the push half back.
const HOLD_AT: usize = 256 << 10;
/// Octets with which that ends.
const RELEASE_AT: usize = HOLD_AT / 2;

/// How many times longer a neighbour may stand still.
const NEIGHBOUR: u32 = 4;

impl Shard {
    /// One batch of what came from the push thread, or what is left of one, unless a face holds
    /// back.
    pub(super) fn take_push(&mut self, io: &mut Io) {
        if self.is_held_back(io) {
            return;
        }
        let Some(push) = &mut self.push else { return };
        let Some(mut batch) = push.rest.take().or_else(|| push.from.next()) else { return };
        let delivered = self.deliver(io, &mut batch);
        let Some(push) = &mut self.push else { return };
        match delivered {
            Delivered::Whole => push.from.give_back(batch),
            Delivered::InPart => push.rest = Some(batch),
        }
    }

    /// Puts what the push half wants sent into the queues of faces, up to a publication that has to
    /// wait for room at its application.
    pub(super) fn deliver(&mut self, io: &mut Io, batch: &mut Batch) -> Delivered {
        let mut out = std::mem::take(&mut batch.out);
        // What several applications get is one piece for all of them.
        let is_shared = batch.fans.iter().any(|fan| fan.faces.len() > 1);
        let shared = is_shared.then(|| Buf::copy_from(&batch.messages));
        let (mut fans, mut fanned) = (batch.fans.iter().peekable(), 0);
        let mut items = out.items.drain(..).enumerate();
        while let Some((i, item)) = items.next() {
            while let Some(fan) = fans.next_if(|fan| fan.after <= i) {
                self.fan_out(io, fan, batch, shared.as_ref());
                fanned += 1;
            }
            if self.waits(io, &out.arena, &item) {
                let rest = std::iter::once(item).chain(items.map(|(_, item)| item)).collect();
                out.items = rest;
                batch.out = out;
                batch.fans.drain(..fanned);
                batch.fans.iter_mut().for_each(|fan| fan.after -= i);
                return Delivered::InPart;
            }
            self.transmit(io, &out.arena, item);
        }
        drop(items);
        fans.for_each(|fan| self.fan_out(io, fan, batch, shared.as_ref()));
        batch.out = out;
        Delivered::Whole
    }

    /// Whether a publication has to wait until its application, on a stream, has taken enough of
    /// what waits for it: that holds the push half back as a long queue does.
    fn waits(&mut self, io: &mut Io, arena: &[u8], item: &Transmit) -> bool {
        if !matches!(item.what, Outgoing::App(AppMessage::Data)) {
            return false;
        }
        let (now, Some(push)) = (io.now, &mut self.push) else { return false };
        let Some((slot, face)) = io.faces.by_id(item.face) else { return false };
        let Some(app) = &mut face.state.app else { return false };
        let (len, room) = (item.bytes.octets(arena).len(), push.app_queue_bytes_max);
        let is_over = !face.queue.is_empty() && face.queue.bytes() + len > room;
        if !is_over || !face.is_stream || face.io.is_none() || face.state.hold == Hold::Slow {
            app.until = None;
            return false;
        }
        app.until = Some(room.saturating_sub(len));
        if face.state.hold == Hold::Free {
            face.state.hold = Hold::Since(now, face.traffic.out_bytes);
            push.holding.push(slot);
        }
        true
    }

    fn fan_out(&mut self, io: &mut Io, fan: &Fan, batch: &Batch, shared: Option<&Buf>) {
        let Some(ends) = batch.ends.get(fan.ends.clone()) else { return };
        let messages = match shared {
            Some(shared) => Messages::Shared(shared),
            None => Messages::Own(&batch.messages),
        };
        for face in fan.faces.iter() {
            match io.faces.by_id(*face) {
                Some((slot, _)) => self.fan_to(io, slot, messages, fan.octets.start, ends),
                None => self.counters.face_gone += ends.len() as u64,
            }
        }
    }

    /// Puts messages that begin at `start` and end at `ends` into the queue of an application, as
    /// one piece where its transport cuts none. Those that find no room are missed.
    fn fan_to(
        &mut self,
        io: &mut Io,
        slot: Slot,
        messages: Messages<'_>,
        start: usize,
        ends: &[usize],
    ) {
        let Some(room) = self.ready_app(io, slot) else { return };
        let Some(face) = io.faces.get(slot) else { return };
        let waiting = face.queue.bytes();
        let fitting = ends.partition_point(|end| waiting + end - start <= room);
        let count = if face.queue.is_empty() { fitting.max(1) } else { fitting };
        let (taken, missed) = ends.split_at(count.min(ends.len()));
        let is_told = taken.is_empty() || tell_missed(face);
        if is_told && let Some(end) = taken.last() {
            let is_stream = face
                .io
                .as_ref()
                .is_some_and(|io| matches!(io.transport(), Transport::Unix | Transport::Tcp));
            if is_stream {
                messages.put(&mut face.queue, start..*end);
            } else {
                let starts = std::iter::once(&start).chain(taken);
                for (start, end) in starts.zip(taken) {
                    messages.put(&mut face.queue, *start..*end);
                }
            }
        }
        if !missed.is_empty() {
            self.push_dropped.missed += missed.len() as u64;
            miss(face, missed.len());
        }
        if !is_told {
            return io.end(slot, "the application does not read its messages".into());
        }
        self.note_hold(io, slot);
        io.queued(slot);
    }

    /// Notes that the queue of a face on a stream became long.
    pub(super) fn note_hold(&mut self, io: &mut Io, slot: Slot) {
        let (now, Some(push)) = (io.now, &mut self.push) else { return };
        let Some(face) = io.faces.get(slot) else { return };
        if face.state.hold == Hold::Free && face.is_stream && face.queue.push_bytes() > HOLD_AT {
            face.state.hold = Hold::Since(now, face.traffic.out_bytes);
            push.holding.push(slot);
        }
    }

    /// Whether a face is waited for; looks at those that were.
    pub(super) fn is_held_back(&mut self, io: &mut Io) -> bool {
        let (now, Some(push)) = (io.now, &mut self.push) else { return false };
        let (faces, patience) = (&mut io.faces, push.hold);
        push.holding.retain(|slot| {
            let Some(face) = faces.get(*slot) else { return false };
            let Hold::Since(mut at, left) = face.state.hold else { return false };
            let is_neighbour = face.state.app.is_none();
            if is_neighbour && face.traffic.out_bytes != left {
                at = now;
                face.state.hold = Hold::Since(now, face.traffic.out_bytes);
            }
            let patience = if is_neighbour { patience * NEIGHBOUR } else { patience };
            let is_long = is_long(face);
            if is_long && now.since(at) < patience {
                return true;
            }
            face.state.hold = if is_long { Hold::Slow } else { Hold::Free };
            if let Some(app) = &mut face.state.app {
                app.until = None;
            }
            if is_long {
                face.tell_flushed();
            }
            false
        });
        !push.holding.is_empty()
    }

    /// A slow face that caught up is as any other.
    pub(super) fn note_caught_up(&mut self, io: &mut Io, slot: Slot) {
        if let Some(face) = io.faces.get(slot)
            && face.state.hold == Hold::Slow
            && !is_long(face)
        {
            face.state.hold = Hold::Free;
        }
    }
}

/// Whether what waits for a face is more than it may be.
fn is_long(face: &LocalFace) -> bool {
    let until = face.state.app.as_ref().and_then(|app| app.until);
    let is_over = match until {
        Some(until) => face.queue.bytes() > until,
        None => face.queue.push_bytes() > RELEASE_AT,
    };
    face.io.is_some() && is_over
}

/// How far a batch was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// All of it.
    Whole,
    /// The rest waits for an application.
    InPart,
}

/// Messages, one behind the other.
#[derive(Debug, Clone, Copy)]
enum Messages<'a> {
    /// For one application: copied into its queue.
    Own(&'a [u8]),
    /// For several, which share the octets.
    Shared(&'a Buf),
}

impl Messages<'_> {
    /// Puts a part of them into a queue as one frame.
    fn put(self, queue: &mut TxQueue, range: Range<usize>) {
        match self {
            Self::Own(octets) => queue.push_over(octets.get(range).unwrap_or_default(), None),
            Self::Shared(octets) => queue.push_over(&[], Some(&octets.slice(range))),
        }
    }
}
