//! The push half of a shard: its copy of the forwarder, its push FIB, and its lanes to and from the
//! other shards and the push thread.
//!
//! A data frame for this node belongs to the shard of its stream, which follows the numbers. Room
//! in a lane is credit: a face whose last message went to a full lane is not read, if it is an
//! application or a neighbour on a stream; other faces go on.

use super::apps::{About, Apps};
use super::fan::Reached;
use super::packet::push_lane;
use super::parcel::{Called, Made, Parcel, Whose};
use super::{Io, Shard};
use crate::cross::{FromPeer, Load, ToPeer};
use crate::push::{ShardLanes, Things, Up};
use onym_engine::{Place, Slot};
use onym_frame::{Buf, FrameRow, RxFrame};
use onym_link::Packet;
use onym_pubsub::forwarder::{self, START};
use onym_pubsub::{Above, Copies, Effects, Fib, Forwarder, Received, Source, dispatcher};
use onym_tables::FaceId;
use onym_wire::push::Flags;
use onym_wire::push::app::{self, Message};
use onym_wire::types::PacketType;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

/// Frames of a neighbour that are handled together, at most.
const ROW_MAX: usize = 64;

/// Frames that cross to the shard of their stream, with the face at which they came.
pub(crate) type Rows = Things<(FaceId, FrameRow)>;

/// The lanes of publications between this shard and another one.
#[derive(Debug)]
pub(crate) struct Peer {
    /// What is handed out there, or leaves by faces there. Who takes it waits for faces only.
    pub(crate) parcels_to: ToPeer<Parcel>,
    pub(crate) parcels_from: FromPeer<Parcel>,
    /// Frames that belong there. Who takes them may wait for room for what they bring.
    pub(crate) rows_to: ToPeer<Rows>,
    pub(crate) rows_from: FromPeer<Rows>,
}

/// What becomes of frames for which there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Full {
    /// They are taken: who sends them is read no further.
    Waits,
    /// They are dropped and counted: nobody waits with what a datagram brings.
    Drops,
}

/// What is left of a parcel, whose next publication waits for an application.
#[derive(Debug)]
pub(super) struct Rest {
    /// The shard that it came from; none: this one.
    pub(super) from: Option<usize>,
    pub(super) parcel: Box<Parcel>,
    pub(super) at: Reached,
}

/// What a shard has of the push half.
#[derive(Debug)]
pub(crate) struct PushSide {
    index: u16,
    pub(super) shards: u16,
    /// A copy of the push thread's.
    pub(super) forwarder: Forwarder,
    pub(super) copies: Copies,
    /// A frame whose whole head may be changed, and what comes behind it: nothing.
    whole: Vec<u8>,
    pub(super) nothing: FrameRow,
    pub(super) fib: Fib,
    pub(super) effects: Effects,
    pub(super) apps: Apps,
    pub(super) lanes: ShardLanes,
    /// By shard; none for this one.
    pub(super) peers: Vec<Option<Peer>>,
    /// Publications for applications of this shard, until the end of a turn.
    pub(super) own: Box<Parcel>,
    pub(super) spare: Option<Box<Parcel>>,
    pub(super) rest: Option<Rest>,
    /// Until when faces were put aside, [`Tick::NEVER`] while some are: their neighbours are not silent
    /// of their own accord.
    pub(super) held_until: Arc<AtomicU64>,
    /// Faces whose next frame has to wait for room, or for a face that holds back.
    pub(super) held: Vec<Slot>,
    /// Faces with long queues that are waited for.
    pub(super) holding: Vec<Slot>,
    /// There is a cache, which may keep what is on its way to others.
    is_caching: bool,
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
    /// Another thread did not keep up.
    pub backlog: u64,
    /// Publications that an application did not get, for want of room in its queue.
    pub missed: u64,
}

