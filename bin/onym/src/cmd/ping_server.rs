//! `onym ping-server`: answers pings.

use crate::output::Context;
use crate::session;
use crate::stop;
use onym_client::{Answer, Incoming, RouteOptions};
use onym_crypto::signer::write_digest_data;
use onym_wire::Name;
use onym_wire::data::DataBuilder;
use serde::Serialize;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answer pings under a prefix until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym ping-server /example
  onym ping-server /example --size 1000 --freshness 0

Answers every Interest under /PREFIX/ping: those of ndnping, ndnd ping and `onym ping`.")]
pub(crate) struct Args {
    /// Prefix; /PREFIX/ping is registered.
    prefix: Name,
    /// Octets of content.
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=8000))]
    size: u16,
    /// How long caches take an answer as fresh, in milliseconds.
    #[arg(short = 'x', long, value_name = "MS", default_value_t = 1000)]
    freshness: u64,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { prefix: String },
    Stopped { answered: u64 },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut prefix = args.prefix;
    prefix.append_generic("ping");
    let answered = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&answered);
    let content = vec![b'a'; usize::from(args.size)];
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        let name = incoming.interest().name;
        let data = DataBuilder { freshness_ms: args.freshness, ..DataBuilder::new(name, &content) };
        write_digest_data(&data, out);
        count.fetch_add(1, Ordering::Relaxed);
        Answer::Written
    };
    let mut client = session::open_forever(cx)?;
    client.respond(prefix.clone(), Box::new(respond)).map_err(|e| session::failure(e.into()))?;
    client.register(prefix.clone(), RouteOptions::default()).map_err(session::failure)?;
    cx.event(&Line::Ready { prefix: prefix.to_string() }, text)?;
    session::serve_until(&mut client, &stop)?;
    cx.event(&Line::Stopped { answered: answered.load(Ordering::Relaxed) }, text)
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { prefix } => format!("ready: answering under {prefix}"),
        Line::Stopped { answered } => format!("stopped: {answered} pings answered"),
    }
}
