//! One task that makes all changes, one after the other, and observes in between.

mod change;
mod journal;
mod observe;
mod orders;
mod policies;
mod report;
mod stand_by;
mod steps;
mod view;

pub use journal::{EVENTS_MAX, Event, Journal};
pub use orders::{Change, ChangeError, Done};
pub use stand_by::{Candidate, agree_mark};
pub use view::{FunctionView, History, LinkView, SAMPLES_MAX, Sample, View};

use crate::allow::Allowed;
use crate::control::Control;
use crate::driver::{Driver, DriverError};
use crate::policy::{Guardian, Scaler};
use crate::routes::Registered;
use crate::store::{Saved, Store, StoreError};
use observe::Observed;
use std::collections::BTreeMap;
use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};
use thiserror::Error;
use tokio::sync::{mpsc, oneshot};

/// Changes that may wait; further ones are told to come again.
const WAITING_MAX: usize = 64;

/// How a manager runs.
#[derive(Debug)]
pub struct Options {
    /// Where services run.
    pub driver: Arc<dyn Driver>,
    /// What must not be forgotten.
    pub store: Box<dyn Store>,
    /// Time between two looks at all services.
    pub watch: Duration,
    /// Where functions may listen.
    pub allowed: Allowed,
}

/// Why a manager did not start.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum StartError {
    /// The state cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The engine is not there.
    #[error(transparent)]
    Driver(#[from] DriverError),
}

/// What readers share with the task.
#[derive(Debug, Default)]
pub struct Shared {
    /// The event log.
    pub journal: Journal,
    view: RwLock<Arc<View>>,
    history: RwLock<History>,
    saved: RwLock<Arc<Saved>>,
    standing: RwLock<Standing>,
}

/// Whether a manager acts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Standing {
    /// It does.
    #[default]
    Leads,
    /// Another one does, at this URL; none while nobody leads.
    StandsBy(Option<String>),
}

impl Shared {
    /// The network as it was seen last.
    #[must_use]
    pub fn view(&self) -> Arc<View> {
        Arc::clone(&self.view.read().expect("invariant: no panic under this lock"))
    }

    /// What is wanted and decided.
    #[must_use]
    pub fn saved(&self) -> Arc<Saved> {
        Arc::clone(&self.saved.read().expect("invariant: no panic under this lock"))
    }

    /// Whether this manager acts.
    #[must_use]
    pub fn standing(&self) -> Standing {
        self.standing.read().expect("invariant: no panic under this lock").clone()
    }

    /// A function's statistics over time.
    #[must_use]
    pub fn history(&self, name: &str) -> Vec<Sample> {
        self.history.read().expect("invariant: no panic under this lock").of(name)
    }
}

/// A manager that runs.
#[derive(Debug, Clone)]
pub struct Manager {
    changes: mpsc::Sender<Message>,
    /// What readers see.
    pub shared: Arc<Shared>,
}

#[derive(Debug)]
struct Message {
    change: Change,
    answer: oneshot::Sender<Result<Done, ChangeError>>,
}

impl Manager {
    /// Starts a manager on this runtime; it adopts what runs before it takes changes.
    ///
    /// # Errors
    /// The state cannot be read, or the engine is not there.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        let shared = Arc::new(Shared::default());
        let core = Core::begin(options, Arc::clone(&shared)).await?;
        let (changes, mut inbox) = mpsc::channel(WAITING_MAX);
        tokio::spawn(async move { core.run(&mut inbox).await });
        Ok(Self { changes, shared })
    }

    /// Asks for a change and waits until it is made or refused.
    ///
    /// # Errors
    /// Why it was not made; what was before is as it was.
    pub async fn change(&self, change: Change) -> Result<Done, ChangeError> {
        let (answer, wait) = oneshot::channel();
        let message = Message { change, answer };
        self.changes.try_send(message).map_err(|_| ChangeError::Busy)?;
        wait.await.map_err(|_| ChangeError::Busy)?
    }
}

