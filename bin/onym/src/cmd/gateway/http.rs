//! `onym gateway http`: names for browsers, players and whatever else speaks HTTP.

use super::until_stopped;
use crate::cmd::cp::Believe;
use crate::output::Context;
use crate::session;
use anyhow::Context as _;
use onym_client::aio::Client;
use onym_web::gateway::{self, Options};
use onym_wire::Name;
use serde::Serialize;
use tokio::net::TcpListener;

/// Answer HTTP requests with data of the network until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym gateway http
  onym gateway http --listen 127.0.0.1:8080 --root /alice/site
  onym gateway http --anchor root.ndncert

GET /ndn/alice/photos/cat.jpg answers with the newest version of /alice/photos/cat.jpg, in the version that
the name says where it says one. Ranges, conditions, HEAD and listings (a / at the end) are understood;
pages of any origin may read. Each segment is verified before it leaves. Behind a proxy for TLS, and for who
may read, it can be given to others.")]
pub(crate) struct Args {
    /// Where to listen.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:8080")]
    listen: String,
    /// Answer other paths than /ndn/NAME with what is under this name.
    #[arg(long, value_name = "NAME")]
    root: Option<Name>,
    #[command(flatten)]
    believe: Believe,
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { url: String },
}

pub(super) fn run(args: &Args, cx: &Context) -> anyhow::Result<()> {
    super::within_runtime(serve(args, cx))
}

async fn serve(args: &Args, cx: &Context) -> anyhow::Result<()> {
    let options = Options {
        root: args.root.clone(),
        schema: args.believe.schema()?,
        size_max: args.believe.size_max(),
    };
    let client = Client::open(session::forever(cx)).map_err(session::failure)?;
    let cannot = || format!("cannot listen at {}", args.listen);
    let listener = TcpListener::bind(&args.listen).await.with_context(cannot)?;
    let url = format!("http://{}/ndn/", listener.local_addr()?);
    cx.event(&Line::Ready { url }, |Line::Ready { url }| format!("ready: {url}\n"))?;
    until_stopped(onym_http::server::serve(listener, gateway::router(client, options))).await
}
