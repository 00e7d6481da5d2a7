//! A whole node in this process.

use crate::config::{Changes, Config, Telemetry};
use crate::control::open::{self, Bound};
use crate::control::request::Request;
use crate::control::{self, Control, REQUESTS_MAX};
use crate::cross::direction;
use crate::disk::{self, Disk};
use crate::push::{self, PushEngine, PushOrder, PushPort, PushThread, Settings};
use crate::remote::{FoundLinks, NodeError, Remote};
use crate::shard::{
    Chooser, ORDERS_MAX, Order, POLICY, Parts, PushSide, Shard, ShardEngine, ShardPort, Wanted,
    ask_all,
};
use crate::sides::sides;
use crate::telemetry::{Exporter, Exporting};
use onym_board::broker::{self, Broker};
use onym_crypto::{Entropy as _, SystemEntropy};
use onym_engine::{Bell, Clock, Port, Reply, mailbox};
use onym_forward::Forwarder;
use onym_forward::stage::{Watch, WatchRule};
use onym_tables::HashKey;
use onym_watch::SpanSettings;
use rtrb::RingBuffer;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Starts nodes.
#[derive(Debug)]
pub struct Node;

/// A running node. Dropping it stops the node at once; [`NodeHandle::stop`] lets it drain.
#[derive(Debug)]
pub struct NodeHandle {
    requests: Port<Request>,
    ports: Vec<ShardPort>,
    push: Option<PushPort>,
    threads: Vec<JoinHandle<()>>,
    bound: Bound,
    notes: Vec<String>,
    boards: Option<Broker>,
    pub(crate) http: Option<crate::metrics::Server>,
    spans: Option<Exporter>,
}

/// Reports of a shard that wait for the control thread.
const REPORTS: usize = 4096;

fn system(doing: &'static str) -> impl Fn(std::io::Error) -> NodeError {
    move |source| NodeError::System { doing, source }
}

impl Node {
    /// Starts a node; it is ready when this returns.
    ///
    /// # Errors
    /// [`NodeError`]: the configuration asks for what cannot be had, or the system refuses.
    pub fn start(config: Config) -> Result<NodeHandle, NodeError> {
        Self::start_from(config, Path::new("configuration"))
    }

    /// As [`Node::start`] with a configuration that was read from the file `origin`: errors name
    /// it, and relative paths in the configuration start at its directory.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn start_from(config: Config, origin: &Path) -> Result<NodeHandle, NodeError> {
        let clock = Clock::start();
        let count = config.shard_count();
        let opened = open::open(&config).map_err(NodeError::Setup)?;
        let bell = Bell::new().map_err(system("making an eventfd"))?;
        let (requests, inbox) = mailbox(&bell, REQUESTS_MAX);
        let seeds = random();
        let bells = (0..count).map(|_| Bell::new()).collect::<Result<Vec<_>, _>>();
        let bells = bells.map_err(system("making a shard"))?;
        let (push, sides) = push_half(&config, origin, clock, &bells, seeds[3])?;
        let mut made = shards(&config, clock, &bells, &bell, seeds, sides)?;
        let mut threads = Vec::new();
        let disk = made.disk(&config, origin, &mut threads)?;
        for (i, shard) in made.shards.into_iter().enumerate() {
            let run = move || shard.run();
            let name = format!("onym-shard-{i}");
            let thread = std::thread::Builder::new().name(name).spawn(run);
            threads.push(thread.map_err(system("starting a thread"))?);
        }
        let push = match push {
            Some(push) => Some(push.start(&mut threads)?),
            None => None,
        };
        let mut handle = NodeHandle {
            requests,
            ports: made.ports.clone(),
            push: push.clone(),
            threads,
            bound: opened.bound.clone(),
            notes: opened.notes.clone(),
            boards: None,
            http: None,
            spans: None,
        };
        let listen_http = config.metrics.listen.clone();
        let exporting = Exporting::of(&config);
        let has_boards = config.push.enabled && config.push.boards;
        let parts = control::Parts {
            clock,
            config,
            origin: origin.to_owned(),
            ports: made.ports,
            push,
            disk,
            reports: made.reports,
            mailbox: inbox,
            exported: exporting.counts(),
        };
        let mut control = Control::engine(parts).map_err(NodeError::Setup)?;
        let (applied_tx, applied) = mpsc::sync_channel(1);
        let run = move || {
            let result = control.driver.begin(&mut control.io, opened);
            let _ = applied_tx.send(result);
            control.run();
        };
        let thread = std::thread::Builder::new().name("onym-control".into()).spawn(run);
        handle.threads.push(thread.map_err(system("starting a thread"))?);
        applied.recv().map_err(|_| NodeError::Stopped)?.map_err(NodeError::Setup)?;
        if !listen_http.0.is_empty() {
            let server = crate::metrics::serve(&listen_http, handle.remote())?;
            handle.bound.metrics = server.addresses();
            handle.http = Some(server);
        }
        handle.spans = exporting.start(handle.remote(), clock)?;
        if has_boards {
            handle.start_boards();
        }
        Ok(handle)
    }
}