/// Everything that the push half of a shard is given at start.
pub(crate) struct PushParts {
    pub(crate) index: u16,
    pub(crate) forwarder: Forwarder,
    pub(crate) fib: Fib,
    pub(crate) about: About,
    pub(crate) lanes: ShardLanes,
    pub(crate) peers: Vec<Option<Peer>>,
    pub(crate) held_until: Arc<AtomicU64>,
    pub(crate) is_caching: bool,
    pub(crate) app_queue_bytes_max: usize,
    pub(crate) hold: Duration,
}

impl PushSide {
    pub(crate) fn new(parts: PushParts) -> Self {
        let shards = u16::try_from(parts.peers.len()).unwrap_or(1);
        Self {
            index: parts.index,
            shards,
            forwarder: parts.forwarder,
            copies: Copies::default(),
            whole: Vec::new(),
            nothing: FrameRow::one(Buf::copy_from(&[])),
            fib: parts.fib,
            effects: Effects::default(),
            apps: Apps::new(parts.about, parts.index, shards),
            lanes: parts.lanes,
            peers: parts.peers,
            own: Box::default(),
            spare: None,
            rest: None,
            held_until: parts.held_until,
            held: Vec::new(),
            holding: Vec::new(),
            is_caching: parts.is_caching,
            app_queue_bytes_max: parts.app_queue_bytes_max,
            hold: parts.hold,
        }
    }

    /// The lane to the push thread among those to other shards, as in [`PushSide::full`].
    pub(super) const fn up_bit(&self) -> u64 {
        1 << self.index
    }

    /// The lanes without room: a bit for each other shard, and that of this one for the push thread.
    pub(super) fn full(&mut self) -> u64 {
        let mut full = if self.lanes.up.has_place() { 0 } else { self.up_bit() };
        for (shard, peer) in self.peers.iter_mut().enumerate() {
            if let Some(peer) = peer
                && !(peer.parcels_to.has_place() && peer.rows_to.has_place())
            {
                full |= 1 << shard;
            }
        }
        full
    }

    /// Whether every other shard has room for publications.
    pub(super) fn has_places(&mut self) -> bool {
        self.peers.iter_mut().flatten().all(|peer| peer.parcels_to.has_place())
    }

    /// Whether far more waits for others than there is room for.
    pub(super) fn is_over(&self) -> bool {
        self.own.is_over() || self.peers.iter().flatten().any(|peer| peer.parcels_to.is_over())
    }

    pub(super) fn has_own(&self) -> bool {
        !self.own.is_empty()
    }

    /// Whether nothing that is handed out has to wait.
    pub(super) fn is_free(&self) -> bool {
        self.holding.is_empty() && self.rest.is_none() && self.own.is_empty()
    }

    /// Hands a publication out as the effects say: what stands in each of `row` from octet `from` on
    /// is for applications here, in this shard's own parcel, and for those of other shards in theirs.
    pub(super) fn hand(&mut self, row: &FrameRow, from: usize) {
        let Self { effects, own, peers, .. } = self;
        let came_by = effects.came_by;
        for (app, count) in effects.missed.drain(..) {
            own.missed(Whose::App(app), count);
        }
        let mut made: Made = None;
        if let Some((apps, id)) = effects.list() {
            own.put(Whose::Apps(Arc::clone(apps)), Called { id, came_by }, row, from, &mut made);
        }
        for (to, id) in effects.drain_others() {
            own.put(to.into(), Called { id: &id, came_by }, row, from, &mut made);
        }
        let Some(names) = effects.names.take() else { return };
        for shard in effects.of_lost() {
            if let Some(Some(peer)) = peers.get_mut(usize::from(shard)) {
                let to = Whose::Names(Arc::clone(&names), Above::Parent);
                peer.parcels_to.batch().missed(to, effects.lost);
            }
        }
        let Some(id) = names.first() else { return };
        for shard in effects.others() {
            if let Some(Some(peer)) = peers.get_mut(usize::from(shard)) {
                let to = Whose::Names(Arc::clone(&names), effects.above);
                peer.parcels_to.batch().put(to, Called { id, came_by }, row, from, &mut made);
            }
        }
    }

    /// Whether something waits that may be taken now, whoever holds back.
    pub(super) fn is_told(&self) -> bool {
        self.lanes.told.waits()
    }

