//! `onym ls`: what a folder of the network has.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::remote::Remote;
use crate::{human, plain, session};
use onym_repo::file::Listed;
use onym_wire::Name;
use serde::Serialize;

/// List a folder of the network.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym ls /alice/photos
  onym ls /alice/photos --long
  onym ls /alice/photos --json

By the ndn6 file protocol: folders of `onym serve`, ndn6-tools and NDN-DPDK, and what a repository of
`onym repo` has below a name.")]
pub(crate) struct Args {
    /// Name of the folder.
    name: Name,
    /// Show size and time of the last change, which are asked for file by file.
    #[arg(short, long)]
    long: bool,
}

/// One name, as `--json` prints it.
#[derive(Debug, Serialize)]
struct Shown {
    name: String,
    folder: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    size: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    changed_ms: Option<u64>,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let mut remote = Remote::new(session::open(cx)?, None, u64::MAX);
    let Some(listed) = remote.list(&args.name)? else {
        return Err(Failure::new(Exit::NotFound, format!("{} is not a folder", args.name))
            .next("`onym get` and `onym cp` fetch a file")
            .into());
    };
    let shown = listed.iter().map(|one| shown(&mut remote, &args, one));
    let shown = shown.collect::<anyhow::Result<Vec<_>>>()?;
    cx.print(&shown, |shown| {
        shown.iter().map(|one| line(one, args.long)).collect::<Vec<_>>().join("\n")
    })
}

fn shown(remote: &mut Remote, args: &Args, one: &Listed) -> anyhow::Result<Shown> {
    let name = String::from_utf8_lossy(&one.name).into_owned();
    let mut shown = Shown { name, folder: one.is_folder, size: None, changed_ms: None };
    if args.long {
        let mut below = args.name.clone();
        below.append_generic(&one.name);
        // What has gone meanwhile stays without size.
        if let Some(metadata) = remote.metadata(&below)? {
            shown.size = metadata.size;
            shown.changed_ms = Some(metadata.mtime_ns / 1_000_000);
        }
    }
    Ok(shown)
}

fn line(one: &Shown, long: bool) -> String {
    let name = format!("{}{}", plain::line(&one.name), if one.folder { "/" } else { "" });
    if !long {
        return name;
    }
    let size = one.size.map_or_else(|| "-".to_owned(), |size| size.to_string());
    let changed = one.changed_ms.map_or_else(|| "-".to_owned(), human::moment_ms);
    format!("{size:>12}  {changed:<23}  {name}")
}
