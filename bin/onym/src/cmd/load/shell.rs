//! A face to a node, and an application of the simulator that runs over it in real time.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::stop::Stop;
use onym_client::transport::{self, Surroundings};
use onym_client::{Endpoint, Event, RouteOptions};
use onym_crypto::{Entropy as _, SystemEntropy, edge};
use onym_face::{CHUNK_LEN, Face, FaceError, Flush, Ready};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_sim::app::{App, Frames};
use onym_tables::Tick;
use onym_wire::Name;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::time::{Duration, Instant};

/// Octets of frames that wait for the face, at most; what comes then is lost and counted.
const QUEUE_OCTETS_MAX: usize = 8 << 20;
/// Frames taken in one turn, about.
const RX_BUDGET: usize = 256;
/// Chunks that the pool keeps.
const CHUNKS: usize = 64;
/// How long to wait at most before looking at the clock and the signals again.
const NAP: Duration = Duration::from_millis(50);
/// How long a registration may take.
const REGISTER: Duration = Duration::from_secs(10);

/// One face to the node.
#[derive(Debug)]
pub(super) struct Shell {
    face: Box<dyn Face>,
    queue: TxQueue,
    pool: BufPool,
    frames: Vec<RxFrame>,
    is_blocked: bool,
    has_more: bool,
}

fn tick(origin: Instant) -> Tick {
    Tick(u64::try_from(origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
}

impl Shell {
    /// Connects to the node of the command line.
    pub(super) fn open(cx: &Context) -> anyhow::Result<Self> {
        let (places, _) = transport::candidates(cx.node.as_deref(), &Surroundings::of_process())
            .map_err(|error| Failure::new(Exit::Usage, "no node").why(error))?;
        let mut why = String::new();
        for uri in places {
            match transport::open(&uri) {
                Ok(face) => return Ok(Self::over(face)),
                Err(error) => why = format!("{uri}: {error}"),
            }
        }
        Err(Failure::new(Exit::NoNode, "no node answers")
            .why(why)
            .next("start one with `onym daemon`")
            .into())
    }

    fn over(face: Box<dyn Face>) -> Self {
        Self {
            face,
            queue: TxQueue::new(QUEUE_OCTETS_MAX),
            pool: BufPool::new(CHUNK_LEN, CHUNKS),
            frames: Vec::with_capacity(RX_BUDGET),
            is_blocked: false,
            has_more: true,
        }
    }

    /// Registers `prefix` for this face.
    pub(super) fn register(&mut self, prefix: &Name, stop: &Stop) -> anyhow::Result<()> {
        let mut octets = [0; 8];
        SystemEntropy.fill(&mut octets);
        let seed = u64::from_be_bytes(octets);
        let origin = Instant::now();
        let mut endpoint = Endpoint::new(seed, edge::unix_now_ms());
        let config = transport::link_config(self.face.as_ref(), seed);
        endpoint.connected(tick(origin), config, self.face.scope());
        endpoint.register(prefix.clone(), RouteOptions::default())?;
        let mut why = "it does not answer".to_owned();
        while origin.elapsed() < REGISTER && !stop.is_set() {
            let now = tick(origin);
            self.receive()?;
            for frame in self.frames.drain(..) {
                // What the node should not have sent is not ours to judge here.
                let _ = endpoint.receive(now, frame);
            }
            endpoint.advance(now);
            while let Some(event) = endpoint.poll_event() {
                match event {
                    Event::Registered(_) => return Ok(()),
                    Event::NotRegistered(_, reason) => why = reason.to_string(),
                    _ => {}
                }
            }
            self.is_blocked = self.face.flush(endpoint.tx())? == Flush::Blocked;
            self.wait(endpoint.next_timeout(), origin)?;
        }
        let what = format!("the node refused the prefix {prefix}");
        Err(Failure::new(Exit::Refused, what).why(why).into())
    }

    /// Runs `app` until `is_over` says so, which is told whether the application is done. Returns
    /// the frames that found the queue full.
    pub(super) fn drive(
        &mut self,
        app: &mut dyn App,
        origin: Instant,
        is_over: impl Fn(bool) -> bool,
    ) -> anyhow::Result<u64> {
        let mut out = Frames::new();
        let mut unsent = 0;
        loop {
            self.receive()?;
            let now = tick(origin);
            for frame in self.frames.drain(..) {
                app.receive(now, &frame.bytes, &mut out);
            }
            if app.poll_timeout() <= now {
                app.handle_timeout(now, &mut out);
            }
            for frame in out.drain(..) {
                unsent += u64::from(self.queue.push(&frame, None).is_err());
            }
            self.is_blocked = self.face.flush(&mut self.queue)? == Flush::Blocked;
            if is_over(app.is_done()) {
                return Ok(unsent);
            }
            self.wait(app.poll_timeout(), origin)?;
        }
    }

    fn receive(&mut self) -> Result<(), FaceError> {
        match self.face.receive(&mut self.pool, RX_BUDGET, &mut self.frames) {
            Ok(ready) => self.has_more = ready != Ready::Idle,
            Err(error) if error.is_fatal() => return Err(error),
            // A datagram came back: who waits for it asks again.
            Err(_) => self.has_more = false,
        }
        Ok(())
    }

    /// Waits for the face, or until `due`, or a nap.
    fn wait(&self, due: Tick, origin: Instant) -> std::io::Result<()> {
        if self.has_more {
            return Ok(());
        }
        let left = if due == Tick::NEVER { NAP } else { due.since(tick(origin)).min(NAP) };
        let mut flags = PollFlags::IN;
        if self.is_blocked && self.face.room_is_writable() {
            flags |= PollFlags::OUT;
        }
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(left.subsec_nanos()) };
        match poll(&mut [PollFd::from_borrowed_fd(self.face.fd(), flags)], Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}