    /// Whether what found no room would find it now.
    pub(super) fn is_due(&self) -> bool {
        let of = |peer: &Peer| peer.parcels_to.is_due() || peer.rows_to.is_due();
        self.lanes.up.is_due() || self.peers.iter().flatten().any(of)
    }

    pub(super) fn flush(&mut self) {
        self.lanes.up.flush();
        for peer in self.peers.iter_mut().flatten() {
            peer.parcels_to.flush();
            peer.rows_to.flush();
        }
    }

    /// Whether nothing of the push half is on its way to or from this shard.
    pub(super) fn is_drained(&self) -> bool {
        let of = |peer: &Peer| {
            peer.parcels_to.is_empty()
                && peer.rows_to.is_empty()
                && !peer.parcels_from.waits()
                && !peer.rows_from.waits()
        };
        self.is_free()
            && self.held.is_empty()
            && self.lanes.up.is_empty()
            && !self.lanes.told.waits()
            && !self.lanes.data.waits()
            && self.peers.iter().flatten().all(of)
    }
}

impl Shard {
    /// A frame or a message of the push half that the face in `slot` received.
    pub(super) fn push_packet(&mut self, io: &mut Io, slot: Slot, packet: Packet) {
        if self.push.is_none() {
            self.push_dropped.off += 1;
            return self.answer_off(io, slot, &packet);
        }
        if PacketType::of(&packet.bytes) == Some(PacketType::PushApp) {
            if io.faces.get(slot).is_some_and(|face| face.state.is_local) {
                self.app_message(io, slot, &packet.bytes);
            } else {
                self.push_dropped.not_local += 1;
            }
            return;
        }
        let (face, frame) = (packet.face, FrameRow::one(packet.bytes));
        let (is_delivered, mut targets) = self.forward_push(io, face, &frame);
        if is_delivered {
            targets |= self.came(io, slot, face, frame);
        } else if Flags::of(frame.first()).may_keep() {
            self.pass_by(face, &frame);
        }
        note_targets(io, slot, targets);
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
        let (is_delivered, mut targets) = self.forward_row(io, face, &row);
        if is_delivered {
            targets |= self.came(io, slot, face, row);
        } else if Flags::of(row.first()).may_keep() {
            self.pass_by(face, &row);
        }
        note_targets(io, slot, targets);
        count
    }

    /// Sends a frame of a neighbour on; whether it is for this node, too, and the lanes it took.
    fn forward_push(&mut self, io: &mut Io, face: FaceId, frame: &FrameRow) -> (bool, u64) {
        if forwarder::has_short_head(frame.first()) {
            return self.forward_row(io, face, frame);
        }
        let Some(push) = &mut self.push else { return (false, 0) };
        let mut copies = std::mem::take(&mut push.copies);
        let mut whole = std::mem::take(&mut push.whole);
        whole.clear();
        whole.extend_from_slice(frame.first());
        push.forwarder.receive(Source::Face(face), &mut whole, &mut copies);
        let (nothing, mut targets) = (push.nothing.clone(), 0);
        for face in &copies.faces {
            targets |= self.send_on(io, *face, &whole, &nothing, 0);
        }
        let is_delivered = copies.is_delivered;
        if let Some(push) = &mut self.push {
            (push.copies, push.whole) = (copies, whole);
        }
        (is_delivered, targets)
    }

    /// As [`Shard::forward_push`], for frames with a short head that a forwarder cannot tell from
    /// each other.
    fn forward_row(&mut self, io: &mut Io, face: FaceId, row: &FrameRow) -> (bool, u64) {
        let Some(push) = &mut self.push else { return (false, 0) };
        let mut copies = std::mem::take(&mut push.copies);
        // The hop limit is another one in what leaves, so that has a head of its own; the rest is
        // shared with what came.
        let mut head = [0; START];
        head.copy_from_slice(&row.first()[..START]);
        let (from, len) = (Source::Face(face), row.frame_len());
        push.forwarder.receive_row(row.count(), from, &mut head, len, &mut copies);
        let mut targets = 0;
        for face in &copies.faces {
            targets |= self.send_on(io, *face, &head, row, START);
        }
        let is_delivered = copies.is_delivered;
        if let Some(push) = &mut self.push {
            push.copies = copies;
        }
        (is_delivered, targets)
    }

