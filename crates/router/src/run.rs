//! The router's thread.

use crate::command::{self, Commands};
use crate::connection::Connection;
use crate::seen::{Figures, Seen as Shown};
use crate::state::{Keys, KeysError};
use crate::trust::{Step, Trust};
use crate::watch::{self, Seen};
use crate::{Settings, held, next_boot};
use onym_client::NodeUri;
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_crypto::{Certificate, Signer};
use onym_endpoint::{Endpoint, Event, Inbound, Limits, Packet, Request, RequestId};
use onym_route::router::{CommandError, Why};
use onym_route::{Command, Config, Notice, Output, Router, Verdict};
use onym_tables::Tick;
use onym_wire::{Interest, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait of a turn.
const TURN: Duration = Duration::from_millis(100);
/// Time between two looks at what operators wrote.
const LOOK_MS: u64 = 250;
/// Waits between attempts to reach the forwarder.
const RETRY_MIN: Duration = Duration::from_millis(100);
const RETRY_MAX: Duration = Duration::from_secs(2);
/// How long a router that stops may take to say goodbye and to withdraw its routes.
const FAREWELL: Duration = Duration::from_millis(1500);
/// Packets that wait for certificates, at most; further ones are refused.
const PARKED_MAX: usize = 256;

/// Why a router does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The forwarder is named wrongly.
    #[error("{0:?} is not a forwarder's URI")]
    Node(String),
    /// The names are wrong.
    #[error(transparent)]
    Names(#[from] onym_route::names::NamesError),
    /// The keys.
    #[error("the keys of the router: {0}")]
    Keys(#[from] KeysError),
    /// The bootstrap time cannot be kept.
    #[error("the bootstrap time cannot be saved: {0}")]
    Boot(#[source] io::Error),
    /// Who is held down cannot be read.
    #[error("the list of neighbours held down: {0}")]
    Held(#[source] io::Error),
    /// No thread.
    #[error("cannot start a thread: {0}")]
    Thread(#[source] io::Error),
}

/// A router that runs in a thread; dropping it stops it.
#[derive(Debug)]
pub struct Handle {
    is_over: Arc<AtomicBool>,
    shown: Arc<Shown>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// What the router counts, as long as it runs.
    #[must_use]
    pub fn shown(&self) -> Arc<Shown> {
        Arc::clone(&self.shown)
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// Starts a router in a thread.
///
/// # Errors
/// [`Error`].
pub fn start(settings: Settings) -> Result<Handle, Error> {
    let is_over = Arc::new(AtomicBool::new(false));
    let shell = Shell::new(settings, Arc::clone(&is_over))?;
    let shown = Arc::clone(&shell.shown);
    let thread = std::thread::Builder::new().name("route".into());
    let thread = thread.spawn(move || shell.run()).map_err(Error::Thread)?;
    Ok(Handle { is_over, shown, thread: Some(thread) })
}

/// Runs a router until `is_over`.
///
/// # Errors
/// [`Error`].
pub fn run(settings: Settings, is_over: Arc<AtomicBool>) -> Result<(), Error> {
    Shell::new(settings, is_over)?.run();
    Ok(())
}

/// A packet that waits for a certificate.
struct Parked {
    check: u64,
    packet: Packet,
    face: Option<u64>,
}

struct Shell {
    node: NodeUri,
    is_over: Arc<AtomicBool>,
    origin: Instant,
    router: Router,
    endpoint: Endpoint,
    commands: Commands,
    trust: Trust,
    certificate: Option<Certificate>,
    /// Packets by the certificate that they need, and who asks for it.
    parked: BTreeMap<Name, Vec<Parked>>,
    asked: BTreeMap<RequestId, Name>,
    watched: Receiver<Seen>,
    announced: BTreeMap<(Name, u64), u64>,
    /// Stale routes are looked for once.
    looked: bool,
    installed: BTreeSet<(Name, u64)>,
    held: Option<held::Watched>,
    look_at: Tick,
    shown: Arc<Shown>,
    _watch: JoinHandle<()>,
}

impl Shell {
    fn new(settings: Settings, is_over: Arc<AtomicBool>) -> Result<Self, Error> {
        let node: NodeUri =
            settings.node.parse().map_err(|_| Error::Node(settings.node.clone()))?;
        let unix_ms = unix_now_ms();
        let (network, router) = (settings.network.clone(), settings.router.clone());
        // Names first: a mistake there shall leave no files.
        onym_route::Names::new(network.clone(), router.clone())?;
        let keys = match &settings.keys {
            Some(folder) => Some(Keys::open(folder, &network, &router, unix_ms)?),
            None => None,
        };
        let file = |name| settings.state.as_ref().map(|folder| folder.join(name));
        let boot = next_boot(file("boot").as_deref(), unix_ms / 1000).map_err(Error::Boot)?;
        let held = file(held::FILE).map(held::Watched::open).transpose().map_err(Error::Held)?;
        let mut config = Config::new(network.clone(), router, boot, random_u64());
        config.links = settings.links;
        config.advertise_interval = settings.advertise_interval;
        config.dead_interval = settings.dead_interval;
        config.readvertise = settings.readvertise;
        config.cost_by = settings.cost_by;
        config.folder = settings.state.as_ref().map(|folder| folder.display().to_string());
        let (held, names) = held.unzip();
        config.held = names.into_iter().flatten().collect();
        let signer = keys.as_ref().map_or_else(Signer::digest, |keys| keys.signer.clone());
        let trust = keys.as_ref().map_or(Trust::Insecure, |keys| Trust::keys(network, keys));
        let router = Router::new(Tick(0), config, signer, unix_ms)?;
        let mut endpoint = Endpoint::new(random_u64(), Limits::default());
        let certificate = keys.map(|keys| keys.certificate);
        if let Some(certificate) = &certificate {
            let served = endpoint.serve(certificate.key_name().to_name());
            debug_assert!(served.is_ok(), "the first prefix has room");
        }
        let (seen, watched) = mpsc::sync_channel(1);
        let over = Arc::clone(&is_over);
        let watch = watch::start(settings.node, settings.announce, over, seen);
        Ok(Self {
            node,
            is_over,
            origin: Instant::now(),
            router,
            endpoint,
            commands: Commands::new(),
            trust,
            certificate,
            parked: BTreeMap::new(),
            asked: BTreeMap::new(),
            watched,
            announced: BTreeMap::new(),
            looked: false,
            installed: BTreeSet::new(),
            held,
            look_at: Tick(0),
            shown: Arc::new(Shown::default()),
            _watch: watch.map_err(Error::Thread)?,
        })
    }

    fn now(&self) -> Tick {
        Tick(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }

    fn run(mut self) {
        let mut wait = RETRY_MIN;
        let mut first = true;
        while !self.is_over() {
            match Connection::open(&self.node) {
                Ok(mut connection) => {
                    wait = RETRY_MIN;
                    if !std::mem::take(&mut first) {
                        let now = self.now();
                        self.announced.clear();
                        self.router.forwarder_restarted(now);
                    }
                    if let Err(error) = self.serve(&mut connection) {
                        tracing::warn!(
                            "the connection to the forwarder was lost ({error}); reconnecting"
                        );
                    }
                }
                Err(error) => {
                    tracing::debug!("cannot reach the forwarder: {error}");
                    std::thread::sleep(wait);
                    wait = (wait * 2).min(RETRY_MAX);
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Relaxed)
    }

    fn serve(&mut self, connection: &mut Connection) -> io::Result<()> {
        while !self.is_over() {
            self.turn(connection)?;
        }
        let now = self.now();
        self.router.stop(now);
        let until = Instant::now() + FAREWELL;
        loop {
            self.turn(connection)?;
            let idle = self.commands.is_idle() && self.router.poll_timeout() == Tick::NEVER;
            if idle || Instant::now() >= until {
                return Ok(());
            }
        }
    }

    /// Sends what is to be sent, waits a while, takes what came.
    fn turn(&mut self, connection: &mut Connection) -> io::Result<()> {
        let now = self.now();
        self.router.set_clock(now, unix_now_ms());
        self.router.handle_timeout(now);
        self.endpoint.handle_timeout(now);
        self.commands.watch_faces(now, &mut self.endpoint);
        self.look();
        self.look_around(now);
        self.flush(connection)?;
        let due = self.router.poll_timeout().min(self.endpoint.poll_timeout());
        let patience = due.since(self.now()).min(TURN);
        let mut frames = Vec::new();
        connection.receive(patience, &mut |frame| frames.push(frame.to_vec()))?;
        for frame in frames {
            self.take(&frame);
            self.flush(connection)?;
        }
        Ok(())
    }

    fn take(&mut self, frame: &[u8]) {
        let Ok(inbound) = Inbound::from_frame(frame) else { return };
        let now = self.now();
        // A certificate is asked for under other names' hints: ours are looked at first.
        if !self.endpoint.receive(now, &inbound) {
            self.router.receive(now, &inbound);
        }
    }

    fn flush(&mut self, connection: &mut Connection) -> io::Result<()> {
        loop {
            self.events();
            let now = self.now();
            // Packets first: what stops takes its routes away behind its goodbye.
            if let Some(transmit) = self.router.poll_transmit(now) {
                connection.send(&transmit.to_frame())?;
            } else if let Some(output) = self.router.poll_output() {
                self.obey(now, output);
            } else if let Some(transmit) = self.endpoint.poll_transmit() {
                connection.send(&transmit.to_frame())?;
            } else {
                return Ok(());
            }
        }
    }

    fn obey(&mut self, now: Tick, output: Output) {
        match output {
            Output::Command { id, command } => {
                self.remember(&command);
                let (endpoint, unix_ms) = (&mut self.endpoint, unix_now_ms());
                if let Some((id, answer)) = self.commands.send(now, unix_ms, endpoint, id, command)
                {
                    self.router.completed(now, id, answer);
                }
            }
            Output::Verify { id, packet, face } => self.check(id, packet, face),
            Output::Notice(notice) => tell(&notice),
        }
    }

    /// Routes of this run are not stale.
    fn remember(&mut self, command: &Command) {
        if let Command::Register { prefix, face, .. } = command
            && !self.looked
        {
            self.installed.insert((prefix.clone(), *face));
        }
    }

    fn events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            let now = self.now();
            match event {
                Event::Data { id, packet, .. } => self.answered(now, id, &packet),
                Event::Unanswered { id, .. } => {
                    if let Some(name) = self.asked.remove(&id) {
                        self.no_certificate(now, &name, "nobody answers for its certificate");
                        continue;
                    }
                    let (endpoint, unix_ms) = (&mut self.endpoint, unix_now_ms());
                    let answer = self.commands.unanswered(now, unix_ms, endpoint, id);
                    if let Some((id, answer)) = answer {
                        self.router.completed(now, id, answer);
                    }
                }
                Event::Interest { incoming, .. } => {
                    let wanted = |i: &Interest<'_>, c: &Certificate| {
                        i.name.is_prefix_of(c.name()) || i.name == c.name()
                    };
                    if let Some(certificate) = &self.certificate
                        && wanted(&incoming.interest(), certificate)
                    {
                        let wire = certificate.wire().to_vec();
                        self.endpoint.reply(&incoming, wire);
                    }
                }
                _ => {}
            }
        }
    }

    fn answered(&mut self, now: Tick, id: RequestId, packet: &Packet) {
        if let Some(name) = self.asked.remove(&id) {
            match self.trust.learn(packet, unix_now_ms()) {
                Ok(()) => {
                    for parked in self.parked.remove(&name).unwrap_or_default() {
                        self.check(parked.check, parked.packet, parked.face);
                    }
                }
                Err(why) => self.no_certificate(now, &name, &why),
            }
        } else if let Some(event) = self.commands.event(id, packet) {
            if command::is_up(&event) {
                self.router.retry_links(now);
            } else {
                self.router.face_down(now, event.face_id);
            }
        } else if let Some((id, answer)) = self.commands.answered(id, packet) {
            self.router.completed(now, id, answer);
        }
    }

    // --- signatures

    fn check(&mut self, check: u64, packet: Packet, face: Option<u64>) {
        let now = self.now();
        let name = match self.trust.check(&packet, unix_now_ms()) {
            Step::Done(verdict) => return self.router.verified(now, check, verdict),
            Step::Fetch(name) => name,
        };
        let waiting: usize = self.parked.values().map(Vec::len).sum();
        if waiting >= PARKED_MAX {
            let why = "too many packets wait for certificates".to_owned();
            return self.router.verified(now, check, Verdict::Bad(why));
        }
        if !self.parked.contains_key(&name) {
            // Its owner hears the Interest by the name of what it signed.
            let request = Request {
                can_be_prefix: true,
                must_be_fresh: true,
                forwarding_hint: vec![packet.data().name.to_name()],
                lifetime: Duration::from_secs(1),
                tries: 4,
                next_hop_face: face,
                ..Request::new(name.clone())
            };
            match self.endpoint.express(now, &request) {
                Ok(id) => self.asked.insert(id, name.clone()),
                Err(e) => {
                    return self.router.verified(now, check, Verdict::Bad(e.to_string()));
                }
            };
        }
        self.parked.entry(name).or_default().push(Parked { check, packet, face });
    }

    fn no_certificate(&mut self, now: Tick, name: &Name, why: &str) {
        for parked in self.parked.remove(name).unwrap_or_default() {
            let verdict = Verdict::Bad(format!("{name}: {why}"));
            self.router.verified(now, parked.check, verdict);
        }
    }

    // --- what operators write and read

    fn look_around(&mut self, now: Tick) {
        if now < self.look_at {
            return;
        }
        self.look_at = now.plus_ms(LOOK_MS);
        if let Some(held) = self.held.as_mut().and_then(held::Watched::look) {
            let before: BTreeSet<Name> = self.router.held().cloned().collect();
            for router in before.difference(&held) {
                tracing::info!(target: "onym::route", %router, "released");
                self.router.release(now, router);
            }
            for router in held.difference(&before) {
                tracing::info!(target: "onym::route", %router, "held down");
                self.router.hold(now, router);
            }
        }
        self.shown.set(Figures::of(&self.router));
    }

    // --- routes of applications

    fn look(&mut self) {
        let Ok(seen) = self.watched.try_recv() else { return };
        let now = self.now();
        if !std::mem::replace(&mut self.looked, true) {
            for (prefix, face) in seen.routed {
                if !self.installed.contains(&(prefix.clone(), face)) {
                    let stale = Command::Unregister { prefix, face };
                    let (endpoint, unix_ms) = (&mut self.endpoint, unix_now_ms());
                    // Number 0 is nobody's: no answer is waited for.
                    let _: Option<_> = self.commands.send(now, unix_ms, endpoint, 0, stale);
                }
            }
            self.installed.clear();
        }
        for ((prefix, face), cost) in &seen.announced {
            if self.announced.get(&(prefix.clone(), *face)) != Some(cost) {
                self.router.announce(now, prefix, *face, *cost);
            }
        }
        for (prefix, face) in self.announced.keys() {
            if !seen.announced.contains_key(&(prefix.clone(), *face)) {
                self.router.withdraw(now, prefix, *face);
            }
        }
        self.announced = seen.announced;
    }
}

fn tell(notice: &Notice) {
    match notice {
        Notice::NeighbourUp(router, face) => {
            tracing::info!(target: "onym::route", %router, face, "neighbour up");
        }
        Notice::NeighbourDown(router, why) => {
            let level_words = why.words();
            if *why == Why::Goodbye {
                tracing::info!(target: "onym::route", %router, "neighbour down: {level_words}");
            } else {
                tracing::warn!(target: "onym::route", %router, "neighbour down: {level_words}");
            }
        }
        Notice::Refused { router, key, why } => {
            let key = key.as_ref().map(ToString::to_string).unwrap_or_default();
            tracing::warn!(target: "onym::route", %router, key, "refused: {why}");
        }
        Notice::Duplicate(boot) => {
            tracing::error!(target: "onym::route", boot, "another router uses the name of this router");
        }
        Notice::NoFaceId => {
            tracing::error!(
                target: "onym::route",
                "the forwarder does not send IncomingFaceId: neighbours cannot be found"
            );
        }
        Notice::LinkFailed(uri, error) => {
            let why = match error {
                CommandError::Refused(code) => format!("refused with code {code}"),
                CommandError::Silent => "no answer".to_owned(),
            };
            tracing::warn!(target: "onym::route", uri, "the link cannot be created: {why}");
        }
    }
}