/// Four random words: two of the hash key, one of nonces, one spare.
fn random() -> [u64; 4] {
    let mut bytes = [0_u8; 32];
    SystemEntropy.fill(&mut bytes);
    let mut words = [0; 4];
    for (word, chunk) in words.iter_mut().zip(bytes.chunks_exact(8)) {
        *word = u64::from_le_bytes(chunk.try_into().expect("invariant: eight octets"));
    }
    words
}

struct Made {
    shards: Vec<ShardEngine>,
    ports: Vec<ShardPort>,
    reports: Vec<rtrb::Consumer<crate::shard::Report>>,
}

impl Made {
    /// The second level of the content store, where the configuration asks for one.
    fn disk(
        &mut self,
        config: &Config,
        origin: &Path,
        threads: &mut Vec<JoinHandle<()>>,
    ) -> Result<Option<Disk>, NodeError> {
        let (base, count) = (origin.parent().unwrap_or(Path::new(".")), self.shards.len());
        let Some(disk) = disk::Prepared::of(&config.cs, base, count) else { return Ok(None) };
        for shard in &mut self.shards {
            disk.add_to(&mut shard.driver, &config.cs, count);
        }
        let started = disk.start(self.ports.clone(), threads);
        started.map(Some).map_err(system("starting a thread"))
    }
}

/// The shards with the rings between them.
fn shards(
    config: &Config,
    clock: Clock,
    bells: &[Arc<Bell>],
    control: &Arc<Bell>,
    seeds: [u64; 4],
    mut sides: Vec<PushSide>,
) -> Result<Made, NodeError> {
    let failed = system("making a shard");
    let count = bells.len();
    let mut to: Vec<Vec<_>> = (0..count).map(|_| (0..count).map(|_| None).collect()).collect();
    let mut from: Vec<Vec<_>> = (0..count).map(|_| (0..count).map(|_| None).collect()).collect();
    for a in 0..count {
        for b in (0..count).filter(|b| *b != a) {
            let (tx, rx) = direction(&bells[a], &bells[b]);
            to[a][b] = Some(tx);
            from[b][a] = Some(rx);
        }
    }
    let key = HashKey::new(seeds[0], seeds[1]);
    let wanted = Arc::new(Wanted::new(key));
    let mut made = Made { shards: Vec::new(), ports: Vec::new(), reports: Vec::new() };
    for (index, (to, from)) in to.into_iter().zip(from).enumerate() {
        let (port, mailbox) = mailbox(&bells[index], ORDERS_MAX);
        let (reports_tx, reports_rx) = RingBuffer::new(REPORTS);
        made.ports.push(ShardPort::new(port));
        made.reports.push(reports_rx);
        let mut fw = Forwarder::new(forwarder_config(config, index, count, key, seeds[2]));
        fw.cache_mut().watch = watch(config);
        let chooser = Chooser::new(&key, count);
        let (wanted, control) = (Arc::clone(&wanted), Arc::clone(control));
        let reports = reports_tx;
        let parts = Parts {
            index,
            fw,
            chooser,
            to,
            from,
            wanted,
            reports,
            control,
            push: (!sides.is_empty()).then(|| sides.remove(0)),
            hold: Duration::from_millis(config.faces.hold_ms),
            spans: spans(&config.telemetry, count),
        };
        let engine = ShardEngine::new(Shard::new(parts), mailbox, clock, POLICY);
        made.shards.push(engine.map_err(&failed)?);
    }
    Ok(made)
}

