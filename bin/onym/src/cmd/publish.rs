//! `onym publish ID`: publish a file, standard input or a text under an identifier.

use crate::exit::{Exit, Failure};
use crate::human;
use crate::input::Input;
use crate::output::Context;
use crate::push_words::{self, failure};
use crate::schema;
use crate::secrecy::Publisher;
use crate::session;
use crate::stop::{self, Stop};
use anyhow::Context as _;
use onym_client::push::{App, Event, Publication, Retain, Sent, live};
use onym_wire::Name;
use onym_wire::push::{Filter, Id, Kind, Label, Path, RouteBuf, Status, Strategy};
use serde_json::json;
use std::io::{BufRead as _, BufReader};
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// How often the signal to stop is looked at.
const LOOK: Duration = Duration::from_millis(200);

/// Publish data under an identifier of the push half.
///
/// The scopes above the item are published too, where they are not there yet. The data leaves when
/// somebody has subscribed; without --keep the command ends then.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym publish /1/2 notes.pdf                 one publication, when there is a subscriber
  sensor | onym publish /1/2 --lines --keep   each line is a publication, until stopped
  onym publish /sensors/roof/temperature --text 21.5
  onym publish /1/2 --text hello --strategy node-local
  onym publish /1/2 --text hello --timeout 10 --json
  onym publish /1/2 --text 21.5 --retain      who subscribes later starts with it, until stopped
  sensor | onym publish /1/2 --lines --retain 10   and with the last ten lines
  onym publish /1/2 --text 21.5 --retain --lifetime 60    not to who comes a minute later
  onym publish /1/2 film.mp4 --lifetime 3600     late subscribers get it from caches for an hour
  sensor | onym publish /1/2 --lines --retain --deadline 5 --priority 7   overdue when it is silent
  journal | onym publish /1/2 --lines --retain 100 --wait   no faster than subscribers here read
  sensor | onym publish /1/2 --lines --alive  subscribers may know that it is there
  onym publish /1/2 --text hello --strategy broadcast
  onym publish /1/2 --text hello --key /alice --for /alice/NAC/friends    who was let in reads it
  onym publish /1/2 --text hello --strategy link-local --to 00000000000000a1")]
