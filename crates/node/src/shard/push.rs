//! The push half in a shard: frames through a forwarder of its own, messages of applications to
//! the push thread, and what that thread sends to the faces of this shard.

use super::fan::Delivered;
use super::packet::push_lane;
use super::{Io, Shard};
use crate::cross::{Batch, FromPeer, Leg, ToPeer};
use crate::push::{Rest, Shared, is_data};
use onym_engine::{Place, Slot};
use onym_frame::{Buf, FrameRow, RxFrame};
use onym_link::{LpIn, Outgoing, Packet, Payload, Transmit};
use onym_pubsub::forwarder::{self, START};
use onym_pubsub::{Copies, Forwarder, Source};
use onym_tables::{FaceId, Tick};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::push::app::{self, Message};
use onym_wire::types::PacketType;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

/// Frames of a neighbour that are handled together, at most.
const ROW_MAX: usize = 64;
/// Octets of the push half that one turn of a face brings, about.
const TURN_BYTES: usize = 1 << 20;

/// What a shard has of the push half.
#[derive(Debug)]
pub(crate) struct PushSide {
    /// A copy of the push thread's, for frames of neighbours.
    forwarder: Forwarder,
    copies: Copies,
    /// A frame whose whole head may be changed, and what comes behind it: nothing.
    whole: Vec<u8>,
    /// The head of what is done in place and not copied.
    head: Vec<u8>,
    nothing: FrameRow,
    pub(super) to: ToPeer,
    pub(super) from: FromPeer,
    /// Packets sent to the push thread.
    sent: u64,
    /// The state of the push half, for what is done in place.
    shared: Option<Arc<Shared>>,
    /// Something was done in place since the last batch was handed over.
    is_used: bool,
    /// What is left of a batch, whose first publication waits for an application.
    pub(super) rest: Option<Box<Batch>>,
    /// An emptied batch.
    spare: Option<Box<Batch>>,
    /// Until when faces were put aside, [`Tick::NEVER`] while some are: their neighbours are not silent
    /// of their own accord.
    held_until: Arc<AtomicU64>,
    /// Faces whose next frame has to wait for the push thread, or for a face that holds back.
    held: Vec<Slot>,
    /// Faces with long queues that are waited for.
    pub(super) holding: Vec<Slot>,
    /// Faces of applications that ended, and of which the push thread was not told for want of
    /// room.
    leaving: Vec<FaceId>,
    /// Octets of data that wait for an application at most.
    pub(super) app_queue_bytes_max: usize,
    /// How long a face may hold the push half back without a pause.
    pub(super) hold: Duration,
}

/// What a shard counts of the push half beside the verdicts of its forwarder.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PushDropped {
    /// The push half is not enabled (`onym_frames_dropped_total`).
    pub off: u64,
    /// Messages on a face that is not local.
    pub not_local: u64,
    /// The push thread did not keep up.
    pub backlog: u64,
    /// Publications that an application did not get, for want of room in its queue.
    pub missed: u64,
}

impl PushSide {
    /// The push half of a shard with the ends of its rings to and from the push thread.
    pub(crate) fn new(
        (to, from): (ToPeer, FromPeer),
        held_until: Arc<AtomicU64>,
        forwarder: Forwarder,
        (app_queue_bytes_max, hold): (usize, Duration),
    ) -> Self {
        Self {
            forwarder,
            copies: Copies::default(),
            whole: Vec::new(),
            head: Vec::new(),
            nothing: FrameRow::one(Buf::copy_from(&[])),
            to,
            from,
            sent: 0,
            shared: None,
            is_used: false,
            rest: None,
            spare: None,
            held_until,
            held: Vec::new(),
            holding: Vec::new(),
            leaving: Vec::new(),
            app_queue_bytes_max,
            hold,
        }
    }

    /// Data is done in place from now on, where that is possible.
    pub(crate) fn share(&mut self, shared: &Arc<Shared>) {
        self.shared = Some(Arc::clone(shared));
    }

