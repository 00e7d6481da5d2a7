//! `onym fib`: the forwarding table.

use crate::human;
use crate::output::Context;
use crate::session;
use clap::Subcommand;
use onym_client::mgmt;
use onym_wire::mgmt::FibEntry;
use serde::Serialize;

/// Show the forwarding table.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Example:\n  onym fib list\n\nRoutes are made with `onym route`; this is what follows from them."
)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List prefixes and their next hops.
    #[command(after_help = "Example:\n  onym fib list --json")]
    List,
}

#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    prefix: String,
    next_hops: Vec<NextHop>,
}

#[derive(Debug, Serialize)]
struct NextHop {
    face: u64,
    cost: u64,
}

impl Shown {
    pub(crate) fn of(entry: &FibEntry) -> Self {
        let hop = |h: &onym_wire::mgmt::NextHopRecord| NextHop { face: h.face_id, cost: h.cost };
        Self {
            prefix: entry.name.to_string(),
            next_hops: entry.next_hops.iter().map(hop).collect(),
        }
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let Command::List = args.command.unwrap_or(Command::List);
    let mut client = session::open(cx)?;
    let fib = mgmt::fib(&mut client).map_err(session::failure)?;
    let fib: Vec<_> = fib.iter().map(Shown::of).collect();
    cx.print(&fib, |fib| list_text(fib))
}

pub(crate) fn list_text(fib: &[Shown]) -> String {
    let row = |entry: &Shown| {
        let hops: Vec<_> =
            entry.next_hops.iter().map(|h| format!("face {} (cost {})", h.face, h.cost)).collect();
        vec![entry.prefix.clone(), hops.join(", ")]
    };
    let rows: Vec<_> = fib.iter().map(row).collect();
    human::table(&["PREFIX", "NEXT HOPS"], &rows)
}