pub(crate) struct Args {
    /// Identifier of the item: words or labels of 1 to 16 hexadecimal digits, such as
    /// /sensors/roof/temperature or /1/2. A word that is made of such digits is written with `=` in
    /// front: /=cafe.
    #[arg(value_name = "ID")]
    path: Path,
    /// What to publish; standard input without it, or with `-`.
    file: Option<PathBuf>,
    /// Publish this text.
    #[arg(long, conflicts_with_all = ["file", "lines"])]
    text: Option<String>,
    /// Each line of the input is a publication.
    #[arg(long)]
    lines: bool,
    /// How it is disseminated. link-local (to the neighbour of --to), broadcast (to all neighbours,
    /// one hop) and implicit (the way of --filter) publish at once, whoever listens.
    #[arg(long, default_value = "domain-local", value_parser = push_words::strategies())]
    strategy: Strategy,
    /// Receiving neighbour of `link-local`: its identifier in `onym rendezvous status`.
    #[arg(long, value_name = "NODE", required_if_eq("strategy", "link-local"))]
    to: Option<Label>,
    /// Forwarding filter of `implicit`: the 256 binary digits that `onym topology tree` prints.
    #[arg(long, value_name = "FILTER", required_if_eq("strategy", "implicit"))]
    filter: Option<Filter>,
    /// Forwarding table of the filter.
    #[arg(long, value_name = "N", default_value_t = 0)]
    table: u8,
    /// Item whose subscribers receive it with `algorithmic-local` and `algorithmic-domain`; it is
    /// published first.
    #[arg(
        long,
        value_name = "ID",
        required_if_eq_any([("strategy", "algorithmic-local"), ("strategy", "algorithmic-domain")])
    )]
    about: Option<Path>,
    /// Encrypt for this group, /PREFIX/NAC/DATASET (`onym access`), and sign with --key.
    #[arg(long = "for", value_name = "GROUP", requires = "key")]
    group: Option<Name>,
    /// Identity, key or certificate of the key store that signs what is encrypted.
    #[arg(long, value_name = "NAME", requires = "group")]
    key: Option<Name>,
    /// Trust anchor of the group's owner: the file of a certificate, or a name in the key store.
    #[arg(long = "anchor", value_name = "CERT", requires = "group")]
    anchors: Vec<String>,
    #[command(flatten)]
    schema: schema::Options,
    /// Publish at once, whether somebody subscribed or not, and keep the last publications at the
    /// node for who subscribes later, one unless a number is given; until stopped. The node forgets
    /// them then, and the oldest of whoever holds most where they are more than
    /// `push.retained_bytes_max`.
    #[arg(
        long,
        value_name = "NUMBER",
        num_args = 0..=1,
        default_missing_value = "1",
        value_parser = clap::value_parser!(u64).range(1..=65_535),
        conflicts_with_all = ["keep", "timeout"]
    )]
    retain: Option<u64>,
    /// Caches of this node and of those on the way may keep a publication that is longer than a frame
    /// for so long, and answer late subscribers with it, though this command has ended; with `algorithmic-local` and
    /// `algorithmic-domain` those of receivers, whatever its length. With --retain: what is retained
    /// is forgotten so long after it was published, and who subscribes later, or is that far behind,
    /// does not get it.
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=3600)
    )]
    lifetime: Option<u64>,
    /// The next publication follows within so long: otherwise subscribers hear that it is overdue.
    #[arg(
        long,
        value_name = "SECONDS",
        value_parser = clap::value_parser!(u64).range(1..=3600),
        requires = "retain"
    )]
    deadline: Option<u64>,
    /// What a subscriber that is behind in several items gets first: 0, the last one, to 7.
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u8).range(0..=7),
        requires = "retain",
        default_value_t = 0,
        hide_default_value = true
    )]
    priority: u8,
    /// Wait for subscribers of this node that are behind before the oldest of what is kept is lost to
    /// them, `push.hold_ms` at a stretch; who is slower loses the oldest until it has caught up. Nobody
    /// waits for subscribers at other nodes.
    #[arg(long, requires = "retain")]
    wait: bool,
    /// Say of this publisher that it lives, as long as the command runs: `onym subscribe --publishers`.
    #[arg(long)]
    alive: bool,
    /// Keep running, and publish again whenever subscribers appear after there were none.
    #[arg(long)]
    keep: bool,
    /// Give up after this many seconds without a subscriber.
    #[arg(long, value_name = "SECONDS")]
    timeout: Option<u64>,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    if args.lifetime.is_some() && args.retain.is_none() {
        check_cached(args.strategy)?;
    }
    let stop = stop::on_signal()?;
    let mut publisher = publisher(&args, cx)?;
    let mut app = push_words::open(cx, "onym publish")?;
    app.stop_when(stop.flag());
    // What is started once somebody subscribed; without it nothing is waited for.
    let (item, strategy) = match args.strategy {
        Strategy::ALGORITHMIC_LOCAL => (args.about.as_ref(), Strategy::NODE_LOCAL),
        Strategy::ALGORITHMIC_DOMAIN => (args.about.as_ref(), Strategy::DOMAIN_LOCAL),
        strategy if strategy.has_rendezvous() => (Some(&args.path), strategy),
        strategy => (None, strategy),
    };
    if let Some(item) = item {
        push_words::scopes_above(&mut app, item, strategy)?;
        push_words::ask(&mut app, Kind::PUBLISH_ITEM, item, strategy)?;
        if args.alive {
            live::announce(&mut app, item, strategy).map_err(failure)?;
        }
    } else if args.alive {
        return Err(no_graph("--alive", args.strategy).into());
    }
    let item = item.map(|path| &path.id);
    if let Some(count) = args.retain {
        let item = retained(&args)?;
        let [lifetime, deadline] =
            [args.lifetime, args.deadline].map(|s| s.map(Duration::from_secs));
        let (priority, waits) = (args.priority, args.wait);
        let retain = Retain { count, lifetime, deadline, priority, waits };
        app.retain_as(item, retain).map_err(failure)?;
    }
    let whole = if args.lines { None } else { Some(input(&args, app.info().length_max, &stop)?) };
    if item.is_none() {
        send(&mut app, &args, publisher.as_mut(), whole.as_deref(), &stop, cx)?;
        return app.leave().map_err(failure);
    }
    if args.retain.is_some() {
        send(&mut app, &args, publisher.as_mut(), whole.as_deref(), &stop, cx)?;
        return until_stopped(app, &args, &stop);
    }
    let deadline = args.timeout.map(|s| Instant::now() + Duration::from_secs(s));
    loop {
        if stop.is_set() {
            return app.leave().map_err(failure);
        }
        let event = app.event(Some(LOOK)).map_err(failure)?;
        match event {
            Some(Event::StartPublish(id)) if item == Some(&id) => {
                send(&mut app, &args, publisher.as_mut(), whole.as_deref(), &stop, cx)?;
                if !args.keep || args.lines {
                    return app.leave().map_err(failure);
                }
            }
            Some(Event::Refused { id, status }) => refused(&args, &id, status),
            None if deadline.is_some_and(|d| Instant::now() >= d) => {
                return Err(Failure::new(
                    Exit::NotFound,
                    format!("nobody subscribed to {}", args.path),
                )
                .next("see `onym explain --push ID`")
                .into());
            }
            _ => {}
        }
    }
}

