//! The faces of a thread.

use crate::policy::Policy;
use onym_face::{Counters, Face, Transport};
use onym_frame::{RxFrame, TxQueue};
use onym_link::{Link, LinkConfig, LinkCounters, Packet};
use onym_tables::{FaceId, Tick};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// The place of a face in its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Slot(pub u32);

/// One face of a thread; `state` is the driver's.
#[derive(Debug)]
pub struct LocalFace<F> {
    /// Its number.
    pub id: FaceId,
    /// The transport; none while the face is down.
    pub io: Option<Box<dyn Face>>,
    /// Its link service.
    pub link: Link,
    /// What waits to be sent.
    pub queue: TxQueue,
    /// Whether its transport neither loses nor reorders.
    pub is_stream: bool,
    /// Whether a malformed packet ends it, if it is a stream.
    pub ends_on_malformed: bool,
    /// What is counted of it.
    pub traffic: Traffic,
    /// When a frame came last.
    pub heard: Tick,
    /// What the driver keeps with it.
    pub state: F,
    /// In the list of faces that may have frames.
    pub(crate) is_listed: bool,
    /// In the list of faces to flush.
    pub(crate) is_dirty: bool,
    /// In the list of faces whose link service has a timer.
    pub(crate) is_timed: bool,
    /// Its transport sends no frame in IP fragments.
    pub(crate) is_whole: bool,
    /// The driver was not told that the connection is made.
    pub(crate) is_connecting: bool,
    /// The transport takes no more; its descriptor is watched for room.
    pub(crate) is_blocked: bool,
    /// The driver does not admit its next frame.
    pub(crate) is_aside: bool,
    /// Its descriptor is not watched for reading: it was ready while the face was put aside.
    pub(crate) is_muted: bool,
    /// The driver hears of the next flush.
    pub(crate) tells_flushed: bool,
    /// When the octets in the socket were last asked for.
    pub(crate) probed: Tick,
    /// Frames that were received beyond the last turn; at most those of one system call.
    pub(crate) backlog: Vec<RxFrame>,
    /// The socket's receive buffer was filling up when it was last read.
    pub(crate) is_pressed: bool,
    /// Errors that the face survives are not told before.
    pub(crate) tell_after: Tick,
}

/// What is counted of a face beside its link service and its packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Octets of received frames.
    pub in_bytes: u64,
    /// Received frames.
    pub in_frames: u64,
    /// Octets of sent frames.
    pub out_bytes: u64,
    /// Packets for a face that is down.
    pub face_gone: u64,
    /// Data marked because the receive buffer was filling up.
    pub pressure_marks: u64,
}

/// Everything counted by the owner of a face.
#[derive(Debug, Clone, Copy, Default)]
pub struct OwnerCounters {
    /// Frames and octets.
    pub traffic: Traffic,
    /// The link service.
    pub link: LinkCounters,
    /// The transport.
    pub io: Counters,
    /// Octets that wait in the send queue.
    pub queued: usize,
}

impl<F> LocalFace<F> {
    /// A face without a transport.
    pub(crate) fn new(id: FaceId, state: F) -> Self {
        Self {
            id,
            io: None,
            link: Link::new(LinkConfig::stream()),
            queue: TxQueue::new(0),
            is_stream: true,
            ends_on_malformed: true,
            traffic: Traffic::default(),
            heard: Tick::default(),
            state,
            is_listed: false,
            is_dirty: false,
            is_timed: false,
            is_whole: false,
            is_connecting: false,
            is_blocked: false,
            is_aside: false,
            is_muted: false,
            tells_flushed: false,
            probed: Tick::default(),
            backlog: Vec::new(),
            is_pressed: false,
            tell_after: Tick::default(),
        }
    }

    /// Marks a Data that came through a receive buffer that is filling up: who asked for it asks
    /// for less before anything is lost.
    pub(crate) fn mark(&mut self, packet: &mut Packet) {
        if self.link.config().congestion_marking.is_some() && packet.lp.congestion_mark == 0 {
            packet.lp.congestion_mark = 1;
            self.traffic.pressure_marks += 1;
        }
    }

    /// What carries its frames; none while it is down.
    pub fn transport(&self) -> Option<Transport> {
        self.io.as_ref().map(|io| io.transport())
    }

    /// Whether what is in its send queue leaves without a word to [`Io::queued`](crate::Io::queued): what was
    /// put into it last changed nothing.
    #[inline]
    pub fn is_settled(&self, policy: &Policy) -> bool {
        let is_batch =
            self.queue.len() >= policy.flush_frames || self.queue.bytes() >= policy.flush_octets;
        self.is_blocked || self.is_dirty && !is_batch
    }

    /// Whether its connection is still being made.
    pub fn is_connecting(&self) -> bool {
        self.is_connecting
    }

