//! `onym subscribe ID`: print what is published under an identifier.

use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::{Context, tell, write_json};
use crate::plain;
use crate::push_words::{self, failure};
use crate::schema;
use crate::secrecy::Subscriber;
use crate::session;
use crate::stop;
use anyhow::Context as _;
use onym_client::push::live::{Change, Watch};
use onym_client::push::{App, Event};
use onym_frame::Buf;
use onym_wire::Name;
use onym_wire::push::{Id, IdError, Kind, Path, Status, Strategy};
use serde_json::json;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the signal to stop is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Subscribe to an item or scope of the push half and print what is published.
///
/// Publications go to standard output as they are; --lines ends each with a line end. With --json
/// every event is one line of JSON, the payload as hexadecimal digits and, where it is text, as such;
/// with --output besides, the file has the payload, and the line how many octets it was and how many
/// seconds after subscribing it came.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym subscribe /1/2 --count 1 -o notes.pdf
  onym subscribe /1/2 --lines
  onym subscribe /1/2 --lines --publishers     and which publishers come and go
  onym subscribe /1 --scope --json        items right beneath /1, and news of its scopes
  onym subscribe /1 --deep --lines        everything beneath /1
  onym subscribe '/sensors/roof/*' --json     the items of a scope by its words
  onym subscribe /1/2 --lines --anchor alice.ndncert    what `onym publish --for` encrypted")]
pub(crate) struct Args {
    /// Identifier: words or labels of 1 to 16 hexadecimal digits, such as /sensors/roof or /1/2.
    /// With `/*` behind it all items of that scope (--scope), with `/**` everything beneath it
    /// (--deep).
    #[arg(value_name = "ID", value_parser = Pattern::parse)]
    of: Pattern,
    /// The identifier names a scope: subscribe to its items.
    #[arg(long)]
    scope: bool,
    /// Subscribe to a scope and all scopes below it.
    #[arg(long)]
    deep: bool,
    /// Tell, too, which publishers of the item there are, come and go, of those that say so
    /// (`onym publish --alive`).
    #[arg(long, conflicts_with_all = ["scope", "deep"])]
    publishers: bool,
    /// How it is disseminated.
    #[arg(long, default_value = "domain-local", value_parser = push_words::strategies())]
    strategy: Strategy,
    /// Exit after this many publications.
    #[arg(long, value_name = "NUMBER")]
    count: Option<u64>,
    /// Give up after this many seconds without a publication.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
    /// Write to this file.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Take only publications that are encrypted and signed (`onym publish --for`) by whom this trust
    /// anchor vouches for: the file of a certificate, or a name in the key store.
    #[arg(long = "anchor", value_name = "CERT")]
    anchors: Vec<String>,
    /// Take only those for this group, /PREFIX/NAC/DATASET; with --anchor or --trust.
    #[arg(long = "for", value_name = "GROUP")]
    group: Option<Name>,
    #[command(flatten)]
    schema: schema::Options,
    /// End each publication with a line end.
    #[arg(long)]
    lines: bool,
}

/// An identifier, and what of it is meant.
#[derive(Debug, Clone)]
pub(crate) struct Pattern {
    path: Path,
    /// All items of the scope.
    is_scope: bool,
    /// And of those below it.
    is_deep: bool,
}

impl Pattern {
    fn parse(text: &str) -> Result<Self, IdError> {
        let deep = text.strip_suffix("/**");
        let scope = deep.or_else(|| text.strip_suffix("/*"));
        let path = match scope {
            Some("") => Path::default(),
            Some(scope) => scope.parse()?,
            None => text.parse()?,
        };
        Ok(Self { path, is_scope: scope.is_some(), is_deep: deep.is_some() })
    }
}