/// The item of which the last publications are to be retained.
fn retained(args: &Args) -> anyhow::Result<&Id> {
    if args.strategy.has_rendezvous() {
        return Ok(&args.path.id);
    }
    Err(no_graph("--retain", args.strategy).into())
}

/// An option needs an item, and the strategy knows none.
fn no_graph(option: &str, strategy: Strategy) -> Failure {
    Failure::new(Exit::Usage, format!("{option} does not go with --strategy {strategy}"))
        .why("it is for items, and this strategy knows none")
        .next(format!("leave {option} out, or use node-local, domain-local or inter-domain"))
}

/// Whether caches keep publications of the strategy.
fn check_cached(strategy: Strategy) -> anyhow::Result<()> {
    let are_kept = [
        Strategy::DOMAIN_LOCAL,
        Strategy::INTER_DOMAIN,
        Strategy::ALGORITHMIC_LOCAL,
        Strategy::ALGORITHMIC_DOMAIN,
    ];
    if are_kept.contains(&strategy) {
        return Ok(());
    }
    Err(Failure::new(Exit::Usage, format!("--lifetime does not go with --strategy {strategy}"))
        .why("no cache keeps what is published so")
        .next("use --retain, or domain-local, inter-domain or an algorithmic strategy")
        .into())
}

/// The node retains what was published, as long as this command runs.
fn until_stopped(mut app: App, args: &Args, stop: &Stop) -> anyhow::Result<()> {
    while !stop.is_set() {
        if let Some(Event::Refused { id, status }) = app.event(Some(LOOK)).map_err(failure)? {
            refused(args, &id, status);
        }
    }
    app.leave().map_err(failure)
}

fn refused(args: &Args, id: &Id, status: Status) {
    let id = push_words::both(&args.path, id);
    crate::output::tell(format_args!("a publication of {id} was refused: {status}"));
}

