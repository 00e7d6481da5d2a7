//! `onym repo run`: serve a store.

use super::{Place, opened};
use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use crate::supervised::{self, Alive};
use crate::{session, stop};
use anyhow::Context as _;
use onym_crypto::cert::Certificate;
use onym_crypto::edge::unix_now_ms;
use onym_guard::{Guard, Settings};
use onym_repo::add::AddOptions;
use onym_repo::admission::{Admission, Everybody, Keys, Names, Nobody, Rules};
use onym_repo::door::{Bulk, BulkRule};
use onym_repo::watch::{self, Watched};
use onym_repo::{Repo, RepoOptions, repo};
use onym_store::Bounds;
use onym_wire::Name;
use serde::Serialize;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// Serve a store, and take commands and bulk insertions, until stopped.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym repo run --store data --name /example/repo --serve /example
  onym repo run --store data --name /example/repo --allow-key alice.ndncert --bulk 127.0.0.1:7376
  onym repo run --store data --name /example/repo --trust site.lvs --anchor root.ndncert
  onym repo run --store data --name /example/repo --watch photos=/example/photos --key /example

Prints `ready` once the node routes the name of the repository here. A file of a watched folder is
taken when two looks in a row found it unchanged. Where the folder of the store has a file
repo.toml with [repo.bucket], full segments of the store go to an S3 object store, and leave the
disk when that has them.")]
pub(crate) struct Args {
    #[command(flatten)]
    place: Place,
    /// Name of the repository: commands come under it.
    #[arg(long, value_name = "NAME")]
    name: Name,
    /// Prefix that is served from the start; may be given more than once.
    #[arg(long, value_name = "PREFIX")]
    serve: Vec<Name>,
    /// Keep the store in step with this folder: its files are under NAME, and what changes or goes
    /// there does here. May be given more than once.
    #[arg(long, value_name = "FOLDER=NAME", value_parser = watched)]
    watch: Vec<Watched>,
    /// How often watched folders are looked at, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 2000, value_parser = clap::value_parser!(u64).range(10..))]
    watch_every: u64,
    /// Certificate (a file) whose owner may insert and delete under its identity; may be repeated.
    #[arg(long, value_name = "FILE")]
    allow_key: Vec<PathBuf>,
    /// Keys of --allow-key may insert under any name.
    #[arg(long, requires = "allow_key")]
    any_name: bool,
    /// Trust schema: who may sign Data of a name may insert and delete it. Its files and anchors are
    /// looked at again each minute.
    #[arg(long = "trust", value_name = "FILE", conflicts_with_all = ["allow_key", "allow_everybody"])]
    schema: Option<PathBuf>,
    /// Where in a validator configuration the rules are, with dots, such as security.validator.
    #[arg(long, value_name = "PATH", default_value = "", requires = "schema")]
    section: String,
    /// Trust anchors of --trust: a file of a certificate, or a folder of such files. May be given
    /// more than once.
    #[arg(long = "anchor", value_name = "PATH", requires = "schema")]
    anchors: Vec<String>,
    /// List of keys and certificates that are believed no longer.
    #[arg(long, value_name = "FILE", requires = "schema")]
    revoked: Option<String>,
    /// Let everybody who reaches the repository insert and delete, as ndn-python-repo does.
    #[arg(long, conflicts_with = "allow_key")]
    allow_everybody: bool,
    /// Take packets by TCP here, under the served prefixes; beyond loopback signed by --allow-key only.
    #[arg(long, value_name = "ADDRESS:PORT")]
    bulk: Option<SocketAddr>,
    /// Identity, key or certificate of the key store that signs metadata and answers.
    #[arg(long, value_name = "NAME")]
    key: Option<Name>,
    /// Octets to keep at most, such as 50G.
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size, default_value = "none")]
    octets_max: u64,
    /// Packets to keep at most.
    #[arg(long, value_name = "N")]
    packets_max: Option<u64>,
    /// Octets of one owner at most, such as 1G.
    #[arg(long, value_name = "SIZE", value_parser = human::parse_size, default_value = "none")]
    owner_octets_max: u64,
}

/// Octets of content in a segment of a watched file.
const SEGMENT: usize = 8000;
/// How long caches take it as fresh.
const FRESHNESS_MS: u64 = 10_000;

/// `FOLDER=NAME`.
fn watched(text: &str) -> Result<Watched, String> {
    let (folder, name) =
        text.rsplit_once("=/").ok_or("write FOLDER=NAME, such as photos=/a/photos")?;
    let name: Name = format!("/{name}").parse().map_err(|e| format!("{e}"))?;
    let folder = PathBuf::from(folder);
    if name.is_empty() {
        return Err("the name of a folder has a component at least".into());
    }
    if !folder.is_dir() {
        return Err(format!("{} is no folder", folder.display()));
    }
    Ok(Watched { folder, name })
}

