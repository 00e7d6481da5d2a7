//! A data thread: one `Function`, its faces, and in the first thread the listeners.
//!
//! A round: orders of the control interface, a turn of each face that has frames, finished
//! verifications, timers, one flush of each face with something to send. Between rounds it sleeps
//! in epoll.

mod accept;
mod faces;
mod io;
mod timers;

use crate::events::EventLog;
use crate::verifiers::Verifiers;
use onym_face::{CHUNK_LEN, Listener, Peer};
use onym_frame::{BufPool, RxFrame};
use onym_link::Outbox;
use onym_services::verify::Job;
use onym_services::{Event, Function, Now, Side};
use onym_sys::epoll::{Epoll, Interest, Ready, Waker};
use onym_tables::{FaceId, Tick};
use serde_json::Value;
use std::collections::{HashMap, VecDeque};
use std::hash::{BuildHasherDefault, Hasher};
use std::io as std_io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

pub(crate) use faces::{Made, Slot};

/// Work for a data thread, done between two rounds.
pub(crate) type Order = Box<dyn FnOnce(&mut Worker) + Send>;

/// Token of the waker in epoll.
const WAKER: u64 = u64::MAX;
/// Tokens of listeners begin here.
const LISTENERS: u64 = 1 << 62;
/// Longest sleep, so that a thread that lost a wake-up goes on.
const SLEEP_MAX: Duration = Duration::from_millis(500);
/// Chunks that the receive pool keeps.
const CHUNKS: usize = 256;

/// What the threads of a service share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) events: EventLog,
    pub(crate) next_face: AtomicU32,
    pub(crate) faces: AtomicU32,
    pub(crate) stopping: AtomicBool,
    origin: Instant,
    /// What the control thread should post to other services.
    pub(crate) posts: tokio::sync::mpsc::Sender<onym_services::element::Wish>,
}

impl Shared {
    pub(crate) fn new(
        boot: u64,
        posts: tokio::sync::mpsc::Sender<onym_services::element::Wish>,
    ) -> Self {
        let now = Instant::now();
        Self {
            events: EventLog::new(boot),
            next_face: AtomicU32::new(FaceId::FIRST.0),
            faces: AtomicU32::new(0),
            stopping: AtomicBool::new(false),
            // One second ago, so that no moment of use is the zero tick.
            origin: now.checked_sub(Duration::from_secs(1)).unwrap_or(now),
            posts,
        }
    }

    pub(crate) fn tick(&self) -> Tick {
        Tick(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn now(&self) -> Now {
        Now { tick: self.tick(), unix_ms: unix_ms() }
    }
}

/// Unix time in milliseconds.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Gives orders to a data thread.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    orders: Sender<Order>,
    waker: Arc<Waker>,
    pub(crate) busy_ns: Arc<AtomicU64>,
}

impl Remote {
    pub(crate) fn order(&self, work: impl FnOnce(&mut Worker) + Send + 'static) -> bool {
        let sent = self.orders.send(Box::new(work)).is_ok();
        self.waker.wake();
        sent
    }

    /// Does `work` in the thread and waits for its result, at most 5 s.
    pub(crate) async fn ask<T: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Worker) -> T + Send + 'static,
    ) -> Option<T> {
        let (tell, told) = tokio::sync::oneshot::channel();
        let run = move |worker: &mut Worker| {
            let _ = tell.send(work(worker));
        };
        if !self.order(run) {
            return None;
        }
        tokio::time::timeout(Duration::from_secs(5), told).await.ok()?.ok()
    }
}

/// A listener with what it counted.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) io: Box<dyn Listener>,
    pub(crate) label: String,
    pub(crate) side: Side,
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
    peers: HashMap<Peer, FaceId>,
}

impl Entry {
    pub(crate) fn new(io: Box<dyn Listener>, label: String, side: Side) -> Self {
        Self { io, label, side, accepted: 0, refused: 0, peers: HashMap::new() }
    }

    pub(crate) fn to_json(&self) -> Value {
        serde_json::json!({
            "label": self.label, "uri": self.io.local_uri().to_string(), "side": self.side,
            "accepted": self.accepted, "refused": self.refused,
        })
    }
}

/// Hashes numbers of faces. They count up and nobody outside chooses them, so a multiplication
/// spreads them well enough; it is done for every packet sent.
#[derive(Debug, Default)]
struct NumberHasher(u64);

impl Hasher for NumberHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.write_u32(u32::from(*byte));
        }
    }

    fn write_u32(&mut self, number: u32) {
        self.0 = (self.0 ^ u64::from(number)).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    }
}

/// The thread's state.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) function: Function,
    pub(crate) shared: Arc<Shared>,
    pub(crate) listeners: Vec<Entry>,
    slots: Vec<Option<Slot>>,
    generation: u64,
    by_id: HashMap<FaceId, usize, BuildHasherDefault<NumberHasher>>,
    /// No face is due before; zero when that is to be found again.
    faces_due: Tick,
    epoll: Epoll,
    waker: Arc<Waker>,
    orders: Receiver<Order>,
    /// Threads that share the connections of the first one's listeners.
    peers: Vec<Remote>,
    turn: usize,
    verifiers: Verifiers,
    verified: Vec<Job>,
    pool: BufPool,
    frames: Vec<RxFrame>,
    out: Outbox,
    ready: VecDeque<usize>,
    dirty: Vec<usize>,
    timed: Vec<usize>,
    pub(crate) now: Now,
    busy_ns: Arc<AtomicU64>,
    events: Vec<Ready>,
    pub(crate) frames_dropped: u64,
    /// Octets received and sent by faces that are gone.
    octets_gone: (u64, u64),
}