    /// Does what the first of the packets of a face asks for in place, if that can be now, and what
    /// those behind it do that continue it, but for what is returned with their number; `from` is
    /// this shard, and how many packets it had sent the push thread behind the last one of this
    /// face.
    fn in_place(
        &mut self,
        now: Tick,
        from: (usize, u64),
        packets: (FaceId, &FrameRow),
    ) -> Option<(usize, Rest)> {
        if self.has_batch() {
            return None;
        }
        let mut thread = self.shared.as_ref().and_then(|shared| shared.try_lock())?;
        if thread.is_behind(from.0, from.1) {
            // What has not left yet may be done now, too.
            if !is_data(packets.1.first()) {
                return None;
            }
            self.to.flush_short();
        }
        self.head.clear();
        let done = thread.in_place(now, from, packets, &mut self.head);
        self.is_used |= done.is_some();
        done
    }

    /// Sends a packet of a face to the push thread; whether there was room.
    fn send(&mut self, packet: Packet) -> bool {
        let is_sent = if is_data(&packet.bytes) {
            self.to.packet(Leg::Push, packet).is_ok()
        } else {
            self.to.long_packet(Leg::Push, packet).is_ok()
        };
        self.sent += u64::from(is_sent);
        is_sent
    }

    /// Whether something that the push thread sent is to be taken.
    pub(super) fn has_batch(&self) -> bool {
        self.rest.is_some() || self.from.waits()
    }

    /// Whether there is room for what applications and neighbours send.
    fn is_free(&self) -> bool {
        self.to.has_room() && self.holding.is_empty()
    }
}

/// Whether the push half takes the packet.
#[inline]
pub(super) fn is_push(packet: &Packet) -> bool {
    PacketType::of(&packet.bytes).is_some_and(PacketType::is_push)
}

impl Shard {
    /// A frame or a message of the push half that the face in `slot` received.
    pub(super) fn push_packet(&mut self, io: &mut Io, slot: Slot, packet: Packet) {
        if self.push.is_none() {
            self.push_dropped.off += 1;
            return self.answer_off(io, slot, &packet);
        }
        if PacketType::of(&packet.bytes) == Some(PacketType::PushApp) {
            let face = io.faces.get(slot).filter(|face| face.state.is_local);
            if face.map(|face| face.state.app.get_or_insert_default()).is_none() {
                self.push_dropped.not_local += 1;
            } else {
                self.for_push(io, slot, packet.face, &FrameRow::one(packet.bytes));
            }
            return;
        }
        let (face, frame) = (packet.face, FrameRow::one(packet.bytes));
        if self.forward_push(io, face, &frame) {
            self.for_push(io, slot, face, &frame);
        }
    }

    /// Takes the frames of the face in `slot` that a forwarder cannot tell from the first one, if
    /// there are several in a row; how many.
    pub(super) fn push_row(&mut self, io: &mut Io, slot: Slot, frames: &[RxFrame]) -> usize {
        let Some(row) = alike(frames).filter(|row| row.count() > 1) else { return 0 };
        if self.push.is_none() {
            return 0;
        }
        let Some(face) = io.faces.get(slot) else { return 0 };
        if !face.link.receive_push(row.count()) {
            return 0;
        }
        face.traffic.in_bytes += (row.count() * row.frame_len()) as u64;
        face.traffic.in_frames += row.count() as u64;
        let (face, count) = (face.id, row.count());
        if self.forward_row(io, face, &row) {
            let mut rest = Some(row);
            while let Some(row) = rest {
                let done = self.for_push(io, slot, face, &row);
                rest = row.skip(done);
            }
        }
        count
    }

