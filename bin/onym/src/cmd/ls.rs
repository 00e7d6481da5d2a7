//! `onym ls`: what a folder of the network has.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::{plain, session};
use onym_client::blocking::Client;
use onym_client::fetch::FetchBounds;
use onym_client::{FetchOptions, Find, Request, Verify};
use onym_repo::file::{FileMetadata, parse_listing};
use onym_wire::Name;
use serde::Serialize;

/// List a folder of the network.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym ls /alice/photos
  onym ls /alice/photos --json

By the ndn6 file protocol: folders of `onym serve`, ndn6-tools and NDN-DPDK, and what a repository of
`onym repo` has below a name.")]
pub(crate) struct Args {
    /// Name of the folder.
    name: Name,
}

/// Octets of a listing that are taken, at most.
const LISTING_MAX: u64 = 16 << 20;

/// One name, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    folder: bool,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let mut client = session::open(cx)?;
    let listing = versioned(&mut client, &args.name)?;
    let bounds = FetchBounds { size_max: LISTING_MAX, ..FetchBounds::default() };
    let options = FetchOptions { find: Find::Nothing, bounds, ..FetchOptions::default() };
    let mut content = Vec::new();
    client.fetch(listing, options, &mut content, &mut |_| {}).map_err(session::failure)?;
    let text = |name: &[u8]| String::from_utf8_lossy(name).into_owned();
    let shown: Vec<Shown> = parse_listing(&content)
        .into_iter()
        .map(|one| Shown { name: text(&one.name), folder: one.is_folder })
        .collect();
    cx.print(&shown, |shown| {
        let line = |one: &Shown| {
            format!("{}{}", plain::line(&one.name), if one.folder { "/" } else { "" })
        };
        shown.iter().map(line).collect::<Vec<_>>().join("\n")
    })
}

/// The name of the newest listing of `folder`.
fn versioned(client: &mut Client, folder: &Name) -> anyhow::Result<Name> {
    let mut name = folder.clone();
    name.append_keyword("ls");
    let listing = name.clone();
    name.append_keyword("metadata");
    let request =
        Request { can_be_prefix: true, must_be_fresh: true, retries: 3, ..Request::new(name) };
    let packet = client.request(&request).map_err(session::failure)?;
    let data = packet.data();
    if data.content_type == 3 {
        return Err(Failure::new(Exit::NotFound, format!("{folder} is not a folder"))
            .next("`onym get` fetches a file")
            .into());
    }
    let refused = |why: &str| {
        Failure::new(Exit::Failed, format!("the metadata of {folder} cannot be parsed")).why(why)
    };
    Verify::Integrity.check(&data).map_err(|e| refused(&e.to_string()))?;
    let metadata = FileMetadata::parse(data.content).map_err(|e| refused(&e.to_string()))?;
    // Nobody vouched for it: it leads nowhere else.
    if !listing.as_ref().is_prefix_of(metadata.name.as_ref()) {
        return Err(refused(&format!("it leads to {}", metadata.name)).into());
    }
    Ok(metadata.name)
}
