//! The gateway as a thread with two connections to its node: one of each half.

use crate::map::Map;
use crate::state::{Action, Counters, Gateway, Limits};
use onym_client::blocking::Client;
use onym_client::push::{App, Event, Publication};
use onym_client::{
    Answer, ClientOptions, FetchError, FetchId, FetchOptions, Find, Incoming, Packet, Request,
    RequestId, RouteOptions, Schema, Unanswered, Verify,
};
use onym_crypto::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::signer::Signer;
use onym_frame::Buf;
use onym_wire::NackReason;
use onym_wire::mgmt::{RibEntry, parse_list};
use onym_wire::name::Name;
use onym_wire::push::Id;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// What a gateway needs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The node, as a client names it.
    pub node: String,
    /// Which names and scopes mean the same.
    pub maps: Vec<Map>,
    /// Bounds and times.
    pub limits: Limits,
    /// How often the node's routes are read.
    pub routes_every: Duration,
    /// Who signs Data.
    pub signer: Signer,
    /// Served at its name, when that lies under the prefix of a map.
    pub certificate: Option<Certificate>,
    /// By whose rules what producers have is published; without it whatever they have.
    pub trust: Option<Arc<Schema>>,
}

/// A running gateway; dropping it stops it.
#[derive(Debug)]
pub struct Handle {
    is_over: Arc<AtomicBool>,
    counters: Arc<Mutex<Counters>>,
    thread: Option<JoinHandle<()>>,
}