    /// Sends a frame of a neighbour on; whether it is for this node, too.
    fn forward_push(&mut self, io: &mut Io, face: FaceId, frame: &FrameRow) -> bool {
        if forwarder::has_short_head(frame.first()) {
            return self.forward_row(io, face, frame);
        }
        let Some(push) = &mut self.push else { return false };
        let mut copies = std::mem::take(&mut push.copies);
        let mut whole = std::mem::take(&mut push.whole);
        whole.clear();
        whole.extend_from_slice(frame.first());
        push.forwarder.receive(Source::Face(face), &mut whole, &mut copies);
        let nothing = push.nothing.clone();
        copies.faces.iter().for_each(|face| self.send_on(io, *face, &whole, &nothing, 0));
        let is_delivered = copies.is_delivered;
        if let Some(push) = &mut self.push {
            (push.copies, push.whole) = (copies, whole);
        }
        is_delivered
    }

    /// As [`Shard::forward_push`], for frames with a short head that a forwarder cannot tell from
    /// each other.
    fn forward_row(&mut self, io: &mut Io, face: FaceId, row: &FrameRow) -> bool {
        let Some(push) = &mut self.push else { return false };
        let mut copies = std::mem::take(&mut push.copies);
        // The hop limit is another one in what leaves, so that has a head of its own; the rest is
        // shared with what came.
        let mut head = [0; START];
        head.copy_from_slice(&row.first()[..START]);
        let (from, start) = (Source::Face(face), (&mut head[..], row.frame_len()));
        push.forwarder.receive_row(row.count(), from, start, &mut copies);
        copies.faces.iter().for_each(|face| self.send_on(io, *face, &head, row, START));
        let is_delivered = copies.is_delivered;
        if let Some(push) = &mut self.push {
            push.copies = copies;
        }
        is_delivered
    }

    /// Puts frames into the queue of a link, wherever that is: for each of `row`, `head` and then
    /// what stands in it from `from` on.
    fn send_on(&mut self, io: &mut Io, id: FaceId, head: &[u8], row: &FrameRow, from: usize) {
        let Some(Place::Here(slot)) = io.faces.place(id) else {
            for frame in row.iter() {
                let start = position(self.out.arena.len());
                self.out.arena.extend_from_slice(head);
                self.out.arena.extend_from_slice(&frame[from..]);
                let bytes = Payload::Arena(start..position(self.out.arena.len()));
                self.out.items.push(Transmit { face: id, what: Outgoing::PushFrame, bytes });
            }
            return;
        };
        let now = io.now;
        let Some(face) = io.faces.get(slot) else { return };
        if face.io.is_none() {
            face.traffic.face_gone += row.count() as u64;
            return;
        }
        face.queue.set_lane(push_lane(face));
        face.link.send_row(now, head, row, from, &mut face.queue);
        self.note_hold(io, slot);
        io.queued(slot);
    }

    /// What is for the push half of this node: the first of the packets of a face is done in place,
    /// with those behind it that continue it, or sent to its thread. How many packets that were.
    fn for_push(&mut self, io: &mut Io, slot: Slot, id: FaceId, packets: &FrameRow) -> usize {
        if self.push.as_ref().is_some_and(PushSide::has_batch) {
            // Nothing can be done in place before it.
            self.take_push(io);
        }
        let (Some(push), Some(face)) = (&mut self.push, io.faces.get(slot)) else { return 1 };
        let from = (self.index, face.state.push_sent);
        if let Some((done, rest)) = push.in_place(io.now, from, (id, packets)) {
            self.put_apart(io, rest, packets, done);
            return done;
        }
        let bytes = packets.first().clone();
        if push.send(Packet { face: id, bytes, lp: LpIn::default() }) {
            face.state.push_sent = push.sent;
        } else {
            self.push_dropped.backlog += 1;
        }
        1
    }

