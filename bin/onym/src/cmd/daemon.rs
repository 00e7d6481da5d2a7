//! `onym daemon`: the node in the foreground, with its gateway where there is one.

pub(crate) mod certificates;
mod gateway;
mod lan;
mod readvertise;
pub(crate) mod routing;
mod shown;
mod supervisor;

use crate::exit::{Exit, Failure};
use crate::log_json::JsonLines;
use crate::log_ring::{LogLines, Ring};
use crate::output::{Context, write_line};
use crate::supervised;
use onym_node::config::{Changes, Config, LogFormat};
use onym_node::log::{LogControl, LogLine};
use onym_node::{Node, NodeHandle};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use supervisor::Ended;
use tracing_subscriber::filter::EnvFilter;
use tracing_subscriber::prelude::*;
use tracing_subscriber::reload;

/// Run a node in the foreground.
///
/// Prints `ready` to standard error once its faces are open. SIGHUP reloads the configuration;
/// SIGTERM and SIGINT send what is queued and stop the node.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym daemon
  onym daemon --config /etc/onym/onym.toml
  onym daemon --set faces.udp.listen=127.0.0.1:0 --set cs.packets_max=1000
  onym daemon --config onym.toml --print-config")]
pub(crate) struct Args {
    /// Configuration file (TOML); see docs/config.md for its keys.
    #[arg(short, long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Set one key, over the file; may be repeated.
    #[arg(long = "set", value_name = "KEY=VALUE")]
    sets: Vec<String>,
    /// Print the merged configuration and exit.
    #[arg(long)]
    print_config: bool,
}

type LogHandle = reload::Handle<EnvFilter, tracing_subscriber::Registry>;

pub(crate) fn run(args: Args, _cx: &Context) -> anyhow::Result<()> {
    let config = load(&args)?;
    if args.print_config {
        return write_line(&config.to_toml());
    }
    let log = start_log(&config)?;
    if config.daemon.raise_nofile {
        raise_nofile();
    }
    // Signals that come while the node starts are kept.
    let mut signals = Signals::new([SIGHUP, SIGTERM, SIGINT])?;
    if let Some(note) = exceeds(&config, onym_sys::memory::limit()) {
        tracing::warn!("{note}");
    }
    let origin = args.config.clone().unwrap_or_else(|| PathBuf::from("configuration"));
    let base = origin.parent().unwrap_or(Path::new("."));
    let gateway = gateway::settings(&config, base)?;
    let routing = routing::settings(&config, base)?;
    let telling = readvertise::settings(&config)?;
    let lan = lan::settings(&config);
    let shown = shown::settings(&config, base)?;
    let node = Node::start_from(config, &origin).map_err(|error| {
        Failure::new(Exit::Failed, "the node does not start")
            .why(error)
            .next("`onym doctor` tests what a node needs; `onym check-config FILE` tests a file")
    })?;
    node.serve_log(Arc::clone(&log) as Arc<dyn LogControl>)?;
    for note in node.notes() {
        tracing::warn!("{note}");
    }
    tell_bound(&node);
    let gateway = gateway::start(gateway, &node)?;
    let keys = routing::key_folders(routing.as_ref());
    let routing = routing::start(routing, &node)?;
    let telling = readvertise::start(telling, &node)?;
    let lan = lan::start(lan, &node)?;
    let shown = shown::start(shown, &node)?;
    let ended = Ended::default();
    let (watched, end) = (&node, &ended);
    let watch =
        supervised::watchdog().map(|limit| move || supervisor::keep_alive(watched, end, limit));
    std::thread::scope(|scope| {
        if let Some(watch) = watch {
            let thread = std::thread::Builder::new().name("onym-watchdog".into());
            thread.spawn_scoped(scope, watch).map_err(|error| {
                Failure::new(Exit::Failed, "the node does not start").why(error)
            })?;
        }
        for folder in keys {
            watch_certificates(scope, folder, watched, end);
        }
        crate::output::tell(format_args!("ready"));
        supervised::tell_ready();
        for signal in signals.forever() {
            if signal != SIGHUP {
                break;
            }
            supervisor::tell_reload(|| reload(&args, &node, &log));
        }
        ended.set();
        anyhow::Ok(())
    })?;
    supervised::tell_stop();
    tracing::info!("stopping");
    // In this order.
    drop((shown, lan, telling, routing, gateway));
    if !node.stop() {
        tracing::warn!("queued packets were not sent in time (daemon.drain_ms)");
    }
    Ok(())
}

/// Warns before certificates expire, for as long as the node runs.
fn watch_certificates<'a>(
    scope: &'a std::thread::Scope<'a, '_>,
    folder: PathBuf,
    node: &NodeHandle,
    end: &'a Ended,
) {
    let node = node.bound().unix.as_ref().map(|path| format!("unix://{}", path.display()));
    let watch = move || certificates::watch(&folder, node.as_deref(), end);
    let thread = std::thread::Builder::new().name("onym-certs".into());
    if let Err(error) = thread.spawn_scoped(scope, watch) {
        tracing::warn!(%error, "cannot start the watch over certificates: nothing will warn before they expire");
    }
}

