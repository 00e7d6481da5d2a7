//! `onym service`: one network function in the foreground.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::{secure, stop};
use onym_host::{FaceSpec, Host, HostError, Kind, ListenSpec, Options, TlsFiles};
use serde_json::{Map, Value};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;
use tracing_subscriber::filter::EnvFilter;

/// How long what is pending may still be answered after a signal.
const DRAIN: Duration = Duration::from_secs(2);

/// Run one network function in the foreground.
///
/// Prints `ready` with a JSON object to standard error once its control interface and its listeners
/// are open. It is controlled over HTTP with JSON (spec/services.md). SIGTERM and SIGINT drain it
/// for at most two seconds, then stop it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Kinds: name-router, backward-router, packet-dispatcher, content-store,
strategy-forwarder, signature-verifier, name-filter, and forwarder (merged).

Examples:
  onym service content-store --listen tcp4://127.0.0.1:6400 --face tcp4://127.0.0.1:6401
  onym service name-router --listen consumer=tcp4://127.0.0.1:6362 \\
      --listen producer=tcp4://127.0.0.1:6363,side=producer --set registration=open
  onym service packet-dispatcher --listen unix:///tmp/nfd.sock \\
      --set consumer_path=tcp4://127.0.0.1:6400 --set producer_path=tcp4://127.0.0.1:6363
  onym service signature-verifier --control 0.0.0.0:10000 --set threads=2 \\
      --tls-cert own.pem --tls-key own.key --tls-ca ca.pem")]
pub(crate) struct Args {
    /// Kind of function.
    #[arg(value_name = "KIND")]
    kind: Kind,
    /// Name in events and metrics (default: the short form of the kind).
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Where the control interface listens; other than loopback needs mutual TLS, or a token with
    /// --clear-text.
    #[arg(long, value_name = "ADDR:PORT", default_value = "127.0.0.1:0")]
    control: SocketAddr,
    /// Where peers connect: tcp4, tcp6, udp4, udp6, unix, ether; may be repeated.
    #[arg(long, value_name = "[LABEL=]URI[,side=SIDE][,peer=PEER]")]
    listen: Vec<ListenSpec>,
    /// A face to make; may be repeated.
    #[arg(long, value_name = "[LABEL=]URI[,side=SIDE][,peer=PEER]")]
    face: Vec<FaceSpec>,
    /// A key of the configuration, its value JSON or a word; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// File with the token that control requests must carry.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Certificate of the control interface (PEM).
    #[arg(long, value_name = "FILE", requires_all = ["tls_key", "tls_ca"])]
    tls_cert: Option<PathBuf>,
    /// Its key (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_key: Option<PathBuf>,
    /// Certificate authority of clients (PEM).
    #[arg(long, value_name = "FILE", requires = "tls_cert")]
    tls_ca: Option<PathBuf>,
    /// Accept the token unencrypted beyond loopback; only where nobody can read along.
    #[arg(long, requires = "token_file")]
    clear_text: bool,
    /// Answer every user of this machine without a token; else its own user and root. Not as root.
    #[arg(long, conflicts_with_all = ["token_file", "tls_cert"])]
    open: bool,
    /// A folder whose sockets the control interface may have it connect to, beside those of its
    /// own listeners and faces; may be repeated.
    #[arg(long, value_name = "unix:///FOLDER", value_parser = folder)]
    allow_connect: Vec<PathBuf>,
}

fn folder(text: &str) -> Result<PathBuf, String> {
    let path = text.strip_prefix("unix://").filter(|path| path.starts_with('/'));
    path.map(PathBuf::from).ok_or_else(|| format!("{text:?}: unix:///FOLDER is wanted"))
}

pub(crate) fn run(args: Args, _cx: &Context) -> anyhow::Result<()> {
    let filter = EnvFilter::try_from_env("ONYM_LOG").unwrap_or_else(|_| EnvFilter::new("info"));
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    tracing_subscriber::fmt()
        .log_internal_errors(false)
        .with_env_filter(filter)
        .with_ansi(colours)
        .with_writer(|| crate::log_ring::LogLines)
        .init();
    // Signals that come while it starts are kept.
    let stop = stop::on_signal()?;
    let mut host = Host::start(options(args)?).map_err(|error| {
        let exit = if matches!(error, HostError::Usage(_)) { Exit::Usage } else { Exit::Failed };
        Failure::new(exit, "the service does not start")
            .why(error)
            .next("`onym service --help` shows examples; spec/services.md has every key")
    })?;
    crate::output::tell(format_args!("ready {}", host.ready()));
    while !stop.is_set() && !host.is_stop_asked() {
        std::thread::sleep(Duration::from_millis(50));
    }
    tracing::info!("stopping");
    host.stop(DRAIN);
    Ok(())
}

fn options(args: Args) -> anyhow::Result<Options> {
    let mut options = Options::new(args.kind);
    if let Some(name) = args.name {
        options.name = name;
    }
    options.control = args.control;
    options.listen = args.listen;
    options.faces = args.face;
    options.config = config(&args.sets)?;
    options.clear_text = args.clear_text;
    options.connect = args.allow_connect;
    options.open = args.open;
    if args.open && onym_sys::peer::own_uid() == 0 {
        let failure =
            Failure::new(Exit::Usage, "a service that runs as root does not accept --open");
        let failure = failure.why("every user of this machine could control it");
        return Err(failure.next("omit --open, or run the service as a user of its own").into());
    }
    options.token = args.token_file.as_deref().map(secure::read_token).transpose()?;
    if let (Some(certificate), Some(key), Some(ca)) = (args.tls_cert, args.tls_key, args.tls_ca) {
        options.tls = Some(TlsFiles { certificate, key, ca });
    }
    Ok(options)
}

/// `key=value` pairs; a value that is not JSON is a word.
fn config(sets: &[String]) -> anyhow::Result<Map<String, Value>> {
    let mut config = Map::new();
    for text in sets {
        let Some((key, value)) = text.split_once('=') else {
            let why = format!("--set {text}: expected KEY=VALUE");
            return Err(Failure::new(Exit::Usage, "the configuration is wrong").why(why).into());
        };
        let value = serde_json::from_str(value).unwrap_or_else(|_| Value::String(value.into()));
        config.insert(key.into(), value);
    }
    Ok(config)
}
