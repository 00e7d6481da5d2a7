//! `onym pit`: pending Interests, of the kernel stack.

use crate::cmd::kernel;
use crate::exit::{Exit, Failure};
use crate::output::Context;
use clap::Subcommand;
use onym_wire::Name;

/// Show, limit and drop pending Interests of the kernel stack.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym pit info --kernel
  onym pit list /example --kernel
  onym pit erase /example --kernel

`onym status` tells how many are pending in a node.")]
pub(crate) struct Args {
    /// The kernel stack of this network namespace (nnet.ko), the only one that shows this table.
    #[arg(long, global = true)]
    kernel: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show the number of pending Interests, and the limits.
    #[command(after_help = "Example:\n  onym pit info --kernel --json")]
    Info,
    /// List pending Interests.
    #[command(after_help = "Example:\n  onym pit list /example --kernel")]
    List {
        /// Only those under this prefix.
        prefix: Option<Name>,
    },
    /// Change the limits until the module is unloaded.
    #[command(after_help = "Example:\n  onym pit config --capacity 10000 --kernel")]
    Config {
        /// Maximum number of entries.
        #[arg(long, value_name = "N")]
        capacity: Option<u64>,
        /// Maximum memory, in octets.
        #[arg(long, value_name = "OCTETS")]
        bytes: Option<u64>,
    },
    /// Drop pending Interests under a prefix.
    #[command(after_help = "Example:\n  onym pit erase / --kernel")]
    Erase {
        /// Prefix.
        prefix: Name,
        /// Maximum number of Interests to drop; without it all.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
    },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if !args.kernel {
        let why = "a node does not list its pending Interests";
        return Err(Failure::new(Exit::Usage, why)
            .next("add --kernel for the kernel stack; `onym status` counts those of a node")
            .into());
    }
    match args.command.unwrap_or(Command::Info) {
        Command::Info => kernel::pit_info(cx),
        Command::List { prefix } => kernel::pit_list(cx, prefix.as_ref()),
        Command::Config { capacity: None, bytes: None } => {
            Err(Failure::new(Exit::Usage, "nothing to change")
                .next("give --capacity or --bytes")
                .into())
        }
        Command::Config { capacity, bytes } => kernel::pit_config(cx, capacity, bytes),
        Command::Erase { prefix, count } => kernel::pit_erase(cx, &prefix, count),
    }
}
