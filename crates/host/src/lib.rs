#![doc = include_str!("../README.md")]

mod body;
mod control;
mod events;
mod patch;
pub mod uri;
mod worker;

pub use onym_services::{FarEnd, Kind, Side};
pub use uri::{FaceSpec, ListenSpec};
pub use worker::verify;

use control::{Access, App};
use onym_crypto::edge::random_u64;
use onym_engine::clock::unix_ms;
use onym_http::folders::Folders;
use onym_http::tls::ServerTls;
use onym_services::Function;
use onym_tables::HashKey;
use serde_json::{Map, Value, json};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;
use worker::{Made, Order, Remote, Shared, WorkerEngine};

/// Threads that a service may have.
const THREADS_MAX: usize = 64;
/// Posts to other services that may wait.
const POSTS_MAX: usize = 64;

/// Files for mutual TLS, all PEM.
#[derive(Debug, Clone)]
pub struct TlsFiles {
    /// The certificate of this service, with its chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Who may sign the certificates of those who connect.
    pub ca: PathBuf,
}

/// How a service is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Its kind.
    pub kind: Kind,
    /// Its name, as a manager calls it.
    pub name: String,
    /// Where the control interface listens.
    pub control: SocketAddr,
    /// Where peers connect.
    pub listen: Vec<ListenSpec>,
    /// Faces to make.
    pub faces: Vec<FaceSpec>,
    /// Configuration, and `threads`.
    pub config: Map<String, Value>,
    /// Token that control requests must carry.
    pub token: Option<String>,
    /// Mutual TLS.
    pub tls: Option<TlsFiles>,
    /// Whether the token may travel in clear text beyond loopback.
    pub clear_text: bool,
    /// Whether every user of this machine is answered without a token.
    pub open: bool,
    /// Folders whose sockets the control interface may have it connect to, beside those of its own
    /// listeners and faces.
    pub connect: Vec<PathBuf>,
}

impl Options {
    /// A service of this kind on free loopback ports, without listeners and faces.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            name: kind.short().to_owned(),
            control: SocketAddr::from(([127, 0, 0, 1], 0)),
            listen: Vec::new(),
            faces: Vec::new(),
            config: Map::new(),
            token: None,
            tls: None,
            clear_text: false,
            open: false,
            connect: Vec::new(),
        }
    }
}

/// Why a service did not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Options that do not go together.
    #[error("{0}")]
    Usage(String),
    /// An address is taken, a file cannot be read, the system refuses.
    #[error("{0}")]
    System(String),
}

/// A service that runs. It ends when this is dropped.
#[derive(Debug)]
pub struct Host {
    address: SocketAddr,
    ready: Value,
    workers: Vec<Remote>,
    threads: Vec<JoinHandle<()>>,
    http: Option<(tokio::sync::oneshot::Sender<()>, JoinHandle<()>)>,
    stops: mpsc::Receiver<()>,
}

pub(crate) fn digest(bytes: &[u8]) -> [u8; 32] {
    onym_services::digest(bytes)
}