    /// Puts a head and what belongs behind it, in the first `done` of `packets` where nothing else
    /// is said, into the queues of faces here.
    fn put_apart(&mut self, io: &mut Io, rest: Rest, packets: &FrameRow, done: usize) {
        let Some(push) = &mut self.push else { return };
        let head = std::mem::take(&mut push.head);
        match rest {
            Rest::Nothing => {}
            Rest::Links(faces, payload) => {
                let payload = FrameRow::one(payload);
                faces.iter().for_each(|face| self.send_on(io, *face, &head, &payload, 0));
            }
            Rest::Apps(faces, from) => {
                let packets = packets.take(done);
                for face in faces.iter() {
                    match io.faces.by_id(*face) {
                        Some((slot, _)) => self.data_to(io, slot, &head, &packets, from),
                        None => self.counters.face_gone += packets.count() as u64,
                    }
                }
            }
        }
        if let Some(push) = &mut self.push {
            push.head = head;
        }
    }

    /// What was done in place goes to the faces of this shard.
    pub(super) fn take_in_place(&mut self, io: &mut Io) {
        let is_ready = |push: &&mut PushSide| push.is_used && push.rest.is_none();
        let Some(push) = self.push.as_mut().filter(is_ready) else { return };
        // Whoever is at it now may hand it over by the ring; else it is tried again.
        let Some(mut thread) = push.shared.as_ref().and_then(|shared| shared.try_lock()) else {
            return;
        };
        push.is_used = false;
        let mut batch = thread.hand_over(self.index, push.spare.take().unwrap_or_default());
        drop(thread);
        let delivered = self.deliver(io, &mut batch);
        let Some(push) = &mut self.push else { return };
        match delivered {
            Delivered::Whole => {
                batch.clear();
                push.spare = Some(batch);
            }
            Delivered::InPart => push.rest = Some(batch),
        }
    }

    /// Tells an application that there is no push half (P-50).
    fn answer_off(&mut self, io: &mut Io, slot: Slot, packet: &Packet) {
        let Some(face) = io.faces.get(slot).filter(|face| face.state.is_local) else { return };
        let Ok(message) = Message::parse(&packet.bytes) else { return };
        let status = Some(onym_wire::push::Status::OFF);
        let answer = Message { status, ..Message::new(app::kind::STATUS, message.tag) };
        // Without room the application waits in vain, as for any node that has none.
        if face.queue.push(&answer.octets(), None).is_ok() {
            io.queued(slot);
        }
    }

    /// How many of `frames` come before one that the push half has no room for now: an application
    /// waits, and so does a neighbour on a stream, and neither loses anything.
    pub(super) fn not_held(&mut self, io: &mut Io, slot: Slot, frames: &[RxFrame]) -> usize {
        let Some(push) = &mut self.push else { return frames.len() };
        // What one turn brings has room in the queue of any face.
        let mut room = if push.is_free() { TURN_BYTES } else { 0 };
        if frames.len() * PACKET_LEN_MAX <= room {
            return frames.len();
        }
        let is_stream = io.faces.get(slot).is_some_and(|face| face.is_stream);
        let waits = |frame: &RxFrame| {
            let is_ours = match PacketType::of(&frame.bytes) {
                Some(PacketType::PushApp) => true,
                Some(PacketType::PushFrame) => is_stream,
                _ => false,
            };
            let fits = !is_ours || room > 0;
            room = room.saturating_sub(if is_ours { frame.bytes.len() } else { 0 });
            !fits
        };
        frames.iter().position(waits).unwrap_or(frames.len())
    }

    /// Whether nothing has to be put aside for the push half.
    pub(super) fn push_is_free(&self) -> bool {
        self.push.as_ref().is_none_or(PushSide::is_free)
    }

    /// Notes that a face is put aside until the push thread has room; whether there is one.
    pub(super) fn hold(&mut self, slot: Slot) -> bool {
        let Some(push) = &mut self.push else { return false };
        push.held.push(slot);
        push.held_until.store(Tick::NEVER.0, Ordering::Relaxed);
        true
    }

    /// Whether something of the push half goes on as soon as no face holds back: a batch of its
    /// thread, or faces that were put aside.
    pub(super) fn push_waits(&self) -> bool {
        let waits =
            |push: &PushSide| push.has_batch() || !push.held.is_empty() && push.to.has_room();
        self.push.as_ref().is_some_and(waits)
    }