pub(crate) fn run(mut args: Args, cx: &Context) -> anyhow::Result<()> {
    args.scope |= args.of.is_scope;
    args.deep |= args.of.is_deep;
    let stop = stop::on_signal()?;
    let mut out: Box<dyn Write> = match &args.output {
        Some(path) => {
            let file = File::create(path);
            Box::new(file.with_context(|| format!("{} cannot be written", path.display()))?)
        }
        None => Box::new(io::stdout()),
    };
    let mut subscriber = subscriber(&args, cx)?;
    let mut app = push_words::open(cx, "onym subscribe")?;
    app.stop_when(stop.flag());
    let begun = Instant::now();
    let mut watch = subscribe(&mut app, &args)?;
    let patience = args.timeout.map(Duration::from_secs);
    let (mut last, mut count, mut by) = (Instant::now(), 0, args.strategy);
    // Scopes whose subscription is not answered; the application bounds their number.
    let mut asked = BTreeMap::new();
    while !stop.is_set() && args.count.is_none_or(|most| count < most) {
        let event = app.event(Some(LOOK)).map_err(failure)?;
        look_at_answers(&mut app, &mut asked, &args.of.path);
        let Some(mut event) = event else {
            if patience.is_some_and(|p| last.elapsed() >= p) {
                return Err(Failure::new(
                    Exit::NotFound,
                    format!("nothing arrived for {}", args.of.path),
                )
                .next("check for publishers with `onym explain --push ID`")
                .into());
            }
            continue;
        };
        if let (Event::Data { id, payload, .. }, Some(subscriber)) = (&mut event, &mut subscriber) {
            match subscriber.open(id, payload) {
                Ok(plain) => *payload = Buf::copy_from(&plain),
                Err(error) => {
                    // Anybody may publish: what he publishes does not end this command.
                    tell(format_args!(
                        "a publication of {} is left out: {}",
                        push_words::both(&args.of.path, id),
                        plain::line(&format!("{error:#}"))
                    ));
                    continue;
                }
            }
        }
        if let Event::Data { came_by, .. } = event {
            (last, count) = (Instant::now(), count + 1);
            let strategy = came_by.unwrap_or(args.strategy);
            if std::mem::replace(&mut by, strategy) != strategy && !cx.json {
                tell(format_args!("what follows came by the strategy {strategy}"));
            }
        }
        if let Some(change) = watch.as_mut().and_then(|watch| watch.change(&event)) {
            publisher(change, &args, cx)?;
            continue;
        }
        if let (Event::ScopePublished(id), true) = (&event, args.deep) {
            // Its status comes among the events of a busy scope: it is not waited for.
            let label = id.last().map(Id::root).unwrap_or_default();
            let parent = Id::from_labels(id.parent());
            let tag = app.ask(Kind::SUBSCRIBE_SCOPE, &label, &parent, args.strategy);
            asked.insert(tag.map_err(failure)?, id.clone());
        }
        show(&event, &args, cx, begun, &mut out)?;
    }
    out.flush()?;
    app.leave().map_err(failure)
}

/// Tells which scopes are not subscribed after all.
fn look_at_answers(app: &mut App, asked: &mut BTreeMap<u32, Id>, path: &Path) {
    while let Some((tag, status)) = app.poll_answer() {
        if let (Some(scope), false) = (asked.remove(&tag), status == Status::OK) {
            let scope = push_words::both(path, &scope);
            tell(format_args!("scope {scope} is not subscribed: {status}"));
        }
    }
}

/// What decrypts, where only that is wanted.
fn subscriber(args: &Args, cx: &Context) -> anyhow::Result<Option<Subscriber>> {
    let anchors = args.anchors.iter().map(|what| super::get::certificate("--anchor", what));
    let whose = super::get::believed(&args.schema, anchors.collect::<anyhow::Result<_>>()?)?;
    match (whose, &args.group) {
        (None, None) => Ok(None),
        (Some(whose), only) => {
            Ok(Some(Subscriber::new(session::open_forever(cx)?, whose, only.clone())))
        }
        (None, Some(_)) => Err(Failure::new(Exit::Usage, "--for needs somebody to trust")
            .why("nothing is decrypted that nobody signed whom you trust")
            .next("name --anchor CERT or --trust SCHEMA")
            .into()),
    }
}