impl Host {
    /// Starts a service: its control interface and its listeners are open when this returns.
    ///
    /// # Errors
    /// [`HostError`].
    pub fn start(options: Options) -> Result<Self, HostError> {
        let tls = checked_tls(&options)?;
        let (config, threads) = threads_of(&options)?;
        let (posts, posted) = mpsc::channel(POSTS_MAX);
        let boot = random_u64();
        let shared = Arc::new(Shared::new(boot, posts, folders(&options)));
        let (mut first, remotes, others) = workers(&options, &config, threads, &shared)?;
        for spec in &options.listen {
            let listener = uri::listen(&spec.uri).map_err(HostError::System)?;
            let WorkerEngine { driver, io, .. } = &mut first;
            driver
                .listen(io, listener, spec)
                .map_err(|e| HostError::System(format!("{}: {e}", spec.uri)))?;
        }
        first.driver.share_with(remotes.get(1..).unwrap_or_default().to_vec());
        for spec in &options.faces {
            let uri = uri::resolve(&spec.uri).map_err(HostError::Usage)?;
            let WorkerEngine { driver, io, .. } = &mut first;
            if driver.reserve_face() {
                let port = driver.port(&spec.label, spec.side, spec.far_end);
                driver.create(io, Made::Created, &uri, port);
            }
        }
        let listeners = first.driver.listeners_json();
        let socket = std::net::TcpListener::bind(options.control)
            .map_err(|e| HostError::System(format!("--control {}: {e}", options.control)))?;
        let address = socket.local_addr().map_err(|e| HostError::System(e.to_string()))?;
        let (stop, stops) = mpsc::channel(1);
        let app = Arc::new(App {
            kind: options.kind,
            name: options.name.clone(),
            boot,
            start_ms: unix_ms(),
            threads,
            access: Access::of(&options),
            workers: remotes.clone(),
            shared,
            stop,
        });
        let scheme = if tls.is_some() { "https" } else { "http" };
        let ready = json!({
            "name": options.name, "kind": options.kind.word(), "pid": std::process::id(),
            "control": format!("{scheme}://{address}"), "listeners": listeners,
        });
        let http = start_http(socket, tls, app, posted)?;
        let mut running = Vec::new();
        for (number, worker) in std::iter::once(first).chain(others).enumerate() {
            running.push(spawn(&format!("onym-data-{number}"), move || worker.run())?);
        }
        let http = Some(http);
        Ok(Self { address, ready, workers: remotes, threads: running, http, stops })
    }

    /// Where the control interface listens.
    #[must_use]
    pub fn control(&self) -> SocketAddr {
        self.address
    }

    /// What a service says once it is ready (spec/services.md, section 1).
    #[must_use]
    pub fn ready(&self) -> &Value {
        &self.ready
    }

    /// Where the listener with this label is reached.
    #[must_use]
    pub fn listener(&self, label: &str) -> Option<&str> {
        let all = self.ready["listeners"].as_array()?;
        all.iter().find(|l| l["label"] == label)?["uri"].as_str()
    }

    /// Whether `POST /v1/stop` was called.
    pub fn is_stop_asked(&mut self) -> bool {
        self.stops.try_recv().is_ok()
    }

