//! `onym manager`: deploys, links, watches, scales and defends a network of services.

pub(crate) mod doors;
mod network;

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::secure::{self, Serving};
use crate::supervised::{self, Alive};
use anyhow::Result;
use clap::ValueEnum;
use doors::Doors;
use onym_etcd::Etcd;
use onym_manager::allow::{Allowed, Rule};
use onym_manager::driver::{
    Cluster, DockerDriver, DockerOptions, Driver, KubernetesDriver, KubernetesOptions,
    ProcessDriver, ProcessOptions, usable_cgroup,
};
use onym_manager::engine::{Candidate, Manager, Options, agree_mark};
use onym_manager::operator::Operator;
use onym_manager::rest;
use onym_manager::store::{FileStore, Saved, Store as _};
use std::net::SocketAddr;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How often the objects of a cluster are looked at.
const OPERATOR_LOOKS: Duration = Duration::from_secs(2);

/// Run the manager of a network of services.
///
/// It runs in the foreground and says `ready {…}` on standard error once it has adopted what runs
/// and its interface is open. Ending it, even by a kill, leaves the services running; a manager
/// started again on the same state adopts them. `onym net down` stops them.
///
/// It answers its own user, root and members of the group onym at a Unix socket that `onym net`
/// finds, and by TCP whoever has the token of a file beside it that only its user reads.
/// `onym net page` prints an address for a browser.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym manager
  onym manager --network nfd               # and a forwarder taken apart, clients at 6363
  onym manager --driver docker --binary target/static/onym
  onym manager --driver kubernetes --namespace onym --image registry.example/onym:0.1
  onym manager --driver kubernetes --namespace onym --image registry.example/onym:0.1 --networks
  onym manager --listen 127.0.0.1:8081 --state ./state --watch-ms 200
  onym manager --allow-listen tcp4://0.0.0.0:6363 --allow-listen unix:///srv/ndn
  onym manager --listen 192.0.2.1:8080 --token-file token --tls-cert own.pem --tls-key own.key
  onym manager --etcd http://127.0.0.1:2379 --listen 127.0.0.1:8081   # one of several")]
pub(crate) struct Args {
    /// Address of the REST interface and the web page.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:8080")]
    listen: SocketAddr,
    /// Folder of the state; one manager at a time. With --etcd the state is there, and managers on
    /// one machine share this folder for what their processes write.
    #[arg(long, value_name = "DIR")]
    state: Option<PathBuf>,
    /// The network to start when the manager has none: nfd, minimal, interlinked, scaling,
    /// poisoning, or a description (.toml, .yaml, .tosca.yaml).
    #[arg(long, value_name = "PRESET|FILE", conflicts_with = "etcd")]
    network: Option<String>,
    /// Where services run.
    #[arg(long, value_enum, default_value = "process")]
    driver: Engine,
    /// The static binary that images are built from; default: this program.
    #[arg(long, value_name = "FILE")]
    binary: Option<PathBuf>,
    /// Socket of the Docker engine.
    #[arg(long, value_name = "PATH", default_value = "/var/run/docker.sock")]
    docker_socket: PathBuf,
    #[command(flatten)]
    kubernetes: Box<Kubernetes>,
    /// Where functions may listen beside loopback and the folders of the manager; the address
    /// 0.0.0.0 or `[::]` stands for all. May be repeated.
    #[arg(long, value_name = "URI")]
    allow_listen: Vec<Rule>,
    /// The group whose members may use its socket.
    #[arg(long, value_name = "NAME", default_value = "onym")]
    group: String,
    /// Answer every user of this machine without a token. Not as root.
    #[arg(long, conflicts_with_all = ["token_file", "tls_ca"])]
    open: bool,
    /// File with the token that TCP requests must carry; without it the manager generates one.
    /// Required beyond loopback unless mutual TLS is used.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    serving: Serving,
    /// Interval at which the services are observed, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 500, value_parser = clap::value_parser!(u64).range(20..=60_000))]
    watch_ms: u64,
    /// Members of an etcd cluster that replicas of the manager share: one leads, and another takes
    /// over when it fails. The state there holds the services' tokens.
    #[arg(long, value_name = "URL", value_delimiter = ',')]
    etcd: Vec<String>,
    #[command(flatten)]
    stand_by: Box<StandBy>,
}