/// What encrypts, where it is for a group.
fn publisher(args: &Args, cx: &Context) -> anyhow::Result<Option<Publisher>> {
    let Some(group) = &args.group else { return Ok(None) };
    let anchors = args.anchors.iter().map(|what| super::get::certificate("--anchor", what));
    let whose = super::get::believed(&args.schema, anchors.collect::<anyhow::Result<_>>()?)?;
    let signer = session::signer(args.key.as_ref())?;
    let mut client = session::open(cx)?;
    Publisher::new(&mut client, group, whose.as_ref(), &args.path.id, signer).map(Some)
}

/// What is published: `args` and a payload.
fn publication<'a>(
    args: &'a Args,
    route: Option<&'a RouteBuf>,
    payload: &'a [u8],
) -> Publication<'a> {
    Publication {
        route,
        node: args.to,
        about: args.about.as_ref().map(|path| &path.id),
        // What is retained has it already.
        lifetime_ms: args.lifetime.filter(|_| args.retain.is_none()).unwrap_or(0) * 1000,
        ..Publication::new(&args.path.id, args.strategy, payload)
    }
}

fn route(args: &Args) -> Option<RouteBuf> {
    args.filter.as_ref().map(|filter| RouteBuf::flat(args.table, filter))
}

fn send(
    app: &mut App,
    args: &Args,
    publisher: Option<&mut Publisher>,
    whole: Option<&[u8]>,
    stop: &Stop,
    cx: &Context,
) -> anyhow::Result<()> {
    match whole {
        Some(payload) => publish(app, args, publisher, payload, cx),
        None => lines(app, args, publisher, stop, cx),
    }
}

/// The whole input.
fn input(args: &Args, most: u64, stop: &Stop) -> anyhow::Result<Vec<u8>> {
    if let Some(text) = &args.text {
        return Ok(text.clone().into_bytes());
    }
    Input::open(args.file.as_deref(), stop)?.whole(most)
}

fn publish(
    app: &mut App,
    args: &Args,
    publisher: Option<&mut Publisher>,
    payload: &[u8],
    cx: &Context,
) -> anyhow::Result<()> {
    let route = route(args);
    let sealed = publisher.map(|publisher| publisher.publication(payload)).transpose()?;
    let payload = sealed.as_deref().unwrap_or(payload);
    let publication = publication(args, route.as_ref(), payload);
    let Sent { local, frames } = app.publish_told(&publication).map_err(failure)?;
    let told = json!({
        "id": args.path.id.to_string(), "path": push_words::with_words(&args.path, &args.path.id),
        "octets": payload.len(), "local": local, "frames": frames,
    });
    cx.event(&told, |_| {
        let octets = payload.len();
        let octets = human::count(octets as u64, "octet");
        let (local, frames) = (human::count(local, "application"), human::count(frames, "frame"));
        format!("{}: {octets}, {local} here, {frames} sent", args.path)
    })
}

/// Publishes line after line; a line that finds nobody is left out.
fn lines(
    app: &mut App,
    args: &Args,
    mut publisher: Option<&mut Publisher>,
    stop: &Stop,
    cx: &Context,
) -> anyhow::Result<()> {
    let route = route(args);
    let mut reader = BufReader::new(Input::open(args.file.as_deref(), stop)?);
    let (mut line, mut count) = (Vec::new(), 0_u64);
    loop {
        match reader.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(_) if stop.is_set() => break,
            Err(error) => return Err(error).context("cannot read the input"),
        }
        let text = line.strip_suffix(b"\n").unwrap_or(&line);
        let sealed = publisher.as_mut().map(|publisher| publisher.publication(text)).transpose()?;
        let text = sealed.as_deref().unwrap_or(text);
        app.publish_as(&publication(args, route.as_ref(), text)).map_err(failure)?;
        app.drain().map_err(failure)?;
        count += 1;
        line.clear();
    }
    let told = json!({
        "id": args.path.id.to_string(), "path": push_words::with_words(&args.path, &args.path.id),
        "publications": count,
    });
    cx.event(&told, |_| format!("{}: {count} publications", args.path))
}
