//! The faces whose I/O this shard does.

use onym_face::{Counters, Face};
use onym_frame::{RxFrame, TxQueue};
use onym_link::{Link, LinkConfig, LinkCounters, Packet};
use onym_tables::{FaceId, Tick};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// One face of this shard.
#[derive(Debug)]
pub(crate) struct LocalFace {
    pub(crate) id: FaceId,
    /// The transport; none while a permanent face is down.
    pub(crate) io: Option<Box<dyn Face>>,
    pub(crate) link: Link,
    pub(crate) queue: TxQueue,
    /// Whether a malformed packet ends the face.
    pub(crate) stream: bool,
    /// In the list of faces that may have frames.
    pub(crate) listed: bool,
    /// In the list of faces to flush.
    pub(crate) dirty: bool,
    /// In the list of faces whose link service has a timer.
    pub(crate) timed: bool,
    /// The transport takes no more; its descriptor is watched for writing.
    pub(crate) blocked: bool,
    /// Put aside by the push half.
    pub(crate) is_aside: bool,
    /// Its descriptor is not watched for reading: it said that it is ready while it is put aside.
    pub(crate) is_muted: bool,
    /// When the octets in the socket were last asked for.
    pub(crate) probed: Tick,
    /// Frames that were received beyond the last turn; at most those of one system call.
    pub(crate) backlog: Vec<RxFrame>,
    /// The socket's receive buffer was filling up when it was last read.
    pub(crate) pressed: bool,
    /// Errors that the face survives are not told before.
    pub(crate) tell_after: Tick,
    pub(crate) traffic: Traffic,
    /// Whether an application of this machine is at its other end.
    pub(crate) is_local: bool,
    /// It is an application of the push half.
    pub(crate) app: Option<Box<super::AppSide>>,
    /// Packets that its shard had sent the push thread with the last one of this face.
    pub(crate) push_sent: u64,
    /// Whether the push half waits for it.
    pub(crate) hold: super::Hold,
}

/// What is counted of a face beside its link service and its packets.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Traffic {
    pub(crate) in_bytes: u64,
    pub(crate) in_frames: u64,
    pub(crate) out_bytes: u64,
    /// Packets for a face that is down or gone.
    pub(crate) face_gone: u64,
    /// Data marked because the receive buffer was filling up.
    pub(crate) pressure_marks: u64,
}

/// Everything counted by the owner of a face.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct OwnerCounters {
    pub(crate) traffic: Traffic,
    pub(crate) link: LinkCounters,
    pub(crate) io: Counters,
}

impl LocalFace {
    pub(crate) fn new(
        id: FaceId,
        io: Box<dyn Face>,
        link: LinkConfig,
        queue_bytes_max: usize,
        stream: bool,
    ) -> Self {
        Self {
            id,
            io: Some(io),
            link: Link::new(link),
            queue: TxQueue::new(queue_bytes_max),
            stream,
            listed: false,
            dirty: false,
            timed: false,
            blocked: false,
            is_aside: false,
            is_muted: false,
            probed: Tick::default(),
            backlog: Vec::new(),
            pressed: false,
            tell_after: Tick::default(),
            traffic: Traffic::default(),
            is_local: false,
            app: None,
            push_sent: 0,
            hold: super::Hold::Free,
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

    pub(crate) fn counters(&self) -> OwnerCounters {
        let mut link = self.link.counters();
        link.congestion_marked += self.traffic.pressure_marks;
        OwnerCounters {
            traffic: self.traffic,
            link,
            io: self.io.as_ref().map(|io| io.counters()).unwrap_or_default(),
        }
    }
}

/// Spreads face numbers, which are ours and small.
#[derive(Debug, Default)]
pub(crate) struct IdHasher(u64);

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
pub(crate) type FaceMap<T> = HashMap<FaceId, T, BuildHasherDefault<IdHasher>>;

/// Where a face is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In this slot of this shard.
    Here(u32),
    /// At this shard.
    There(u8),
}

/// The faces of this shard by slot, and the place of every face by number.
#[derive(Debug, Default)]
pub(crate) struct LocalFaces {
    slots: Vec<Option<LocalFace>>,
    free: Vec<u32>,
    places: FaceMap<Place>,
    /// The place asked for last: faces in a burst repeat.
    last: Option<(FaceId, Place)>,
}

impl LocalFaces {
    /// Where `id` is.
    pub(crate) fn place(&mut self, id: FaceId) -> Option<Place> {
        if let Some((last, place)) = self.last
            && last == id
        {
            return Some(place);
        }
        let place = *self.places.get(&id)?;
        self.last = Some((id, place));
        Some(place)
    }

    /// Notes that shard `shard` does the I/O of `id`.
    pub(crate) fn note_elsewhere(&mut self, id: FaceId, shard: u8) {
        self.last = None;
        self.places.insert(id, Place::There(shard));
    }

    /// Forgets where `id` is.
    pub(crate) fn forget(&mut self, id: FaceId) {
        self.last = None;
        self.places.remove(&id);
    }

    pub(crate) fn insert(&mut self, face: LocalFace) -> u32 {
        self.last = None;
        let id = face.id;
        let slot = if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = Some(face);
            slot
        } else {
            self.slots.push(Some(face));
            u32::try_from(self.slots.len() - 1).expect("invariant: fewer than 2^32 faces")
        };
        self.places.insert(id, Place::Here(slot));
        slot
    }

    pub(crate) fn remove(&mut self, slot: u32) -> Option<LocalFace> {
        self.last = None;
        let face = self.slots.get_mut(slot as usize)?.take()?;
        self.free.push(slot);
        self.places.remove(&face.id);
        Some(face)
    }

    pub(crate) fn get(&mut self, slot: u32) -> Option<&mut LocalFace> {
        self.slots.get_mut(slot as usize)?.as_mut()
    }

    pub(crate) fn by_id(&mut self, id: FaceId) -> Option<(u32, &mut LocalFace)> {
        match self.place(id)? {
            Place::Here(slot) => self.slots.get_mut(slot as usize)?.as_mut().map(|f| (slot, f)),
            Place::There(_) => None,
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &LocalFace> {
        self.slots.iter().flatten()
    }
}