/// What goes with --driver kubernetes.
#[derive(Debug, clap::Args)]
struct Kubernetes {
    /// How the API server is reached; else KUBECONFIG, the pod that this runs in, ~/.kube/config.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace in which objects are made.
    #[arg(long, value_name = "NAME", default_value = "default")]
    namespace: String,
    /// The image of the pods, whose entry point is `onym`; needed with --driver kubernetes.
    #[arg(long, value_name = "IMAGE")]
    image: Option<String>,
    /// Run the network that an object of the kind Network in the namespace describes
    /// (packaging/kubernetes).
    #[arg(long, conflicts_with = "network")]
    networks: bool,
}

/// What goes with --etcd.
#[derive(Debug, clap::Args)]
struct StandBy {
    /// Prefix of all keys in etcd: managers with the same one are replicas of each other.
    #[arg(long, value_name = "TEXT", default_value = "onym/manager/", requires = "etcd")]
    etcd_prefix: String,
    /// Certificate authorities of etcd (PEM).
    #[arg(long, value_name = "FILE", requires = "etcd")]
    etcd_ca: Option<PathBuf>,
    /// Client certificate for etcd (PEM).
    #[arg(long, value_name = "FILE", requires = "etcd_key")]
    etcd_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "etcd_cert")]
    etcd_key: Option<PathBuf>,
    /// Seconds of silence after which another manager leads.
    #[arg(long, value_name = "S", default_value_t = 5, requires = "etcd", value_parser = clap::value_parser!(u64).range(2..=600))]
    lease_s: u64,
    /// The URL at which this manager is asked, where it is another one than that of --listen.
    #[arg(long, value_name = "URL", requires = "etcd")]
    advertise: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Engine {
    /// Processes of this machine.
    Process,
    /// Containers of the Docker engine.
    Docker,
    /// Pods of a Kubernetes cluster.
    Kubernetes,
}

/// The folder of the state where none is given.
pub(crate) fn usual_state() -> PathBuf {
    if let Some(folder) = std::env::var_os("XDG_STATE_HOME") {
        return PathBuf::from(folder).join("onym/manager");
    }
    match std::env::var_os("HOME") {
        Some(home) => PathBuf::from(home).join(".local/state/onym/manager"),
        None => PathBuf::from("/var/lib/onym/manager"),
    }
}

pub(crate) fn run(args: Args, _: &Context) -> Result<()> {
    let token = args.token_file.as_deref().map(secure::read_token).transpose()?;
    check_access(&args, token.is_some())?;
    tracing_subscriber::fmt().with_writer(|| crate::log_ring::LogLines).with_ansi(false).init();
    let state = args.state.clone().unwrap_or_else(usual_state);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(serve(&args, &state, token))
}

/// Whoever reaches the manager may start programs here.
fn check_access(args: &Args, token: bool) -> Result<()> {
    if args.open && onym_sys::peer::own_uid() == 0 {
        return Err(Failure::new(
            Exit::Usage,
            "a manager that runs as root does not accept --open",
        )
        .why("every user of this machine could start programs as root")
        .next("omit --open: `onym net` finds the socket, and `onym net page` lets a browser in")
        .into());
    }
    if args.listen.ip().is_loopback() {
        return Ok(());
    }
    let failure = Failure::new(Exit::Usage, format!("{} is not loopback", args.listen));
    if !token && !args.serving.is_mutual() {
        return Err(failure
            .why("anyone who reaches the manager could start programs here")
            .next("require a token (--token-file FILE) or mutual TLS (--tls-ca FILE)")
            .into());
    }
    if !args.serving.hides_tokens() {
        return Err(failure
            .why("the token would travel unencrypted")
            .next("use --tls-cert FILE --tls-key FILE, or accept it with --clear-text")
            .into());
    }
    Ok(())
}