/// Which Interests one of `count` shards records; the rate of the node is shared out evenly.
fn spans(telemetry: &Telemetry, count: usize) -> Option<SpanSettings> {
    let rate = telemetry.spans_per_second as usize;
    (!telemetry.collector.is_empty()).then(|| SpanSettings {
        sample: telemetry.sample,
        rate_max: u32::try_from(rate.div_ceil(count)).unwrap_or(u32::MAX),
        seed: random()[0],
    })
}

/// The push half before its thread runs.
struct PushHalf {
    engine: PushEngine,
    port: PushPort,
}

impl PushHalf {
    /// Starts the thread.
    fn start(self, threads: &mut Vec<JoinHandle<()>>) -> Result<PushPort, NodeError> {
        let Self { engine, port } = self;
        let run = move || engine.run();
        let started = std::thread::Builder::new().name("onym-push".into()).spawn(run);
        threads.push(started.map_err(system("starting a thread"))?);
        Ok(port)
    }
}

/// What a content store has verified before it keeps it; a rule's number is its place in the list.
fn watch(config: &Config) -> Option<Box<Watch>> {
    let rules = config.cs.verify.iter().zip(0..).filter_map(|(entry, id)| {
        let prefix = entry.prefix.parse().ok()?;
        Some(WatchRule { prefix, sample: f64::from(entry.sample_percent) / 100.0, id })
    });
    let rules: Vec<WatchRule> = rules.collect();
    (!rules.is_empty()).then(|| Box::new(Watch::new(rules, config.cs.verify_rate_max)))
}

/// The push half, when it is enabled, and what each shard has of it.
fn push_half(
    config: &Config,
    origin: &Path,
    clock: Clock,
    bells: &[Arc<Bell>],
    spare: u64,
) -> Result<(Option<PushHalf>, Vec<PushSide>), NodeError> {
    if !config.push.enabled {
        return Ok((None, Vec::new()));
    }
    let mut settings = Settings::of(&config.push, spare);
    settings.node.shards = u16::try_from(bells.len()).expect("invariant: at most 64 shards");
    let base = origin.parent().unwrap_or(Path::new("."));
    let rules = config.trust_of("push.trust", &config.push.trust);
    let rules = rules.map_err(|e| NodeError::Setup(e.to_string()))?;
    settings.read_keys(&config.push, rules, base).map_err(NodeError::Setup)?;
    let mut store =
        push::Store::open(&config.push, &settings.node, base).map_err(NodeError::Setup)?;
    let mut recalled = Vec::new();
    if let Some(store) = &mut store {
        settings.node.boot = store.begin(settings.node.boot).map_err(NodeError::Setup)?;
        recalled = store.scopes().map_err(NodeError::Setup)?;
    }
    let mut plane = onym_pubsub::ControlPlane::new(settings.node.clone());
    let bell = Bell::new().map_err(system("making the push half"))?;
    let (port, inbox) = mailbox(&bell, push::ORDERS_MAX);
    let port = PushPort { port };
    let keeper = store.map(|store| push::Keeper::start(store, port.clone())).transpose();
    let keeper = keeper.map_err(system("starting a thread"))?;
    if keeper.is_some() {
        plane.keep_scopes();
    }
    let (sides, lanes, held_until) = sides(&settings, &plane, bells, &bell);
    let parts = push::Parts { clock, settings, plane, keeper, recalled, lanes, held_until };
    let engine = PushEngine::new(PushThread::new(parts), inbox, clock, push::POLICY);
    let engine = engine.map_err(system("making the push thread"))?;
    Ok((Some(PushHalf { engine, port }), sides))
}

/// What the configuration means for one shard: limits of the node are shared out evenly.
fn forwarder_config(
    config: &Config,
    index: usize,
    count: usize,
    key: HashKey,
    seed: u64,
) -> onym_forward::Config {
    onym_forward::Config {
        shard: u8::try_from(index).expect("invariant: at most 64 shards"),
        hash_key: key,
        seed: seed.wrapping_add(index as u64),
        pit_entries_max: config.pit.entries_max.div_ceil(count),
        pit_octets_max: config.pit.bytes_max.div_ceil(count),
        fib_entries_max: config.fib.routes_max,
        cs: control::cs_config(&config.cs, count),
        dead_nonces_max: config.tables.dead_nonces_max.div_ceil(count),
        dead_nonce_lifetime_ms: config.tables.dead_nonce_lifetime_ms,
        measurements_max: config.tables.measurements_max,
        strategies_max: config.tables.strategies_max,
        lifetime_max_ms: config.pit.lifetime_max_ms,
        default_hop_limit: config.forward.default_hop_limit,
        fairness: config.forward.fairness,
        unsolicited: control::unsolicited(config.cs.unsolicited),
        ..onym_forward::Config::default()
    }
}

