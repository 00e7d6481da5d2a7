//! `onym cs`: the content store.

use crate::cmd::face::{Switch, flags_and_mask};
use crate::cmd::kernel;
use crate::exit::{Exit, Failure};
use crate::human;
use crate::node_words as words;
use crate::output::Context;
use crate::session;
use clap::Subcommand;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::Name;
use onym_wire::mgmt::{CS_ADMIT, CS_SERVE, ControlParameters, CsInfo};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Show, configure and empty the content store.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym cs info
  onym cs disk
  onym cs config --capacity 100000
  onym cs config --admit off --serve off
  onym cs erase /example
  onym cs keep /var/cache/onym --kernel")]
pub(crate) struct Args {
    /// The kernel stack of this network namespace (nnet.ko) instead of a node.
    #[arg(long, global = true)]
    kernel: bool,
    #[command(subcommand)]
    command: Option<Command>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Show capacity, entries, hits and misses.
    #[command(after_help = "Example:\n  onym cs info --json")]
    Info,
    /// Show the second level of the content store, on a disk (cs.disk of the configuration).
    #[command(after_help = "Example:\n  onym cs disk --json")]
    Disk,
    /// Change the content store until the node restarts.
    #[command(after_help = "Example:\n  onym cs config --capacity 100000")]
    Config {
        /// Maximum number of packets.
        #[arg(long, value_name = "N")]
        capacity: Option<u64>,
        /// Admit new packets.
        #[arg(long, value_enum, value_name = "on|off")]
        admit: Option<Switch>,
        /// Answer Interests from the cache.
        #[arg(long, value_enum, value_name = "on|off")]
        serve: Option<Switch>,
    },
    /// Erase what is stored under a prefix.
    #[command(after_help = "Example:\n  onym cs erase /example --count 100")]
    Erase {
        /// Prefix.
        prefix: Name,
        /// Maximum number of packets to erase; without it all.
        #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
        count: Option<u64>,
    },
    /// Keep on a disk what the kernel's memory forgets, until stopped (with --kernel).
    #[command(after_help = "Examples:
  onym cs keep /var/cache/onym --kernel
  onym cs keep /var/cache/onym --kernel --bytes-max 50G --packets-max 8000000

Prints `ready` once the kernel asks here. When it is full the oldest sixteenth gives way. A node
has its own second level: cs.disk of its configuration.")]
    Keep(kernel::KeepArgs),
}

#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    capacity: u64,
    entries: u64,
    hits: u64,
    misses: u64,
    flags: Vec<&'static str>,
}

impl Shown {
    pub(crate) fn of(info: &CsInfo) -> Self {
        Self {
            capacity: info.capacity,
            entries: info.cs_entries,
            hits: info.hits,
            misses: info.misses,
            flags: words::cs_flags(info.flags),
        }
    }
}

/// The second level, as the node tells it.
#[derive(Debug, Serialize, Deserialize)]
struct Disk {
    folder: String,
    packets: u64,
    packets_max: u64,
    bytes: u64,
    bytes_max: u64,
    hits: u64,
    misses: u64,
    late: u64,
    passed: u64,
    offered: u64,
    left_out: u64,
    kept: u64,
    refused: u64,
    gone: u64,
    damaged: u64,
    trouble: Option<String>,
}

/// The content store as it was changed.
#[derive(Debug, Serialize)]
pub(crate) struct Config {
    capacity: Option<u64>,
    flags: Vec<&'static str>,
}