async fn serve(args: &Args, state: &Path, token: Option<String>) -> Result<()> {
    let shown = state.display().to_string();
    let tls = args.serving.load()?;
    let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(state);
    made.map_err(|e| {
        Failure::new(Exit::Failed, format!("{shown}: cannot be created"))
            .why(e)
            .next("choose another --state")
    })?;
    // The address first: who cannot listen must not touch what another manager has.
    let listener = tokio::net::TcpListener::bind(args.listen).await.map_err(|e| {
        Failure::new(Exit::Failed, format!("{}: cannot listen", args.listen))
            .why(e)
            .next("another program may use it; choose another --listen")
    })?;
    let address = listener.local_addr()?;
    let own = Doors::open(state, address.port(), token, &args.group)?;
    let manager = if args.etcd.is_empty() {
        let manager = alone(args, state).await?;
        if let Some(network) = &args.network {
            network::begin(&manager, network).await?;
        }
        manager
    } else {
        let url = args.stand_by.advertise.clone();
        let url = url.map_or_else(
            || Ok(format!("{}://{}", args.serving.scheme(), listener.local_addr()?)),
            Ok::<_, anyhow::Error>,
        )?;
        one_of_several(args, state, url).await?
    };
    if let Some(operator) = operator(args)? {
        let manager = manager.clone();
        tokio::spawn(async move { operator.run(&manager).await });
    }
    let url = format!("{}://{address}", args.serving.scheme());
    let access = match &own.token {
        _ if args.serving.is_mutual() => rest::Access::Certificate,
        _ if args.open => rest::Access::Machine,
        token => rest::Access::Token(token.as_str().into()),
    };
    let pages = match access {
        rest::Access::Token(_) => rest::Pages::coded(url.clone()),
        _ => rest::Pages::open(url.clone()),
    };
    let doors = rest::Doors::new(manager, pages);
    let app = doors.router(access);
    let by_socket = doors.router(rest::Access::Operators(own.operators));
    let unix = tokio::net::UnixListener::from_std(own.listener.try_clone()?)?;
    let ready = serde_json::json!({
        "url": url,
        "state": shown,
        "pid": std::process::id(),
        "socket": own.socket,
        "token_file": own.token_file.as_ref().or(args.token_file.as_ref()),
    });
    crate::output::tell(format_args!("ready {ready}"));
    supervised::tell_ready();
    tokio::spawn(keep_alive());
    let mut terminate = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())?;
    tokio::select! {
        () = onym_http::server::serve_by(listener, tls, app) => {}
        () = onym_http::server::serve_unix(unix, by_socket) => {}
        _ = terminate.recv() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    supervised::tell_stop();
    Ok(())
}

/// Feeds the watchdog while the thread that answers comes by.
async fn keep_alive() {
    let Some(limit) = supervised::watchdog() else { return };
    let mut alive = Alive::new();
    loop {
        alive.beat();
        tokio::time::sleep(limit / 4).await;
    }
}

/// A manager with a store of its own.
async fn alone(args: &Args, state: &Path) -> Result<Manager> {
    let store = FileStore::open(&state.join("state.redb")).map_err(|e| {
        Failure::new(Exit::Failed, "the state cannot be opened")
            .why(e)
            .next("choose another --state")
    })?;
    let driver = driver(args, state, identity(&store).await?)?;
    let watch = Duration::from_millis(args.watch_ms);
    let allowed = allowed(args, state);
    let options = Options { driver, store: Box::new(store), watch, allowed };
    let manager = Manager::start(options).await;
    manager.map_err(|e| {
        let failure = Failure::new(Exit::Failed, "the manager cannot start").why(e);
        failure.next("fix it and start again").into()
    })
}

/// A manager that leads when no other one of its etcd does.
async fn one_of_several(args: &Args, state: &Path, url: String) -> Result<Manager> {
    let lease = Duration::from_secs(args.stand_by.lease_s);
    let away = |why: &dyn std::fmt::Display| {
        let failure = Failure::new(Exit::Failed, "etcd cannot be used").why(why);
        failure.next("name its members: --etcd http://host:2379")
    };
    let etcd = Arc::new(etcd(args, lease).map_err(|e| away(&e))?);
    let prefix = args.stand_by.etcd_prefix.clone();
    let mark = agree_mark(&etcd, &prefix).await.map_err(|e| away(&e))?;
    let driver = driver(args, state, mark)?;
    let watch = Duration::from_millis(args.watch_ms);
    let allowed = allowed(args, state);
    Ok(Manager::stand_by(Candidate { etcd, prefix, url, lease, driver, watch, allowed }))
}

