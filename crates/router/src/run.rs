//! The router's thread.

mod keys;
mod meeting;
mod routes;
mod told;

use crate::command::{self, Answer, Commands, Order, Whose};
use crate::connection::Connection;
use crate::meet::hello::Hello;
use crate::renewal::{Served, Watched};
use crate::seen::{Figures, Seen as Shown};
use crate::state::{Keys, KeysError};
use crate::trust::{Step, Trust, Wanted};
use crate::watch::{self, Seen, Watch};
use crate::{LinkWatch, Schema, Settings, held, names, next_boot};
use meeting::{Meeting, Timing};
use onym_client::NodeUri;
use onym_crypto::Signer;
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_endpoint::{Endpoint, Event, Inbound, Limits, Packet, Request, RequestId};
use onym_route::{Command, Config, Output, Router, Verdict};
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};
use told::tell;

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
    /// Whose word counts.
    #[error("the trust of the router: {0}")]
    Trust(#[from] onym_guard::GuardError),
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

/// What is to be checked.
enum Check {
    /// For the router, by its number.
    Router(u64),
    /// A hello that came by a link with several peers.
    Hello(u64, Box<Hello>),
}

/// A packet that waits for a certificate.
struct Parked {
    check: Check,
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
    served: Served,
    keys: Option<Watched>,
    /// Packets by the certificate that they need, and who asks for it.
    parked: BTreeMap<Wanted, Vec<Parked>>,
    asked: BTreeMap<RequestId, Wanted>,
    watched: Receiver<Seen>,
    /// What the forwarder has to be announced, what it learned, and what is announced of both.
    announced_there: BTreeMap<(Name, u64), u64>,
    learned_there: BTreeMap<(Name, u64), u64>,
    announced: BTreeMap<(Name, u64), u64>,
    /// Stale routes are looked for once.
    looked: bool,
    installed: BTreeSet<(Name, u64)>,
    held: Option<held::Watched>,
    meeting: Option<Meeting>,
    link_watch: Option<LinkWatch>,
    links: BTreeMap<u64, u64>,
    look_at: Tick,
    shown: Arc<Shown>,
    _watch: JoinHandle<()>,
}

/// What the state machine is told, the neighbours that are named by host, and the file of those that
/// are held down.
fn configured(
    settings: &mut Settings,
    unix_ms: u64,
) -> Result<(Config, Vec<names::Host>, Option<held::Watched>), Error> {
    let file = |name| settings.state.as_ref().map(|folder| folder.join(name));
    let boot = next_boot(file("boot").as_deref(), unix_ms / 1000).map_err(Error::Boot)?;
    let held = file(held::FILE).map(held::Watched::open).transpose().map_err(Error::Held)?;
    let (network, router) = (settings.network.clone(), settings.router.clone());
    let mut config = Config::new(network, router, boot, random_u64());
    let (hosts, links) = names::split(std::mem::take(&mut settings.links));
    config.links = links;
    config.advertise_interval = settings.advertise_interval;
    config.dead_interval = settings.dead_interval;
    config.readvertise = settings.readvertise;
    config.cost_by = settings.cost_by;
    config.folder = settings.state.as_ref().map(|folder| folder.display().to_string());
    let (held, names) = held.unzip();
    config.held = names.into_iter().flatten().collect();
    Ok((config, hosts, held))
}

/// Whose word counts.
fn trusted(keys: Option<&Keys>, settings: &mut Settings, unix_ms: u64) -> Result<Trust, Error> {
    Ok(match (keys, &settings.keys, settings.trust.take()) {
        (Some(keys), _, Some(Schema { settings, base })) => {
            Trust::schema(settings, &base, keys, unix_ms)?
        }
        (Some(keys), Some(folder), None) => {
            Trust::keys(settings.network.clone(), folder, keys, unix_ms)?
        }
        _ => Trust::Insecure,
    })
}

impl Shell {
    fn new(mut settings: Settings, is_over: Arc<AtomicBool>) -> Result<Self, Error> {
        let node: NodeUri =
            settings.node.parse().map_err(|_| Error::Node(settings.node.clone()))?;
        let unix_ms = unix_now_ms();
        let (network, router) = (settings.network.clone(), settings.router.clone());
        // Names first: a mistake there shall leave no files.
        onym_route::Names::new(network.clone(), router.clone())?;
        let watched_keys = settings
            .keys
            .clone()
            .map(|folder| Watched::new(folder, network.clone(), router.clone()));
        let keys = match &settings.keys {
            Some(folder) => Some(Keys::open(folder, &network, &router, unix_ms)?),
            None => None,
        };
        let (config, hosts, held) = configured(&mut settings, unix_ms)?;
        let signer = keys.as_ref().map_or_else(Signer::digest, |keys| keys.signer.clone());
        let wants_meeting = settings.discover || !hosts.is_empty();
        let trust = trusted(keys.as_ref(), &mut settings, unix_ms)?;
        let timing = Timing {
            hello: config.advertise_interval,
            dead: config.dead_interval,
            resolve: settings.resolve_every,
        };
        let router = Router::new(Tick(0), config, signer.clone(), unix_ms)?;
        let mut endpoint = Endpoint::new(random_u64(), Limits::default());
        let mut served = Served::default();
        if let Some(keys) = keys {
            let prefix = endpoint.serve(keys.certificate.key_name().to_name());
            debug_assert!(prefix.is_ok(), "the first prefix has room");
            served.renew(keys.certificate, unix_ms);
        }
        let (seen, watched) = mpsc::sync_channel(1);
        let over = Arc::clone(&is_over);
        let meeting = wants_meeting
            .then(|| Meeting::start(&router, timing, signer, hosts, &mut endpoint, &over))
            .transpose()
            .map_err(Error::Thread)?;
        let watched_for = Watch {
            node: settings.node,
            announce: settings.announce,
            learned: settings.learned,
            lans: settings.discover,
        };
        let watch = watch::start(watched_for, over, seen);
        Ok(Self {
            node,
            is_over,
            origin: Instant::now(),
            router,
            endpoint,
            commands: Commands::new(),
            trust,
            served,
            keys: watched_keys,
            parked: BTreeMap::new(),
            asked: BTreeMap::new(),
            watched,
            announced_there: BTreeMap::new(),
            learned_there: BTreeMap::new(),
            announced: BTreeMap::new(),
            looked: false,
            installed: BTreeSet::new(),
            held,
            meeting,
            link_watch: settings.link_watch,
            links: BTreeMap::new(),
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
                        self.meeting_forgets(now);
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
        self.meet(now);
        self.flush(connection)?;
        let due = self.router.poll_timeout().min(self.endpoint.poll_timeout());
        let due = due.min(self.meeting_due());
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
                self.order(now, Whose::Router(id), Order::Routing(command));
            }
            Output::Verify { id, packet, face } => self.check(Check::Router(id), packet, face),
            Output::Notice(notice) => tell(&notice),
        }
    }

    /// Has the forwarder do something.
    fn order(&mut self, now: Tick, whose: Whose, order: Order) {
        let (endpoint, unix_ms) = (&mut self.endpoint, unix_now_ms());
        if let Some(answer) = self.commands.send(now, unix_ms, endpoint, whose, order) {
            self.completed(now, answer);
        }
    }

    fn completed(&mut self, now: Tick, answer: Answer) {
        match answer.whose {
            Whose::Router(id) => {
                self.router.completed(now, id, answer.result.map(|done| done.face));
            }
            Whose::Meet(id) => self.met(now, id, answer.result),
            Whose::Nobody => {}
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
                    if let Some(wanted) = self.asked.remove(&id) {
                        self.certificate(&wanted, None);
                        continue;
                    }
                    let (endpoint, unix_ms) = (&mut self.endpoint, unix_now_ms());
                    if let Some(answer) = self.commands.unanswered(now, unix_ms, endpoint, id) {
                        self.completed(now, answer);
                    }
                }
                Event::Interest { prefix, incoming } => {
                    if self.meeting.as_ref().is_some_and(|meeting| meeting.prefix == prefix) {
                        self.greeted(now, &incoming);
                        continue;
                    }
                    if let Some(certificate) = self.served.answer(&incoming.interest()) {
                        let wire = certificate.wire().to_vec();
                        self.endpoint.reply(&incoming, wire);
                    }
                }
                _ => {}
            }
        }
    }

    fn answered(&mut self, now: Tick, id: RequestId, packet: &Packet) {
        if let Some(wanted) = self.asked.remove(&id) {
            self.certificate(&wanted, Some(packet));
        } else if let Some(event) = self.commands.event(now, id, packet) {
            if command::is_up(&event) {
                self.router.retry_links(now);
            } else {
                self.router.face_down(now, event.face_id);
                self.meeting_lost(now, event.face_id);
            }
        } else if let Some(answer) = self.commands.answered(id, packet) {
            self.completed(now, answer);
        }
    }

    // --- signatures

    fn check(&mut self, check: Check, packet: Packet, face: Option<u64>) {
        let now = self.now();
        let wanted = match self.trust.check(&packet, face, unix_now_ms()) {
            Step::Done(verdict) => return self.judged(now, check, &packet, verdict),
            Step::Fetch(wanted) => wanted,
        };
        let waiting: usize = self.parked.values().map(Vec::len).sum();
        if waiting >= PARKED_MAX {
            let why = "too many packets wait for certificates".to_owned();
            return self.judged(now, check, &packet, Verdict::Bad(why));
        }
        if !self.parked.contains_key(&wanted) {
            // Its owner hears the Interest by the name of what it signed.
            let request = Request {
                can_be_prefix: true,
                must_be_fresh: true,
                forwarding_hint: vec![packet.data().name.to_name()],
                lifetime: Duration::from_secs(1),
                tries: 4,
                next_hop_face: face,
                ..Request::new(wanted.1.clone())
            };
            match self.endpoint.express(now, &request) {
                Ok(id) => self.asked.insert(id, wanted.clone()),
                Err(e) => {
                    self.trust.answered(&wanted, None, unix_now_ms());
                    return self.judged(now, check, &packet, Verdict::Bad(e.to_string()));
                }
            };
        }
        self.parked.entry(wanted).or_default().push(Parked { check, packet, face });
    }

    /// A certificate came, or nobody has it: what waits for it is checked again.
    fn certificate(&mut self, wanted: &Wanted, packet: Option<&Packet>) {
        self.trust.answered(wanted, packet, unix_now_ms());
        for parked in self.parked.remove(wanted).unwrap_or_default() {
            self.check(parked.check, parked.packet, parked.face);
        }
    }

    fn judged(&mut self, now: Tick, check: Check, packet: &Packet, verdict: Verdict) {
        match check {
            Check::Router(id) => self.router.verified(now, id, verdict),
            Check::Hello(face, hello) => self.greeting_judged(now, face, &hello, packet, verdict),
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
        self.meeting_looks(now);
        self.tell_links();
        if !self.learned_there.is_empty() {
            self.announce(now);
        }
        self.look_at_keys(now);
        let met = self.meeting.as_ref().map_or_else(Default::default, |m| m.meet.counters);
        self.shown.set(self.with_dates(Figures::of(&self.router, met)));
    }
}
