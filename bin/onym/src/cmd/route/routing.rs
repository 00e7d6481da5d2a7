//! `onym route run` and what a router tells.

mod hold;
mod map;

use crate::cmd::daemon::routing as daemon;
use crate::exit::{Exit, Failure};
use crate::output::{self, Context, write_line};
use crate::{session, stop};
use anyhow::Context as _;
use clap::Subcommand;
use map::Map;
use onym_client::mgmt;
use onym_client::transport::{self, Surroundings};
use onym_route::{CostBy, Link};
use onym_router::{Announce, Area, Schema, Settings};
use onym_wire::Name;
use serde_json::Value;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Duration;

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Run a router over the node: onym, NFD or ndnd.
    #[command(after_help = "Examples:
  onym route run /example --neighbour udp4://192.0.2.1:6363
  onym route run /lab --router /lab/a --insecure")]
    Run(Run),
    /// Show the router of the node.
    Status(Of),
    /// Show neighbours of the router.
    Neighbours(Of),
    /// Show the reachable routers, and the neighbours that lead to them.
    Table(Of),
    /// Show the prefixes that routers announce, and the ways to them.
    Prefixes(Of),
    /// Explain which way a name takes, and why.
    #[command(after_help = "Example:\n  onym route explain /example/app")]
    Explain {
        /// A name, or a router.
        name: Name,
        #[command(flatten)]
        of: Of,
    },
    /// Hold a neighbour down: nothing is heard from it or said to it, until it is released.
    ///
    /// It is written in the folder of the router, and holds over restarts.
    #[command(after_help = "Example:\n  onym route hold /example/router-b")]
    Hold(Held),
    /// Hear a neighbour again that was held down.
    #[command(after_help = "Example:\n  onym route release /example/router-b")]
    Release(Held),
    /// Print the map that the router sees: for Graphviz, or with --json as routers and links.
    #[command(after_help = "Example:\n  onym route map | dot -Tsvg -o map.svg")]
    Map(Of),
    /// Show the link state database and the routing table of NLSR, where NLSR runs over the node.
    #[command(after_help = "Examples:
  onym route lsdb
  onym route lsdb --router /ndn/site/%C1.Router/r1 --json")]
    Lsdb(super::lsdb::Args),
}

/// The network that is asked about.
#[derive(Debug, clap::Args)]
pub(crate) struct Of {
    /// One of several networks of the node; without it, the one that has its programs.
    #[arg(long, value_name = "NAME")]
    network: Option<Name>,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Run {
    /// Name of the network.
    network: Name,
    /// Name of the router; without it, the network and the host's name.
    #[arg(long, value_name = "NAME")]
    router: Option<Name>,
    /// A neighbour to link to; repeat for more. A host name is followed when its address changes.
    #[arg(long, value_name = "URI")]
    neighbour: Vec<String>,
    /// Look for neighbours on the multicast faces of the node, which is on this machine.
    #[arg(long)]
    discover: bool,
    /// Folder of keys and bootstrap time; created if missing.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Accept unsigned routing messages from anyone who reaches the node.
    #[arg(long)]
    insecure: bool,
    /// Trust schema in place of the rules of deployed routers: who may sign what in routing.
    #[arg(long = "trust", value_name = "FILE", requires = "anchors", conflicts_with = "insecure")]
    schema: Option<String>,
    /// Trust anchors of --trust: a file of a certificate, or a folder of such files.
    #[arg(long = "anchor", value_name = "PATH", requires = "schema")]
    anchors: Vec<String>,
    /// Announce whatever applications register, not only routes of origin client.
    #[arg(long)]
    announce_all: bool,
    /// Add 1 to the cost of a link per this many milliseconds of round-trip time.
    #[arg(long, value_name = "MS", default_value_t = 0, value_parser = clap::value_parser!(u64).range(0..=600_000))]
    cost_rtt: u64,
    /// Add 1 to the cost of a link per this many percent of probes lost.
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=100))]
    cost_loss: u32,
    /// Interval between hellos, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 5000, value_parser = clap::value_parser!(u64).range(100..=600_000))]
    advertise_interval: u64,
    /// Silence after which a neighbour counts as dead, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 30_000, value_parser = clap::value_parser!(u64).range(200..=6_000_000))]
    dead_interval: u64,
}

