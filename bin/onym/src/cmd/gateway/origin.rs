//! `onym gateway origin`: an HTTP server as named data.

use super::until_stopped;
use crate::cmd::route::announced;
use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use crate::session;
use onym_client::RouteOptions;
use onym_client::aio::Client;
use onym_web::origin::{Options, Origin, Server};
use onym_wire::Name;
use onym_wire::mgmt::ORIGIN_CLIENT;
use serde::Serialize;

/// Give names to what an HTTP server has, until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym gateway origin http://127.0.0.1:8000 /alice/web --key /alice
  onym gateway origin http://mirror.example/debian /mirror/debian --announce

/alice/web/a/b is the page /a/b. An empty component at the end is a / there (/alice/web/a/... is /a/), and a
last component that begins with ? is the query. A page is fetched when somebody asks for it, once for all who
ask meanwhile, and kept as long as the server says it is fresh; after that the server is asked whether it
changed. What is for one client only (private, no-store, cookies) is not given to anybody.")]
pub(crate) struct Args {
    /// Where the server is: `http://host:port/path`, port and path where it has them.
    url: String,
    /// What the names begin with.
    name: Name,
    /// Identity, key or certificate of the key store that signs; without it segments carry a digest.
    #[arg(long, value_name = "NAME")]
    key: Option<Name>,
    /// Have the router of the node announce the name to its network (origin client).
    #[arg(long)]
    announce: bool,
    /// Cost of the route.
    #[arg(long, value_name = "N", default_value_t = 0)]
    cost: u64,
    /// Largest page that is taken, in octets.
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size, default_value = "64M")]
    page_max: u64,
    /// Octets of pages that are kept in memory.
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size, default_value = "256M")]
    keep: u64,
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { name: String },
}

pub(super) fn run(args: &Args, cx: &Context) -> anyhow::Result<()> {
    super::within_runtime(serve(args, cx))
}

async fn serve(args: &Args, cx: &Context) -> anyhow::Result<()> {
    let octets = |n: u64| usize::try_from(n).unwrap_or(usize::MAX);
    let server = Server::of(&args.url, octets(args.page_max)).map_err(|why| {
        Failure::new(Exit::Usage, format!("{} is not the URL of an origin", args.url)).why(why)
    })?;
    let origin = args.announce.then_some(ORIGIN_CLIENT);
    let options = Options {
        server,
        prefix: args.name.clone(),
        signer: session::signer(args.key.as_ref())?,
        route: RouteOptions { cost: args.cost, origin, ..RouteOptions::default() },
        octets_max: octets(args.keep),
    };
    let client = Client::open(session::forever(cx)).map_err(session::failure)?;
    let serving = Origin::open(client, options).await.map_err(session::failure)?;
    let ready = Line::Ready { name: args.name.to_string() };
    cx.event(&ready, |Line::Ready { name }| format!("{name}\nready: pages are served\n"))?;
    announced::tell_soon(cx, &args.name, origin);
    until_stopped(serving.run()).await
}
