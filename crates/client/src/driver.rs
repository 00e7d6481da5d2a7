//! Shared by the two shells: an endpoint, its face, and reconnection.

use crate::endpoint::Endpoint;
use crate::error::Error;
use crate::transport::{self, NodeUri, Surroundings};
use onym_crypto::edge;
use onym_face::{CHUNK_LEN, Face, FaceError, Flush, Ready};
use onym_frame::{BufPool, RxFrame};
use onym_tables::Tick;
use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// How a client finds its node and keeps to it.
#[derive(Debug, Clone)]
pub struct ClientOptions {
    /// The node; without it the places of [`transport::candidates`] are looked at.
    pub node: Option<String>,
    /// How long to try to come back after the connection was lost; then everything fails.
    pub reconnect_for: Duration,
    /// How long making a connection may take.
    pub connect_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            node: None,
            reconnect_for: Duration::from_secs(60),
            connect_timeout: Duration::from_secs(5),
        }
    }
}

/// What happened to the connection.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// It is gone; the client tries to come back.
    Lost(String),
    /// It is back; prefixes are registered again, fetches go on.
    Back,
    /// It did not come back in time; everything that waited failed.
    GivenUp(String),
}

/// Frames taken from the face in one turn, about.
const RX_BUDGET: usize = 256;
/// How often that is done in one turn while there is more: as many frames as a fetch may have in
/// flight. A segment that is here and was not read yet must not count as lost.
const RX_ROUNDS: usize = 16;
/// Chunks that the pool keeps.
const CHUNKS: usize = 512;
/// First and longest wait between two attempts to connect.
const RETRY_MIN: Duration = Duration::from_millis(50);
const RETRY_MAX: Duration = Duration::from_secs(1);
/// A connection that came back is believed once something was heard over it, or after this time:
/// a node that is being killed still takes connections for a moment.
const SETTLE: Duration = Duration::from_millis(100);
/// Notices that wait for the application, at most; the oldest is dropped.
const NOTICES_MAX: usize = 64;

/// The connection, while there is none.
#[derive(Debug)]
struct Outage {
    since: Instant,
    retry_at: Instant,
    failures: u32,
    why: String,
}

#[derive(Debug)]
pub(crate) struct Driver {
    pub(crate) endpoint: Endpoint,
    face: Option<Box<dyn Face>>,
    /// Where to connect again; nowhere for a face that was given.
    target: Option<NodeUri>,
    options: ClientOptions,
    origin: Instant,
    pool: BufPool,
    frames: Vec<RxFrame>,
    /// Counts the faces, so that a shell that registered one sees when it is another.
    generation: u64,
    blocked: bool,
    more: bool,
    connecting_until: Option<Instant>,
    /// When the present face was opened, and whether something came over it.
    opened: Instant,
    heard_since: bool,
    outage: Option<Outage>,
    notices: VecDeque<Notice>,
    /// Whether anything ever came from the node, and what a datagram face said instead.
    heard: bool,
    unreachable: Option<String>,
}

impl Driver {
    /// Opens the node that `options` name, or the first that answers at the usual places.
    pub(crate) fn open(options: ClientOptions) -> Result<Self, Error> {
        let (places, _) =
            transport::candidates(options.node.as_deref(), &Surroundings::of_process())?;
        let mut tried = Vec::new();
        for uri in places {
            match transport::open(&uri) {
                Ok(face) => return Ok(Self::over(face, Some(uri), options)),
                Err(error) => tried.push((uri, error.to_string())),
            }
        }
        Err(Error::NoNode(tried))
    }

    pub(crate) fn over(
        face: Box<dyn Face>,
        target: Option<NodeUri>,
        options: ClientOptions,
    ) -> Self {
        let mut driver = Self {
            endpoint: Endpoint::new(edge::random_u64(), edge::unix_now_ms()),
            face: None,
            target,
            options,
            origin: Instant::now(),
            pool: BufPool::new(CHUNK_LEN, CHUNKS),
            frames: Vec::with_capacity(RX_BUDGET),
            generation: 0,
            blocked: false,
            more: false,
            connecting_until: None,
            opened: Instant::now(),
            heard_since: false,
            outage: None,
            notices: VecDeque::new(),
            heard: false,
            unreachable: None,
        };
        driver.take_face(face);
        driver
    }