    /// Sends frames to a link, wherever its face is: for each of `row`, `head` and then what stands in
    /// it from `from` on. The shard that it crosses to, as a bit.
    pub(super) fn send_on(
        &mut self,
        io: &mut Io,
        id: FaceId,
        head: &[u8],
        row: &FrameRow,
        from: usize,
    ) -> u64 {
        match io.faces.place(id) {
            Some(Place::Here(slot)) => self.send_here(io, slot, head, row, from),
            Some(Place::There(shard)) => {
                let peers = self.push.as_mut().map(|push| &mut push.peers);
                let peer = peers.and_then(|peers| peers.get_mut(usize::from(shard))?.as_mut());
                match peer {
                    Some(peer) if !peer.parcels_to.is_over() => {
                        peer.parcels_to.batch().frames(id, head, row, from);
                        return 1 << shard;
                    }
                    _ => self.push_dropped.backlog += row.count() as u64,
                }
            }
            None => self.counters.face_gone += row.count() as u64,
        }
        0
    }

    /// Frames of another shard for a link here.
    pub(super) fn frames_here(
        &mut self,
        io: &mut Io,
        id: FaceId,
        head: &[u8],
        row: Option<&(FrameRow, usize)>,
    ) {
        let Some(Place::Here(slot)) = io.faces.place(id) else {
            self.counters.face_gone += row.map_or(1, |(row, _)| row.count() as u64);
            return;
        };
        if let Some((row, from)) = row {
            return self.send_here(io, slot, head, row, *from);
        }
        let Some(nothing) = self.push.as_ref().map(|push| push.nothing.clone()) else { return };
        self.send_here(io, slot, head, &nothing, 0);
    }

