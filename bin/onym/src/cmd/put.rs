//! `onym put`: publish a file until stopped.

use super::repo::network::keep;
use super::route::announced;
use crate::exit::{Exit, Failure};
use crate::human;
use crate::input::Input;
use crate::output::{self, Context};
use crate::schema;
use crate::session;
use crate::stop::{self, Stop};
use anyhow::Context as _;
use onym_client::blocking::Happened;
use onym_client::schema::signer_for;
use onym_client::serve::{FileSource, Object, ServeCounters, ServeOptions};
use onym_client::{Event, Notice, RouteOptions};
use onym_crypto::Signer;
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_repo::command::ObjectParam;
use onym_wire::Name;
use onym_wire::mgmt::ORIGIN_CLIENT;
use serde::Serialize;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Publish a file under a name until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym put /example/film film.mkv
  tar c photos | onym put /example/photos --key /alice
  onym put /alice/film film.mkv --trust site.lvs    signed with the key that the schema asks for
  onym put /example/film film.mkv --announce    other nodes of the network find it, too
  onym put /example/film film.mkv --freshness 60000 --segment-size 4000
  onym put /alice/film film.mkv --key /alice --repo /example/repo    ends when that has it

Prints the versioned name and `ready` once the node routes the name here. The file is read while it is
fetched and must not change; standard input and FIFOs are read whole first (at most 1 GiB).
`onym get`, ndncatchunks, ndnd cat, NDNts and python-ndn fetch it.")]
pub(crate) struct Args {
    /// Name of the object; a version as its last component is taken as the version.
    name: Name,
    /// File to publish; without it, or with `-`, standard input.
    file: Option<PathBuf>,
    /// How long caches take a segment as fresh, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    freshness: u64,
    /// Octets of content in a segment.
    #[arg(long, value_name = "N", default_value_t = 8000)]
    segment_size: usize,
    /// Version; without it the present time in milliseconds.
    #[arg(long, value_name = "N")]
    version: Option<u64>,
    /// Identity, key or certificate of the key store that signs; without it segments carry a digest
    /// only, which shows damage but not who published.
    #[arg(long, value_name = "NAME")]
    key: Option<Name>,
    /// Trust anchor of --trust: the file of a certificate, or a name in the key store.
    #[arg(long = "anchor", value_name = "CERT", requires = "trust")]
    anchors: Vec<String>,
    #[command(flatten)]
    schema: schema::Options,
    /// Sign all segments before serving (takes as much memory as the file).
    #[arg(long)]
    sign_ahead: bool,
    /// Repository (`onym repo run`, ndn-python-repo 0.4) to store the object in; this command ends
    /// when the repository has all of it. --key signs the command, too.
    #[arg(long, value_name = "NAME")]
    repo: Option<Name>,
    /// Have the router of the node announce the prefix to its network (origin client). What becomes of
    /// it is told on standard error.
    #[arg(long)]
    announce: bool,
    /// Cost of the route.
    #[arg(long, value_name = "N", default_value_t = 0)]
    cost: u64,
}

/// Most that is read of what is no file, in octets.
const INPUT_MAX: u64 = 1 << 30;

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { name: String, segments: u64, bytes: u64 },
    Kept { repo: String, packets: u64 },
    Notice { text: String },
    Stopped { segments_sent: u64, metadata_sent: u64, refused: u64 },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let (prefix, object) = object(&args, &stop)?;
    let ready = Line::Ready {
        name: object.versioned_name().to_string(),
        segments: object.segments(),
        bytes: object.size(),
    };
    let counters = object.counters();
    let wanted = ObjectParam {
        name: object.versioned_name().to_name(),
        start: Some(0),
        end: Some(object.segments() - 1),
        register: Some(prefix.clone()),
        ..ObjectParam::default()
    };
    let mut client = session::open_forever(cx)?;
    client.respond(prefix.clone(), Box::new(object)).map_err(|e| session::failure(e.into()))?;
    let origin = args.announce.then_some(ORIGIN_CLIENT);
    let route = RouteOptions { cost: args.cost, origin, ..RouteOptions::default() };
    let registration = client.register(prefix.clone(), route).map_err(session::failure)?;
    cx.event(&ready, text)?;
    announced::tell_soon(cx, &prefix, origin);
    if let Some(repo) = &args.repo {
        client.stop_when(stop.flag());
        let packets = keep(&mut client, repo, wanted, args.key.as_ref())?;
        return cx.event(&Line::Kept { repo: repo.to_string(), packets }, text);
    }
    let mut say = Ok(());
    let mut watch = |happened: Happened| match tell(&happened) {
        Some(line) if cx.json => say = cx.event(&line, text),
        // On standard error as text, so that it does not disturb who reads the name.
        Some(line) => output::tell(format_args!("onym: {}", text(&line))),
        None => {}
    };
    let run = client.run(Duration::from_millis(500), &mut || stop.is_set(), &mut watch);
    say?;
    run.map_err(session::failure)?;
    let now = client.now();
    client.endpoint().unregister(now, registration);
    // Best effort: closing the face removes the route as well.
    let _ = client.flush(Duration::from_millis(200));
    cx.event(&stopped(&counters), text)
}