#[derive(Debug, clap::Args)]
pub(crate) struct Held {
    /// The neighbour.
    router: Name,
    /// Folder of the router (`routing.folder`); without it the usual one of this user.
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(command: Command, cx: &Context) -> anyhow::Result<()> {
    match command {
        Command::Run(args) => serve(args, cx),
        Command::Status(of) => {
            let view = view(cx, of.network.as_ref())?;
            cx.print(&status(&view), |_| status_text(&view))
        }
        Command::Neighbours(of) => {
            let view = view(cx, of.network.as_ref())?;
            cx.print(&view["neighbours"], neighbours_text)
        }
        Command::Table(of) => {
            let view = view(cx, of.network.as_ref())?;
            cx.print(&view["destinations"], table_text)
        }
        Command::Prefixes(of) => {
            let view = view(cx, of.network.as_ref())?;
            let both = serde_json::json!({
                "local": view["local_prefixes"], "outside": view["outside_prefixes"],
                "remote": view["prefixes"],
            });
            cx.print(&both, prefixes_text)
        }
        Command::Explain { name, of } => {
            let told = ask(cx, of.network.as_ref(), "explain", Some(&name))?;
            cx.print(&told, explain_text)
        }
        Command::Hold(args) => hold::hold(args, cx),
        Command::Release(args) => hold::release(args, cx),
        Command::Lsdb(args) => super::lsdb::run(&args, cx),
        Command::Map(of) => {
            let view = view(cx, of.network.as_ref())?;
            let map = Map::of(&view);
            if cx.json { cx.print(&map, |_| String::new()) } else { write_line(&map.dot()) }
        }
    }
}

fn serve(args: Run, cx: &Context) -> anyhow::Result<()> {
    if args.dead_interval < 2 * args.advertise_interval {
        return Err(Failure::new(Exit::Usage, "the dead interval is too short")
            .why("it must be at least twice the advertise interval")
            .next("raise --dead-interval")
            .into());
    }
    let stop = stop::on_signal()?;
    tracing_subscriber::fmt().with_writer(std::io::stderr).with_ansi(false).init();
    let (places, _) = transport::candidates(cx.node.as_deref(), &Surroundings::of_process())?;
    let node = places.first().context("no node to connect to")?.to_string();
    let folder = args.folder.unwrap_or_else(daemon::usual_folder);
    let link = |uri: &String| Link { uri: uri.clone(), mtu: None, cost: 1 };
    let trust = args.schema.map(|schema| Schema {
        settings: onym_guard::Settings::of(&schema, args.anchors),
        base: PathBuf::new(),
    });
    let area = Area {
        router: args.router.unwrap_or_else(|| daemon::of_host(&args.network)),
        network: args.network,
        links: args.neighbour.iter().map(link).collect(),
        discover: args.discover,
        accept: Vec::new(),
        state: Some(folder.clone()),
        keys: (!args.insecure).then_some(folder),
        trust,
    };
    output::tell(format_args!("routing as {}", area.router));
    let settings = Settings {
        node,
        areas: vec![area],
        exports: Vec::new(),
        advertise_interval: Duration::from_millis(args.advertise_interval),
        dead_interval: Duration::from_millis(args.dead_interval),
        announce: if args.announce_all { Announce::All } else { Announce::Client },
        resolve_every: Duration::from_secs(30),
        learned: true,
        link_watch: None,
        readvertise: true,
        cost_by: CostBy { rtt: Duration::from_millis(args.cost_rtt), loss_percent: args.cost_loss },
    };
    onym_router::run(settings, stop.flag()).map_err(|error| {
        Failure::new(Exit::Failed, "the router does not start")
            .why(error)
            .next("`onym route run --help` shows what it needs")
            .into()
    })
}

// --- asking

pub(super) fn view(cx: &Context, network: Option<&Name>) -> anyhow::Result<Value> {
    ask(cx, network, "view", None)
}

/// All that the map of a network is drawn from: who is linked to whom, and who announces what.
pub(crate) fn mapped(cx: &Context, network: Option<&Name>) -> anyhow::Result<Value> {
    let view = view(cx, network)?;
    Ok(serde_json::json!({
        "map": Map::of(&view), "networks": view["networks"], "neighbours": view["neighbours"],
        "links": view["links"], "held": view["held"], "local": view["local_prefixes"],
        "outside": view["outside_prefixes"], "remote": view["prefixes"],
    }))
}

/// Asks the router of the node for a dataset, of one of its networks or of the first.
pub(crate) fn ask(
    cx: &Context,
    network: Option<&Name>,
    what: &str,
    about: Option<&Name>,
) -> anyhow::Result<Value> {
    if let Some(network) = network {
        let all = networks(&ask(cx, None, "view", None)?);
        if !all.contains(network) {
            let all: Vec<String> = all.iter().map(Name::to_string).collect();
            return Err(Failure::new(Exit::NotFound, format!("the node is not in {network}"))
                .why(format!("its router is in {}", all.join(", ")))
                .next("name one of them, or configure `routing.area`")
                .into());
        }
    }
    try_ask(cx, network, what, about).map_err(|error| match error {
        Unasked::Node(error) | Unasked::Answer(error) => error,
        Unasked::NoRouter(error) => Failure::new(Exit::NotFound, "no router answers on this node")
            .why(error)
            .next("set routing.network in the node's configuration, or start `onym route run`")
            .into(),
    })
}

/// The networks of the node, the one that has its programs first.
pub(crate) fn networks(view: &Value) -> Vec<Name> {
    rows(&view["networks"]).filter_map(|name| name.as_str()?.parse().ok()).collect()
}

/// Why a router told nothing.
pub(crate) enum Unasked {
    Node(anyhow::Error),
    NoRouter(onym_client::Error),
    Answer(anyhow::Error),
}

/// As [`ask`], for who does without an answer.
pub(crate) fn try_ask(
    cx: &Context,
    network: Option<&Name>,
    what: &str,
    about: Option<&Name>,
) -> Result<Value, Unasked> {
    let mut client = session::open(cx).map_err(Unasked::Node)?;
    let nested = |inner: &Name| {
        let mut wire = Vec::new();
        inner.as_ref().write_tlv(&mut wire);
        wire
    };
    let mut name = Name::new();
    name.append_generic("localhost").append_generic("nlsr");
    if let Some(network) = network {
        name.append_generic("area").append_generic(nested(network));
    }
    name.append_generic(what);
    if let Some(about) = about {
        name.append_generic(nested(about));
    }
    let content = mgmt::fetch_dataset(&mut client, name).map_err(Unasked::NoRouter)?;
    let read = serde_json::from_slice(&content).context("the router's answer cannot be parsed");
    read.map_err(Unasked::Answer)
}

// --- text

fn text<'a>(value: &'a Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or("?")
}