/// One line of the output.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
enum Line {
    Ready { name: String, packets: u64, octets: u64, applied: u64, bulk: Option<String> },
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let stop = stop::on_signal()?;
    let admission = admission(&args)?;
    let bounds = Bounds {
        octets_max: args.octets_max,
        packets_max: args.packets_max.unwrap_or(u64::MAX),
        owner_octets_max: args.owner_octets_max,
        ..Bounds::default()
    };
    let folder = &args.place.store;
    let store = Arc::new(opened::store(folder, bounds)?);
    let stats = store.stats()?;
    let client = session::open_forever(cx)?;
    let is_by_key = !args.allow_key.is_empty() || args.schema.is_some();
    let rule = BulkRule {
        prefixes: args.serve.clone(),
        admission: is_by_key.then(|| Arc::clone(&admission)),
    };
    let bulk = args.bulk.map(|listen| Bulk::open(listen, &store, rule)).transpose();
    let bulk = bulk.map_err(|e| {
        Failure::new(Exit::Usage, "cannot listen for bulk insertion")
            .why(e)
            .next("use a loopback address, or admit keys with --allow-key")
    })?;
    let serve = args.serve.iter().chain(args.watch.iter().map(|watched| &watched.name));
    let options = RepoOptions {
        name: args.name.clone(),
        serve: serve.cloned().collect(),
        admission,
        signer: Arc::new(session::signer(args.key.as_ref())?),
        node: session::forever(cx),
    };
    let mut repo = Repo::open(client, Arc::clone(&store), options).map_err(failure)?;
    match onym_repo::door::listen(&folder.join("repo.sock"), &store, repo.roots()) {
        Err(error) if stats.read_only && error.kind() == ErrorKind::ReadOnlyFilesystem => {
            let folder = folder.display();
            crate::output::tell(format_args!(
                "onym: {folder}: the disk is read-only: what is there is served, nothing is taken"
            ));
        }
        listens => listens.context("cannot open the local socket")?,
    }
    for watched in args.watch {
        let folder = watched.folder.display().to_string();
        let every = Duration::from_millis(args.watch_every);
        let signer = session::signer(args.key.as_ref())?;
        let options = AddOptions { segment_size: SEGMENT, freshness_ms: FRESHNESS_MS, signer };
        watch::start(watched, options, &store, every)
            .with_context(|| format!("cannot watch {folder}"))?;
    }
    let ready = Line::Ready {
        name: args.name.to_string(),
        packets: stats.total.packets,
        octets: stats.total.octets,
        applied: store.recovery().records,
        bulk: bulk.as_ref().map(|bulk| bulk.address().to_string()),
    };
    cx.event(&ready, text)?;
    supervised::tell_ready();
    let mut alive = Alive::new();
    let mut ends = || {
        alive.beat();
        stop.is_set()
    };
    let ended = repo.run(&mut ends).map_err(failure);
    supervised::tell_stop();
    ended
}

fn text(line: &Line) -> String {
    let Line::Ready { name, packets, octets, bulk, .. } = line;
    let bulk = bulk.as_ref().map_or(String::new(), |at| format!(", bulk insertion at {at}"));
    let packets = human::count(*packets, "packet");
    format!("{name}\nready: {packets}, {}{bulk}\n", human::bytes(*octets))
}

fn failure(error: repo::Error) -> anyhow::Error {
    match error {
        repo::Error::Client(error) => session::failure(error),
        error => error.into(),
    }
}

fn admission(args: &Args) -> anyhow::Result<Arc<dyn Admission>> {
    if args.allow_everybody {
        return Ok(Arc::new(Everybody));
    }
    if let Some(schema) = &args.schema {
        // Commands name objects: version and segment are none of the schema's names.
        let settings = Settings {
            section: args.section.clone(),
            objects: true,
            revoked: args.revoked.clone().unwrap_or_default(),
            ..Settings::of(&schema.display().to_string(), args.anchors.clone())
        };
        let guard = Guard::open(settings, Path::new(""), unix_now_ms()).map_err(|error| {
            Failure::new(Exit::Failed, "nobody can be admitted by --trust")
                .why(error)
                .next("`onym trust lint` checks a schema; --anchor names its trust anchors")
        })?;
        return Ok(Arc::new(Rules::new(guard.into())));
    }
    if args.allow_key.is_empty() {
        return Ok(Arc::new(Nobody));
    }
    let read = |path: &PathBuf| {
        let text = std::fs::read_to_string(path);
        let text = text.with_context(|| format!("cannot read {}", path.display()))?;
        Certificate::from_text(&text)
            .with_context(|| format!("{} holds no certificate", path.display()))
    };
    let certificates = args.allow_key.iter().map(read).collect::<anyhow::Result<Vec<_>>>()?;
    let names = if args.any_name { Names::Any } else { Names::Own };
    Ok(Arc::new(Keys::new(certificates, names)))
}
