//! The router's thread.

mod area;
mod keys;
mod meeting;
mod routes;
#[cfg(test)]
mod tests;
mod told;

use crate::command::{Answer, Commands, Order, Whose};
use crate::connection::Connection;
use crate::meet::Counters as Met;
use crate::meet::hello::Hello;
use crate::seen::{Figures, Seen as Shown};
use crate::state::KeysError;
use crate::trust::{Step, Wanted};
use crate::watch::{self, Seen, Watch};
use crate::{LinkWatch, Settings, held};
use area::Own;
use onym_client::NodeUri;
use onym_crypto::edge::{random_u64, unix_now_ms};
use onym_endpoint::{Endpoint, Event, Inbound, Limits, Packet, Request, RequestId};
use onym_route::border::BorderError;
use onym_route::{Border, Command, Output, Verdict};
use onym_tables::Tick;
use onym_wire::Name;
use onym_wire::mgmt::FaceEventKind;
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
    /// Networks and what one hears of another.
    #[error(transparent)]
    Border(#[from] BorderError),
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
    /// A hello for the network `at` that came by `lan`, a link with several peers.
    Hello { at: usize, lan: u64, hello: Box<Hello> },
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
    router: Border,
    endpoint: Endpoint,
    commands: Commands,
    /// The networks, in the order of the border's routers.
    areas: Vec<Own>,
    /// Packets by the network and the certificate that they need, and who asks for it.
    parked: BTreeMap<(usize, Wanted), Vec<Parked>>,
    asked: BTreeMap<RequestId, (usize, Wanted)>,
    watched: Receiver<Seen>,
    /// What the forwarder has to be announced, what it learned, and what is announced of both.
    announced_there: BTreeMap<(Name, u64), u64>,
    learned_there: BTreeMap<(Name, u64), u64>,
    announced: BTreeMap<(Name, u64), u64>,
    /// Stale routes are looked for once.
    looked: bool,
    installed: BTreeSet<(Name, u64)>,
    link_watch: Option<LinkWatch>,
    links: BTreeMap<u64, u64>,
    look_at: Tick,
    shown: Arc<Shown>,
    _watch: JoinHandle<()>,
}

