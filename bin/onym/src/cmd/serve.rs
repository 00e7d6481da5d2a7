//! `onym serve`: a folder by the ndn6 file protocol.

use super::route::announced;
use crate::output::Context;
use crate::{session, stop};
use anyhow::Context as _;
use onym_client::RouteOptions;
use onym_client::blocking::Client;
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
    #[command(flatten)]
    folder: Folder,
}

/// A folder, its name, and how it is served.
#[derive(Debug, clap::Args)]
pub(crate) struct Folder {
    /// The folder.
    #[arg(value_name = "FOLDER")]
    pub(crate) path: PathBuf,
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

impl Folder {
    /// What answers for its files.
    pub(crate) fn answers(&self) -> anyhow::Result<FolderAnswers> {
        let signer = session::signer(self.key.as_ref())?;
        FolderAnswers::new(&self.path, self.name.clone(), signer, self.segment_size)
            .with_context(|| format!("cannot serve {}", self.path.display()))
    }

    /// A client over which `answers` answers under the name, from now on.
    pub(crate) fn served_by(&self, answers: FolderAnswers, cx: &Context) -> anyhow::Result<Client> {
        let mut client = session::open_forever(cx)?;
        let responding = client.respond(self.name.clone(), Box::new(answers));
        responding.map_err(|e| session::failure(e.into()))?;
        let origin = self.announce.then_some(ORIGIN_CLIENT);
        let route = RouteOptions { cost: self.cost, origin, ..RouteOptions::default() };
        client.register(self.name.clone(), route).map_err(session::failure)?;
        let ready = Line::Ready { name: self.name.to_string() };
        cx.event(&ready, |Line::Ready { name }| format!("{name}\nready: files are served\n"))?;
        announced::tell_soon(cx, &self.name, origin);
        Ok(client)
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let answers = args.folder.answers()?;
    let mut client = args.folder.served_by(answers, cx)?;
    session::serve_until(&mut client, &stop)
}
