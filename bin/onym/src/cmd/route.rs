//! `onym route`: the routes of the node.

pub(crate) mod announced;
mod lsdb;
pub(crate) mod routing;

use crate::cmd::kernel;
use crate::cmd::nfdc::{self, Format};
use crate::exit::{Exit, Failure};
use crate::human;
use crate::node_words as words;
use crate::output::{Context, write_line};
use crate::session;
use clap::Subcommand;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::Name;
use onym_wire::mgmt::{
    ControlParameters, ORIGIN_STATIC, Persistency, ROUTE_CAPTURE, ROUTE_CHILD_INHERIT, RibEntry,
};
use serde::Serialize;

/// List, add and remove routes; run a router and ask it.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym route list
  onym route add /example --via udp4://192.0.2.1:6363
  onym route run /example --neighbour udp4://192.0.2.1:6363
  onym route explain /example/app
  onym route lsdb
  onym route add / --via 263 --cost 10 --expires 60000
  onym route remove /example --via 263
  onym route add /example --via 1 --kernel")]
pub(crate) struct Args {
    /// The kernel stack of this network namespace (nnet.ko) instead of a node.
    #[arg(long, global = true)]
    kernel: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List routes.
    #[command(after_help = "Example:\n  onym route list --prefix /example")]
    List {
        /// Only routes of this prefix and those below it.
        #[arg(long, value_name = "PREFIX")]
        prefix: Option<Name>,
        /// Only routes over this face (id).
        #[arg(long, value_name = "FACE")]
        via: Option<u64>,
        /// How the routes are printed, without --json.
        #[arg(long, value_enum, default_value_t = Format::Table)]
        format: Format,
    },
    /// Add a route, or change one.
    #[command(after_help = "Example:\n  onym route add /example --via udp://router.example")]
    Add {
        /// Prefix.
        prefix: Name,
        /// Face id, or remote URI: a face to it is created if there is none.
        #[arg(long, value_name = "FACE|URI")]
        via: String,
        /// Cost; lower is preferred.
        #[arg(long, value_name = "N", default_value_t = 0)]
        cost: u64,
        /// Origin of the route: app, autoreg, client, autoconf, nlsr, prefixann, static or a number.
        #[arg(long, value_parser = words::parse_origin, default_value = "static")]
        origin: u64,
        /// Longer prefixes do not inherit the route.
        #[arg(long)]
        no_inherit: bool,
        /// The prefix inherits no routes of shorter ones.
        #[arg(long)]
        capture: bool,
        /// The route ends after this time, in milliseconds.
        #[arg(long, value_name = "MS")]
        expires: Option<u64>,
    },
    /// Remove a route.
    #[command(after_help = "Example:\n  onym route remove /example --via 263")]
    Remove {
        /// Prefix.
        prefix: Name,
        /// Face id, or remote URI.
        #[arg(long, value_name = "FACE|URI")]
        via: String,
        /// Origin of the route.
        #[arg(long, value_parser = words::parse_origin, default_value = "static")]
        origin: u64,
    },
    #[command(flatten)]
    Routing(routing::Command),
}

/// What is meant without a command.
const LIST: Command = Command::List { prefix: None, via: None, format: Format::Table };

/// A route, as `--json` prints it.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    prefix: String,
    face: u64,
    origin: String,
    cost: u64,
    flags: Vec<&'static str>,
    expires_ms: Option<u64>,
}