    fn send_here(&mut self, io: &mut Io, slot: Slot, head: &[u8], row: &FrameRow, from: usize) {
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

    /// Frames of a neighbour that are for this node: those of each stream are for its shard. The lanes
    /// that they took.
    fn came(&mut self, io: &mut Io, slot: Slot, face: FaceId, row: FrameRow) -> u64 {
        let (Some(push), Some(local)) = (&mut self.push, io.faces.get(slot)) else { return 0 };
        let full = if local.is_stream { Full::Waits } else { Full::Drops };
        if full == Full::Drops && push.is_over() {
            self.push_dropped.backlog += row.count() as u64;
            return 0;
        }
        let mut targets = 0;
        let mut rest = Some(row);
        while let Some(row) = rest {
            let Some(push) = &mut self.push else { return targets };
            let owner = push.fib.owner(row.first()).filter(|owner| *owner != push.index);
            let (done, to) = match owner {
                Some(owner) => self.cross_row(owner, face, &row, full),
                None => self.take_row(face, &row, full),
            };
            targets |= to;
            rest = row.skip(done);
        }
        targets
    }

    /// Frames on their way to others that the cache may keep, as long as the push thread has room:
    /// nobody waits for a cache.
    #[cold]
    fn pass_by(&mut self, face: FaceId, row: &FrameRow) {
        let Some(push) = self.push.as_mut().filter(|push| push.is_caching) else { return };
        let mut rest = Some(row.clone());
        while let Some(row) = rest.filter(|_| push.lanes.up.has_place()) {
            let bytes = row.first().clone();
            let octets = bytes.len();
            push.send_up(Up::PassBy { face, bytes }, octets);
            rest = row.skip(1);
        }
    }

    /// Sends the frames at the front of `row` that are of the same shard there; how many, and the
    /// lane that they took.
    fn cross_row(&mut self, owner: u16, face: FaceId, row: &FrameRow, full: Full) -> (usize, u64) {
        let Some(push) = &mut self.push else { return (row.count(), 0) };
        let is_its = |frame: &&[u8]| push.fib.owner(frame) == Some(owner);
        let count = row.iter().take_while(is_its).count().max(1);
        let lane = push.peers.get_mut(usize::from(owner)).and_then(Option::as_mut);
        let Some(lane) = lane.map(|peer| &mut peer.rows_to) else { return (count, 0) };
        if full == Full::Waits || lane.has_place() {
            let row = row.take(count);
            let octets = row.count() * row.frame_len();
            lane.batch().push((face, row), octets);
        } else {
            self.push_dropped.backlog += count as u64;
        }
        (count, 1 << owner)
    }

    /// Frames that belong to this shard: the first of `row`, and those that continue it, are handed
    /// out, or the first is passed to the push thread. How many that were, and the lanes they took.
    pub(super) fn take_row(&mut self, face: FaceId, row: &FrameRow, full: Full) -> (usize, u64) {
        let Some(push) = &mut self.push else { return (row.count(), 0) };
        let is_external = push.forwarder.is_external(face);
        match push.fib.receive(row.iter(), is_external, &mut push.effects) {
            Some(Received::Here { frames, payload_at }) => {
                let targets = push.effects.shards;
                push.hand(&row.take(frames), payload_at);
                (frames, targets)
            }
            Some(Received::Pass(number)) => {
                if full == Full::Waits || push.lanes.up.has_place() {
                    let bytes = row.first().clone();
                    let octets = bytes.len();
                    push.send_up(Up::Frame { face, number, bytes }, octets);
                } else {
                    self.push_dropped.backlog += 1;
                    match push.lanes.up.batch().last_mut() {
                        Some(Up::Dropped(last)) => *last = number,
                        _ => push.send_up(Up::Dropped(number), 0),
                    }
                }
                (1, push.up_bit())
            }
            None => (row.count(), 0),
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

    /// The face of an application ended: the push thread hears it behind what that sent (P-57).
    pub(super) fn push_leave(&mut self, io: &mut Io, slot: Slot) {
        let (Some(push), Some(face)) = (&mut self.push, io.faces.get(slot)) else { return };
        if let Some(number) = face.state.app.take().and_then(|app| app.number) {
            push.app_gone(number);
        }
    }

    /// Tells applications that so many publications never came.
    pub(super) fn missed(&mut self, io: &mut Io, to: &Whose, count: u64) {
        let Some(push) = &mut self.push else { return };
        let apps: Vec<_> = match to {
            Whose::App(app) => vec![*app],
            Whose::Names(names, _) => {
                push.fib.arrive_missed(names, count, &mut push.effects);
                push.effects.missed.drain(..).map(|(app, _)| app).collect()
            }
            Whose::Apps(_) | Whose::Faces(_) => Vec::new(),
        };
        for app in apps {
            let face = self.push.as_ref().and_then(|push| push.apps.face(app));
            if let Some((slot, _)) = face.and_then(|face| io.faces.by_id(face)) {
                self.tell_lost(io, slot, count);
            }
        }
    }
}

/// Notes the lanes that the last frames of a face took.
fn note_targets(io: &mut Io, slot: Slot, targets: u64) {
    if let Some(face) = io.faces.get(slot) {
        face.state.targets = targets;
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

/// What one shard counted of the push half.
#[derive(Debug, Clone, Default)]
pub(crate) struct PushState {
    pub(crate) counters: onym_pubsub::Counters,
    pub(crate) fib: dispatcher::Counters,
    pub(crate) dropped: PushDropped,
    /// Messages of applications that were malformed, and all.
    pub(crate) malformed: u64,
    pub(crate) messages: u64,
}

impl Shard {
    /// What this shard counted of the push half.
    pub(crate) fn push_state(&mut self) -> PushState {
        let dropped = self.push_dropped;
        let Some(push) = &self.push else { return PushState { dropped, ..PushState::default() } };
        PushState {
            counters: push.forwarder.counters().clone(),
            fib: push.fib.counters,
            dropped,
            malformed: push.apps.malformed,
            messages: push.apps.messages,
        }
    }
}
