//! `onym ping-server`: answers pings.

use super::route::announced;
use crate::output::Context;
use crate::session;
use crate::stop;
use onym_client::{Answer, Incoming, RouteOptions};
use onym_crypto::signer::write_digest_data;
use onym_wire::Name;
use onym_wire::data::DataBuilder;
use onym_wire::mgmt::ORIGIN_CLIENT;
use onym_wire::trace;
use serde::Serialize;
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Answer pings under a prefix until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym ping-server /example
  onym ping-server /example --size 1000 --freshness 0
  onym ping-server /example --echo

Answers every Interest under /PREFIX/ping: those of ndnping, ndnd ping and `onym ping`. With --echo
also echo requests of RFC 9508 for names under the prefix, which it registers whole.")]
pub(crate) struct Args {
    /// Prefix; /PREFIX/ping is registered, with --echo /PREFIX.
    prefix: Name,
    /// Octets of content.
    #[arg(short, long, value_name = "N", default_value_t = 0, value_parser = clap::value_parser!(u16).range(0..=8000))]
    size: u16,
    /// How long caches take an answer as fresh, in milliseconds.
    #[arg(short = 'x', long, value_name = "MS", default_value_t = 1000)]
    freshness: u64,
    /// Have the router of the node announce the prefix to its network (origin client).
    #[arg(long)]
    announce: bool,
    /// Answer echo requests of RFC 9508, too.
    #[arg(short, long)]
    echo: bool,
}

#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { prefix: String },
    Stopped { answered: u64 },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut pings = args.prefix.clone();
    pings.append_generic("ping");
    let served = if args.echo { args.prefix.clone() } else { pings.clone() };
    let answered = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&answered);
    let content = vec![b'a'; usize::from(args.size)];
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        let name = incoming.interest().name;
        let is_echo =
            args.echo && trace::Request::of(name).is_some_and(|r| r.kind == trace::Kind::Echo);
        let (content, freshness_ms) = if is_echo {
            let (sender, code) = (args.prefix.as_ref(), trace::APPLICATION);
            let reply = trace::Reply { sender, code, more: None };
            (Cow::Owned(reply.to_content()), trace::FRESHNESS_MS)
        } else if pings.as_ref().is_prefix_of(name) {
            (Cow::Borrowed(content.as_slice()), args.freshness)
        } else {
            return Answer::Nothing;
        };
        write_digest_data(&DataBuilder { freshness_ms, ..DataBuilder::new(name, &content) }, out);
        count.fetch_add(1, Ordering::Relaxed);
        Answer::Written
    };
    let mut client = session::open_forever(cx)?;
    client.respond(served.clone(), Box::new(respond)).map_err(|e| session::failure(e.into()))?;
    let origin = args.announce.then_some(ORIGIN_CLIENT);
    let route = RouteOptions { origin, ..RouteOptions::default() };
    client.register(served.clone(), route).map_err(session::failure)?;
    cx.event(&Line::Ready { prefix: served.to_string() }, text)?;
    announced::tell_soon(cx, &served, origin);
    session::serve_until(&mut client, &stop)?;
    cx.event(&Line::Stopped { answered: answered.load(Ordering::Relaxed) }, text)
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { prefix } => format!("ready: answering under {prefix}"),
        Line::Stopped { answered } => format!("stopped: {answered} pings answered"),
    }
}