    pub(crate) fn now(&self) -> Tick {
        Tick(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    pub(crate) fn face(&self) -> Option<&dyn Face> {
        self.face.as_deref()
    }

    /// Which face this is; another number, another face.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// Whether the descriptor is to be waited on for writing.
    pub(crate) fn wants_write(&self) -> bool {
        self.blocked && self.face.as_ref().is_some_and(|face| face.room_is_writable())
    }

    pub(crate) fn poll_notice(&mut self) -> Option<Notice> {
        self.notices.pop_front()
    }

    /// Why there is no answer when nothing was ever heard from the node.
    pub(crate) fn never_heard(&self) -> Option<Error> {
        let why = self.unreachable.as_ref().filter(|_| !self.heard)?;
        let uri = self.target.clone()?;
        Some(Error::NoNode(vec![(uri, why.clone())]))
    }

    /// Nobody answers where the node should be.
    pub(crate) fn no_node(&self, why: String) -> Error {
        match &self.target {
            Some(uri) => Error::NoNode(vec![(uri.clone(), why)]),
            None => Error::Disconnected(why),
        }
    }

    fn take_face(&mut self, face: Box<dyn Face>) {
        let now = self.now();
        let config = transport::link_config(face.as_ref(), edge::random_u64());
        if face.is_connecting() {
            self.connecting_until = Some(Instant::now() + self.options.connect_timeout);
        }
        let scope = face.scope();
        self.blocked = face.is_connecting();
        self.face = Some(face);
        self.generation += 1;
        self.opened = Instant::now();
        self.heard_since = false;
        self.endpoint.connected(now, config, scope);
    }

    /// Takes what came, does what is due, sends what is ready.
    pub(crate) fn turn(&mut self) {
        self.reconnect();
        let now = self.now();
        for _ in 0..RX_ROUNDS {
            if let Err(error) = self.receive(now) {
                self.lose(&error);
            }
            if !self.more {
                break;
            }
        }
        self.endpoint.advance(self.now());
        if let Err(error) = self.flush() {
            self.lose(&error);
        }
    }

    fn receive(&mut self, now: Tick) -> Result<(), FaceError> {
        self.more = false;
        let Some(face) = &mut self.face else { return Ok(()) };
        let result = face.receive(&mut self.pool, RX_BUDGET, &mut self.frames);
        let is_stream = face.transport().is_reliable();
        self.heard |= !self.frames.is_empty();
        self.heard_since |= !self.frames.is_empty();
        let mut broken = None;
        for frame in self.frames.drain(..) {
            if let Err(verdict) = self.endpoint.receive(now, frame) {
                broken = broken.or(Some(verdict));
            }
        }
        match (result, broken) {
            (_, Some(verdict)) if is_stream => Err(FaceError::Address {
                what: "the connection".into(),
                why: format!("the peer sent a frame that is {}", verdict.label()),
            }),
            (Ok(ready), _) => {
                self.more = ready != Ready::Idle;
                Ok(())
            }
            (Err(error), _) if error.is_fatal() => Err(error),
            (Err(error), _) => {
                self.unreachable = Some(error.to_string());
                Ok(())
            }
        }
    }

    fn flush(&mut self) -> Result<(), FaceError> {
        let Some(face) = &mut self.face else { return Ok(()) };
        match face.flush(self.endpoint.tx()) {
            Ok(flush) => {
                self.blocked = flush == Flush::Blocked || face.is_connecting();
                if !face.is_connecting() {
                    self.connecting_until = None;
                } else if self.connecting_until.is_some_and(|until| until <= Instant::now()) {
                    return Err(FaceError::Silent(self.options.connect_timeout.as_secs()));
                }
                Ok(())
            }
            Err(error) if error.is_fatal() => Err(error),
            Err(error) => {
                self.unreachable = Some(error.to_string());
                Ok(())
            }
        }
    }

    fn lose(&mut self, error: &FaceError) {
        self.face = None;
        self.blocked = false;
        self.more = false;
        self.connecting_until = None;
        let why = error.to_string();
        if self.target.is_none() {
            self.endpoint.closed();
            self.notice(Notice::GivenUp(why));
            return;
        }
        self.endpoint.disconnected();
        let now = Instant::now();
        match &mut self.outage {
            // Never came back properly: the face opened and failed again.
            Some(outage) => outage.fail(why),
            None => {
                self.notice(Notice::Lost(why.clone()));
                self.outage = Some(Outage { since: now, retry_at: now, failures: 0, why });
            }
        }
    }

    fn notice(&mut self, notice: Notice) {
        if self.notices.len() >= NOTICES_MAX {
            self.notices.pop_front();
        }
        self.notices.push_back(notice);
    }

    /// Ends an outage once the new face works, or opens a new face when it is time.
    fn reconnect(&mut self) {
        let Some(outage) = &mut self.outage else { return };
        let settled = self.heard_since || self.opened.elapsed() >= SETTLE;
        if settled && self.face.as_ref().is_some_and(|f| !f.is_connecting()) {
            self.outage = None;
            self.notice(Notice::Back);
            return;
        }
        if self.face.is_some() || Instant::now() < outage.retry_at {
            return;
        }
        let Some(target) = &self.target else { return };
        match transport::open(target) {
            Ok(face) => self.take_face(face),
            Err(error) => {
                outage.fail(error.to_string());
                if outage.since.elapsed() >= self.options.reconnect_for {
                    let why = outage.why.clone();
                    self.outage = None;
                    self.target = None;
                    self.endpoint.closed();
                    self.notice(Notice::GivenUp(why));
                }
            }
        }
    }

    /// When the next turn is due; `None` when only the face can make one necessary.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        if self.more {
            return Some(Instant::now());
        }
        let tick = self.endpoint.next_timeout();
        let timer = (tick != Tick::NEVER).then(|| self.origin + Duration::from_nanos(tick.0));
        let retry = self.outage.as_ref().map(|o| match &self.face {
            // While it connects its own time limit counts.
            Some(face) if face.is_connecting() => o.retry_at + self.options.connect_timeout,
            Some(_) if self.heard_since => Instant::now(),
            Some(_) => self.opened + SETTLE,
            None => o.retry_at,
        });
        [timer, retry, self.connecting_until].into_iter().flatten().min()
    }

