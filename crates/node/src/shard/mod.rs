//! One shard: an OS thread that owns a forwarder, its tables and the I/O of some faces.
//!
//! ```text
//! wait ─► control ─► crossings in ─► one turn of each ready face ─► timers ─► flush ─► crossings out
//! ```
//!
//! Ready faces take turns of bounded length, so that a face that never stops sending gets its
//! share and no more. Faces with packets to send are flushed once per round.

mod app;
mod choose;
mod fan;
mod io;
mod local;
mod order;
mod push;
mod round;
#[cfg(test)]
mod tests;
mod turn;

pub(crate) use app::AppSide;
pub(crate) use choose::Chooser;
pub(crate) use fan::Hold;
pub(crate) use local::{FaceMap, LocalFace, OwnerCounters};
pub(crate) use order::{Order, ShardPort, ask_all};
pub use push::PushDropped;
pub(crate) use push::{PushSide, PushState};

use crate::clock::Clock;
use crate::cross::{Bell, FromPeer, ToPeer};
use local::LocalFaces;
use onym_face::Face;
use onym_forward::{Event, Forwarder};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_link::{Link, LinkConfig, Outbox, Packet};
use onym_sys::epoll::{Epoll, Interest, Ready, Waker};
use onym_tables::fib::NextHop;
use onym_tables::{FaceId, Tick};
use onym_wire::name::NameRef;
use rtrb::Producer;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Chunks kept for use again.
const CHUNKS_KEPT: usize = 1024;

/// What a shard tells the control thread.
#[derive(Debug)]
pub(crate) enum Report {
    /// A packet for the management face.
    Management {
        /// The Interest or Data.
        bytes: Buf,
        /// The face it came from, when known.
        incoming: Option<FaceId>,
    },
    /// A packet of a face, forwarded by another shard, was malformed.
    Malformed {
        /// The face.
        id: FaceId,
        /// The verdict.
        word: &'static str,
    },
    /// The forwarder has something for the control plane.
    Forwarder(Event),
    /// The transport of a face ended.
    FaceFailed {
        /// The face.
        id: FaceId,
        /// Why, in words.
        reason: String,
        /// Whether it can never be used again.
        fatal: bool,
    },
    /// The transport of a face has become one of another kind.
    FaceChanged {
        /// The face.
        id: FaceId,
        /// What carries its frames now.
        transport: onym_face::Transport,
        /// Its URI for our end.
        local: String,
        /// And for the other.
        remote: String,
    },
    /// A connection that was being made is there.
    FaceConnected {
        /// The face.
        id: FaceId,
    },
}

/// Counters of a shard beside those of its forwarder.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ShardCounters {
    /// Packets dropped because another shard did not keep up.
    pub(crate) crossing_full: u64,
    /// Packets for management, and news of lesser weight, dropped because the control thread did
    /// not keep up.
    pub(crate) management_full: u64,
    /// Packets whose face was gone.
    pub(crate) face_gone: u64,
    /// Rounds made.
    pub(crate) rounds: u64,
    /// Time spent not waiting, in nanoseconds.
    pub(crate) busy_ns: u64,
}

/// What a shard is made of.
pub(crate) struct Shard {
    pub(crate) index: usize,
    pub(crate) clock: Clock,
    /// The moment of this round.
    pub(crate) now: Tick,
    pub(crate) fw: Forwarder,
    pub(crate) faces: LocalFaces,
    pub(crate) counters: ShardCounters,
    chooser: Chooser,
    epoll: Epoll,
    events: Vec<Ready>,
    bell: Arc<Bell>,
    orders: Receiver<Order>,
    /// The next order, when it was looked for before sleep.
    order: Option<Order>,
    /// By shard; none for this one.
    to: Vec<Option<ToPeer>>,
    from: Vec<Option<FromPeer>>,
    /// Whether shard 0 holds Interests with CanBePrefix.
    discovery: Arc<AtomicBool>,
    reports: Producer<Report>,
    /// Reports that found the ring full and must not be lost: that a face ended or changed,
    /// once per face.
    late: VecDeque<Report>,
    /// Whether the control thread is to be woken at the end of the round.
    reported: bool,
    control: Arc<Waker>,
    pool: BufPool,
    frames: Vec<RxFrame>,
    out: Outbox,
    /// Slots of faces that may have frames, in the order of their turns.
    ready: VecDeque<u32>,
    dirty: Vec<u32>,
    timed: Vec<u32>,
    /// The push half, when it is enabled.
    push: Option<PushSide>,
    pub(crate) push_dropped: PushDropped,
    running: bool,
}

