//! An HTTP server as named data: a page under its name, fetched when somebody asks for it.

mod address;
mod ask;
mod rules;
mod shelf;

pub use ask::{NoOrigin, Server};

use address::{Asked, Target};
use ask::{Came, Validators};
use onym_client::aio::Client;
use onym_client::{Answer, Error, Incoming, RouteOptions};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::{Signer, sha256};
use onym_frame::Buf;
use onym_wire::name::Name;
use rules::Judged;
use shelf::{Page, Shelf, State};
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Pages that are fetched at the same time, at most; Interests for further ones are dropped.
const FETCHES_MAX: usize = 64;
/// Interests that wait for one page, at most.
const WAITING_MAX: usize = 256;
/// Interests that wait to be looked at, at most.
const ASKED_MAX: usize = 1024;
/// Redirections that are followed.
const MOVES_MAX: usize = 5;
/// How long an origin that failed is left alone.
const FAILED_FOR: Duration = Duration::from_secs(1);
/// How long a page is fresh that is used because its origin failed.
const STALE_FRESH: Duration = Duration::from_secs(1);

/// How an origin is given names.
#[derive(Debug)]
pub struct Options {
    /// Where it is.
    pub server: Server,
    /// What its names begin with.
    pub prefix: Name,
    /// Who signs.
    pub signer: Signer,
    /// How it is routed.
    pub route: RouteOptions,
    /// Octets of pages that are kept, at most.
    pub octets_max: usize,
}

/// What the responder and the task share.
#[derive(Debug)]
struct Shared {
    server: Server,
    prefix: Name,
    signer: Signer,
    shelf: Mutex<Shelf>,
}

/// An origin whose names are routed here.
#[derive(Debug)]
pub struct Origin {
    client: Client,
    shared: Arc<Shared>,
    asked: mpsc::Receiver<(Target, Incoming)>,
}

impl Origin {
    /// Registers the names of an origin.
    ///
    /// # Errors
    /// Those of [`Client::register`].
    pub async fn open(client: Client, options: Options) -> Result<Self, Error> {
        let Options { server, prefix, signer, route, octets_max } = options;
        let shelf = Mutex::new(Shelf::new(octets_max));
        let shared = Arc::new(Shared { server, prefix: prefix.clone(), signer, shelf });
        let (ask, asked) = mpsc::channel(ASKED_MAX);
        let ours = Arc::clone(&shared);
        let respond =
            move |incoming: &Incoming, out: &mut Vec<u8>| ours.respond(incoming, &ask, out);
        client.respond(prefix.clone(), respond).await?;
        client.register(prefix, route).await?;
        Ok(Self { client, shared, asked })
    }

    /// Answers until the client ends.
    pub async fn run(mut self) {
        let mut waiting: HashMap<Name, Vec<(Target, Incoming)>> = HashMap::new();
        let mut fetches: JoinSet<(Name, Option<State>)> = JoinSet::new();
        loop {
            tokio::select! {
                asked = self.asked.recv() => {
                    let Some((target, incoming)) = asked else { return };
                    self.ask(target, incoming, &mut waiting, &mut fetches);
                }
                Some(Ok((page, state))) = fetches.join_next() => {
                    for (target, incoming) in waiting.remove(&page).unwrap_or_default() {
                        self.reply(&target, incoming, state.as_ref()).await;
                    }
                }
            }
        }
    }

    /// Has a page fetched, unless it is being fetched.
    fn ask(
        &self,
        target: Target,
        incoming: Incoming,
        waiting: &mut HashMap<Name, Vec<(Target, Incoming)>>,
        fetches: &mut JoinSet<(Name, Option<State>)>,
    ) {
        if let Some(others) = waiting.get_mut(&target.page) {
            // Beyond the bound it is asked again.
            if others.len() < WAITING_MAX {
                others.push((target, incoming));
            }
            return;
        }
        if fetches.len() >= FETCHES_MAX {
            return;
        }
        let (page, path) = (target.page.clone(), target.path.clone());
        waiting.insert(page.clone(), vec![(target, incoming)]);
        let shared = Arc::clone(&self.shared);
        fetches.spawn(async move {
            let state = shared.refresh(&page, &path).await;
            (page, state)
        });
    }

    async fn reply(&self, target: &Target, incoming: Incoming, state: Option<&State>) {
        let Some(state) = state else { return };
        let (name, signer) = (incoming.interest().name.to_name(), &self.shared.signer);
        let mut out = Vec::new();
        let answer = match (state, target.asked) {
            // It was looked at just now, however short it is fresh.
            (State::Page(page), Asked::Metadata) => {
                let fresh = page.fresh_until.saturating_duration_since(Instant::now());
                let fresh = u64::try_from(fresh.as_millis()).unwrap_or(u64::MAX).max(1);
                Some(shelf::metadata(page, &target.page, name.as_ref(), signer, fresh, &mut out))
            }
            _ => shelf::answer(state, target, name.as_ref(), signer, &mut out),
        };
        if answer == Some(Answer::Written) {
            // The client is gone when this fails, and then nobody waits.
            let _ = self.client.reply(incoming, Buf::copy_from(&out)).await;
        }
    }
}