    /// Drains for at most `patience`, then ends.
    pub fn stop(self, patience: Duration) {
        let end = std::time::Instant::now() + patience;
        for worker in &self.workers {
            let _ = worker.begin(|reply| Order::Drain { change: Some(true), reply });
        }
        while std::time::Instant::now() < end && !self.is_empty() {
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn is_empty(&self) -> bool {
        self.workers.iter().all(|worker| {
            let state = worker.ask_now(|reply| Order::Drain { change: None, reply });
            state.is_none_or(|state| state["pending"] == 0)
        })
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        for worker in &self.workers {
            worker.stop();
        }
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
        if let Some((stop, thread)) = self.http.take() {
            drop(stop);
            let _ = thread.join();
        }
    }
}

fn checked_tls(options: &Options) -> Result<Option<ServerTls>, HostError> {
    let open = !options.control.ip().is_loopback();
    if open && options.token.is_none() && options.tls.is_none() {
        let text = format!(
            "--control {}: an address that others reach needs --token-file, or --tls-cert, \
             --tls-key and --tls-ca",
            options.control
        );
        return Err(HostError::Usage(text));
    }
    if open && options.tls.is_none() && !options.clear_text {
        let text = format!(
            "--control {}: a token that others could read on its way needs --tls-cert, --tls-key \
             and --tls-ca, or --clear-text where nobody listens",
            options.control
        );
        return Err(HostError::Usage(text));
    }
    options.tls.as_ref().map(control::load_tls).transpose().map_err(HostError::System)
}

/// Folders of sockets that the options name.
fn folders(options: &Options) -> Folders {
    let listen = options.listen.iter().map(|spec| spec.uri.as_str());
    let faces = options.faces.iter().map(|spec| spec.uri.as_str());
    let paths = options.config.values().filter_map(Value::as_str);
    let sockets = listen.chain(faces).chain(paths).filter_map(uri::socket);
    let own = sockets.flat_map(|path| {
        let folder = folder_of(path);
        // What is named may be a link: who starts a service means where it leads.
        let link = std::fs::read_link(path).ok().map(|to| folder_of(&folder.join(to)));
        link.into_iter().chain([folder])
    });
    Folders::new(options.connect.iter().cloned().chain(own))
}

fn folder_of(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    folder.unwrap_or(Path::new(".")).to_owned()
}

/// The configuration of the function, and the number of threads.
fn threads_of(options: &Options) -> Result<(Map<String, Value>, usize), HostError> {
    let mut config = options.config.clone();
    let Some(threads) = config.remove("threads") else { return Ok((config, 1)) };
    let several = matches!(options.kind, Kind::PacketDispatcher | Kind::SignatureVerifier);
    let count = threads.as_u64().and_then(|n| usize::try_from(n).ok());
    match count.filter(|n| (1..=THREADS_MAX).contains(n)) {
        Some(1) => Ok((config, 1)),
        Some(n) if several => Ok((config, n)),
        Some(_) => {
            let text = "threads: only packet-dispatcher and signature-verifier have several";
            Err(HostError::Usage(text.into()))
        }
        None => Err(HostError::Usage(format!("threads: from 1 to {THREADS_MAX}"))),
    }
}

type Workers = (WorkerEngine, Vec<Remote>, Vec<WorkerEngine>);

/// The data threads: several for a dispatcher, one for others.
fn workers(
    options: &Options,
    config: &Map<String, Value>,
    threads: usize,
    shared: &Arc<Shared>,
) -> Result<Workers, HostError> {
    let dispatcher = options.kind == Kind::PacketDispatcher;
    let (loops, verifiers) = if dispatcher { (threads, 1) } else { (1, threads) };
    let key = HashKey::new(random_u64(), random_u64());
    let (mut all, mut remotes) = (Vec::new(), Vec::new());
    for _ in 0..loops {
        let function = Function::new(options.kind, key, random_u64());
        let (mut worker, remote) = worker::engine(function, Arc::clone(shared), verifiers)
            .map_err(|e| HostError::System(format!("starting a thread: {e}")))?;
        let WorkerEngine { driver, io, .. } = &mut worker;
        let done = driver.with(io, |f, now, out| patch::apply(f, now, config, out));
        done.map_err(|e| {
            let field = e.field.as_deref().unwrap_or("configuration");
            HostError::Usage(format!("--set {field}: {}", e.message))
        })?;
        all.push(worker);
        remotes.push(remote);
    }
    let others = all.split_off(1);
    let first = all.pop().ok_or_else(|| HostError::Usage("threads: at least 1".into()))?;
    Ok((first, remotes, others))
}

fn spawn(name: &str, run: impl FnOnce() + Send + 'static) -> Result<JoinHandle<()>, HostError> {
    let made = std::thread::Builder::new().name(name.into()).spawn(run);
    made.map_err(|e| HostError::System(format!("starting a thread: {e}")))
}

type Http = (tokio::sync::oneshot::Sender<()>, JoinHandle<()>);

fn start_http(
    socket: std::net::TcpListener,
    tls: Option<ServerTls>,
    app: Arc<App>,
    posted: mpsc::Receiver<onym_services::effect::RulesForFilter>,
) -> Result<Http, HostError> {
    let failed = |e: std::io::Error| HostError::System(format!("the control interface: {e}"));
    socket.set_nonblocking(true).map_err(failed)?;
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let run = move || {
        runtime.block_on(async move {
            let Ok(listener) = tokio::net::TcpListener::from_std(socket) else { return };
            tokio::spawn(control::run_posts(posted));
            tokio::select! {
                () = control::serve(listener, tls, app) => {}
                _ = stopped => {}
            }
        });
    };
    Ok((stop, spawn("onym-control", run)?))
}
