//! `onym put`: publish a file until stopped.

use super::repo::network::keep;
use super::route::announced;
use crate::exit::{Exit, Failure};
use crate::human;
use crate::input::Input;
use crate::output::{self, Context};
use crate::schema;
use crate::secrecy::{self, Sealed};
use crate::session;
use crate::stop::{self, Stop};
use anyhow::Context as _;
use onym_client::blocking::{Client, Happened};
use onym_client::schema::signer_for;
use onym_client::serve::{FileSource, Object, ServeCounters, ServeOptions};
use onym_client::{Answer, Event, Incoming, Notice, RouteOptions, Seal};
use onym_crypto::edge::unix_now_ms;
use onym_crypto::store::KeyStore;
use onym_crypto::{Certificate, Signer};
use onym_frame::Buf;
use onym_repo::command::ObjectParam;
use onym_wire::mgmt::ORIGIN_CLIENT;
use onym_wire::{NackReason, Name};
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
  onym put /alice/film film.mkv --key /alice --for /alice/NAC/friends    who was let in reads it

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
    /// Trust anchor of --trust, and of the owner of --for: the file of a certificate, or a name in
    /// the key store.
    #[arg(long = "anchor", value_name = "CERT")]
    anchors: Vec<String>,
    /// Encrypt for this group, /PREFIX/NAC/DATASET (`onym access`); it must be signed with a key.
    #[arg(long = "for", value_name = "GROUP")]
    group: Option<Name>,
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
    if !args.anchors.is_empty() && args.group.is_none() && !args.schema.is_given() {
        return Err(Failure::new(Exit::Usage, "--anchor goes with --trust or --for").into());
    }
    let (name, version) = versioned(&args)?;
    let signer = signer(&args, &name, version)?;
    let mut client = None;
    let sealed = match &args.group {
        None => None,
        Some(group) => {
            let client = client.insert(session::open_forever(cx)?);
            Some(sealed_for(client, &args, group, &name, version, &signer)?)
        }
    };
    let (sealing, key) = match sealed {
        Some(Sealed { key, ck_name, ck, sealing }) => (Some(sealing), Some((key, ck_name, ck))),
        None => (None, None),
    };
    let prefix = name.clone();
    let options = ServeOptions {
        segment_size: args.segment_size,
        freshness: Duration::from_millis(args.freshness),
        signer,
        seal: sealing.map(|sealing| Box::new(sealing) as Box<dyn Seal>),
        ..ServeOptions::new(version)
    };
    let object = object(&args, name, options, &stop)?;
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
    let mut client = match client {
        Some(client) => client,
        None => session::open_forever(cx)?,
    };
    client.respond(prefix.clone(), Box::new(object)).map_err(|e| session::failure(e.into()))?;
    let ck_name = key.as_ref().map(|(_, ck_name, _)| ck_name.clone());
    if let Some((prefix, _, ck)) = key {
        serve_key(&mut client, prefix, &ck)?;
    }
    let origin = args.announce.then_some(ORIGIN_CLIENT);
    let route = RouteOptions { cost: args.cost, origin, ..RouteOptions::default() };
    let registration = client.register(prefix.clone(), route).map_err(session::failure)?;
    cx.event(&ready, text)?;
    announced::tell_soon(cx, &prefix, origin);
    if let Some(repo) = &args.repo {
        client.stop_when(stop.flag());
        let mut packets = keep(&mut client, repo, wanted, args.key.as_ref())?;
        if let Some(name) = ck_name {
            // Whoever reads needs the content key as long as the content.
            let wanted = ObjectParam { name, ..ObjectParam::default() };
            packets += keep(&mut client, repo, wanted, args.key.as_ref())?;
        }
        return cx.event(&Line::Kept { repo: repo.to_string(), packets }, text);
    }
    serve(&mut client, &stop, cx)?;
    let now = client.now();
    client.endpoint().unregister(now, registration);
    // Best effort: closing the face removes the route as well.
    let _ = client.flush(Duration::from_millis(200));
    cx.event(&stopped(&counters), text)
}

/// Answers until it is stopped, and tells what becomes of the connection.
fn serve(client: &mut Client, stop: &Stop, cx: &Context) -> anyhow::Result<()> {
    let mut say = Ok(());
    let mut watch = |happened: Happened| match tell(&happened) {
        Some(line) if cx.json => say = cx.event(&line, text),
        // On standard error as text, so that it does not disturb who reads the name.
        Some(line) => output::tell(format_args!("onym: {}", text(&line))),
        None => {}
    };
    let run = client.run(Duration::from_millis(500), &mut || stop.is_set(), &mut watch);
    say?;
    run.map_err(session::failure)
}

/// Serves the content key to whoever may read.
fn serve_key(client: &mut Client, prefix: Name, key: &[u8]) -> anyhow::Result<()> {
    let key = Buf::copy_from(key);
    let respond = move |incoming: &Incoming, _: &mut Vec<u8>| match incoming.is_answered_by(&key) {
        true => Answer::Shared(key.clone()),
        false => Answer::Nack(NackReason::NONE),
    };
    client.respond(prefix, Box::new(respond)).map_err(|e| session::failure(e.into())).map(drop)
}

/// The key that is named, the one that the schema asks for, or a digest.
fn signer(args: &Args, name: &Name, version: u64) -> anyhow::Result<Signer> {
    let Some((loaded, own)) = args.schema.load()? else {
        return session::signer(args.key.as_ref());
    };
    let mut anchors = anchors(args)?;
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

fn anchors(args: &Args) -> anyhow::Result<Vec<Certificate>> {
    args.anchors.iter().map(|what| super::get::certificate("--anchor", what)).collect()
}

/// What encrypts the object for its group.
fn sealed_for(
    client: &mut Client,
    args: &Args,
    group: &Name,
    name: &Name,
    version: u64,
    signer: &Signer,
) -> anyhow::Result<Sealed> {
    let whose = super::get::believed(&args.schema, anchors(args)?)?;
    secrecy::seal_for(client, group, whose.as_ref(), name, version, signer)
}

/// The name without its version, and that.
fn versioned(args: &Args) -> anyhow::Result<(Name, u64)> {
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
    Ok((name, args.version.or(in_name).unwrap_or_else(unix_now_ms)))
}

fn object(args: &Args, name: Name, options: ServeOptions, stop: &Stop) -> anyhow::Result<Object> {
    let file = args.file.as_deref().filter(|f| *f != Path::new("-"));
    let object = match file {
        // What cannot be read twice, such as a FIFO, is read whole, as standard input is.
        Some(path) if fs::metadata(path).is_ok_and(|m| m.is_file() || m.is_dir()) => {
            let cannot = || format!("cannot publish {}", path.display());
            let source = File::open(path).and_then(FileSource::new).with_context(cannot)?;
            Object::new(name, source, options)
        }
        file => Object::new(name, Input::open(file, stop)?.whole(INPUT_MAX)?, options),
    };
    let mut object = object.map_err(|error| {
        Failure::new(Exit::Usage, "cannot publish")
            .why(error)
            .next("choose a smaller --segment-size")
    })?;
    if args.sign_ahead {
        object.sign_ahead()?;
    }
    Ok(object)
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