fn number(value: &Value, key: &str) -> u64 {
    value[key].as_u64().unwrap_or(0)
}

fn rows(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn count(value: &Value) -> usize {
    value.as_array().map_or(0, Vec::len)
}

fn status(view: &Value) -> Value {
    serde_json::json!({
        "network": view["network"], "networks": view["networks"], "router": view["router"],
        "boot": view["boot"], "seq": view["seq"], "neighbours": count(&view["neighbours"]),
        "destinations": count(&view["destinations"]), "prefixes": count(&view["prefixes"]),
        "local_prefixes": count(&view["local_prefixes"]), "links": view["links"],
        "held": view["held"], "counters": view["counters"],
    })
}

fn status_text(view: &Value) -> String {
    let mut out = format!(
        "{} in {}: {} neighbours, {} routers, {} prefixes, {} announced here",
        text(view, "router"),
        text(view, "network"),
        count(&view["neighbours"]),
        count(&view["destinations"]),
        count(&view["prefixes"]),
        count(&view["local_prefixes"]),
    );
    for link in rows(&view["links"]) {
        let face = link["face"].as_u64().map_or("no face".to_owned(), |f| format!("face {f}"));
        let met = if link["is_met"] == true { ", found" } else { "" };
        let (uri, cost) = (text(link, "uri"), number(link, "cost"));
        let _ = write!(out, "\nlink {uri} {face} cost {cost}{met}");
    }
    for held in rows(&view["held"]) {
        let _ = write!(out, "\nheld down {}", held.as_str().unwrap_or("?"));
    }
    for other in rows(&view["networks"]).filter(|network| **network != view["network"]) {
        let other = other.as_str().unwrap_or("?");
        let _ = write!(out, "\nalso in {other}: onym route status --network {other}");
    }
    out
}

fn neighbours_text(list: &Value) -> String {
    let mut out = String::new();
    for n in rows(list) {
        let face = n["faces"][0].as_u64().unwrap_or(0);
        let state = match (n["usable"].as_bool(), n["in_step"].as_bool()) {
            (Some(true), Some(true)) => "in step",
            (Some(true), _) => "its advertisement is being fetched",
            _ => "does not hear this router",
        };
        let _ = writeln!(
            out,
            "{} face {face} cost {} up {} s, heard {} s ago, {state}",
            text(n, "router"),
            number(n, "cost"),
            number(n, "up_s"),
            number(n, "heard_s"),
        );
    }
    out.trim_end().to_owned()
}

fn table_text(list: &Value) -> String {
    let mut out = String::new();
    for d in rows(list) {
        let hops: Vec<String> = rows(&d["hops"])
            .map(|hop| format!("{} ({})", hop[0].as_str().unwrap_or("?"), hop[1]))
            .collect();
        let _ = writeln!(out, "{} cost {} by {}", text(d, "router"), d["cost"], hops.join(", "));
    }
    out.trim_end().to_owned()
}

fn prefixes_text(both: &Value) -> String {
    let mut out = String::new();
    for row in rows(&both["local"]) {
        let _ = writeln!(out, "{} announced here, cost {}", row[0].as_str().unwrap_or("?"), row[1]);
    }
    for p in rows(&both["outside"]) {
        let _ = writeln!(out, "{} {}", text(p, "prefix"), outside_text(p));
    }
    for p in rows(&both["remote"]) {
        let exits: Vec<String> = rows(&p["exits"])
            .map(|exit| format!("{} ({})", exit[0].as_str().unwrap_or("?"), exit[1]))
            .collect();
        let ways: Vec<String> =
            rows(&p["ways"]).map(|way| format!("face {} ({})", way[0], way[1])).collect();
        let ways = if ways.is_empty() { "no way".to_owned() } else { ways.join(", ") };
        let _ = writeln!(out, "{} from {} by {ways}", text(p, "prefix"), exits.join(", "));
    }
    out.trim_end().to_owned()
}

/// What is said of a prefix of another network.
fn outside_text(outside: &Value) -> String {
    let kind = if outside["is_summary"] == true { "a summary, " } else { "" };
    let through: Vec<&str> = rows(&outside["through"]).filter_map(Value::as_str).collect();
    match outside["announced"].as_u64() {
        Some(cost) => format!("{kind}announced here for {}, cost {cost}", through.join(", ")),
        None => "of another network, not announced here".to_owned(),
    }
}

fn explain_text(told: &Value) -> String {
    let mut out = format!("{}: {}", text(told, "name"), text(told, "summary"));
    if let Some(prefix) = told["prefix"].as_str() {
        let _ = write!(out, "\nunder the announced prefix {prefix}");
    }
    if let Some(cost) = told["local"].as_u64() {
        let _ = write!(out, "\nannounced here at cost {cost}");
    }
    if told["outside"].is_object() {
        let _ = write!(out, "\n{}", outside_text(&told["outside"]));
    }
    for router in rows(&told["routers"]) {
        let reached = router["reached"].as_u64();
        let reached = reached.map_or("not reached".to_owned(), |c| format!("reached at cost {c}"));
        let announced = number(router, "announced");
        let _ = write!(out, "\n{} ({announced}), {reached}", text(router, "router"));
        for offer in rows(&router["offers"]) {
            let mark = if offer["used"].as_bool() == Some(true) { "+" } else { "-" };
            let cost = number(offer, "cost");
            let (by, why) = (text(offer, "by"), text(offer, "why"));
            let _ = write!(out, "\n  {mark} by {by} at cost {cost}: {why}");
        }
    }
    out
}
