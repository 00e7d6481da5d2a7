//! The control thread: the life of faces, the tables' masters, management, and requests of others.
//!
//! It owns no packet. It changes the shards by orders and waits for their answers, so that what it
//! tells others is already so.

mod accept;
pub(crate) mod connect;
mod explain;
pub(crate) mod faces;
mod host;
pub(crate) mod listen;
mod log;
mod manage;
mod push;
pub(crate) mod record;
pub(crate) mod request;
pub(crate) mod room;
mod routes;
pub(crate) mod start;
pub(crate) mod status;
pub(crate) mod tables;

use crate::config::Config;
use crate::mgmt::host::{FaceError, FaceView, Ticket};
use crate::mgmt::{FaceEvent, Management, Policy};
use crate::push::PushPort;
use crate::rib::Rib;
use crate::shard::{Report, ShardPort};
use crate::subnet::Subnet;
use connect::Connecting;
use onym_engine::Clock;
use onym_face::Peer;
use onym_forward::Event;
use onym_frame::BufPool;
use onym_sys::epoll::{Epoll, Ready, Waker};
use onym_sys::peer::Operators;
use onym_tables::{FaceId, Tick};
use record::{NewFace, Record};
use request::Request;
use rtrb::Consumer;
use rustix::fd::AsFd as _;
use status::{Gone, PushCounts};
use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// Who asked for a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Asked {
    /// Management, which is waiting for the answer.
    Management(Ticket),
    /// The configuration.
    Config,
}

/// What a connection that is being made is for.
#[derive(Debug)]
pub(crate) enum Purpose {
    /// The transport of a permanent face that is down.
    Reopen(FaceId),
    /// A new face.
    Make {
        /// Who asked for it.
        asked: Asked,
        /// Its properties.
        new: Box<NewFace>,
    },
}

/// Addresses that the node listens at; ports asked for as 0 are known here.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bound {
    /// Path of the Unix socket.
    pub unix: Option<PathBuf>,
    /// UDP addresses.
    pub udp: Vec<std::net::SocketAddr>,
    /// TCP addresses.
    pub tcp: Vec<std::net::SocketAddr>,
    /// WebSocket addresses.
    pub websocket: Vec<std::net::SocketAddr>,
    /// Addresses of the HTTP server.
    pub metrics: Vec<std::net::SocketAddr>,
}

/// The state of the control thread.
pub(crate) struct Control {
    pub(crate) clock: Clock,
    pub(crate) start_ms: u64,
    pub(crate) config: Config,
    pub(crate) ports: Vec<ShardPort>,
    /// The push half, when it is enabled.
    pub(crate) push: Option<PushPort>,
    /// What its thread counted when it was asked last.
    push_counted: PushCounts,
    pub(crate) faces: BTreeMap<FaceId, Record>,
    pub(crate) rib: Rib,
    /// Counters of faces that are closed.
    pub(crate) gone: Gone,
    tcp_local: Vec<Subnet>,
    operators: Operators,
    next_face: u32,
    next_idle_check: Tick,
    reports: Vec<Consumer<Report>>,
    epoll: Epoll,
    events: Vec<Ready>,
    waker: Arc<Waker>,
    listeners: Vec<listen::Entry>,
    /// The face that leads to each remote URI.
    pub(crate) by_remote: HashMap<String, FaceId>,
    /// Faces by the shard that does their I/O.
    pub(crate) per_shard: Vec<usize>,
    pub(crate) room: room::Room,
    pub(crate) logs: log::Logs,
    /// Faces of peers on listeners without connections.
    peers: HashMap<(usize, Peer), FaceId>,
    pool: BufPool,
    connecting: BTreeMap<u64, Connecting>,
    next_token: u64,
    requests: Receiver<Request>,
    /// Taken out while it works, because it is given the rest as its host.
    management: Option<Management>,
    /// Events of faces that came while management was at work.
    untold: Vec<(FaceEvent, FaceView)>,
    /// A face that was made without waiting, for the request that is being carried out.
    made_now: Option<(Ticket, Result<FaceView, FaceError>)>,
    /// Who may do what, here for the announcements that Data brings.
    policy: Policy,
    /// The log of the program around the node.
    pub(crate) log: Option<Arc<dyn crate::log::LogControl>>,
    /// The file of the configuration, for errors and relative paths.
    origin: PathBuf,
    /// Frames that reached a listener faster than their shard took them.
    pub(crate) late_frames: u64,
    running: bool,
}