fn load(args: &Args) -> anyhow::Result<Config> {
    let mut config = Config::load(args.config.as_deref(), &args.sets).map_err(|error| {
        Failure::new(Exit::Usage, "the configuration is wrong")
            .why(error)
            .next("docs/config.md lists every key; `onym daemon --print-config` shows the defaults")
    })?;
    routing::join_groups(&mut config);
    Ok(config)
}

fn start_log(config: &Config) -> anyhow::Result<Arc<DaemonLog>> {
    let (filter, handle) = reload::Layer::new(filter(config)?);
    let colours = std::io::IsTerminal::is_terminal(&std::io::stderr());
    // An error would be told on standard error, and a thread that cannot write there would end.
    let lines = tracing_subscriber::fmt::layer()
        .with_ansi(colours)
        .with_writer(|| LogLines)
        .log_internal_errors(false);
    let lines = match config.log.format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.event_format(JsonLines).boxed(),
    };
    let ring = Ring::default();
    let kept = tracing_subscriber::fmt::layer().with_ansi(false).with_writer(ring.clone());
    tracing_subscriber::registry().with(filter).with(lines).with(kept).init();
    Ok(Arc::new(DaemonLog { handle, ring }))
}

/// The log of this process: what management tells and changes.
struct DaemonLog {
    handle: LogHandle,
    ring: Ring,
}

impl LogControl for DaemonLog {
    fn filter(&self) -> String {
        self.handle.with_current(ToString::to_string).unwrap_or_default()
    }

    fn set_filter(&self, text: &str) -> Result<(), String> {
        self.handle.reload(parse_filter(text)?).map_err(|e| e.to_string())?;
        tracing::info!(filter = text, "log filter changed");
        Ok(())
    }

    fn lines(&self) -> Vec<LogLine> {
        self.ring.lines()
    }
}

/// What is in a filter: levels, and `module=level`.
const FILTERS: &str = "allowed are levels (error, warn, info, debug, trace, off) and module=level";

fn parse_filter(text: &str) -> Result<EnvFilter, String> {
    const LEVELS: [&str; 6] = ["error", "warn", "info", "debug", "trace", "off"];
    // A word alone would be taken for a module, and silence all others.
    let is_level = |word: &str| LEVELS.iter().any(|level| level.eq_ignore_ascii_case(word));
    let odd =
        text.split(',').map(str::trim).find(|part| !part.contains(['=', '[']) && !is_level(part));
    if let Some(odd) = odd {
        return Err(format!("`{odd}` is not a level; {FILTERS}"));
    }
    EnvFilter::try_new(text).map_err(|error| format!("`{text}`: {error}; {FILTERS}"))
}

fn filter(config: &Config) -> anyhow::Result<EnvFilter> {
    parse_filter(&config.log.filter).map_err(|why| {
        Failure::new(Exit::Usage, "the configuration is wrong")
            .why(format!("key `log.filter`: {why}"))
            .next("docs/config.md lists every key; `onym daemon --print-config` shows the defaults")
            .into()
    })
}

/// What the program takes beside its tables, about.
const OWN_BYTES: u64 = 64 << 20;

/// A sentence where the tables may take more memory than the process may have.
fn exceeds(config: &Config, limit: Option<u64>) -> Option<String> {
    let push = if config.push.enabled { config.push.graph_bytes_max } else { 0 };
    let tables = (config.cs.bytes_max + config.pit.bytes_max + push) as u64;
    let limit = limit.filter(|limit| tables + OWN_BYTES > *limit)?;
    Some(format!(
        "the tables may take {} MB (cs.bytes_max, pit.bytes_max, push.graph_bytes_max), and the \
         limit of this process is {} MB: beyond it the system ends the node; lower the keys",
        tables >> 20,
        limit >> 20
    ))
}

fn tell_bound(node: &NodeHandle) {
    let bound = node.bound();
    if let Some(path) = &bound.unix {
        tracing::info!(path = %path.display(), "listening on the Unix socket");
    }
    for (kind, list) in [
        ("udp", &bound.udp),
        ("tcp", &bound.tcp),
        ("websocket", &bound.websocket),
        ("quic", &bound.quic),
        ("metrics", &bound.metrics),
    ] {
        for address in list {
            tracing::info!(kind, %address, "listening");
        }
    }
}

fn reload(args: &Args, node: &NodeHandle, log: &DaemonLog) {
    let config = match load(args) {
        Ok(config) => config,
        Err(error) => {
            let why = error.source().map(ToString::to_string).unwrap_or_default();
            tracing::error!("{error} {why}; the node goes on with the old one");
            return;
        }
    };
    match filter(&config) {
        Ok(filter) => {
            let _ = log.handle.reload(filter);
        }
        Err(error) => tracing::error!("{error}"),
    }
    match node.reload(config) {
        Ok(Changes { live, restart }) => {
            tracing::info!(took_effect = ?live, "configuration reloaded");
            if !restart.is_empty() {
                tracing::warn!(wait_for_restart = ?restart, "some keys take effect after a restart");
            }
        }
        Err(error) => tracing::error!(%error, "the configuration was applied in part"),
    }
}

/// Every face is a descriptor.
fn raise_nofile() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    if let Err(error) = setrlimit(Resource::Nofile, limit) {
        tracing::warn!(%error, "the limit of open files cannot be raised");
    }
}