    /// Whether it was put aside by [`crate::Driver::held`].
    pub fn is_aside(&self) -> bool {
        self.is_aside
    }

    /// Frames that wait for the next turn.
    pub fn backlog(&self) -> &[RxFrame] {
        &self.backlog
    }

    /// The driver hears of the next flush of this face.
    pub fn tell_flushed(&mut self) {
        self.tells_flushed = true;
    }

    /// What was counted so far.
    pub fn counters(&self) -> OwnerCounters {
        let mut link = self.link.counters();
        link.congestion_marked += self.traffic.pressure_marks;
        OwnerCounters {
            traffic: self.traffic,
            link,
            io: self.io.as_ref().map(|io| io.counters()).unwrap_or_default(),
            queued: self.queue.bytes(),
        }
    }
}

/// Spreads face numbers: they count up and nobody outside chooses them.
#[derive(Debug, Default)]
pub struct IdHasher(u64);

impl Hasher for IdHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &b in bytes {
            self.write_u32(u32::from(b));
        }
    }
    fn write_u32(&mut self, n: u32) {
        self.0 = (self.0 ^ u64::from(n)).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(32);
    }
}

/// A map keyed by face.
pub type FaceMap<T> = HashMap<FaceId, T, BuildHasherDefault<IdHasher>>;

/// Where a face is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// In this slot of this thread.
    Here(Slot),
    /// In the thread with this number.
    There(u8),
}

/// The faces of a thread by slot, and the place of every face by number.
#[derive(Debug)]
pub struct Faces<F> {
    slots: Vec<Option<LocalFace<F>>>,
    free: Vec<Slot>,
    places: FaceMap<Place>,
    /// The place asked for last: faces in a burst repeat.
    last: Option<(FaceId, Place)>,
}

impl<F> Default for Faces<F> {
    fn default() -> Self {
        Self { slots: Vec::new(), free: Vec::new(), places: FaceMap::default(), last: None }
    }
}

impl<F> Faces<F> {
    /// Where `id` is.
    pub fn place(&mut self, id: FaceId) -> Option<Place> {
        if let Some((last, place)) = self.last
            && last == id
        {
            return Some(place);
        }
        let place = *self.places.get(&id)?;
        self.last = Some((id, place));
        Some(place)
    }

    /// Notes that thread `thread` does the I/O of `id`.
    pub fn note_elsewhere(&mut self, id: FaceId, thread: u8) {
        self.last = None;
        self.places.insert(id, Place::There(thread));
    }

    /// Forgets where `id` is.
    pub fn forget(&mut self, id: FaceId) {
        self.last = None;
        self.places.remove(&id);
    }

    pub(crate) fn insert(&mut self, face: LocalFace<F>) -> Slot {
        self.last = None;
        let id = face.id;
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot.0 as usize] = Some(face);
            slot
        } else {
            self.slots.push(Some(face));
            Slot(u32::try_from(self.slots.len() - 1).expect("invariant: fewer than 2^32 faces"))
        };
        self.places.insert(id, Place::Here(slot));
        slot
    }

    pub(crate) fn remove(&mut self, slot: Slot) -> Option<LocalFace<F>> {
        self.last = None;
        let face = self.slots.get_mut(slot.0 as usize)?.take()?;
        self.free.push(slot);
        self.places.remove(&face.id);
        Some(face)
    }

    /// The face in `slot`.
    #[inline]
    pub fn get(&mut self, slot: Slot) -> Option<&mut LocalFace<F>> {
        self.slots.get_mut(slot.0 as usize)?.as_mut()
    }

    /// As [`Faces::get`], to look at.
    pub fn peek(&self, slot: Slot) -> Option<&LocalFace<F>> {
        self.slots.get(slot.0 as usize)?.as_ref()
    }

    /// The face `id`, when it is here.
    pub fn by_id(&mut self, id: FaceId) -> Option<(Slot, &mut LocalFace<F>)> {
        match self.place(id)? {
            Place::Here(slot) => self.get(slot).map(|face| (slot, face)),
            Place::There(_) => None,
        }
    }

    /// As [`Faces::by_id`], to look at.
    pub fn peek_id(&self, id: FaceId) -> Option<&LocalFace<F>> {
        match self.places.get(&id)? {
            Place::Here(slot) => self.peek(*slot),
            Place::There(_) => None,
        }
    }

    /// All faces that are here.
    pub fn iter(&self) -> impl Iterator<Item = &LocalFace<F>> {
        self.slots.iter().flatten()
    }

    /// All faces that are here, with their slots.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = (Slot, &mut LocalFace<F>)> {
        self.slots.iter_mut().zip(0..).filter_map(|(face, at)| Some((Slot(at), face.as_mut()?)))
    }
}
