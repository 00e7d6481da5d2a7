//! A data thread: an engine that drives one `Function`, and in the first thread the listeners.
//!
//! The engine (`onym-engine`) does the I/O of the faces, in rounds: orders of the control interface,
//! a turn of each face that has frames, finished verifications, timers, one flush of each face with
//! something to send. Between rounds it sleeps in epoll.

mod accept;
mod drive;
mod faces;
mod obey;
pub(crate) mod order;

use crate::ListenSpec;
use crate::events::EventLog;
use onym_engine::{Clock, Engine, Jobs, ListenerId, Policy, clock::unix_ms, mailbox};
use onym_face::{Listener, Peer};
use onym_http::folders::Folders;
use onym_link::Outbox;
use onym_services::effect::RulesForFilter;
use onym_services::verify::Job;
use onym_services::{Event, FarEnd, Function, Now, Side};
use onym_tables::{FaceId, KeyedMap, Tick};
use serde_json::Value;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;

pub(crate) use faces::{Arrival, FaceState, Made};
pub(crate) use order::{FaceChange, Order, Remote};

/// Numbers of the engine of a data thread. A round has one turn of each ready face.
const POLICY: Policy = Policy {
    round_frames: usize::MAX,
    flush_frames: 64,
    flush_octets: 128 << 10,
    chunks: 256,
    is_rung_to_receive: true,
};
/// Orders that wait at most.
const ORDERS_MAX: usize = 1024;

/// A data thread with its I/O.
pub(crate) type WorkerEngine = Engine<Worker>;
/// The I/O of a data thread.
pub(crate) type Io = onym_engine::Io<FaceState>;

/// What the threads of a service share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) events: EventLog,
    pub(crate) next_face: AtomicU32,
    pub(crate) faces: AtomicU32,
    pub(crate) clock: Clock,
    /// Rules that the control thread should post to other services.
    pub(crate) posts: tokio::sync::mpsc::Sender<RulesForFilter>,
    /// Where sockets may be that it connects to.
    pub(crate) folders: Folders,
}

impl Shared {
    pub(crate) fn new(
        boot: u64,
        posts: tokio::sync::mpsc::Sender<RulesForFilter>,
        folders: Folders,
    ) -> Self {
        Self {
            events: EventLog::new(boot),
            next_face: AtomicU32::new(FaceId::FIRST.0),
            faces: AtomicU32::new(0),
            clock: Clock::start(),
            posts,
            folders,
        }
    }
}

/// A listener with what it counted.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) label: String,
    pub(crate) side: Side,
    far_end: FarEnd,
    uri: String,
    accepted: u64,
    refused: u64,
    peers: KeyedMap<Peer, FaceId>,
}

impl Entry {
    pub(crate) fn to_json(&self) -> Value {
        serde_json::json!({
            "label": self.label, "uri": self.uri, "side": self.side,
            "peer": self.far_end,
            "accepted": self.accepted, "refused": self.refused,
        })
    }

    fn forget(&mut self, id: FaceId) {
        if !self.peers.is_empty() {
            self.peers.retain(|_, face| *face != id);
        }
    }
}

/// What the engine of a data thread drives.
#[derive(Debug)]
pub(crate) struct Worker {
    function: Function,
    shared: Arc<Shared>,
    /// By [`ListenerId`].
    listeners: Vec<Entry>,
    /// No face is due before; zero when that is to be found again.
    faces_due: Tick,
    /// Threads that share the connections of the first one's listeners.
    peers: Vec<Remote>,
    turn: usize,
    jobs: Jobs<Job>,
    verified: Vec<Job>,
    out: Outbox,
    /// Unix time of this round, in milliseconds.
    unix_ms: u64,
    /// Octets received and sent by faces that are gone.
    octets_gone: (u64, u64),
}

/// Verifies, and notes how long that took.
pub fn verify(job: &mut Job) {
    let begin = Instant::now();
    job.run();
    job.took_ns = u64::try_from(begin.elapsed().as_nanos()).unwrap_or(u64::MAX);
}

/// A data thread, ready to run, and the way to give it orders. `threads` verify.
///
/// # Errors
/// Out of descriptors or threads.
pub(crate) fn engine(
    function: Function,
    shared: Arc<Shared>,
    threads: usize,
) -> std::io::Result<(WorkerEngine, Remote)> {
    let bell = onym_engine::Bell::new()?;
    let (port, mailbox) = mailbox(&bell, ORDERS_MAX);
    let clock = shared.clock;
    let worker = Worker {
        function,
        shared,
        listeners: Vec::new(),
        faces_due: Tick(0),
        peers: Vec::new(),
        turn: 0,
        jobs: Jobs::start(threads, &bell, verify)?,
        verified: Vec::new(),
        out: Outbox::default(),
        unix_ms: unix_ms(),
        octets_gone: (0, 0),
    };
    Ok((Engine::new(worker, mailbox, clock, POLICY)?, Remote::new(port)))
}

impl Worker {
    fn now(&self, io: &Io) -> Now {
        Now { tick: io.now, unix_ms: self.unix_ms }
    }

    /// Adds a listener.
    pub(crate) fn listen(
        &mut self,
        io: &mut Io,
        listener: Box<dyn Listener>,
        spec: &ListenSpec,
    ) -> std::io::Result<()> {
        let uri = listener.local_uri().to_string();
        let ListenerId(at) = io.listen(listener)?;
        debug_assert_eq!(at, self.listeners.len(), "listeners are only added here");
        let peers = KeyedMap::default();
        let (label, side, far_end) = (spec.label.clone(), spec.side, spec.far_end);
        self.listeners.push(Entry { label, side, far_end, uri, accepted: 0, refused: 0, peers });
        Ok(())
    }

    /// The listeners as the control interface shows them.
    pub(crate) fn listeners_json(&self) -> Vec<Value> {
        self.listeners.iter().map(Entry::to_json).collect()
    }

    /// Lets connections be shared with other threads.
    pub(crate) fn share_with(&mut self, peers: Vec<Remote>) {
        self.peers = peers;
    }

    fn tell(&self, event: &Event) {
        self.shared.events.push(self.unix_ms, event);
    }

    /// Calls the function with the outbox, then sends.
    pub(crate) fn with<T>(
        &mut self,
        io: &mut Io,
        call: impl FnOnce(&mut Function, Now, &mut Outbox) -> T,
    ) -> T {
        let now = self.now(io);
        let result = call(&mut self.function, now, &mut self.out);
        self.after(io);
        result
    }
}
