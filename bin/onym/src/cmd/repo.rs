//! `onym repo`: keep and serve Data on disk.

mod local;
pub(crate) mod network;
mod opened;
mod run;

use crate::output::Context;
use onym_wire::Name;
use std::path::PathBuf;

/// Keep Data on disk and serve it: run, fill and inspect a repository
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym repo run --store /var/lib/onym/repo --name /example/repo --serve /example
  onym repo add film.mkv --store /var/lib/onym/repo --as /example/film --key /example
  onym repo insert /example/repo /alice/film --start 0 --register /alice
  onym repo list /example --store /var/lib/onym/repo

`insert`, `delete` and `run` speak the commands of ndn-python-repo 0.4. The others work on the folder of the
store, whether a repository has it open or not.")]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, clap::Subcommand)]
enum Command {
    Run(run::Args),
    Add(local::Add),
    List(local::List),
    Get(local::Get),
    Remove(local::Remove),
    Verify(local::Verify),
    Gc(local::Gc),
    Stats(local::Stats),
    Jobs(local::Jobs),
    Insert(network::Insert),
    Delete(network::Delete),
}

/// Where the store is.
#[derive(Debug, clap::Args)]
struct Place {
    /// Folder of the store.
    #[arg(long, value_name = "FOLDER", env = "ONYM_REPO")]
    store: PathBuf,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    match args.command {
        Command::Run(args) => run::run(args, cx),
        Command::Add(args) => local::add(&args, cx),
        Command::List(args) => local::list(&args, cx),
        Command::Get(args) => local::get(&args),
        Command::Remove(args) => local::remove(&args, cx),
        Command::Verify(args) => local::verify(&args, cx),
        Command::Gc(args) => local::gc(&args, cx),
        Command::Stats(args) => local::stats(&args, cx),
        Command::Jobs(args) => local::jobs(&args, cx),
        Command::Insert(args) => network::insert(args, cx),
        Command::Delete(args) => network::delete(args, cx),
    }
}

/// Nothing but the name of a folder differs between commands that name one.
fn empty_or(name: &str) -> anyhow::Result<Name> {
    if name == "/" { Ok(Name::new()) } else { Ok(name.parse()?) }
}
