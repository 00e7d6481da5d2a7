//! `onym log`: the node's log, and what it logs.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::session;
use anyhow::Context as _;
use onym_client::blocking::Client;
use onym_client::mgmt;
use onym_wire::Name;
use onym_wire::mgmt::ControlParameters;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// Show the node's log, or change what it logs.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym log                              the last lines
  onym log -f                           and those to come
  onym log --filter debug               log more, until the node restarts or reads its configuration again
  onym log --filter info,onym_node=trace
  onym log --json | jq -r .filter

A filter is a level (error, warn, info, debug, trace, off), or module=level, or several with commas
between; the key log.filter of the configuration sets it for good. The node keeps its last 1000 lines.")]
pub(crate) struct Args {
    /// Lines to show.
    #[arg(short = 'n', long, value_name = "N", default_value_t = 20)]
    lines: usize,
    /// Keep printing lines as they come.
    #[arg(short, long, conflicts_with = "filter")]
    follow: bool,
    /// What to log from now on.
    #[arg(long, value_name = "FILTER")]
    filter: Option<String>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Log {
    filter: String,
    lines: Vec<Line>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Line {
    seq: u64,
    text: String,
}

#[derive(Debug, Serialize)]
struct Set {
    filter: String,
}

/// How often a follower asks.
const EVERY: Duration = Duration::from_millis(500);

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if let Some(filter) = args.filter {
        return set(cx, filter);
    }
    let mut client = if args.follow { session::open_forever(cx)? } else { session::open(cx)? };
    let mut log = fetch(&mut client)?;
    log.lines.drain(..log.lines.len().saturating_sub(args.lines));
    if !args.follow {
        return cx.print(&log, text);
    }
    let stop = crate::stop::on_signal()?;
    let mut next = 0;
    while !stop.is_set() {
        // A node that was started again counts from 0 again.
        if log.lines.last().is_some_and(|l| l.seq + 1 < next) {
            next = 0;
        }
        for line in log.lines.iter().filter(|l| l.seq >= next) {
            cx.event(line, |l| l.text.clone())?;
        }
        next = log.lines.last().map_or(next, |l| l.seq + 1);
        let until = std::time::Instant::now() + EVERY;
        let mut over = || stop.is_set() || std::time::Instant::now() >= until;
        client.run(EVERY, &mut over, &mut |_| {}).map_err(session::failure)?;
        if !stop.is_set() {
            log = fetch(&mut client)?;
        }
    }
    Ok(())
}

fn fetch(client: &mut Client) -> anyhow::Result<Log> {
    let name: Name = "/localhost/onym/log/lines".parse().context("invariant: a name")?;
    let json = mgmt::fetch_dataset(client, name).map_err(session::failure)?;
    serde_json::from_slice(&json).context("the node's answer cannot be parsed")
}

fn set(cx: &Context, filter: String) -> anyhow::Result<()> {
    let mut client = session::open(cx)?;
    let parameters = ControlParameters { uri: Some(filter), ..ControlParameters::default() };
    let done = client.command(["log", "set"], &parameters).map_err(|error| match error {
        onym_client::Error::Refused { code: 400, text, .. } => {
            Failure::new(Exit::Refused, "the node refused the filter")
                .why(text)
                .next("see `onym log --help`")
                .into()
        }
        other => session::failure(other),
    })?;
    cx.print(&Set { filter: done.uri.unwrap_or_default() }, |s| {
        format!("the node logs {} until it restarts or reads its configuration again", s.filter)
    })
}

fn text(log: &Log) -> String {
    if log.lines.is_empty() {
        return format!("nothing logged yet (filter {})", log.filter);
    }
    let lines: Vec<_> = log.lines.iter().map(|l| l.text.as_str()).collect();
    lines.join("\n")
}