/// Where functions may listen: in the manager's own folders and where nodes have their sockets,
/// and where its command line says.
fn allowed(args: &Args, state: &Path) -> Allowed {
    let session = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let own = [state.to_owned(), PathBuf::from("/run/nfd"), PathBuf::from("/run/onym")];
    Allowed::new(own.into_iter().chain(session), args.allow_listen.clone())
}

fn etcd(args: &Args, lease: Duration) -> Result<Etcd> {
    let StandBy { etcd_ca, etcd_cert, etcd_key, .. } = &*args.stand_by;
    let read = |file: &PathBuf| {
        std::fs::read(file).map_err(|e| anyhow::anyhow!("{}: {e}", file.display()))
    };
    let identity = match (etcd_cert, etcd_key) {
        (Some(certificate), Some(key)) => Some((read(certificate)?, read(key)?)),
        _ => None,
    };
    let identity = identity.as_ref().map(|(c, k)| (c.as_slice(), k.as_slice()));
    let authority = etcd_ca.as_ref().map(read).transpose()?;
    let tls = authority.map(|a| onym_http::tls::Tls::new(&a, identity)).transpose()?;
    Ok(Etcd::new(&args.etcd, tls.as_ref(), lease)?)
}

fn driver(args: &Args, state: &Path, manager: String) -> Result<Arc<dyn Driver>> {
    Ok(match args.driver {
        Engine::Process => Arc::new(ProcessDriver::new(ProcessOptions {
            program: std::env::current_exe()?,
            folder: state.join("run"),
            manager,
            host: "127.0.0.1".to_owned(),
            cgroup: usable_cgroup(),
        })),
        Engine::Docker => Arc::new(DockerDriver::new(DockerOptions {
            socket: args.docker_socket.clone(),
            binary: args.binary.clone().map_or_else(std::env::current_exe, Ok)?,
            manager,
        })),
        Engine::Kubernetes => Arc::new(kubernetes(&args.kubernetes, manager)?),
    })
}

fn kubernetes(args: &Kubernetes, manager: String) -> Result<KubernetesDriver> {
    let Some(image) = args.image.clone() else {
        let failure = Failure::new(Exit::Usage, "no image is given");
        let failure = failure.why("pods need an image that the cluster's nodes have or can pull");
        return Err(failure
            .next("give --image NAME; `make static` builds the binary for it")
            .into());
    };
    let (cluster, namespace) = (cluster(args)?, args.namespace.clone());
    Ok(KubernetesDriver::new(KubernetesOptions { cluster, namespace, image, manager }))
}

fn cluster(args: &Kubernetes) -> Result<Cluster> {
    let cluster = Cluster::find(args.kubeconfig.as_deref(), Duration::from_secs(30));
    Ok(cluster.map_err(|e| {
        Failure::new(Exit::Usage, "no cluster is known").why(e).next("--kubeconfig FILE")
    })?)
}

/// What keeps the network as objects of the cluster say, where that was asked for.
fn operator(args: &Args) -> Result<Option<Operator>> {
    if !args.kubernetes.networks {
        return Ok(None);
    }
    if !matches!(args.driver, Engine::Kubernetes) {
        let failure = Failure::new(Exit::Usage, "--networks needs a cluster");
        return Err(failure.next("add --driver kubernetes").into());
    }
    let namespace = args.kubernetes.namespace.clone();
    Ok(Some(Operator::new(cluster(&args.kubernetes)?, namespace, OPERATOR_LOOKS)))
}

/// The mark of this state's services, made at the first start.
async fn identity(store: &FileStore) -> Result<String> {
    let mut saved: Saved = store.load().await?.unwrap_or_default();
    if saved.manager.is_empty() {
        saved.manager = onym_manager::engine::new_mark();
        store.save(&saved).await?;
    }
    Ok(saved.manager)
}