/// Everything the control thread is given at start.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) config: Config,
    pub(crate) origin: PathBuf,
    pub(crate) ports: Vec<ShardPort>,
    pub(crate) push: Option<PushPort>,
    pub(crate) reports: Vec<Consumer<Report>>,
    pub(crate) waker: Arc<Waker>,
    pub(crate) listeners: Vec<listen::Entry>,
    pub(crate) requests: Receiver<Request>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("faces", &self.faces.len()).finish_non_exhaustive()
    }
}

/// Token of the waker; listeners have theirs, then connections.
const WAKER: u64 = 0;
/// How long the control thread sleeps at most.
const SLEEP_MAX: Duration = Duration::from_secs(60);

/// Where TCP peers are local.
fn local_subnets(config: &Config) -> Vec<Subnet> {
    config.faces.tcp.local.0.iter().filter_map(|s| Subnet::parse(s)).collect()
}

impl Control {
    /// The control thread's state; nothing of the configuration is applied yet.
    ///
    /// # Errors
    /// A sentence: out of descriptors, or a certificate of the configuration cannot be read.
    pub(crate) fn new(parts: Parts) -> Result<Self, String> {
        let epoll = Epoll::new().map_err(|e| format!("making an epoll: {e}"))?;
        let watch = |fd: rustix::fd::BorrowedFd<'_>, token| {
            let added = epoll.add(fd, token, onym_sys::epoll::Interest::Read);
            added.map_err(|e| format!("watching a listener: {e}"))
        };
        watch(parts.waker.as_fd(), WAKER)?;
        let mut next_token = WAKER;
        let mut listeners = parts.listeners;
        for entry in &mut listeners {
            next_token += 1;
            entry.token = next_token;
            watch(entry.listener.fd(), next_token)?;
        }
        let mut control = Self {
            start_ms: onym_engine::clock::unix_ms(),
            faces: BTreeMap::new(),
            by_remote: HashMap::new(),
            per_shard: vec![0; parts.ports.len()],
            room: room::Room::default(),
            logs: log::Logs::default(),
            rib: routes::rib(&parts.config),
            gone: Gone::default(),
            tcp_local: local_subnets(&parts.config),
            operators: Operators::of_group(&parts.config.management.group),
            next_face: FaceId::FIRST.0,
            next_idle_check: parts.clock.now(),
            clock: parts.clock,
            config: parts.config,
            origin: parts.origin,
            ports: parts.ports,
            push: parts.push,
            push_counted: PushCounts::default(),
            reports: parts.reports,
            epoll,
            events: Vec::new(),
            waker: parts.waker,
            listeners,
            peers: HashMap::new(),
            pool: BufPool::new(onym_face::CHUNK_LEN, 64),
            connecting: BTreeMap::new(),
            next_token,
            requests: parts.requests,
            management: None,
            untold: Vec::new(),
            made_now: None,
            policy: Policy::default(),
            log: None,
            late_frames: 0,
            running: true,
        };
        let options = control.management_options(&control.config)?;
        control.policy = options.policy.clone();
        let entropy = Box::new(onym_crypto::SystemEntropy);
        control.management = Some(Management::new(options, entropy));
        Ok(control)
    }

    /// Runs until told to stop.
    pub(crate) fn run(mut self) {
        while self.running {
            self.wait();
            self.take_reports();
            self.take_requests();
            self.timers();
            self.manage_outputs();
        }
    }

    fn next_token(&mut self) -> u64 {
        self.next_token += 1;
        self.next_token
    }

    fn wait(&mut self) {
        let now = self.clock.now();
        let timeout = self.next_timer().since(now).min(SLEEP_MAX);
        let mut events = std::mem::take(&mut self.events);
        events.clear();
        if let Err(error) = self.epoll.wait(Some(timeout), &mut events) {
            tracing::error!(%error, "waiting for descriptors failed");
        }
        for event in &events {
            if event.token == WAKER {
                self.waker.clear();
            } else if let Some(index) = self.listener_of(event.token) {
                self.accept(index);
            } else {
                self.connecting_ready(event.token);
            }
        }
        self.events = events;
    }

    fn next_timer(&self) -> Tick {
        let reconnect = self.faces.values().map(|r| r.reconnect).min();
        let connecting = self.connecting.values().map(|c| c.until).min();
        let paused = self.listeners.iter().map(|l| l.paused).min();
        let management = self.management.as_ref().and_then(Management::poll_timeout);
        let all = [reconnect, connecting, paused, management, Some(self.rib.poll_timeout())];
        let next = all.into_iter().flatten().min().unwrap_or(Tick::NEVER);
        next.min(self.next_idle_check)
    }

    fn timers(&mut self) {
        let now = self.clock.now();
        self.face_timers(now);
        self.connect_timers(now);
        self.listener_timers(now);
        self.route_timers(now);
        self.manage_timers(now);
    }

    fn take_reports(&mut self) {
        for shard in 0..self.reports.len() {
            // At most as many as there are now, so that one shard cannot hold the thread.
            for _ in 0..self.reports[shard].slots() {
                let Ok(report) = self.reports[shard].pop() else { break };
                self.report(report);
            }
        }
    }

    fn report(&mut self, report: Report) {
        match report {
            Report::Management { bytes, incoming } => {
                self.manage(&bytes, incoming.unwrap_or(FaceId::INVALID));
            }
            Report::FaceFailed { id, reason, fatal } => self.face_failed(id, &reason, fatal),
            Report::Malformed { id, word } => {
                let reason = format!("the peer sent a malformed packet: {word}");
                let is_local = |r: &Record| r.scope == onym_wire::mgmt::Scope::Local;
                if self.faces.get(&id).is_some_and(|r| !r.is_datagram() && !is_local(r)) {
                    self.face_failed(id, &reason, true);
                }
            }
            Report::FaceChanged { id, transport, local, remote } => {
                self.face_carried_by(id, transport, local, remote);
            }
            Report::FaceConnected { id } => tracing::debug!(face = id.0, "connected"),
            Report::Forwarder(Event::Learn { face, announcement }) => {
                self.route_learned(&announcement, face);
            }
            Report::Forwarder(Event::Unlearn { face, name }) => {
                self.route_unlearned(name.as_ref(), face);
            }
        }
    }

    /// A creation asked for by somebody ended.
    fn made(&mut self, asked: Asked, result: Result<FaceId, FaceError>) {
        match asked {
            Asked::Config => match result {
                Ok(_) => self.apply_routes(),
                Err(error) => tracing::error!(?error, "a face of the configuration was not made"),
            },
            Asked::Management(ticket) => {
                let view = result.and_then(|id| {
                    let missing = || FaceError::System("the face closed at once".into());
                    self.face_views(Some(id)).pop().ok_or_else(missing)
                });
                match &mut self.management {
                    Some(management) => management.face_created(ticket, view),
                    // It is management's own request that is being carried out.
                    None => self.made_now = Some((ticket, view)),
                }
            }
        }
    }

    /// Tells subscribers of management what happened to a face.
    fn face_event(&mut self, id: FaceId, event: FaceEvent) {
        let Some(record) = self.faces.get(&id) else { return };
        let view = self.face_view(record, crate::mgmt::host::FaceCounters::default());
        self.tell_event(event, &view);
    }

    fn tell_event(&mut self, event: FaceEvent, view: &FaceView) {
        let now = self.clock.now();
        match &mut self.management {
            Some(management) => management.face_event(event, view, now),
            None => self.untold.push((event, view.clone())),
        }
    }

    /// Where the node listens, as management lists it.
    pub(crate) fn channel_uris(&self) -> Vec<String> {
        self.listeners.iter().map(|l| l.listener.local_uri().to_string()).collect()
    }

    /// Accepts nobody any more.
    pub(crate) fn close_listeners(&mut self) {
        for entry in self.listeners.drain(..) {
            let _ = self.epoll.delete(entry.listener.fd());
        }
        self.connecting.clear();
    }

    /// Closes every face.
    pub(crate) fn close_faces(&mut self) {
        let all: Vec<FaceId> = self.faces.keys().copied().collect();
        for id in all {
            self.face_remove(id, "the node stops");
        }
    }

    /// Ends the loop.
    pub(crate) fn stop(&mut self) {
        self.running = false;
    }
}
