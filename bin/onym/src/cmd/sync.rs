//! `onym sync`: a folder of this machine made like one of the network.

use super::cp::{Believe, found};
use crate::copy::{Delete, Tally, Tree};
use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::plain;
use onym_wire::Name;
use std::path::{Path, PathBuf};

/// Make a folder of this machine like one of the network.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym sync /alice/photos photos
  onym sync /alice/photos photos --delete
  onym sync /alice/photos photos --delete --dry-run

Fetches files that are not here, or differ in size or time of the last change. What was interrupted goes
on where it ended. See `onym cp --help` for how files come.")]
pub(crate) struct Args {
    /// Name of the folder on the network.
    name: Name,
    /// Folder of this machine; made when it is not there.
    folder: PathBuf,
    /// Remove files and folders that the folder of the network does not have.
    #[arg(long)]
    delete: bool,
    /// Say what would be done, and do nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print no line for each file.
    #[arg(short, long)]
    quiet: bool,
    #[command(flatten)]
    believe: Believe,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let mut remote = args.believe.remote(cx)?;
    let listing = found(&mut remote, &args.name)?;
    if !listing.is_folder() {
        return Err(Failure::new(Exit::Usage, format!("{} is a file", args.name))
            .next("`onym cp` copies a file")
            .into());
    }
    let shows = !args.quiet && !cx.json;
    let mut tell = |what: &str, path: &Path| {
        if shows {
            let path = path.display().to_string();
            crate::output::tell(format_args!("{what} {}", plain::line(&path)));
        }
    };
    let mut tree = Tree::new(&mut remote, &mut tell);
    tree.skip_same = true;
    tree.delete = if args.delete { Delete::Gone } else { Delete::Never };
    tree.dry = args.dry_run;
    tree.copy(&args.name, &listing, &args.folder)?;
    cx.print(&tree.tally, Tally::text)
}