    /// Whether the connection is gone and will not come back.
    pub(crate) fn is_closed(&self) -> bool {
        self.face.is_none() && self.target.is_none()
    }
}

impl Outage {
    fn fail(&mut self, why: String) {
        let wait = (RETRY_MIN * (1 << self.failures.min(8))).min(RETRY_MAX);
        self.failures += 1;
        self.retry_at = Instant::now() + wait;
        self.why = why;
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::fetch::{FetchOptions, PipelineOptions};
    use crate::producer::{Answer, Incoming, Respond};
    use crate::serve::{Object, ServeOptions};
    use crate::window::{AimdOptions, WindowLaw, WindowOptions};
    use onym_frame::Buf;
    use onym_wire::mgmt::Scope;
    use onym_wire::name::Name;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::sync::{Arc, Mutex};

    /// Segments that wait until the others were answered.
    #[derive(Clone, Default)]
    struct Held(Arc<Mutex<Vec<Incoming>>>, Arc<AtomicBool>);

    fn driver(face: impl Face + 'static) -> Driver {
        Driver::over(Box::new(face), None, ClientOptions::default())
    }

    /// A consumer that did something else for a while, as writing to a disk, finds answers of two
    /// shards, one behind the other: none of them was lost.
    #[test]
    fn what_is_here_and_not_read_yet_is_not_asked_for_again() {
        const LEN: usize = 50_000;
        let (a, b) = onym_face::mem::pair(Scope::Local).unwrap();
        let (mut consumer, mut producer) = (driver(a), driver(b));
        let name: Name = "/f".parse().unwrap();
        let options = ServeOptions { segment_size: 1, ..ServeOptions::new(7) };
        let mut object = Object::new(name.clone(), vec![7; LEN], options).unwrap();
        let held = Held::default();
        let Held(odd, holds) = held.clone();
        let mut second = Object::new(
            name.clone(),
            vec![7; LEN],
            ServeOptions { segment_size: 1, ..ServeOptions::new(7) },
        )
        .unwrap();
        let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
            let segment = incoming.interest().name.last().and_then(|c| c.as_segment());
            if holds.load(Ordering::Relaxed) && segment.is_some_and(|s| s % 2 == 1) {
                odd.lock().unwrap().push(incoming.clone());
                return Answer::Nothing;
            }
            object.respond(incoming, out)
        };
        producer.endpoint.respond(name.clone(), Box::new(respond)).unwrap();
        let window = WindowOptions { initial: 800.0, threshold: 800.0, ..WindowOptions::default() };
        let law = WindowLaw::Aimd(AimdOptions { window, ..AimdOptions::default() });
        let pipeline = PipelineOptions { law, ..PipelineOptions::default() };
        let options = FetchOptions { pipeline, ..FetchOptions::default() };
        let id = consumer.endpoint.fetch(consumer.now(), name, options).unwrap();
        let turn = |consumer: &mut Driver, producer: &mut Driver| {
            consumer.turn();
            producer.turn();
            while consumer.endpoint.fetch_read(id).is_some() {}
            consumer.endpoint.fetch_progress(id).unwrap().counters
        };
        // Round trips are known to be short.
        while turn(&mut consumer, &mut producer).received < 20_000 {}
        held.1.store(true, Ordering::Relaxed);
        turn(&mut consumer, &mut producer);
        let before = turn(&mut consumer, &mut producer);
        std::thread::sleep(Duration::from_millis(120));
        held.1.store(false, Ordering::Relaxed);
        producer.turn();
        for incoming in std::mem::take(&mut *held.0.lock().unwrap()) {
            let mut data = Vec::new();
            assert!(matches!(second.respond(&incoming, &mut data), Answer::Written));
            let now = producer.now();
            producer.endpoint.reply(now, &incoming, Buf::copy_from(&data));
        }
        producer.turn();
        let after = turn(&mut consumer, &mut producer);
        assert!(after.received > before.received + 256, "{before:?} {after:?}");
        assert_eq!(after.retransmitted, before.retransmitted, "{before:?} {after:?}");
    }
}