impl Shell {
    fn new(mut settings: Settings, is_over: Arc<AtomicBool>) -> Result<Self, Error> {
        let node: NodeUri =
            settings.node.parse().map_err(|_| Error::Node(settings.node.clone()))?;
        let unix_ms = unix_now_ms();
        let mut endpoint = Endpoint::new(random_u64(), Limits::default());
        let (mut areas, mut routers): (Vec<Own>, _) = (Vec::new(), Vec::new());
        for area in std::mem::take(&mut settings.areas) {
            let (own, router) = area::open(&settings, area, &mut endpoint, unix_ms, &is_over)?;
            areas.push(own);
            routers.push(router);
        }
        let router = Border::new(Tick(0), routers, std::mem::take(&mut settings.exports))?;
        let (seen, watched) = mpsc::sync_channel(1);
        let watched_for = Watch {
            node: settings.node,
            announce: settings.announce,
            learned: settings.learned,
            lans: areas.iter().any(Own::discovers),
        };
        let watch = watch::start(watched_for, Arc::clone(&is_over), seen);
        Ok(Self {
            node,
            is_over,
            origin: Instant::now(),
            router,
            endpoint,
            commands: Commands::new(),
            areas,
            parked: BTreeMap::new(),
            asked: BTreeMap::new(),
            watched,
            announced_there: BTreeMap::new(),
            learned_there: BTreeMap::new(),
            announced: BTreeMap::new(),
            looked: false,
            installed: BTreeSet::new(),
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
                        self.router.each(now, |router| router.forwarder_restarted(now));
                        self.meetings_forget(now);
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
        self.router.each(now, |router| router.stop(now));
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
        let unix_ms = unix_now_ms();
        self.router.each(now, |router| router.set_clock(now, unix_ms));
        self.router.handle_timeout(now);
        self.endpoint.handle_timeout(now);
        self.commands.watch_faces(now, &mut self.endpoint);
        self.look();
        self.look_around(now);
        self.meet(now);
        self.flush(connection)?;
        let due = self.router.poll_timeout().min(self.endpoint.poll_timeout());
        let due = due.min(self.meetings_due());
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
            Whose::Meet(at, id) => self.met(now, at, id, answer.result),
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
                    if let Some((at, wanted)) = self.asked.remove(&id) {
                        self.certificate(at, wanted, None);
                        continue;
                    }
                    let (endpoint, unix_ms) = (&mut self.endpoint, unix_now_ms());
                    if let Some(answer) = self.commands.unanswered(now, unix_ms, endpoint, id) {
                        self.completed(now, answer);
                    }
                }
                Event::Interest { prefix, incoming } => {
                    if let Some(at) = self.areas.iter().position(|area| area.meets_by(prefix)) {
                        self.greeted(now, at, &incoming);
                        continue;
                    }
                    let interest = incoming.interest();
                    let found = self.areas.iter().find_map(|area| area.served.answer(&interest));
                    if let Some(certificate) = found {
                        let wire = certificate.wire().to_vec();
                        self.endpoint.reply(&incoming, wire);
                    }
                }
                _ => {}
            }
        }
    }

    fn answered(&mut self, now: Tick, id: RequestId, packet: &Packet) {
        if let Some((at, wanted)) = self.asked.remove(&id) {
            self.certificate(at, wanted, Some(packet));
        } else if let Some(event) = self.commands.event(now, id, packet) {
            let face = event.face_id;
            match event.kind {
                FaceEventKind::Created | FaceEventKind::Up => {
                    self.router.each(now, |router| router.retry_links(now));
                }
                FaceEventKind::Refused => {
                    self.router.each(now, |router| router.face_refused(now, face));
                }
                FaceEventKind::Destroyed | FaceEventKind::Down => {
                    self.router.each(now, |router| router.face_down(now, face));
                    self.meetings_lose(now, face);
                }
            }
        } else if let Some(answer) = self.commands.answered(id, packet) {
            self.completed(now, answer);
        }
    }

    // --- signatures

    fn check(&mut self, check: Check, packet: Packet, face: Option<u64>) {
        let now = self.now();
        let at = match &check {
            Check::Router(id) => self.router.asker(*id),
            Check::Hello { at, .. } => *at,
        };
        let Some(area) = self.areas.get_mut(at) else { return };
        let wanted = match area.trust.check(&packet, face, unix_now_ms()) {
            Step::Done(verdict) => return self.judged(now, check, &packet, verdict),
            Step::Fetch(wanted) => (at, wanted),
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
                ..Request::new(wanted.1.1.clone())
            };
            match self.endpoint.express(now, &request) {
                Ok(id) => self.asked.insert(id, wanted.clone()),
                Err(e) => {
                    area.trust.answered(&wanted.1, None, unix_now_ms());
                    return self.judged(now, check, &packet, Verdict::Bad(e.to_string()));
                }
            };
        }
        self.parked.entry(wanted).or_default().push(Parked { check, packet, face });
    }

    /// A certificate came, or nobody has it: what waits for it is checked again.
    fn certificate(&mut self, at: usize, wanted: Wanted, packet: Option<&Packet>) {
        if let Some(area) = self.areas.get_mut(at) {
            area.trust.answered(&wanted, packet, unix_now_ms());
        }
        for parked in self.parked.remove(&(at, wanted)).unwrap_or_default() {
            self.check(parked.check, parked.packet, parked.face);
        }
    }

    fn judged(&mut self, now: Tick, check: Check, packet: &Packet, verdict: Verdict) {
        match check {
            Check::Router(id) => self.router.verified(now, id, verdict),
            Check::Hello { at, lan, hello } => {
                self.greeting_judged(now, at, lan, &hello, packet, verdict);
            }
        }
    }

    // --- what operators write and read

    fn look_around(&mut self, now: Tick) {
        if now < self.look_at {
            return;
        }
        self.look_at = now.plus_ms(LOOK_MS);
        self.look_at_held(now);
        self.meetings_look(now);
        self.tell_links();
        if !self.learned_there.is_empty() {
            self.announce(now);
        }
        self.look_at_keys(now);
        let mut met = Met::default();
        for area in &self.areas {
            met += area.meeting.as_ref().map_or_else(Met::default, |m| m.meet.counters);
        }
        self.shown.set(self.with_dates(Figures::of(&self.router, met)));
    }

    fn look_at_held(&mut self, now: Tick) {
        for (at, area) in self.areas.iter_mut().enumerate() {
            let Some(held) = area.held.as_mut().and_then(held::Watched::look) else { continue };
            self.router.with(now, at, |own| {
                let before: BTreeSet<Name> = own.held().cloned().collect();
                for router in before.difference(&held) {
                    tracing::info!(target: "onym::route", %router, "released");
                    own.release(now, router);
                }
                for router in held.difference(&before) {
                    tracing::info!(target: "onym::route", %router, "held down");
                    own.hold(now, router);
                }
            });
        }
    }
}