/// The task's own.
#[derive(Debug)]
struct Core {
    driver: Arc<dyn Driver>,
    store: Box<dyn Store>,
    watch_every: Duration,
    allowed: Allowed,
    saved: Saved,
    shared: Arc<Shared>,
    observed: BTreeMap<String, Observed>,
    /// The connection by which each instance is observed.
    lines: BTreeMap<String, Control>,
    registered: Registered,
    /// Prefixes that came to a router by a link of the producer side, by router and neighbour:
    /// they are routed on when something is put on that link.
    inherited: BTreeMap<String, Registered>,
    /// Prefixes of routers that were lost: their producers do not know that they must register
    /// again, so they are routed to all who came to the new one.
    orphans: BTreeMap<String, (Instant, std::collections::BTreeSet<String>)>,
    /// Instances that have the present keys.
    keyed: BTreeMap<String, u64>,
    failures: BTreeMap<String, Failures>,
    settled: bool,
    scaler: Scaler,
    scaled_at: Instant,
    guardians: BTreeMap<String, Guardian>,
    guarded_at: Instant,
    /// Counters at the last decision of each policy.
    marks: policies::Marks,
}

/// Starts that failed or did not last.
#[derive(Debug, Clone, Copy)]
struct Failures {
    count: u32,
    first: Instant,
    next: Instant,
}

impl Core {
    /// Reads the state and adopts what runs.
    async fn begin(options: Options, shared: Arc<Shared>) -> Result<Self, StartError> {
        let mut saved = options.store.load().await?.unwrap_or_default();
        if saved.manager.is_empty() {
            saved.manager = random_hex(4);
            options.store.save(&saved).await?;
        }
        options.driver.prepare().await?;
        let mut core = Self::new(options, saved, shared);
        core.adopt().await?;
        core.watch().await;
        core.publish();
        Ok(core)
    }

    fn new(options: Options, saved: Saved, shared: Arc<Shared>) -> Self {
        let now = Instant::now();
        Self {
            driver: options.driver,
            store: options.store,
            watch_every: options.watch,
            allowed: options.allowed,
            saved,
            shared,
            observed: BTreeMap::new(),
            lines: BTreeMap::new(),
            registered: Registered::new(),
            inherited: BTreeMap::new(),
            orphans: BTreeMap::new(),
            keyed: BTreeMap::new(),
            failures: BTreeMap::new(),
            settled: true,
            scaler: Scaler::default(),
            scaled_at: now,
            guardians: BTreeMap::new(),
            guarded_at: now,
            marks: policies::Marks::default(),
        }
    }

    /// Makes changes and watches, until nobody can ask for changes any more.
    async fn run(mut self, inbox: &mut mpsc::Receiver<Message>) {
        let mut tick = tokio::time::interval(self.watch_every);
        tick.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            tokio::select! {
                message = inbox.recv() => {
                    let Some(message) = message else { return };
                    let answer = self.make(message.change).await;
                    self.publish();
                    let _ = message.answer.send(answer);
                }
                _ = tick.tick() => {
                    self.watch().await;
                    self.heal().await;
                    self.decide().await;
                    self.publish();
                }
            }
        }
    }

    async fn save(&mut self) -> Result<(), StoreError> {
        self.store.save(&self.saved).await?;
        let mut shared = self.shared.saved.write().expect("invariant: no panic under this lock");
        *shared = Arc::new(self.saved.clone());
        Ok(())
    }

    /// Saves where a failure changes nothing for the services: it is told.
    async fn save_or_tell(&mut self) {
        if let Err(error) = self.save().await {
            self.note("store", "manager", error.to_string(), serde_json::Value::Null);
        }
    }

    fn note(&self, kind: &str, object: &str, text: impl Into<String>, detail: serde_json::Value) {
        self.shared.journal.note(kind, object, text, detail);
    }
}

/// Random octets as text.
pub(crate) fn random_hex(octets: usize) -> String {
    use onym_crypto::Entropy as _;
    let mut bytes = vec![0; octets];
    onym_crypto::SystemEntropy.fill(&mut bytes);
    onym_crypto::digest::hex(&bytes)
}

/// A mark for a manager that has none yet.
#[must_use]
pub fn new_mark() -> String {
    random_hex(4)
}
