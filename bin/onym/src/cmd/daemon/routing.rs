//! Routing, beside the node in the same process.

use crate::exit::{Exit, Failure};
use onym_node::NodeHandle;
use onym_node::config::{Config, RoutingArea, RoutingExport, RoutingNeighbour, RoutingSummary};
use onym_route::{CostBy, Export, Link, Summary};
use onym_router::{Announce, Area, Handle, LinkChange, LinkWatch, Schema, Settings};
use onym_wire::Name;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The groups of NDN (spec/registry.md).
const GROUPS: [&str; 2] = ["224.0.23.170:56363", "[ff02::1234]:56363"];

/// What the configuration means; nothing without a network.
pub(super) fn settings(config: &Config, base: &Path) -> anyhow::Result<Option<Settings>> {
    let routing = &config.routing;
    if routing.network.is_empty() {
        return Ok(None);
    }
    let folder = match routing.folder.as_str() {
        "" => usual_folder(),
        folder => PathBuf::from(folder),
    };
    let first = RoutingArea {
        network: routing.network.clone(),
        router: routing.router.clone(),
        neighbour: routing.neighbour.clone(),
        discover: routing.discover,
        accept: routing.accept.clone(),
        folder: folder.display().to_string(),
        trust: routing.trust.clone(),
    };
    let areas = std::iter::once(&first).chain(&routing.area).enumerate();
    let areas: anyhow::Result<_> = areas
        .map(|(i, area)| {
            let key = if i == 0 { "routing.trust" } else { "routing.area.trust" };
            let trust = config.trust_of(key, &area.trust)?;
            let trust =
                trust.map(|settings| Schema { settings: settings.clone(), base: base.to_owned() });
            area_of(area, &folder, routing.insecure, trust)
        })
        .collect();
    Ok(Some(Settings {
        node: String::new(),
        areas: areas?,
        exports: routing.export.iter().map(export_of).collect::<anyhow::Result<_>>()?,
        resolve_every: Duration::from_millis(routing.resolve_interval_ms),
        advertise_interval: Duration::from_millis(routing.advertise_interval_ms),
        dead_interval: Duration::from_millis(routing.dead_interval_ms),
        announce: if routing.announce == "all" { Announce::All } else { Announce::Client },
        learned: routing.announce_learned,
        link_watch: None,
        // The node's own rules say who may register what; these commands would pass them by.
        readvertise: false,
        cost_by: CostBy {
            rtt: Duration::from_millis(routing.cost_rtt_ms),
            loss_percent: routing.cost_loss_percent,
        },
    }))
}

/// A network, whose folder lies in `folder` when it has none of its own.
fn area_of(
    area: &RoutingArea,
    folder: &Path,
    insecure: bool,
    trust: Option<Schema>,
) -> anyhow::Result<Area> {
    let network: Name = area.network.parse()?;
    let router = match area.router.as_str() {
        "" => of_host(&network),
        name => name.parse()?,
    };
    let link = |n: &RoutingNeighbour| Link { uri: n.uri.clone(), mtu: n.mtu, cost: n.cost };
    let folder = match area.folder.as_str() {
        "" => area_folder(folder, &network),
        folder => PathBuf::from(folder),
    };
    Ok(Area {
        network,
        router,
        links: area.neighbour.iter().map(link).collect(),
        discover: area.discover,
        accept: area.accept.iter().map(|name| name.parse()).collect::<Result<_, _>>()?,
        state: Some(folder.clone()),
        keys: (!insecure).then_some(folder),
        trust,
    })
}

fn export_of(export: &RoutingExport) -> anyhow::Result<Export> {
    let summary = |s: &RoutingSummary| {
        Ok(Summary { prefix: s.prefix.parse()?, cost: s.cost, always: s.always })
    };
    Ok(Export {
        from: export.from.parse()?,
        to: export.to.parse()?,
        summaries: export.summary.iter().map(summary).collect::<anyhow::Result<_>>()?,
        others: export.others,
    })
}

/// The folder of a further network that has no other, in that of the first one.
pub(crate) fn area_folder(first: &Path, network: &Name) -> PathBuf {
    // A colon is in no URI of a name.
    first.join(network.to_string().trim_start_matches('/').replace('/', ":"))
}

/// Routing that looks for neighbours needs links to look on: the usual groups, when none is configured.
pub(super) fn join_groups(config: &mut Config) {
    let faces = &mut config.faces;
    let none = faces.udp.multicast.0.is_empty() && faces.ether.interfaces.0.is_empty();
    let routing = &config.routing;
    let discovers = routing.discover || routing.area.iter().any(|area| area.discover);
    if !routing.network.is_empty() && discovers && none {
        faces.udp.multicast.0 = GROUPS.map(str::to_owned).to_vec();
    }
}

/// The router named for its host.
pub(crate) fn of_host(network: &Name) -> Name {
    let host = rustix::system::uname().nodename().to_bytes().to_vec();
    let mut name = network.clone();
    name.append_generic(if host.is_empty() { b"router".to_vec() } else { host });
    name
}

/// Where a router keeps its keys when nobody says.
pub(crate) fn usual_folder() -> PathBuf {
    if rustix::process::geteuid().is_root() {
        return PathBuf::from("/var/lib/onym/routing");
    }
    let home = || std::env::var_os("HOME").map(|home| PathBuf::from(home).join(".local/state"));
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from).or_else(home);
    state.unwrap_or_else(|| PathBuf::from(".")).join("onym/routing")
}

/// Where the keys of the router are, for each of its networks.
pub(super) fn key_folders(settings: Option<&Settings>) -> Vec<PathBuf> {
    let areas = settings.into_iter().flat_map(|settings| &settings.areas);
    areas.filter_map(|area| area.keys.clone()).collect()
}

/// Starts the router of a node that is ready.
pub(super) fn start(
    settings: Option<Settings>,
    node: &NodeHandle,
) -> anyhow::Result<Option<Handle>> {
    let Some(mut settings) = settings else { return Ok(None) };
    settings.node = way_to(node)?;
    // The push half has the links that routing has.
    let found = node.found_links();
    settings.link_watch = Some(LinkWatch::new(move |change| match change {
        LinkChange::Up { face, cost } => found.up(face, cost),
        LinkChange::Down { face } => found.down(face),
    }));
    let routers: Vec<String> = settings.areas.iter().map(|area| area.router.to_string()).collect();
    let handle = onym_router::start(settings).map_err(|error| {
        Failure::new(Exit::Failed, "the router does not start")
            .why(error)
            .next("check routing.network, routing.router and routing.folder")
    })?;
    node.add_metrics(handle.shown());
    tracing::info!(router = routers.join(", "), "routing");
    Ok(Some(handle))
}

/// The URI of the node for what runs beside it.
pub(super) fn way_to(node: &NodeHandle) -> anyhow::Result<String> {
    let Some(path) = &node.bound().unix else {
        return Err(Failure::new(Exit::Failed, "what runs beside the node cannot reach it")
            .why("the node has no Unix socket: another forwarder may use the path")
            .next("set faces.unix.path to a path that is free")
            .into());
    };
    Ok(format!("unix://{}", path.display()))
}
