//! Parcels into the send queues of faces, and holding back while these are long.
//!
//! A face with more than [`HOLD_AT`] octets of the push half queued holds back the push half of its
//! shard until its queue is half as long: no publications are taken from other shards, the push
//! thread, applications, or neighbours on streams, so publishers wait. An application may hold back
//! for `push.hold_ms`; a neighbour, behind which applications may do the same, as long as anything
//! leaves to it, and [`NEIGHBOUR`] times as long if nothing does. A face that takes longer is slow,
//! and nobody waits for it until it has caught up; publications that do not fit its queue are lost
//! to it alone, and applications are told (P-56, P-59).

use super::app::{miss, tell_missed};
use super::hold::HOLD_AT;
use super::parcel::{Called, Item, Parcel, Whose, data_message};
use super::{Hold, Io, LocalFace, Shard};
use crate::push::Up;
use onym_engine::Slot;
use onym_face::Transport;
use onym_frame::{Buf, FrameRow};
use onym_link::{AppMessage, Payload};
use onym_pubsub::To;
use onym_tables::FaceId;
use onym_wire::push::app::Message;
use onym_wire::push::{Id, Strategy};
use smallvec::SmallVec;
use std::sync::Arc;

/// Octets with which that ends.
const RELEASE_AT: usize = HOLD_AT / 2;

/// How many times longer a neighbour may stand still.
const NEIGHBOUR: u32 = 4;

/// Faces that get something, and the identifier by which they do where it is not the one that the
/// message names.
type Found = SmallVec<[(Arc<[FaceId]>, Option<Id>); 1]>;

/// How far a parcel was delivered: the next thing, and the next of its faces.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Reached {
    item: usize,
    face: usize,
}

/// How far a parcel was delivered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Delivered {
    /// All of it.
    Whole,
    /// The rest waits for an application.
    InPart,
}

impl Shard {
    /// Hands out what a parcel brings, from `at` on, up to a publication that has to wait for room at
    /// its application.
    pub(super) fn deliver(
        &mut self,
        io: &mut Io,
        parcel: &mut Parcel,
        at: &mut Reached,
    ) -> Delivered {
        while let Some(item) = parcel.items.get(at.item) {
            match item {
                Item::Run { to, octets, ends } => {
                    let ends = parcel.ends.get(ends.clone()).unwrap_or_default();
                    let run = Run { octets: &parcel.octets, start: octets.start, ends };
                    let found = self.resolve(to, ends.len());
                    if found.is_empty() {
                        self.nobody(to, run);
                    }
                    for (faces, id) in found {
                        let renamed = id.map(|id| run.renamed(&id));
                        let run = renamed.as_ref().map_or(run, Renamed::run);
                        // What several applications get is one piece for all of them.
                        let shared = (faces.len() > 1).then(|| Buf::copy_from(run.all()));
                        for face in faces.iter() {
                            match io.faces.by_id(*face) {
                                Some((slot, _)) => self.fan_to(io, slot, run, shared.as_ref()),
                                None => self.counters.face_gone += ends.len() as u64,
                            }
                        }
                    }
                }
                Item::Row { to, head, row, from, came_by } => {
                    self.row(io, to, &parcel.octets[head.clone()], *came_by, row, *from);
                }
                Item::Whole { .. } => {
                    if self.whole(io, parcel, at) == Delivered::InPart {
                        return Delivered::InPart;
                    }
                }
                Item::Missed { to, count } => self.missed(io, to, *count),
                Item::Settled(app) => {
                    if let Some(push) = &mut self.push {
                        push.send_up(Up::Settled(*app), 0);
                    }
                }
                Item::NoRoom { app, count } => self.no_room(io, *app, *count),
                Item::Mark { app } => self.mark(io, *app),
                Item::Frames { face, head, row } => {
                    let head = &parcel.octets[head.clone()];
                    self.frames_here(io, *face, head, row.as_ref());
                }
            }
            *at = Reached { item: at.item + 1, face: 0 };
        }
        Delivered::Whole
    }