impl std::fmt::Debug for Shard {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shard").field("index", &self.index).finish_non_exhaustive()
    }
}

/// A face whose I/O a shard takes over.
pub(crate) struct Opening {
    pub(crate) id: FaceId,
    pub(crate) io: Box<dyn Face>,
    pub(crate) link: LinkConfig,
    pub(crate) queue_bytes_max: usize,
    /// Frames that came before the face had a descriptor of its own.
    pub(crate) first: Vec<RxFrame>,
    /// Whether an application of this machine is at its other end.
    pub(crate) is_local: bool,
}

/// Everything a shard is given at start.
pub(crate) struct Parts {
    pub(crate) index: usize,
    pub(crate) clock: Clock,
    pub(crate) fw: Forwarder,
    pub(crate) chooser: Chooser,
    pub(crate) bell: Arc<Bell>,
    pub(crate) orders: Receiver<Order>,
    pub(crate) to: Vec<Option<ToPeer>>,
    pub(crate) from: Vec<Option<FromPeer>>,
    pub(crate) discovery: Arc<AtomicBool>,
    pub(crate) reports: Producer<Report>,
    pub(crate) control: Arc<Waker>,
    pub(crate) push: Option<PushSide>,
}

impl Shard {
    /// A shard, ready to run.
    ///
    /// # Errors
    /// Out of descriptors.
    pub(crate) fn new(parts: Parts) -> std::io::Result<Self> {
        let epoll = Epoll::new()?;
        epoll.add(parts.bell.waker(), io::BELL, Interest::Read)?;
        Ok(Self {
            index: parts.index,
            now: parts.clock.now(),
            clock: parts.clock,
            fw: parts.fw,
            faces: LocalFaces::default(),
            counters: ShardCounters::default(),
            chooser: parts.chooser,
            epoll,
            events: Vec::with_capacity(256),
            bell: parts.bell,
            orders: parts.orders,
            order: None,
            to: parts.to,
            from: parts.from,
            discovery: parts.discovery,
            reports: parts.reports,
            late: VecDeque::new(),
            reported: false,
            control: parts.control,
            pool: BufPool::new(onym_face::CHUNK_LEN, CHUNKS_KEPT),
            frames: Vec::with_capacity(256),
            out: Outbox::default(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            timed: Vec::new(),
            push: parts.push,
            push_dropped: PushDropped::default(),
            running: true,
        })
    }

    /// Whether there is only this shard.
    fn is_alone(&self) -> bool {
        self.chooser.shards == 1
    }

    /// Tells the control thread. Reports that it must not miss wait for room.
    fn report(&mut self, report: Report) {
        self.reported = true;
        match self.reports.push(report) {
            Ok(()) => {}
            Err(rtrb::PushError::Full(
                report @ (Report::FaceFailed { fatal: true, .. } | Report::FaceChanged { .. }),
            )) => {
                self.late.push_back(report);
            }
            Err(rtrb::PushError::Full(_)) => self.counters.management_full += 1,
        }
    }

    fn report_late(&mut self) {
        while let Some(report) = self.late.pop_front() {
            if let Err(rtrb::PushError::Full(report)) = self.reports.push(report) {
                self.late.push_front(report);
                self.reported = true;
                return;
            }
        }
    }

    /// Hands `packet` to the forwarder as one that arrived at this shard from outside.
    pub(crate) fn inject(&mut self, packet: Packet) {
        self.accept(packet);
        self.dispatch();
    }

    /// Takes over the I/O of a face, or gives one that was down a new transport.
    ///
    /// # Errors
    /// The descriptor cannot be watched.
    pub(crate) fn open(&mut self, opening: Opening) -> std::io::Result<()> {
        let Opening { id, io, link, queue_bytes_max, first, is_local } = opening;
        let stream = io.transport().is_reliable();
        let connecting = io.is_connecting();
        let slot = if let Some((slot, face)) = self.faces.by_id(id) {
            face.link = Link::new(link);
            face.io = Some(io);
            face.blocked = false;
            // What was sent in part to the old connection cannot be continued on the new one.
            face.queue = TxQueue::new(queue_bytes_max);
            face.hold = Hold::Free;
            face.backlog.clear();
            slot
        } else {
            self.faces.insert(LocalFace::new(id, io, link, queue_bytes_max, stream))
        };
        let face = self.faces.get(slot).expect("invariant: just put there");
        face.is_local = is_local;
        let io = face.io.as_ref().expect("invariant: just opened");
        face.blocked = connecting;
        let interest = if connecting { Interest::ReadWrite } else { Interest::Read };
        let watched = self.epoll.add(io.fd(), u64::from(slot), interest);
        if watched.is_err() {
            face.io = None;
        }
        watched?;
        for frame in first {
            self.frame(slot, frame);
        }
        self.dispatch();
        // Frames may have come before the descriptor was watched, in the transport's own buffer.
        self.note_ready(&Ready { token: u64::from(slot), readable: true, writable: connecting });
        Ok(())
    }

    /// Frames of a face that came another way than over its transport.
    pub(crate) fn frames(&mut self, id: FaceId, frames: Vec<RxFrame>) {
        let Some((slot, _)) = self.faces.by_id(id) else { return };
        for frame in frames {
            self.frame(slot, frame);
        }
        self.dispatch();
    }

    /// What chooses shards.
    pub(crate) fn chooser(&self) -> &Chooser {
        &self.chooser
    }

    /// Adds a next hop; whether the FIB took it.
    pub(crate) fn fib_add(&mut self, name: NameRef<'_>, hop: NextHop) -> bool {
        let added = self.fw.fib_add(self.now, name, hop, &mut self.out).is_ok();
        self.dispatch();
        added
    }

    /// Changes how the link service of a face of this shard works.
    pub(crate) fn configure(&mut self, id: FaceId, link: &LinkConfig) {
        if let Some((_, face)) = self.faces.by_id(id) {
            face.link.configure(link.clone());
        }
    }

    /// Takes a face out of forwarding.
    pub(crate) fn face_forget(&mut self, id: FaceId) {
        self.fw.face_remove(self.now, id);
        self.faces.forget(id);
        self.dispatch();
    }

    /// Ends the I/O of a face; its last counters.
    pub(crate) fn close(&mut self, id: FaceId) -> Option<OwnerCounters> {
        let (slot, face) = self.faces.by_id(id)?;
        if let Some(io) = &mut face.io {
            // What can leave at once leaves.
            let _ = io.flush(&mut face.queue);
            let _ = self.epoll.delete(io.fd());
        }
        let counters = face.counters();
        self.push_leave(slot);
        self.faces.remove(slot);
        self.ready.retain(|s| *s != slot);
        self.dirty.retain(|s| *s != slot);
        self.forget_held(slot);
        self.timed.retain(|s| *s != slot);
        Some(counters)
    }

    /// Ends the loop after this round.
    pub(crate) fn stop(&mut self) {
        self.running = false;
    }

    /// Whether every send queue is empty and nothing crosses.
    pub(crate) fn is_drained(&mut self) -> bool {
        let queues = self.faces.iter().all(|f| f.io.is_none() || f.queue.is_empty());
        let sent = self.to.iter().flatten().all(ToPeer::is_empty);
        let pushed = self.push.as_ref().is_none_or(|p| p.to.is_empty() && !p.from.waits());
        queues
            && sent
            && pushed
            && !self.has_held()
            && self.ready.is_empty()
            && self.from.iter().flatten().all(|p| !p.waits())
    }

    /// How long a shard that has nothing to do may sleep at most.
    const SLEEP_MAX: Duration = Duration::from_secs(60);
    /// How soon a full ring is tried again.
    const RETRY: Duration = Duration::from_millis(1);
}