impl Handle {
    /// What it counted since its connections are there.
    #[must_use]
    pub fn counters(&self) -> Counters {
        *self.counters.lock().unwrap_or_else(PoisonError::into_inner)
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

/// How soon a request to stop is noticed.
const LOOK: Duration = Duration::from_millis(100);
/// Wait before the node is tried again.
const RETRY: Duration = Duration::from_millis(500);
/// How long the node may take for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// Why the connections to the node ended.
#[derive(Debug, thiserror::Error)]
enum Broken {
    #[error(transparent)]
    Pull(#[from] onym_client::Error),
    #[error(transparent)]
    Push(#[from] onym_client::push::Error),
    #[error(transparent)]
    TooMany(#[from] onym_client::endpoint::TooMany),
    #[error("waiting for the node: {0}")]
    Wait(#[from] rustix::io::Errno),
}

/// Starts a gateway. It connects again when the node ended a connection.
///
/// # Errors
/// The operating system gives no thread.
pub fn start(settings: Settings) -> std::io::Result<Handle> {
    let (is_over, counters) = (Arc::new(AtomicBool::new(false)), Arc::default());
    let (over, counts) = (Arc::clone(&is_over), Arc::clone(&counters));
    let run = move || {
        while !over.load(Ordering::Relaxed) {
            let ended = Session::open(&settings).and_then(|mut session| {
                tracing::info!(maps = settings.maps.len(), "the gateway is connected");
                session.run(&over, &counts)
            });
            if let Err(error) = ended {
                tracing::warn!(%error, "the gateway lost its node; reconnecting");
                std::thread::sleep(RETRY);
            }
        }
    };
    let thread = Some(std::thread::Builder::new().name("onym-gateway".into()).spawn(run)?);
    Ok(Handle { is_over, counters, thread })
}

/// A fetch and what came of it.
struct Fetching {
    fetch: FetchId,
    content: Vec<u8>,
    /// The version is known, and wanted.
    is_found: bool,
}

struct Session<'a> {
    settings: &'a Settings,
    client: Client,
    app: App,
    gateway: Gateway,
    inbox: Arc<Mutex<Vec<Incoming>>>,
    fetches: BTreeMap<Id, Fetching>,
    /// The list of routes, under way.
    routes: Option<(FetchId, Vec<u8>)>,
    routes_at: Instant,
    length_max: usize,
    /// Certificates that are asked for.
    certificates: HashMap<RequestId, Name>,
}

/// Certificates asked for at once; further ones when their producer is asked again.
const CERTIFICATES_MAX: usize = 64;

/// Octets of the list of routes that are looked at.
const ROUTES_MAX: usize = 16 << 20;

impl<'a> Session<'a> {
    fn open(settings: &'a Settings) -> Result<Self, Broken> {
        let options = ClientOptions {
            node: Some(settings.node.clone()),
            reconnect_for: Duration::ZERO,
            connect_timeout: CONNECT,
        };
        let mut client = Client::open(options)?;
        let app = App::open(Some(&settings.node), "gateway")?;
        let inbox = Arc::new(Mutex::new(Vec::new()));
        for map in &settings.maps {
            let inbox = Arc::clone(&inbox);
            let respond = move |incoming: &Incoming, _: &mut Vec<u8>| {
                let mut inbox = inbox.lock().unwrap_or_else(PoisonError::into_inner);
                inbox.push(incoming.clone());
                Answer::Nothing
            };
            client.respond(map.prefix.clone(), Box::new(respond))?;
            client.endpoint().register(map.prefix.clone(), RouteOptions::default())?;
        }
        serve_certificate(&mut client, settings)?;
        let length_max = usize::try_from(app.info().length_max).unwrap_or(usize::MAX);
        let at_zero = unix_now_ms() - client.now().0 / 1_000_000;
        let signer = settings.signer.clone();
        let gateway = Gateway::new(settings.maps.clone(), settings.limits, signer, at_zero);
        let (fetches, routes, routes_at) = (BTreeMap::new(), None, Instant::now());
        let certificates = HashMap::new();
        Ok(Self {
            settings,
            client,
            app,
            gateway,
            inbox,
            fetches,
            routes,
            routes_at,
            length_max,
            certificates,
        })
    }

    fn run(&mut self, over: &AtomicBool, counts: &Mutex<Counters>) -> Result<(), Broken> {
        while !over.load(Ordering::Relaxed) {
            while let Some(event) = self.client.step(Instant::now())? {
                match event {
                    onym_client::Event::NotRegistered(_, why) => {
                        tracing::warn!(%why, "the gateway's prefix is not registered");
                    }
                    onym_client::Event::Answered(id, answer) => self.take_certificate(id, answer),
                    _ => {}
                }
            }
            self.take_interests();
            self.take_events()?;
            self.take_fetches();
            self.take_routes();
            let now = self.client.now();
            self.gateway.handle_timeout(now);
            let is_idle = !self.act()?;
            *counts.lock().unwrap_or_else(PoisonError::into_inner) = self.gateway.counters();
            if is_idle {
                self.wait()?;
            }
        }
        Ok(())
    }

    fn take_interests(&mut self) {
        let now = self.client.now();
        let taken = std::mem::take(&mut *self.inbox.lock().unwrap_or_else(PoisonError::into_inner));
        taken.into_iter().for_each(|incoming| self.gateway.interest(now, incoming));
    }

    fn take_events(&mut self) -> Result<(), Broken> {
        while let Some(event) = self.app.event(Some(Duration::ZERO))? {
            let now = self.client.now();
            match event {
                Event::Data { id, payload, .. } => {
                    self.gateway.published(now, &id, payload.to_vec())
                }
                Event::StartPublish(id) => self.gateway.started(now, &id),
                Event::StopPublish(id) => self.gateway.stopped(&id),
                Event::Missed(count) | Event::Lost(count) => {
                    tracing::debug!(count, "the gateway missed publications")
                }
                Event::Refused { id, status } => {
                    tracing::debug!(%id, %status, "a publication of the gateway was refused");
                }
                _ => {}
            }
        }
        while let Some((tag, status)) = self.app.poll_answer() {
            self.gateway.answered(self.client.now(), tag, status);
        }
        Ok(())
    }

    fn take_fetches(&mut self) {
        let now = self.client.now();
        let endpoint = self.client.endpoint();
        let (mut over, mut unknown) = (Vec::new(), Vec::new());
        for (id, fetching) in &mut self.fetches {
            let progress = endpoint.fetch_progress(fetching.fetch);
            let version = progress.and_then(|progress| progress.name);
            if let (false, Some(version)) = (fetching.is_found, &version) {
                fetching.is_found = self.gateway.found(now, id, version);
                if !fetching.is_found {
                    endpoint.fetch_cancel(fetching.fetch);
                    over.push(id.clone());
                    continue;
                }
            }
            while let Some(piece) = endpoint.fetch_read(fetching.fetch) {
                fetching.content.extend_from_slice(&piece);
            }
            if fetching.content.len() > self.length_max {
                tracing::warn!(%id, "longer than a publication may be");
                endpoint.fetch_cancel(fetching.fetch);
                self.gateway.fetch_failed(now, id);
                over.push(id.clone());
                continue;
            }
            match endpoint.fetch_end(fetching.fetch) {
                None => continue,
                Some(Ok(progress)) => {
                    let content = std::mem::take(&mut fetching.content);
                    let version = progress.name.or(version).unwrap_or_default();
                    self.gateway.fetched(now, id, version, content);
                }
                Some(Err(FetchError::NotVerified {
                    source: onym_crypto::Error::NoCertificate(wanted),
                    ..
                })) => {
                    unknown.push(wanted);
                    self.gateway.fetch_failed(now, id);
                }
                Some(Err(error @ FetchError::NotVerified { .. })) => {
                    tracing::warn!(%id, %error, "a version of a producer is not published");
                    self.gateway.fetch_failed(now, id);
                }
                Some(Err(error)) => {
                    tracing::debug!(%id, %error, "a producer was not reached");
                    self.gateway.fetch_failed(now, id);
                }
            }
            over.push(id.clone());
        }
        over.iter().for_each(|id| {
            self.fetches.remove(id);
        });
        unknown.into_iter().for_each(|wanted| self.ask_certificate(wanted));
        for notice in self.settings.trust.iter().flat_map(|trust| trust.notices()) {
            match notice.is_bad {
                true => tracing::warn!("gateway.trust: {notice}"),
                false => tracing::info!("gateway.trust: {notice}"),
            }
        }
    }

    /// Asks for a certificate; its producer is asked again later, and is known then.
    fn ask_certificate(&mut self, wanted: Name) {
        let is_asked = self.certificates.values().any(|name| *name == wanted);
        if is_asked || self.certificates.len() >= CERTIFICATES_MAX {
            return;
        }
        let request =
            Request { can_be_prefix: true, must_be_fresh: true, ..Request::new(wanted.clone()) };
        let now = self.client.now();
        if let Ok(id) = self.client.endpoint().request(now, &request) {
            self.certificates.insert(id, wanted);
        }
    }

    fn take_certificate(&mut self, id: RequestId, answer: Result<Packet, Unanswered>) {
        let Some(wanted) = self.certificates.remove(&id) else { return };
        let Some(trust) = &self.settings.trust else { return };
        // Why a chain ends is told when the producer's version is refused.
        let _ = trust.answer(&wanted, answer.as_ref().ok().map(|packet| &**packet.bytes()));
        while let Some(next) = onym_client::Trust::wanted(&**trust) {
            let asked = self.certificates.len();
            self.ask_certificate(next);
            if self.certificates.len() == asked {
                return;
            }
        }
    }

    /// Reads the node's routes from time to time.
    fn take_routes(&mut self) {
        if !self.settings.maps.iter().any(|map| map.is_by_routes) {
            return;
        }
        let now = self.client.now();
        let endpoint = self.client.endpoint();
        let Some((fetch, content)) = &mut self.routes else {
            if Instant::now() >= self.routes_at {
                self.routes_at = Instant::now() + self.settings.routes_every;
                let mut name = endpoint.management_prefix();
                name.append_generic("rib").append_generic("list");
                let options = FetchOptions { find: Find::Segment, ..FetchOptions::default() };
                let fetch = endpoint.fetch(now, name, options).ok();
                self.routes = fetch.map(|fetch| (fetch, Vec::new()));
            }
            return;
        };
        while let Some(piece) = endpoint.fetch_read(*fetch) {
            content.extend_from_slice(&piece);
        }
        let end = if content.len() > ROUTES_MAX {
            endpoint.fetch_cancel(*fetch);
            Some(Err(()))
        } else {
            endpoint.fetch_end(*fetch).map(|end| end.map(|_| ()).map_err(|_: FetchError| ()))
        };
        let Some(end) = end else { return };
        match (end, parse_list::<RibEntry>(content)) {
            (Ok(()), Ok(entries)) => {
                let names: Vec<Name> = entries.into_iter().map(|entry| entry.name).collect();
                self.gateway.routes(&names);
            }
            _ => tracing::debug!("the node's routes cannot be read"),
        }
        self.routes = None;
    }

    /// Does what the gateway wants; whether there was something.
    fn act(&mut self) -> Result<bool, Broken> {
        let mut any = false;
        while let Some(action) = self.gateway.poll_action() {
            any = true;
            let now = self.client.now();
            match action {
                Action::Request(ask) => {
                    let label = ask.id.last().map(Id::root).unwrap_or_default();
                    let parent = Id::from_labels(ask.id.parent());
                    let tag = self.app.ask(ask.kind, &label, &parent, ask.strategy)?;
                    self.gateway.asked(tag, ask);
                }
                Action::Reply(incoming, data) => self.client.endpoint().reply(now, &incoming, data),
                Action::Refuse(incoming, reason) => {
                    self.client.endpoint().refuse(now, &incoming, reason);
                }
                Action::Fetch(id, name) => {
                    let verify = match &self.settings.trust {
                        Some(trust) => Verify::With(Arc::<Schema>::clone(trust)),
                        None => Verify::default(),
                    };
                    let options =
                        FetchOptions { must_be_fresh: true, verify, ..FetchOptions::default() };
                    match self.client.endpoint().fetch(now, name, options) {
                        Ok(fetch) => {
                            let (content, is_found) = (Vec::new(), false);
                            self.fetches.insert(id, Fetching { fetch, content, is_found });
                        }
                        Err(_) => self.gateway.fetch_failed(now, &id),
                    }
                }
                Action::Cancel(id) => {
                    if let Some(fetching) = self.fetches.remove(&id) {
                        self.client.endpoint().fetch_cancel(fetching.fetch);
                    }
                }
                Action::Publish(id, strategy, content) => {
                    let publication = Publication::new(&id, strategy, &content);
                    self.app.publish(publication.id, strategy, publication.payload)?;
                    self.app.drain()?;
                }
            }
        }
        Ok(any)
    }

    fn wait(&mut self) -> Result<(), Broken> {
        let (fd, writes, deadline) = self.client.waits_for();
        let timer = self.gateway.next_timeout().since(self.client.now()).min(LOOK);
        let left = deadline.map(|at| at.saturating_duration_since(Instant::now()));
        let wait = left.map_or(timer, |left| left.min(timer));
        let timeout = Timespec {
            tv_sec: i64::try_from(wait.as_secs()).unwrap_or(i64::MAX),
            tv_nsec: i64::from(wait.subsec_nanos()),
        };
        let flags = |writes| if writes { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN };
        let mut fds = vec![PollFd::from_borrowed_fd(self.app.fd(), flags(self.app.wants_write()))];
        fds.extend(fd.map(|fd| PollFd::from_borrowed_fd(fd, flags(writes))));
        match poll(&mut fds, Some(&timeout)) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(errno) => Err(errno.into()),
        }
    }
}

/// Answers Interests for the certificate of the gateway's own key.
fn serve_certificate(client: &mut Client, settings: &Settings) -> Result<(), Broken> {
    let Some(certificate) = &settings.certificate else { return Ok(()) };
    // Whoever knows the prefix finds it.
    let keys = certificate.key_name().drop_last(1).to_name();
    let wire = Buf::copy_from(certificate.wire());
    let own = certificate.name().to_name();
    let respond = move |incoming: &Incoming, _: &mut Vec<u8>| {
        let interest = incoming.interest();
        let is_it = interest.name == own.as_ref()
            || interest.can_be_prefix && interest.name.is_prefix_of(own.as_ref());
        if is_it { Answer::Shared(wire.clone()) } else { Answer::Nack(NackReason::NONE) }
    };
    client.respond(keys, Box::new(respond))?;
    Ok(())
}