    /// The faces of this shard that get something; `count` publications are counted for those that
    /// another shard handed out.
    fn resolve(&mut self, to: &Whose, count: usize) -> Found {
        let mut found = Found::new();
        let Some(push) = &mut self.push else { return found };
        match to {
            Whose::Apps(apps) => found.push((push.apps.faces(apps), None)),
            Whose::App(app) => found.extend(push.apps.face(*app).map(|face| ([face].into(), None))),
            Whose::Faces(faces) => found.push((Arc::clone(faces), None)),
            Whose::Names(names, above) => {
                let who = push.fib.arrive(names, *above, &mut push.effects);
                push.fib.delivered(who * count);
                for (to, id) in push.effects.drain() {
                    let id = (names.first() != Some(&id)).then_some(id);
                    match to {
                        To::All(apps) => found.push((push.apps.faces(&apps), id)),
                        To::One(app) => {
                            found.extend(push.apps.face(app).map(|face| ([face].into(), id)));
                        }
                    }
                }
            }
        }
        found
    }

    /// Publications of another shard that nobody has here: kept for who is about to.
    fn nobody(&mut self, to: &Whose, run: Run<'_>) {
        let (Whose::Names(names, _), Some(push)) = (to, &mut self.push) else { return };
        for message in run.messages() {
            push.fib.nobody(names, message.payload);
        }
    }

    /// Messages that have a head each and then what stands in a frame from octet `from` on.
    fn row(
        &mut self,
        io: &mut Io,
        to: &Whose,
        head: &[u8],
        came_by: Option<Strategy>,
        row: &FrameRow,
        from: usize,
    ) {
        let found = self.resolve(to, row.count());
        if let (true, Whose::Names(names, _), Some(push)) = (found.is_empty(), to, &mut self.push) {
            for frame in row.iter() {
                push.fib.nobody(names, frame.get(from..).unwrap_or_default());
            }
        }
        for (faces, id) in found {
            let renamed = id.map(|id| {
                let mut head = Vec::new();
                let message = data_message(Called { id: &id, came_by }, &[]);
                message.write_head(row.frame_len() - from, &mut head);
                head
            });
            let head = renamed.as_deref().unwrap_or(head);
            for face in faces.iter() {
                match io.faces.by_id(*face) {
                    Some((slot, _)) => self.data_to(io, slot, head, row, from),
                    None => self.counters.face_gone += row.count() as u64,
                }
            }
        }
    }

    /// A publication that is cut for its applications, from face `at` on.
    fn whole(&mut self, io: &mut Io, parcel: &mut Parcel, at: &mut Reached) -> Delivered {
        let Some(Item::Whole { to, message }) = parcel.items.get(at.item) else {
            return Delivered::Whole;
        };
        let (to, message) = (to.clone(), message.clone());
        let Whose::Faces(faces) = to else {
            self.found_for_whole(&to, &message, parcel, at.item);
            return self.whole(io, parcel, at);
        };
        while let Some(face) = faces.get(at.face) {
            if self.waits(io, *face, message.len()) {
                return Delivered::InPart;
            }
            match io.faces.by_id(*face) {
                Some((slot, _)) => {
                    let bytes = Payload::Shared(message.clone());
                    self.transmit_app(io, slot, AppMessage::Data, &[], &bytes);
                }
                None => self.counters.face_gone += 1,
            }
            at.face += 1;
        }
        Delivered::Whole
    }

