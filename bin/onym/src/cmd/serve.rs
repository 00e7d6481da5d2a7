//! `onym serve`: a folder by the ndn6 file protocol.

use super::route::announced;
use crate::output::Context;
use crate::{session, stop};
use anyhow::Context as _;
use onym_client::RouteOptions;
use onym_repo::folder::FolderAnswers;
use onym_wire::Name;
use onym_wire::mgmt::ORIGIN_CLIENT;
use serde::Serialize;
use std::path::PathBuf;

/// Serve the files of a folder until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym serve photos /alice/photos
  onym serve photos /alice/photos --key /alice

`onym ls /alice/photos` lists it and `onym get /alice/photos/FILE` fetches a file; so do file clients of
the ndn6 file protocol, such as that of NDNts. Files are read when they are asked for: the version is the
time of the last change, and a file that changes meanwhile is fetched anew. Links are not followed.
A file with several hard links is not served from a folder that others than its owner may write.")]
pub(crate) struct Args {
    /// The folder.
    folder: PathBuf,
    /// Name of the folder.
    name: Name,
    /// Octets of content in a segment.
    #[arg(long, value_name = "N", default_value_t = 6144, value_parser = clap::value_parser!(u16).range(1..=8192))]
    segment_size: u16,
    /// Identity, key or certificate of the key store that signs; without it segments carry a digest.
    #[arg(long, value_name = "NAME")]
    key: Option<Name>,
    /// Have the router of the node announce the name to its network (origin client).
    #[arg(long)]
    announce: bool,
    /// Cost of the route.
    #[arg(long, value_name = "N", default_value_t = 0)]
    cost: u64,
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { name: String },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let signer = session::signer(args.key.as_ref())?;
    let answers = FolderAnswers::new(&args.folder, args.name.clone(), signer, args.segment_size)
        .with_context(|| format!("cannot serve {}", args.folder.display()))?;
    let mut client = session::open_forever(cx)?;
    client.respond(args.name.clone(), Box::new(answers)).map_err(|e| session::failure(e.into()))?;
    let origin = args.announce.then_some(ORIGIN_CLIENT);
    let route = RouteOptions { cost: args.cost, origin, ..RouteOptions::default() };
    client.register(args.name.clone(), route).map_err(session::failure)?;
    let ready = Line::Ready { name: args.name.to_string() };
    cx.event(&ready, |Line::Ready { name }| format!("{name}\nready: files are served\n"))?;
    announced::tell_soon(cx, &args.name, origin);
    session::serve_until(&mut client, &stop)
}