impl Shown {
    pub(crate) fn of(entry: &RibEntry) -> impl Iterator<Item = Self> {
        entry.routes.iter().map(|route| Self {
            prefix: entry.name.to_string(),
            face: route.face_id,
            origin: words::origin(route.origin),
            cost: route.cost,
            flags: words::route_flags(route.flags),
            expires_ms: route.expiration_period_ms,
        })
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if args.kernel {
        return on_kernel(args.command, cx);
    }
    if let Some(Command::Routing(command)) = args.command {
        return routing::run(command, cx);
    }
    let mut client = session::open(cx)?;
    let client = &mut client;
    match args.command.unwrap_or(LIST) {
        Command::List { prefix, via, format } => {
            let under = |entry: &&RibEntry| {
                prefix.as_ref().is_none_or(|p| p.as_ref().is_prefix_of(entry.name.as_ref()))
            };
            let rib = mgmt::rib(client).map_err(session::failure)?;
            if format == Format::Nfdc && !cx.json {
                let routes =
                    rib.iter().filter(under).flat_map(|e| e.routes.iter().map(move |r| (e, r)));
                let routes = routes.filter(|(_, r)| via.is_none_or(|face| face == r.face_id));
                let lines = routes.map(|(entry, route)| nfdc::text::route(&entry.name, route));
                return write_line(&lines.collect::<Vec<_>>().join("\n"));
            }
            let routes: Vec<_> = rib
                .iter()
                .filter(under)
                .flat_map(Shown::of)
                .filter(|route| via.is_none_or(|face| face == route.face))
                .collect();
            cx.print(&routes, |routes| list_text(routes))
        }
        Command::Add { prefix, via, cost, origin, no_inherit, capture, expires } => {
            let flags = if no_inherit { 0 } else { ROUTE_CHILD_INHERIT }
                | if capture { ROUTE_CAPTURE } else { 0 };
            let wanted = ControlParameters {
                name: Some(prefix),
                origin: Some(origin),
                cost: Some(cost),
                flags: Some(flags),
                expiration_period_ms: expires,
                ..ControlParameters::default()
            };
            changed(cx, &add(client, &via, wanted)?)
        }
        Command::Remove { prefix, via, origin } => {
            changed(cx, &remove(client, prefix, &via, origin)?)
        }
        Command::Routing(command) => routing::run(command, cx),
    }
}

/// Adds the route that `wanted` describes, by the face that `via` names.
pub(crate) fn add(
    client: &mut Client,
    via: &str,
    wanted: ControlParameters,
) -> anyhow::Result<Changed> {
    let wanted = ControlParameters { face_id: Some(face_for(client, via)?), ..wanted };
    let done = client.command(["rib", "register"], &wanted).map_err(session::failure)?;
    Ok(Changed::of("added", &done))
}

/// Removes a route.
pub(crate) fn remove(
    client: &mut Client,
    prefix: Name,
    via: &str,
    origin: u64,
) -> anyhow::Result<Changed> {
    let face = words::find_face(client, via)?.face_id;
    is_there(client, &prefix, face, origin)?;
    let parameters = ControlParameters {
        name: Some(prefix),
        face_id: Some(face),
        origin: Some(origin),
        ..ControlParameters::default()
    };
    let done = client.command(["rib", "unregister"], &parameters).map_err(session::failure)?;
    Ok(Changed::of("removed", &done))
}

/// Fails when there is no such route to remove: the protocol calls that done, a person does not.
fn is_there(client: &mut Client, prefix: &Name, face: u64, origin: u64) -> anyhow::Result<()> {
    let rib = mgmt::rib(client).map_err(session::failure)?;
    let of_prefix = rib.iter().filter(|entry| entry.name == *prefix).flat_map(|e| &e.routes);
    let origins: Vec<u64> = of_prefix.filter(|r| r.face_id == face).map(|r| r.origin).collect();
    if origins.contains(&origin) {
        return Ok(());
    }
    let what =
        format!("there is no route {prefix} via face {face} of origin {}", words::origin(origin));
    let failure = Failure::new(Exit::NotFound, what);
    if origins.is_empty() {
        return Err(failure.next("see `onym route list`").into());
    }
    let others: Vec<String> = origins.iter().map(|o| words::origin(*o)).collect();
    Err(failure
        .why(format!("there is one with origin {}", others.join(" and ")))
        .next(format!("use --origin {}", others[0]))
        .into())
}

/// The same for the kernel stack; what only a daemon has is refused.
fn on_kernel(command: Option<Command>, cx: &Context) -> anyhow::Result<()> {
    match command.unwrap_or(LIST) {
        Command::List { format: Format::Nfdc, .. } => Err(kernel::unknown("this format")),
        Command::List { prefix, via, .. } => kernel::routes(cx, prefix.as_ref(), via),
        Command::Add { no_inherit: true, .. } | Command::Add { capture: true, .. } => {
            Err(kernel::unknown("inheritance of routes"))
        }
        Command::Add { expires: Some(_), .. } => Err(kernel::unknown("expiry of routes")),
        Command::Add { prefix, via, cost, .. } => kernel::route_add(cx, &prefix, &via, cost),
        Command::Remove { prefix, via, .. } => kernel::route_remove(cx, &prefix, &via),
        Command::Routing(_) => Err(kernel::unknown("a router")),
    }
}

/// The face that `via` names; made when it is a URI without a face. An on-demand face that gets a
/// route becomes persistent, so that the route does not end with an idle moment.
fn face_for(client: &mut Client, via: &str) -> anyhow::Result<u64> {
    if via.parse::<u64>().is_ok() {
        return Ok(words::find_face(client, via)?.face_id);
    }
    let wanted =
        ControlParameters { uri: Some(words::canonical_uri(via)?), ..ControlParameters::default() };
    let created = mgmt::create_face(client, &wanted).map_err(session::failure)?;
    let id = created.face.face_id.unwrap_or(0);
    if created.face.face_persistency == Some(Persistency::OnDemand) {
        let keep = ControlParameters {
            face_id: Some(id),
            face_persistency: Some(Persistency::Persistent),
            ..ControlParameters::default()
        };
        client.command(["faces", "update"], &keep).map_err(session::failure)?;
    }
    Ok(id)
}

/// What became of a route.
#[derive(Debug, Serialize)]
pub(crate) struct Changed {
    result: &'static str,
    prefix: String,
    face: u64,
    origin: String,
    cost: Option<u64>,
    expires_ms: Option<u64>,
}

impl Changed {
    fn of(result: &'static str, route: &ControlParameters) -> Self {
        Self {
            result,
            prefix: route.name.as_ref().map(ToString::to_string).unwrap_or_default(),
            face: route.face_id.unwrap_or(0),
            origin: words::origin(route.origin.unwrap_or(ORIGIN_STATIC)),
            cost: route.cost,
            expires_ms: route.expiration_period_ms,
        }
    }
}

fn changed(cx: &Context, changed: &Changed) -> anyhow::Result<()> {
    cx.print(changed, |c| format!("route {} via face {} {}", c.prefix, c.face, c.result))
}

pub(crate) fn list_text(routes: &[Shown]) -> String {
    let row = |r: &Shown| {
        vec![
            r.prefix.clone(),
            r.face.to_string(),
            r.origin.clone(),
            r.cost.to_string(),
            if r.flags.is_empty() { "-".into() } else { r.flags.join(" ") },
            r.expires_ms.map_or_else(|| "never".into(), human::duration_ms),
        ]
    };
    let rows: Vec<_> = routes.iter().map(row).collect();
    human::table(&["PREFIX", "FACE", "ORIGIN", "COST", "FLAGS", "EXPIRES"], &rows)
}