    /// Finds, once, who gets a publication that is cut.
    fn found_for_whole(&mut self, to: &Whose, message: &Buf, parcel: &mut Parcel, at: usize) {
        let found = self.resolve(to, 1);
        let told = Message::parse(message).unwrap_or_default();
        let (payload, came_by) = (told.payload, told.came_by);
        if let (true, Whose::Names(names, _), Some(push)) = (found.is_empty(), to, &mut self.push) {
            push.fib.nobody(names, payload);
        }
        let each = found.into_iter().map(|(faces, id)| {
            let message = id.map_or_else(
                || message.clone(),
                |id| Buf::copy_from(&data_message(Called { id: &id, came_by }, payload).octets()),
            );
            Item::Whole { to: Whose::Faces(faces), message }
        });
        let mut each: Vec<Item> = each.collect();
        if each.is_empty() {
            each.push(Item::Whole { to: Whose::Faces([].into()), message: message.clone() });
        }
        parcel.items.splice(at..=at, each);
    }

    /// Whether a publication of so many octets has to wait until its application, on a stream, has
    /// taken enough of what waits for it: that holds the push half back as a long queue does.
    fn waits(&mut self, io: &mut Io, face: FaceId, len: usize) -> bool {
        let (now, Some(push)) = (io.now, &mut self.push) else { return false };
        let Some((slot, face)) = io.faces.by_id(face) else { return false };
        let Some(app) = &mut face.state.app else { return false };
        let room = push.app_queue_bytes_max;
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

    /// Puts messages into the queue of an application, as one piece where its transport cuts none;
    /// `shared` has the same octets, for several. Those that find no room are missed.
    fn fan_to(&mut self, io: &mut Io, slot: Slot, run: Run<'_>, shared: Option<&Buf>) {
        let Some(room) = self.ready_app(io, slot) else { return };
        let Some(face) = io.faces.get(slot) else { return };
        let (waiting, start, all) = (face.queue.bytes(), run.start, run.all());
        let fitting = run.ends.partition_point(|end| waiting + end - start <= room);
        let count = if face.queue.is_empty() { fitting.max(1) } else { fitting };
        let (taken, missed) = run.ends.split_at(count.min(run.ends.len()));
        let is_told = taken.is_empty() || tell_missed(face);
        if is_told && let Some(end) = taken.last() {
            let transport = face.io.as_ref().map(|io| io.transport());
            let is_stream = matches!(transport, Some(Transport::Unix | Transport::Tcp));
            let ends = if is_stream { std::slice::from_ref(end) } else { taken };
            let mut from = 0;
            for end in ends.iter().map(|end| end - start) {
                match shared {
                    Some(shared) => face.queue.push_over(&[], Some(&shared.slice(from..end))),
                    None => face.queue.push_over(all.get(from..end).unwrap_or_default(), None),
                }
                from = end;
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

/// Messages, one behind the other: the first begins at octet `start`, and where each ends is in
/// `ends`.
#[derive(Debug, Clone, Copy)]
struct Run<'a> {
    octets: &'a [u8],
    start: usize,
    ends: &'a [usize],
}

impl<'a> Run<'a> {
    /// The octets of all of them.
    fn all(&self) -> &'a [u8] {
        let end = self.ends.last().copied().unwrap_or(self.start);
        self.octets.get(self.start..end).unwrap_or_default()
    }

    fn messages(self) -> impl Iterator<Item = Message<'a>> {
        let starts = std::iter::once(self.start).chain(self.ends.iter().copied());
        let each = starts.zip(self.ends).filter_map(move |(from, end)| self.octets.get(from..*end));
        each.filter_map(|message| Message::parse(message).ok())
    }

    /// The same for who subscribed by another name of the item.
    fn renamed(self, id: &Id) -> Renamed {
        let mut renamed = Renamed::default();
        for message in self.messages() {
            let called = Called { id, came_by: message.came_by };
            data_message(called, message.payload).write(&mut renamed.octets);
            renamed.ends.push(renamed.octets.len());
        }
        renamed
    }
}

/// Messages that were written anew.
#[derive(Debug, Default)]
struct Renamed {
    octets: Vec<u8>,
    ends: Vec<usize>,
}

impl Renamed {
    fn run(&self) -> Run<'_> {
        Run { octets: &self.octets, start: 0, ends: &self.ends }
    }
}