/// Subscribes; what watches publishers, where that is wanted.
fn subscribe(app: &mut App, args: &Args) -> anyhow::Result<Option<Watch>> {
    let path = &args.of.path;
    if args.strategy.has_rendezvous() {
        push_words::scopes_above(app, path, args.strategy)?;
    }
    let is_scope = args.scope || args.deep;
    if args.publishers && is_scope {
        return Err(Failure::new(Exit::Usage, "--publishers needs an item, and this is a scope")
            .next("name one item")
            .into());
    }
    let kind = if is_scope { Kind::SUBSCRIBE_SCOPE } else { Kind::SUBSCRIBE_ITEM };
    push_words::ask(app, kind, path, args.strategy)?;
    let watch = args.publishers.then(|| Watch::begin(app, path, args.strategy));
    watch.transpose().map_err(failure)
}

/// Tells of a publisher that came or went.
fn publisher(change: Change, args: &Args, cx: &Context) -> anyhow::Result<()> {
    let (event, token, what) = match change {
        Change::Came(token) => ("publisher", token, "is there"),
        Change::Went(token) => ("publisher-gone", token, "is gone"),
    };
    if !cx.json {
        tell(format_args!("publisher {token} {what}"));
        return Ok(());
    }
    let path = &args.of.path;
    let line = json!({
        "event": event, "id": path.id.to_string(), "path": push_words::with_words(path, &path.id),
        "publisher": token.to_string(),
    });
    write_json(&line.to_string())
}

fn show(
    event: &Event,
    args: &Args,
    cx: &Context,
    begun: Instant,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    if cx.json {
        let line = match event {
            Event::Data { id, payload, came_by } if args.output.is_some() => {
                let seconds = begun.elapsed().as_secs_f64();
                out.write_all(payload)?;
                out.flush()?;
                json!({
                    "event": "data", "id": id.to_string(),
                    "path": push_words::with_words(&args.of.path, id), "octets": payload.len(),
                    "seconds": seconds, "strategy": came_by.unwrap_or(args.strategy).to_string(),
                })
            }
            _ => as_json(event, args),
        };
        // Standard output: where there is no file, and beside one.
        return write_json(&line.to_string());
    }
    match event {
        Event::Data { payload, .. } => {
            out.write_all(payload)?;
            if args.lines {
                out.write_all(b"\n")?;
            }
            out.flush()?;
        }
        Event::Missed(number) => {
            let missed = human::count(*number, "publication");
            tell(format_args!("{missed} missed: this command was too slow"));
        }
        Event::Lost(number) => {
            let lost = human::count(*number, "publication");
            tell(format_args!("{lost} lost on the way here: a node or link between failed"));
        }
        Event::Overdue { id, within } => {
            let item = push_words::both(&args.of.path, id);
            tell(format_args!("nothing of {item} for {} ms: it is overdue", within.as_millis()));
        }
        Event::ScopePublished(id) => {
            tell(format_args!("scope {}", push_words::both(&args.of.path, id)))
        }
        Event::ScopeUnpublished(id) => {
            tell(format_args!("scope {} is gone", push_words::both(&args.of.path, id)));
        }
        _ => {}
    }
    Ok(())
}

fn as_json(event: &Event, args: &Args) -> serde_json::Value {
    let words = |id: &Id| push_words::with_words(&args.of.path, id);
    match event {
        Event::StartPublish(id) => json!({ "event": "start", "id": id.to_string() }),
        Event::StopPublish(id) => json!({ "event": "stop", "id": id.to_string() }),
        Event::ScopePublished(id) => {
            json!({ "event": "scope", "id": id.to_string(), "path": words(id) })
        }
        Event::ScopeUnpublished(id) => {
            json!({ "event": "unscope", "id": id.to_string(), "path": words(id) })
        }
        Event::Data { id, payload, came_by } => {
            let hex: String = payload.iter().map(|octet| format!("{octet:02x}")).collect();
            let text = std::str::from_utf8(payload).ok();
            json!({
                "event": "data", "id": id.to_string(), "path": words(id), "hex": hex, "text": text,
                "strategy": came_by.unwrap_or(args.strategy).to_string(),
            })
        }
        Event::Missed(number) => json!({ "event": "missed", "number": number }),
        Event::Lost(number) => json!({ "event": "lost", "number": number }),
        Event::Overdue { id, within } => json!({
            "event": "overdue", "id": id.to_string(), "path": words(id),
            "deadline_ms": within.as_millis() as u64,
        }),
        Event::Refused { id, status } => {
            json!({ "event": "refused", "id": id.to_string(), "status": status.0 })
        }
    }
}