/// What was erased.
#[derive(Debug, Serialize)]
pub(crate) struct Erased {
    prefix: String,
    erased: u64,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if args.kernel {
        return on_kernel(args.command, cx);
    }
    match args.command.unwrap_or(Command::Info) {
        Command::Info => {
            let mut client = session::open(cx)?;
            let info = mgmt::cs_info(&mut client).map_err(session::failure)?;
            cx.print(&Shown::of(&info), info_text)
        }
        Command::Disk => {
            let mut client = session::open(cx)?;
            let node = session::node_status(&mut client)?;
            let disk = node.get("cs").and_then(|cs| cs.get("disk")).unwrap_or(&Value::Null);
            if disk.is_null() {
                return Err(Failure::new(Exit::NotFound, "the content store has no second level")
                    .next("set cs.disk.folder in the configuration of the node, and restart it")
                    .into());
            }
            let disk: Disk = serde_json::from_value(disk.clone())?;
            cx.print(&disk, disk_text)
        }
        Command::Config { capacity, admit, serve } => {
            let (flags, mask) = flags_and_mask(&[(admit, CS_ADMIT), (serve, CS_SERVE)]);
            if capacity.is_none() && mask.is_none() {
                return Err(Failure::new(Exit::Usage, "nothing to configure")
                    .next("give --capacity, --admit or --serve; `onym cs info` shows what is set")
                    .into());
            }
            let wanted =
                ControlParameters { capacity, flags, mask, ..ControlParameters::default() };
            let config = configure(&mut session::open(cx)?, &wanted)?;
            cx.print(&config, |c| {
                format!("capacity {}, {}", c.capacity.unwrap_or(0), flags_text(&c.flags))
            })
        }
        Command::Erase { prefix, count } => {
            let erased = erase(&mut session::open(cx)?, &prefix, count)?;
            cx.print(&erased, |e| format!("{} packets under {} erased", e.erased, e.prefix))
        }
        Command::Keep(_) => Err(Failure::new(Exit::Usage, "this is for the kernel stack")
            .next("give --kernel; a node keeps on a disk what cs.disk of its configuration says")
            .into()),
    }
}

/// Changes the content store.
pub(crate) fn configure(client: &mut Client, wanted: &ControlParameters) -> anyhow::Result<Config> {
    let done = client.command(["cs", "config"], wanted).map_err(session::failure)?;
    Ok(Config { capacity: done.capacity, flags: words::cs_flags(done.flags.unwrap_or(0)) })
}

/// Erases what is stored under `prefix`, `count` packets at most.
pub(crate) fn erase(
    client: &mut Client,
    prefix: &Name,
    count: Option<u64>,
) -> anyhow::Result<Erased> {
    let erased = mgmt::erase(client, prefix, count).map_err(session::failure)?;
    Ok(Erased { prefix: prefix.to_string(), erased })
}

/// The same for the kernel stack.
fn on_kernel(command: Option<Command>, cx: &Context) -> anyhow::Result<()> {
    let on = |switch: Option<Switch>| switch.map(|s| s == Switch::On);
    match command.unwrap_or(Command::Info) {
        Command::Info => kernel::cs_info(cx),
        Command::Disk => Err(Failure::new(Exit::Usage, "the kernel stack has no disk")
            .next("`onym cs keep FOLDER --kernel` is its second level, and says what is wrong")
            .into()),
        Command::Keep(args) => kernel::cs_keep(cx, args),
        Command::Config { capacity, admit, serve } => {
            kernel::cs_config(cx, capacity, on(admit), on(serve))
        }
        Command::Erase { prefix, count } => kernel::cs_erase(cx, &prefix, count),
    }
}

fn flags_text(flags: &[&str]) -> String {
    let word = |flag| if flags.contains(&flag) { "on" } else { "off" };
    format!("admit {}, serve {}", word("admit"), word("serve"))
}

fn disk_text(disk: &Disk) -> String {
    let Disk { packets, packets_max, bytes, bytes_max, hits, misses, .. } = disk;
    let mut text = format!(
        "folder    {}\npackets   {packets} of {packets_max}\nsize      {} of {}\n\
         hits      {hits}\nmisses    {misses} ({} late, {} passed)\n\
         written   {} of {} offered ({} left out, {} refused)\n\
         gone      {}\ndamaged   {}",
        disk.folder,
        human::bytes(*bytes),
        human::bytes(*bytes_max),
        disk.late,
        disk.passed,
        disk.kept,
        disk.offered,
        disk.left_out,
        disk.refused,
        disk.gone,
        disk.damaged,
    );
    if let Some(trouble) = &disk.trouble {
        text.push_str(&format!("\ntrouble   {trouble}"));
    }
    text
}

pub(crate) fn info_text(info: &Shown) -> String {
    format!(
        "capacity  {} packets\nentries   {}\nhits      {}\nmisses    {}\n{}",
        info.capacity,
        info.entries,
        info.hits,
        info.misses,
        flags_text(&info.flags)
            .replace(", ", "\n")
            .replace("admit ", "admit     ")
            .replace("serve ", "serve     ")
    )
}
