//! `onym publish ID`: publish a file, standard input or a text under an identifier.

use crate::exit::{Exit, Failure};
use crate::output::Context;
use crate::push_words::{self, failure};
use crate::stop;
use anyhow::Context as _;
use onym_client::push::{App, Event, Publication, Sent};
use onym_wire::push::{Id, Strategy};
use serde_json::json;
use std::io::{BufRead as _, Read as _};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the wish to end is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Publish data under an identifier of the push half.
///
/// The scopes above the item are published too, where they are not there yet. The data leaves when
/// somebody has subscribed; without --keep the command ends then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym publish /1/2 notes.pdf                 one publication, when there is a subscriber
  sensor | onym publish /1/2 --lines --keep   each line is a publication, until stopped
  onym publish /1/2 --text hello --strategy node-local
  onym publish /1/2 --text hello --timeout 10 --json")]
pub(crate) struct Args {
    /// Identifier of the item: labels of 1 to 16 hexadecimal digits, such as /1/2.
    id: Id,
    /// What to publish; standard input without it, or with `-`.
    file: Option<PathBuf>,
    /// Publish this text.
    #[arg(long, conflicts_with_all = ["file", "lines"])]
    text: Option<String>,
    /// Each line of the input is a publication.
    #[arg(long)]
    lines: bool,
    /// How it is disseminated: node-local, domain-local, inter-domain.
    #[arg(long, default_value = "domain-local", value_parser = push_words::strategy)]
    strategy: Strategy,
    /// Stay, and publish again whenever new subscribers come after there were none.
    #[arg(long)]
    keep: bool,
    /// Give up after so many seconds without a subscriber.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let mut app = push_words::open(cx, "onym publish")?;
    push_words::scopes_above(&mut app, &args.id, args.strategy)?;
    app.publish_item(&args.id, args.strategy).map_err(failure)?;
    let whole = if args.lines { None } else { Some(input(&args)?) };
    let deadline = args.timeout.map(|s| Instant::now() + Duration::from_secs(s));
    loop {
        if stop.is_set() {
            return app.leave().map_err(failure);
        }
        let event = app.event(Some(LOOK)).map_err(failure)?;
        match event {
            Some(Event::StartPublish(id)) if id == args.id => {
                match &whole {
                    Some(payload) => publish(&mut app, &args, payload, cx)?,
                    None => lines(&mut app, &args, cx)?,
                }
                if !args.keep || args.lines {
                    return app.leave().map_err(failure);
                }
            }
            Some(Event::Refused { id, status }) => {
                eprintln!("a publication of {id} was refused: {status}");
            }
            None if deadline.is_some_and(|d| Instant::now() >= d) => {
                return Err(Failure::new(
                    Exit::NotFound,
                    format!("nobody subscribed to {}", args.id),
                )
                .next("see `onym explain --push ID`")
                .into());
            }
            _ => {}
        }
    }
}

/// The whole input.
fn input(args: &Args) -> anyhow::Result<Vec<u8>> {
    if let Some(text) = &args.text {
        return Ok(text.clone().into_bytes());
    }
    match args.file.as_deref().filter(|path| path.as_os_str() != "-") {
        Some(path) => {
            std::fs::read(path).with_context(|| format!("{} cannot be read", path.display()))
        }
        None => {
            let mut octets = Vec::new();
            std::io::stdin().lock().read_to_end(&mut octets).context("standard input")?;
            Ok(octets)
        }
    }
}

fn publish(app: &mut App, args: &Args, payload: &[u8], cx: &Context) -> anyhow::Result<()> {
    let publication = Publication::new(&args.id, args.strategy, payload);
    let Sent { local, frames } = app.publish_told(&publication).map_err(failure)?;
    let told = json!({
        "id": args.id.to_string(), "octets": payload.len(), "local": local, "frames": frames,
    });
    cx.event(&told, |_| {
        let octets = payload.len();
        format!("{}: {octets} octets, {local} applications here, {frames} frames sent", args.id)
    })
}

/// Publishes line after line; a line that finds nobody is left out.
fn lines(app: &mut App, args: &Args, cx: &Context) -> anyhow::Result<()> {
    let mut reader: Box<dyn std::io::BufRead> =
        match args.file.as_deref().filter(|p| p.as_os_str() != "-") {
            Some(path) => {
                let file = std::fs::File::open(path);
                let file = file.with_context(|| format!("{} cannot be read", path.display()))?;
                Box::new(std::io::BufReader::new(file))
            }
            None => Box::new(std::io::stdin().lock()),
        };
    let (mut line, mut count) = (Vec::new(), 0_u64);
    while reader.read_until(b'\n', &mut line).context("the input")? > 0 {
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        app.publish(&args.id, args.strategy, text).map_err(failure)?;
        app.drain().map_err(failure)?;
        count += 1;
        line.clear();
    }
    let told = json!({ "id": args.id.to_string(), "publications": count });
    cx.event(&told, |_| format!("{}: {count} publications", args.id))
}
