#![doc = include_str!("../README.md")]

mod bridge;
mod inbox;
mod keys;
mod queries;

use anyhow::{Context, Result, anyhow};
use bridge::{Bridge, Limits};
use clap::Parser;
use keys::Prefix;
use onym_client::push::App;
use onym_wire::push::{Path, Strategy};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::io::Write;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use zenoh::{Config, Session, Wait};

/// Bridge a Zenoh network and the push half of a node: what is put in one is published in the other.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Examples:
  onym-zenoh --prefix plant --connect tcp/192.0.2.1:7447
  onym-zenoh --scope /plant --key lamp --key door/lock

The key plant/sensors/roof is the item /zenoh/sensors/roof/~value, at every node of the domain. Topics
that bridges say they have go to Zenoh while somebody there is subscribed; --key names others. What came
over a bridge is not sent back. A get is answered by what is retained of these topics."
)]
struct Args {
    /// The node: unix:///path, tcp4://host:port; by default the usual places.
    #[arg(long, value_name = "URI")]
    node: Option<String>,
    /// Key expression above all keys that are bridged; none: all keys.
    #[arg(long, value_name = "KEY", default_value = "", value_parser = Prefix::parse)]
    prefix: Prefix,
    /// The scope above all topics.
    #[arg(long, value_name = "PATH", default_value = "/zenoh")]
    scope: Path,
    /// How far topics reach: node-local, domain-local, inter-domain.
    #[arg(long, value_name = "NAME", default_value = "domain-local", value_parser = strategy)]
    strategy: Strategy,
    /// A topic that goes to Zenoh though no bridge says it has it.
    #[arg(long = "key", value_name = "TOPIC")]
    keys: Vec<String>,
    /// Zenoh's configuration, JSON5; the options below go before it.
    #[arg(long, value_name = "FILE")]
    zenoh_config: Option<PathBuf>,
    /// A router or peer of Zenoh, such as tcp/192.0.2.1:7447.
    #[arg(long, value_name = "ENDPOINT")]
    connect: Vec<String>,
    /// Where to listen for peers of Zenoh.
    #[arg(long, value_name = "ENDPOINT")]
    listen: Vec<String>,
    /// Look for no peers of Zenoh but those that are named.
    #[arg(long)]
    no_scouting: bool,
    /// Octets of values that wait for the bridge; further ones are dropped and counted.
    #[arg(long, value_name = "OCTETS", default_value_t = 4 << 20)]
    queue_max: usize,
    /// Most octets of a value; longer ones are refused and counted.
    #[arg(long, value_name = "OCTETS", default_value_t = 256 << 10)]
    packet_max: usize,
    /// Most topics that come from Zenoh, and as many that are followed.
    #[arg(long, value_name = "N", default_value_t = 10_000)]
    topics_max: usize,
}

fn strategy(name: &str) -> Result<Strategy, String> {
    let known = Strategy::named(name).filter(|strategy| strategy.has_rendezvous());
    known.ok_or_else(|| "node-local, domain-local or inter-domain is expected".into())
}

/// A session of Zenoh as the options say.
fn session(args: &Args) -> Result<Session> {
    let wrong = |error: zenoh::Error| anyhow!("zenoh: {error}");
    let mut config = match &args.zenoh_config {
        Some(file) => Config::from_file(file).map_err(wrong)?,
        None => Config::default(),
    };
    let list = |endpoints: &[String]| format!("{endpoints:?}");
    let mut settings = Vec::new();
    if !args.connect.is_empty() {
        settings.push(("connect/endpoints", list(&args.connect)));
    }
    if !args.listen.is_empty() {
        settings.push(("listen/endpoints", list(&args.listen)));
    }
    if args.no_scouting {
        settings.push(("scouting/multicast/enabled", "false".into()));
        settings.push(("scouting/gossip/enabled", "false".into()));
    }
    for (key, value) in settings {
        config.insert_json5(key, &value).map_err(|error| anyhow!("zenoh: {key}: {error}"))?;
    }
    zenoh::open(config).wait().map_err(wrong)
}

fn say(line: &str) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}

fn main() -> Result<()> {
    let args = Args::parse();
    let stop = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&stop))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&stop)))
            .context("cannot handle signals")?;
    }
    let open = |name| App::open(args.node.as_deref(), name);
    let apps = [open("onym-zenoh")?, open("onym-zenoh queries")?];
    let limits = Limits { queue: args.queue_max, packet: args.packet_max, topics: args.topics_max };
    let (prefix, scope) = (args.prefix.clone(), args.scope.clone());
    let mut bridge = Bridge::begin(session(&args)?, apps, prefix, scope, args.strategy, limits)?;
    for topic in &args.keys {
        bridge.follow(topic)?;
    }
    say(&format!("ready: zenoh {} is {}", args.prefix.all(), args.scope))?;
    let counts = bridge.serve(&stop)?;
    say(&counts.to_string())
}