    /// Whether a face is put aside, or is the reason for it, or something waits for the lock.
    pub(super) fn has_held(&self) -> bool {
        self.is_kept_waiting() || self.push.as_ref().is_some_and(|push| !push.held.is_empty())
    }

    /// Whether something waits for a face that holds back, or for the lock. What waits only for room
    /// in the ring to the push thread is rung for.
    pub(super) fn is_kept_waiting(&self) -> bool {
        let waits = |push: &PushSide| {
            !push.holding.is_empty()
                || !push.leaving.is_empty()
                || push.is_used
                || push.rest.is_some()
        };
        self.push.as_ref().is_some_and(waits)
    }

    /// Faces that were put aside have turns again when there is room.
    pub(super) fn release_held(&mut self, io: &mut Io) {
        let Some(push) = &mut self.push else { return };
        while let Some(face) = push.leaving.last() {
            if !push.send(leave(*face)) {
                break;
            }
            push.leaving.pop();
        }
        if push.held.is_empty() {
            return;
        }
        push.to.flush();
        if push.is_free() {
            push.held_until.store(io.now.0, Ordering::Relaxed);
            let mut held = std::mem::take(&mut push.held);
            held.drain(..).for_each(|slot| io.take_up(slot));
            if let Some(push) = &mut self.push {
                push.held = held;
            }
        }
    }

    pub(super) fn forget_held(&mut self, now: Tick, slot: Slot) {
        let Some(push) = &mut self.push else { return };
        let before = push.held.len();
        push.held.retain(|s| *s != slot);
        if push.held.is_empty() && before > 0 {
            push.held_until.store(now.0, Ordering::Relaxed);
        }
    }

    /// The face of an application ended: the push thread hears it behind what that sent (P-57).
    pub(super) fn push_leave(&mut self, io: &mut Io, slot: Slot) {
        let Some(push) = &mut self.push else { return };
        let Some(face) = io.faces.get(slot) else { return };
        if face.state.app.take().is_some() && !push.send(leave(face.id)) {
            push.leaving.push(face.id);
        }
    }
}

/// The frames at the front that stand in a row and start alike: with all that a forwarder looks at,
/// of frames with a short head.
fn alike(frames: &[RxFrame]) -> Option<FrameRow> {
    let first = frames.first()?.bytes.first_chunk::<START>()?;
    let is_frame = PacketType::of(first) == Some(PacketType::PushFrame);
    if !is_frame || !forwarder::has_short_head(&frames[0].bytes) {
        return None;
    }
    let is_alike = |frame: &&RxFrame| frame.bytes.first_chunk() == Some(first);
    let count = frames.iter().take(ROW_MAX).take_while(is_alike).count();
    FrameRow::of(&frames[..count])
}

/// What an application says that leaves.
fn leave(face: FaceId) -> Packet {
    let bytes = Buf::copy_from(&Message::new(app::kind::LEAVE, 0).octets());
    Packet { face, bytes, lp: LpIn::default() }
}

fn position(at: usize) -> u32 {
    u32::try_from(at).expect("invariant: a burst is bounded far below 4 GiB")
}

/// Links of the push half in one shard, counted.
#[derive(Debug, Clone, Default)]
pub(crate) struct PushState {
    pub(crate) counters: onym_pubsub::Counters,
    pub(crate) dropped: PushDropped,
}

impl Shard {
    /// What this shard counted of the push half.
    pub(crate) fn push_state(&mut self) -> PushState {
        let counters = self.push.as_ref().map(|push| push.forwarder.counters().clone());
        PushState { counters: counters.unwrap_or_default(), dropped: self.push_dropped }
    }

    /// The push thread's forwarder is another one now.
    pub(crate) fn push_forwarder(&mut self, forwarder: Forwarder) {
        if let Some(push) = &mut self.push {
            push.forwarder.take_over(forwarder);
        }
    }
}