impl Shared {
    fn shelf(&self) -> MutexGuard<'_, Shelf> {
        self.shelf.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Answers what is known; else the task is asked.
    fn respond(
        &self,
        incoming: &Incoming,
        ask: &mpsc::Sender<(Target, Incoming)>,
        out: &mut Vec<u8>,
    ) -> Answer {
        let interest = incoming.interest();
        let target = Target::of(&self.prefix, interest.name);
        // Metadata have a longer name than what asks for them.
        let fits = |target: &Target| target.asked != Asked::Metadata || interest.can_be_prefix;
        let Some(target) = target.filter(fits) else {
            return Answer::Nack(onym_wire::NackReason::NONE);
        };
        let state = self.shelf().get(&target.page);
        let known = state
            .and_then(|state| shelf::answer(&state, &target, interest.name, &self.signer, out));
        known.unwrap_or_else(|| {
            // Full: it is asked again.
            let _ = ask.try_send((target, incoming.clone()));
            Answer::Nothing
        })
    }

    /// Asks the origin for a page, or whether it is still what is known of it.
    async fn refresh(&self, name: &Name, path: &str) -> Option<State> {
        let known = match self.shelf().get(name) {
            Some(State::Page(page)) => Some(page),
            _ => None,
        };
        let (state, why) = match self.ask(path, known.as_deref()).await {
            Ok(state) => (Some(state), String::new()),
            Err(why) => (None, why),
        };
        let now = Instant::now();
        let state = state.unwrap_or_else(|| {
            tracing::info!(%name, %why, "origin-failed");
            match known {
                Some(page) if now < page.stale_until => {
                    let fresh_until = now + STALE_FRESH;
                    State::Page(Arc::new(Page { fresh_until, ..Page::clone(&page) }))
                }
                _ => State::Failed(now + FAILED_FOR),
            }
        });
        self.shelf().put(name.clone(), state.clone());
        Some(state)
    }

    async fn ask(&self, path: &str, known: Option<&Page>) -> Result<State, String> {
        let mut path = path.to_owned();
        for _ in 0..=MOVES_MAX {
            let validators = known.map(|page| page.validators.clone()).unwrap_or_default();
            let came = self.server.get(&path, &validators).await?;
            let now = Instant::now();
            let judged = rules::judge(came.status, &came.headers, SystemTime::now());
            match judged {
                Judged::Page { fresh, stale_if_error } => {
                    return Ok(kept(page(&came, known), now, fresh, stale_if_error));
                }
                Judged::Same { fresh, stale_if_error } => {
                    let page = known.ok_or("it says that nothing changed of what is not known")?;
                    return Ok(kept(page.clone(), now, fresh, stale_if_error));
                }
                Judged::Nothing { fresh } => return Ok(State::Nothing(now + fresh)),
                // Whoever may have it asks the origin itself.
                Judged::NotForOthers => return Ok(State::Nothing(now + FAILED_FOR)),
                Judged::Moved(to) => {
                    path = self.server.within(&to).ok_or("it leads to another server")?;
                }
                Judged::Failed => return Err(format!("it answered {}", came.status)),
            }
        }
        Err("it leads on and on".into())
    }
}

fn kept(page: Page, now: Instant, fresh: Duration, stale_if_error: Duration) -> State {
    let fresh_until = now + fresh;
    State::Page(Arc::new(Page { fresh_until, stale_until: fresh_until + stale_if_error, ..page }))
}

/// The page that came. What did not change keeps its version.
fn page(came: &Came, known: Option<&Page>) -> Page {
    let validators = Validators::of(&came.headers);
    let modified = validators.modified.as_ref().and_then(|at| httpdate::parse_http_date(at).ok());
    let since = modified.and_then(|at| at.duration_since(UNIX_EPOCH).ok());
    let mtime_ns = since.map_or(0, |since| since.as_secs().saturating_mul(1_000_000_000));
    // Within a second, versions differ as contents do.
    let digest = sha256(&[&came.body]);
    let part = digest.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets));
    let version = match (known, mtime_ns) {
        (Some(known), _) if known.content == came.body && known.mtime_ns == mtime_ns => {
            known.version
        }
        (_, 0) => unix_now_ms().saturating_mul(1_000_000),
        (_, at) => at.saturating_add(u64::from(part) % 1_000_000_000),
    };
    let now = Instant::now();
    let content = came.body.clone();
    Page { version, content, validators, mtime_ns, fresh_until: now, stale_until: now }
}