impl NodeHandle {
    pub(crate) fn remote(&self) -> Remote {
        Remote::new(self.requests.clone())
    }

    pub(crate) fn ask<R>(&self, request: impl FnOnce(Reply<R>) -> Request) -> Result<R, NodeError> {
        self.remote().ask(request)
    }

    /// Where the node listens; ports asked for as 0 are known here.
    #[must_use]
    pub fn bound(&self) -> &Bound {
        &self.bound
    }

    /// What could not be had at start and was not needed, in sentences.
    #[must_use]
    pub fn notes(&self) -> &[String] {
        &self.notes
    }

    /// Adds a link of the push half, as an entry of `push.link` does.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn push_link_add(&self, link: crate::config::PushLink) -> Result<(), NodeError> {
        let link = Box::new(link);
        self.ask(|reply| Request::PushLinkAdd { link, reply })?.map_err(NodeError::Setup)
    }

    /// Where a routing program tells which neighbours it has.
    #[must_use]
    pub fn found_links(&self) -> FoundLinks {
        FoundLinks(self.remote())
    }

    /// A dataset of the push half, as `/localhost/onym/push/…` tells it; `id` are the octets of an
    /// identifier. `Ok(None)`: there is no such dataset.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn push_dataset(
        &self,
        what: &str,
        id: &[u8],
    ) -> Result<Option<serde_json::Value>, NodeError> {
        let (what, id) = (what.to_owned(), id.to_vec());
        let told = self.ask(|reply| Request::PushDataset { what, id, reply })?;
        Ok(told.and_then(|text| serde_json::from_str(&text).ok()))
    }

    /// Takes over a new configuration; which keys took effect and which wait for a restart.
    ///
    /// # Errors
    /// [`NodeError`].
    pub fn reload(&self, config: Config) -> Result<Changes, NodeError> {
        config.check("reload").map_err(|e| NodeError::Setup(e.to_string()))?;
        let config = Box::new(config);
        self.ask(|reply| Request::Reload { config, reply })?.map_err(NodeError::Setup)
    }

    /// Stops: no new faces, what is queued leaves within the configured time, faces are closed.
    /// Whether everything that was queued has left.
    pub fn stop(mut self) -> bool {
        if let Some(http) = &self.http {
            http.drain();
        }
        let drain = self.ask(|reply| Request::CloseListeners { reply }).unwrap_or_default();
        let end = Instant::now() + drain;
        let mut drained = false;
        while !drained && Instant::now() < end {
            let each = ask_all(&self.ports, |reply| Order::IsDrained { reply });
            drained = !each.contains(&false);
            if !drained {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        let _ = self.ask(|reply| Request::CloseFaces { reply });
        self.end();
        drained
    }

    /// Brings publishers and subscribers of blackboards together, beside the Unix socket.
    fn start_boards(&mut self) {
        let Some(path) = self.bound.unix.as_deref().map(broker::path_beside) else { return };
        let remote = self.remote();
        let authorize = move |app: u64, id: &[u8], is_publisher: bool| {
            let id = id.to_vec();
            let what = "explain".to_owned();
            let asked = remote.ask(|reply| Request::PushDataset { what, id, reply });
            let told = asked.ok().flatten();
            let told = told.and_then(|text| serde_json::from_str(&text).ok());
            told.is_some_and(|told| push::may_use_board(&told, app, is_publisher))
        };
        match Broker::start(&path, Box::new(authorize)) {
            Ok(broker) => self.boards = Some(broker),
            Err(error) => self.notes.push(format!("no blackboards through the node: {error}")),
        }
    }

    /// Ends the threads.
    fn end(&mut self) {
        self.http = None;
        self.spans = None;
        self.boards = None;
        let _ = self.ask(|reply| Request::Stop { reply });
        for port in &self.ports {
            port.tell(Order::Stop);
        }
        if let Some(push) = &self.push {
            push.tell(PushOrder::Stop);
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

impl Drop for NodeHandle {
    fn drop(&mut self) {
        if !self.threads.is_empty() {
            self.end();
        }
    }
}
