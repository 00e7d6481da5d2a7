//! `onym poke`: one Data, for one Interest.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::session;
use anyhow::Context as _;
use onym_client::{Answer, Incoming, RouteOptions};
use onym_frame::Buf;
use onym_wire::data::DataBuilder;
use onym_wire::{Name, PACKET_LEN_MAX};
use serde::Serialize;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Publish one packet, for one Interest.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  echo hello | onym poke /example/hello
  onym poke /example/hello note.txt --freshness 60000 --timeout 10000
  echo hello | onym poke /example/hello --unsolicited    the node must admit unsolicited Data

Waits for one Interest, answers it and ends; exit code 5 when none comes in time.")]
pub(crate) struct Args {
    /// Name of the Data.
    name: Name,
    /// File with the content; without it, or with `-`, standard input.
    file: Option<PathBuf>,
    /// How long caches take the packet as fresh, in milliseconds.
    #[arg(short = 'x', long, value_name = "MS", default_value_t = 0)]
    freshness: u64,
    /// Say that the packet is the last of its kind (FinalBlockId is its last component).
    #[arg(long = "final")]
    is_final: bool,
    /// Send without waiting for an Interest.
    #[arg(short, long)]
    unsolicited: bool,
    /// How long to wait for an Interest, in milliseconds; without it, without end.
    #[arg(short = 'w', long, value_name = "MS")]
    timeout: Option<u64>,
    /// Identity, key or certificate of the key store that signs.
    #[arg(long, value_name = "NAME")]
    key: Option<Name>,
}

#[derive(Debug, Serialize)]
struct Sent {
    name: String,
    octets: usize,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let content = content(args.file.as_deref().filter(|f| *f != Path::new("-")))?;
    let signer = session::signer(args.key.as_ref())?;
    let data = DataBuilder {
        freshness_ms: args.freshness,
        final_block_id: args.name.as_ref().last().filter(|_| args.is_final),
        ..DataBuilder::new(args.name.as_ref(), &content)
    };
    let mut wire = Vec::new();
    signer.sign_data(&data, &mut wire)?;
    if wire.len() > PACKET_LEN_MAX {
        return Err(Failure::new(Exit::Usage, "the content does not fit into one packet")
            .why(format!("the packet has {} octets of {PACKET_LEN_MAX}", wire.len()))
            .next("publish it in segments with `onym put NAME FILE`")
            .into());
    }
    let wire = Buf::copy_from(&wire);
    let mut client = session::open(cx)?;
    if args.unsolicited {
        let now = client.now();
        client.endpoint().send_unsolicited(now, wire.clone());
        client.flush(Duration::from_secs(1)).map_err(session::failure)?;
    } else {
        answer(&mut client, &args.name, wire.clone(), args.timeout.map(Duration::from_millis))?;
    }
    let sent = Sent { name: args.name.to_string(), octets: wire.len() };
    cx.print(&sent, |s| format!("sent {}, {} octets", s.name, s.octets))
}

fn answer(
    client: &mut onym_client::blocking::Client,
    name: &Name,
    wire: Buf,
    timeout: Option<Duration>,
) -> anyhow::Result<()> {
    let answered = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&answered);
    let respond = move |incoming: &Incoming, _: &mut Vec<u8>| {
        if !incoming.is_answered_by(&wire) {
            return Answer::Nothing;
        }
        flag.store(true, Ordering::Relaxed);
        Answer::Shared(wire.clone())
    };
    client.respond(name.clone(), Box::new(respond)).map_err(|e| session::failure(e.into()))?;
    client.register(name.clone(), RouteOptions::default()).map_err(session::failure)?;
    let until = timeout.map(|t| Instant::now() + t);
    let late = || until.is_some_and(|until| Instant::now() >= until);
    let mut stop = || answered.load(Ordering::Relaxed) || late();
    client.run(Duration::from_millis(50), &mut stop, &mut |_| {}).map_err(session::failure)?;
    client.flush(Duration::from_secs(1)).map_err(session::failure)?;
    if answered.load(Ordering::Relaxed) {
        return Ok(());
    }
    Err(Failure::new(Exit::NotFound, format!("no Interest for {name} came in time"))
        .next("wait longer with --timeout, or without it")
        .into())
}

fn content(file: Option<&Path>) -> anyhow::Result<Vec<u8>> {
    let mut content = Vec::new();
    // One octet more than fits shows that it does not.
    let limit = PACKET_LEN_MAX as u64 + 1;
    match file {
        Some(path) => std::fs::File::open(path)
            .and_then(|file| file.take(limit).read_to_end(&mut content))
            .with_context(|| format!("cannot read {}", path.display()))?,
        None => io::stdin()
            .lock()
            .take(limit)
            .read_to_end(&mut content)
            .context("cannot read standard input")?,
    };
    Ok(content)
}
