//! Commands on the folder of a store: by the socket of the repository that has it open, else directly.

use super::{Place, empty_or, opened};
use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use crate::session;
use crate::target::Target;
use anyhow::Context as _;
use onym_repo::add::{AddOptions, files, segments_of_file};
use onym_repo::door::{self, Ask, InBucket, Said};
use onym_store::Bounds;
use onym_wire::{Data, Name};
use std::fs;
use std::io::{self, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;

/// Put a file, or the files of a folder, into a store.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo add photos --store data --as /alice/photos --key /alice

The version is the time of the last change: adding a file again that did not change writes nothing.")]
pub(crate) struct Add {
    /// File or folder.
    path: PathBuf,
    #[command(flatten)]
    place: Place,
    /// Name of the file, or prefix of the files of the folder.
    #[arg(long = "as", value_name = "NAME")]
    name: Name,
    /// Identity, key or certificate of the key store that signs; without it segments carry a digest.
    #[arg(long, value_name = "NAME")]
    key: Option<Name>,
    /// Octets of content in a segment.
    #[arg(long, value_name = "N", default_value_t = 8000, value_parser = clap::value_parser!(u32).range(1..=8192))]
    segment_size: u32,
    /// How long caches take a segment as fresh, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 10_000)]
    freshness: u64,
}

/// List the components directly below a name.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo list /alice --store data")]
pub(crate) struct List {
    /// The name.
    #[arg(default_value = "/")]
    prefix: String,
    #[command(flatten)]
    place: Place,
}

/// Read an object from a store.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo get /alice/film --store data -o film.mkv")]
pub(crate) struct Get {
    /// Its name; the newest version, unless one is named.
    name: Name,
    #[command(flatten)]
    place: Place,
    /// File to write; without it standard output.
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Delete everything under a name.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo remove /alice/film --store data")]
pub(crate) struct Remove {
    /// The name.
    prefix: Name,
    #[command(flatten)]
    place: Place,
}

/// Read and check every packet of a store.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo verify --store data

Ends with 1 when packets are damaged; they are forgotten, so that they can be inserted again.")]
pub(crate) struct Verify {
    #[command(flatten)]
    place: Place,
}

/// Free the disk space of deleted packets.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo gc --store data")]
pub(crate) struct Gc {
    #[command(flatten)]
    place: Place,
    /// Compact log segments of which less than this percentage is live.
    #[arg(long, value_name = "PERCENT", default_value_t = 90, value_parser = clap::value_parser!(u32).range(1..=100))]
    below: u32,
}

/// Show the size of a store.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo stats --store data --json")]
pub(crate) struct Stats {
    #[command(flatten)]
    place: Place,
}

/// Show the jobs that were requested over the network, and their progress.
#[derive(Debug, clap::Args)]
#[command(after_help = "Example: onym repo jobs --store data")]
pub(crate) struct Jobs {
    #[command(flatten)]
    place: Place,
}

/// The store, by whoever has it open.
fn connect(place: &Place) -> anyhow::Result<UnixStream> {
    if let Ok(stream) = UnixStream::connect(place.store.join("repo.sock")) {
        return Ok(stream);
    }
    let what = || format!("cannot open the store {}", place.store.display());
    if !place.store.is_dir() {
        let next = "name its folder with --store; `onym repo run` and `onym repo add` create one";
        return Err(Failure::new(Exit::NotFound, what())
            .why("it does not exist")
            .next(next)
            .into());
    }
    Ok(door::over(opened::store(&place.store, Bounds::default())?)?)
}

fn ask(place: &Place, ask: &Ask) -> anyhow::Result<Said> {
    let said = door::ask(&connect(place)?, ask, &mut |_| Ok(()), &mut |_| Ok(()))?;
    told(said)
}

fn told(said: Said) -> anyhow::Result<Said> {
    match &said.error {
        Some(why) => Err(Failure::new(Exit::NotFound, "the store refused").why(why).into()),
        None => Ok(said),
    }
}

pub(crate) fn add(args: &Add, cx: &Context) -> anyhow::Result<()> {
    fs::create_dir_all(&args.place.store)
        .with_context(|| format!("cannot create {}", args.place.store.display()))?;
    let options = AddOptions {
        segment_size: args.segment_size as usize,
        freshness_ms: args.freshness,
        signer: session::signer(args.key.as_ref())?,
    };
    let files = files(&args.path, &args.name)
        .with_context(|| format!("cannot read {}", args.path.display()))?;
    let stream = connect(&args.place)?;
    let root = Ask::Insert { root: args.name.to_string() };
    let mut send = |out: &mut dyn Write| {
        for (path, name) in &files {
            segments_of_file(path, name, &options, &mut |packet| out.write_all(&packet))?;
        }
        Ok(())
    };
    let said = told(door::ask(&stream, &root, &mut send, &mut |_| Ok(()))?)?;
    if said.refused > 0 {
        let what = format!("{} were refused", human::count(said.refused, "packet"));
        let why = said.why.clone().unwrap_or_default();
        return Err(Failure::new(Exit::Refused, what).why(why).into());
    }
    let count = files.len() as u64;
    cx.print(&said, |said| {
        format!(
            "{}: {} new, {} replaced, {} there already",
            human::count(count, "file"),
            human::count(said.new, "packet"),
            said.replaced,
            said.had
        )
    })
}

pub(crate) fn list(args: &List, cx: &Context) -> anyhow::Result<()> {
    empty_or(&args.prefix)?;
    let mut all = Vec::new();
    let mut after = None;
    loop {
        let said = ask(&args.place, &Ask::List { prefix: args.prefix.clone(), after })?;
        after = said.names.last().cloned();
        all.extend(said.names);
        if !said.more {
            break;
        }
    }
    cx.print(&all, |all| all.join("\n"))
}

pub(crate) fn get(args: &Get) -> anyhow::Result<()> {
    let mut target = Target::open(args.output.as_deref())?;
    let mut seen = 0;
    let mut take = |packet: &[u8]| {
        seen += 1;
        let data = Data::parse(packet).map_err(io::Error::other)?;
        target.sink().write_all(data.content)
    };
    let stream = connect(&args.place)?;
    let name = args.name.to_string();
    let said = told(door::ask(&stream, &Ask::Get { name }, &mut |_| Ok(()), &mut take)?)?;
    let want = said.follow.unwrap_or(0);
    if seen < want {
        let what = format!("{}: segment {seen} of {want} is missing", args.name);
        return Err(Failure::new(Exit::NotFound, what).next("insert the object again").into());
    }
    target.finish()
}

pub(crate) fn remove(args: &Remove, cx: &Context) -> anyhow::Result<()> {
    let said = ask(&args.place, &Ask::Delete { prefix: args.prefix.to_string() })?;
    if said.refused > 0 {
        return Err(Failure::new(Exit::Failed, "some packets were not removed")
            .why(said.why.clone().unwrap_or_default())
            .into());
    }
    cx.print(&said, |said| format!("{} removed", human::count(said.packets, "packet")))
}

pub(crate) fn verify(args: &Verify, cx: &Context) -> anyhow::Result<()> {
    let said = ask(&args.place, &Ask::Verify)?;
    cx.print(&said, |said| format!("{} are whole", human::count(said.packets, "record")))?;
    if said.damaged == 0 && said.wrong_octets == 0 {
        return Ok(());
    }
    if said.damaged == 0 {
        let what =
            format!("the bucket gave {} that are no record", human::bytes(said.wrong_octets));
        return Err(Failure::new(Exit::Failed, what)
            .next("nothing of it is served; insert what is missing again")
            .into());
    }
    let what =
        format!("{} were damaged and have been dropped", human::count(said.damaged, "packet"));
    Err(Failure::new(Exit::Failed, what).next("insert their objects again").into())
}

pub(crate) fn gc(args: &Gc, cx: &Context) -> anyhow::Result<()> {
    let said = ask(&args.place, &Ask::Collect { share: f64::from(args.below) / 100.0 })?;
    cx.print(&said, |said| format!("{} freed", human::bytes(said.octets)))
}

pub(crate) fn stats(args: &Stats, cx: &Context) -> anyhow::Result<()> {
    let said = ask(&args.place, &Ask::Stats)?;
    cx.print(&said, |said| {
        let trouble = said.trouble.as_ref().map_or(String::new(), |t| format!("\ntrouble: {t}"));
        let bucket = said.bucket.as_ref().map_or(String::new(), in_bucket);
        let log = match &said.bucket {
            Some(_) => "of log",
            None => "on the disk",
        };
        format!(
            "{}, {} of {} {log} in {}, {} damaged{bucket}{trouble}",
            human::count(said.packets, "packet"),
            human::bytes(said.octets),
            human::bytes(said.log_octets),
            human::count(said.segments, "log segment"),
            said.damaged
        )
    })
}

fn in_bucket(there: &InBucket) -> String {
    let trouble = there.trouble.as_ref().map_or(String::new(), |t| format!("\nbucket: {t}"));
    format!(
        "\n{} here; {} in the bucket, {} of them only there, {} to go there{trouble}",
        human::bytes(there.here_octets),
        human::count(there.segments, "segment"),
        there.only_there,
        there.waiting
    )
}

pub(crate) fn jobs(args: &Jobs, cx: &Context) -> anyhow::Result<()> {
    let said = ask(&args.place, &Ask::Jobs)?;
    cx.print(&said.jobs, |jobs| jobs.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))
}
