//! `onym call ID`: ask a service of the push half and print its reply.

use crate::exit::{Exit, Failure};
use crate::input::Input;
use crate::output::{Context, write_raw};
use crate::push_words::{self, failure};
use crate::stop;
use anyhow::Context as _;
use onym_client::push::call::{CallError, Client};
use onym_wire::push::{Path, Strategy};
use serde_json::json;
use std::fs;
use std::path::PathBuf;
use std::time::Duration;

/// Send a request to a service of the push half and print its reply.
///
/// The request is sent once, to whoever serves (`onym answer`); the first reply counts. When there is
/// none, the command says why: nobody serves, the server went, it refused, nothing came in time, or
/// publications were lost meanwhile. In the last three cases the request may have been served.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym call /services/sort names.txt
  onym call /services/time --text now --timeout 5
  onym call /services/picture --text 640x480 -o picture.png")]
pub(crate) struct Args {
    /// Identifier of the service: words or labels, such as /services/sort.
    #[arg(value_name = "ID")]
    path: Path,
    /// What to send; standard input without it, or with `-`.
    file: Option<PathBuf>,
    /// Send this text.
    #[arg(long, conflicts_with = "file")]
    text: Option<String>,
    /// How request and reply are disseminated.
    #[arg(
        long,
        default_value = "domain-local",
        value_parser = push_words::strategies_of_scopes()
    )]
    strategy: Strategy,
    /// Give up after this many seconds, waiting for a server included.
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
    /// Write the reply to this file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut app = push_words::open(cx, "onym call")?;
    app.stop_when(stop.flag());
    let payload = match args.text {
        Some(text) => text.into_bytes(),
        None => Input::open(args.file.as_deref(), &stop)?.whole(app.info().length_max)?,
    };
    push_words::scopes_above(&mut app, &args.path, args.strategy)?;
    let mut client = Client::new(app, &args.path, args.strategy).map_err(failure)?;
    let reply = client.call(&payload, Duration::from_secs(args.timeout));
    if stop.is_set() && reply.is_err() {
        return Err(Failure::new(Exit::Stopped, "stopped before the reply came").into());
    }
    let reply = reply.map_err(no_reply)?;
    if let Some(path) = &args.output {
        fs::write(path, &reply[..]).with_context(|| format!("cannot write {}", path.display()))?;
    }
    if cx.json {
        let hex: String = reply.iter().map(|octet| format!("{octet:02x}")).collect();
        let hex = args.output.is_none().then_some(hex);
        let text = args.output.is_none().then(|| std::str::from_utf8(&reply).ok()).flatten();
        let told = json!({
            "id": args.path.id.to_string(),
            "path": push_words::with_words(&args.path, &args.path.id),
            "octets": reply.len(), "hex": hex, "text": text,
        });
        return cx.event(&told, |_| String::new());
    }
    if args.output.is_none() { write_raw(&reply) } else { Ok(()) }
}

/// Why there is no reply, and what to do.
fn no_reply(error: CallError) -> anyhow::Error {
    let what = error.to_string();
    let (exit, next) = match error {
        CallError::App(error) => return failure(error),
        CallError::NoServer(_) => {
            (Exit::NotFound, "start a server: `onym answer`; give it longer with --timeout")
        }
        CallError::Refused(_) => (Exit::Refused, "the sentence is the server's"),
        CallError::Late | CallError::Lost(_) => {
            (Exit::NotFound, "it may have been served; give it longer with --timeout")
        }
        CallError::Gone => (Exit::NotFound, "it may have been served; ask again if that is right"),
        _ => (Exit::Failed, "do server and program have the same version?"),
    };
    Failure::new(exit, what).next(next).into()
}