impl Worker {
    /// A thread's state and the way to give it orders.
    pub(crate) fn new(
        function: Function,
        shared: Arc<Shared>,
        threads: usize,
    ) -> std_io::Result<(Self, Remote)> {
        let (send, orders) = std::sync::mpsc::channel();
        let epoll = Epoll::new()?;
        let waker = Arc::new(Waker::new()?);
        epoll.add(&*waker, WAKER, Interest::Read)?;
        let busy_ns = Arc::new(AtomicU64::new(0));
        let remote =
            Remote { orders: send, waker: Arc::clone(&waker), busy_ns: Arc::clone(&busy_ns) };
        let now = shared.now();
        let worker = Self {
            function,
            shared,
            listeners: Vec::new(),
            slots: Vec::new(),
            generation: 0,
            by_id: HashMap::default(),
            faces_due: Tick(0),
            epoll,
            verifiers: Verifiers::start(threads, &waker)?,
            verified: Vec::new(),
            waker,
            orders,
            peers: Vec::new(),
            turn: 0,
            pool: BufPool::new(CHUNK_LEN, CHUNKS),
            frames: Vec::new(),
            out: Outbox::default(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            timed: Vec::new(),
            now,
            busy_ns,
            events: Vec::new(),
            frames_dropped: 0,
            octets_gone: (0, 0),
        };
        Ok((worker, remote))
    }

    /// Adds a listener.
    pub(crate) fn listen(&mut self, entry: Entry) -> std_io::Result<()> {
        self.epoll.add(entry.io.fd(), LISTENERS + self.listeners.len() as u64, Interest::Read)?;
        self.listeners.push(entry);
        Ok(())
    }

    /// Lets connections be shared with other threads.
    pub(crate) fn share_with(&mut self, peers: Vec<Remote>) {
        self.peers = peers;
    }

    /// Runs until the service stops.
    pub(crate) fn run(mut self) {
        while !self.shared.stopping.load(Ordering::Acquire) {
            self.wait();
            self.now = self.shared.now();
            let begin = self.now.tick;
            self.round();
            let spent = self.shared.tick().since(begin).as_nanos();
            self.busy_ns.fetch_add(u64::try_from(spent).unwrap_or(0), Ordering::Relaxed);
        }
        self.flush_dirty();
    }

    fn wait(&mut self) {
        let timeout = if self.has_work() { Duration::ZERO } else { self.sleep() };
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        if let Err(error) = self.epoll.wait(Some(timeout), &mut events) {
            tracing::error!(%error, "waiting for descriptors failed");
        }
        for event in &events {
            match event.token {
                WAKER => self.waker.clear(),
                token if token >= LISTENERS => {
                    self.accept(usize::try_from(token - LISTENERS).unwrap_or(usize::MAX));
                }
                _ => self.note_ready(event),
            }
        }
        self.events = events;
    }

    fn has_work(&self) -> bool {
        self.verifiers.has_work() || (!self.ready.is_empty() && !self.is_full())
    }

    /// Whether so much waits for verification that nothing more should be read.
    fn is_full(&self) -> bool {
        self.verifiers.under_way() >= self.function.jobs_max()
    }

    fn sleep(&self) -> Duration {
        let next = self.function.poll_timeout().min(self.faces_due);
        if next == Tick::NEVER {
            return SLEEP_MAX;
        }
        next.since(self.now.tick).min(SLEEP_MAX)
    }

    fn round(&mut self) {
        while let Ok(order) = self.orders.try_recv() {
            order(self);
        }
        self.after();
        self.turns();
        self.take_verified();
        self.timers();
        self.flush_dirty();
    }

    fn take_verified(&mut self) {
        let mut jobs = std::mem::take(&mut self.verified);
        self.verifiers.finished(&mut jobs);
        if !jobs.is_empty() {
            for job in jobs.drain(..) {
                self.function.verified(self.now, job, &mut self.out);
            }
            self.after();
        }
        self.verified = jobs;
    }

    /// Sends what the function produced and does what it asked for.
    pub(crate) fn after(&mut self) {
        loop {
            self.verify();
            self.dispatch();
            for event in self.function.take_events() {
                self.tell(&event);
            }
            let wishes = self.function.take_wishes();
            if wishes.is_empty() {
                return;
            }
            for wish in wishes {
                self.fulfil(wish);
            }
        }
    }

    fn verify(&mut self) {
        let jobs = self.function.jobs();
        if !jobs.is_empty() {
            self.verifiers.submit(jobs);
        }
    }

    pub(crate) fn tell(&self, event: &Event) {
        self.shared.events.push(self.now.unix_ms, event);
    }

    /// Calls the function with the outbox, then sends.
    pub(crate) fn with<T>(&mut self, call: impl FnOnce(&mut Function, Now, &mut Outbox) -> T) -> T {
        let result = call(&mut self.function, self.now, &mut self.out);
        self.after();
        result
    }
}