/// The key that is named, the one that the schema asks for, or a digest.
fn signer(args: &Args, name: &Name, version: u64) -> anyhow::Result<Signer> {
    let Some((loaded, own)) = args.schema.load()? else {
        return session::signer(args.key.as_ref());
    };
    let anchors = args.anchors.iter().map(|what| super::get::certificate("--anchor", what));
    let mut anchors = anchors.collect::<anyhow::Result<Vec<_>>>()?;
    anchors.extend(own);
    let mut segment = name.clone();
    segment.append_version(version).append_segment(0);
    let store = KeyStore::of_user().context("cannot open the key store")?;
    signer_for(&*loaded.policy, &store, &anchors, &segment).map_err(|error| {
        Failure::new(Exit::Refused, format!("no key may sign {name}"))
            .why(error)
            .next(
                "`onym trust explain` shows which key may; `onym cert issue` and `install` provide one",
            )
            .into()
    })
}

fn object(args: &Args, stop: &Stop) -> anyhow::Result<(Name, Object)> {
    let mut name = args.name.clone();
    let in_name = name.as_ref().last().and_then(|c| c.as_version());
    if in_name.is_some() {
        name.pop();
    }
    if name.is_empty() {
        return Err(Failure::new(Exit::Usage, "the name is empty")
            .next("name the object, such as /example/film")
            .into());
    }
    let version = args.version.or(in_name).unwrap_or_else(unix_now_ms);
    let options = ServeOptions {
        segment_size: args.segment_size,
        freshness: Duration::from_millis(args.freshness),
        signer: signer(args, &name, version)?,
        ..ServeOptions::new(version)
    };
    let file = args.file.as_deref().filter(|f| *f != Path::new("-"));
    let object = match file {
        // What cannot be read twice, such as a FIFO, is read whole, as standard input is.
        Some(path) if fs::metadata(path).is_ok_and(|m| m.is_file() || m.is_dir()) => {
            let cannot = || format!("cannot publish {}", path.display());
            let source = File::open(path).and_then(FileSource::new).with_context(cannot)?;
            Object::new(name.clone(), source, options)
        }
        file => Object::new(name.clone(), Input::open(file, stop)?.whole(INPUT_MAX)?, options),
    };
    let mut object = object.map_err(|error| {
        Failure::new(Exit::Usage, "cannot publish")
            .why(error)
            .next("choose a smaller --segment-size")
    })?;
    if args.sign_ahead {
        object.sign_ahead()?;
    }
    Ok((name, object))
}

fn tell(happened: &Happened) -> Option<Line> {
    let text = match happened {
        Happened::Notice(Notice::Back) => "connected to the node again; registering".to_owned(),
        Happened::Notice(notice) => session::notice_text(notice),
        Happened::Event(Event::NotRegistered(_, why)) => {
            format!("not registered: {why}; trying again")
        }
        Happened::Event(Event::Registered(_)) => "registered again".to_owned(),
        Happened::Event(_) => return None,
    };
    Some(Line::Notice { text })
}

fn stopped(counters: &ServeCounters) -> Line {
    Line::Stopped {
        segments_sent: counters.segments.load(Ordering::Relaxed),
        metadata_sent: counters.metadata.load(Ordering::Relaxed),
        refused: counters.refused.load(Ordering::Relaxed),
    }
}

fn text(line: &Line) -> String {
    match line {
        Line::Ready { name, segments, bytes } => {
            let segments = human::count(*segments, "segment");
            format!("{name}\nready: {} in {segments}\n", human::bytes(*bytes))
        }
        Line::Kept { repo, packets } => {
            format!("kept by {repo}: {}\n", human::count(*packets, "packet"))
        }
        Line::Notice { text } => format!("{text}\n"),
        Line::Stopped { segments_sent, metadata_sent, refused } => format!(
            "stopped: {} and {metadata_sent} metadata sent, {} refused\n",
            human::count(*segments_sent, "segment"),
            human::count(*refused, "Interest")
        ),
    }
}
