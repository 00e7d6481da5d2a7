//! `onym backup`: configuration, keys and state in one file. `onym restore` is its other end.

pub(super) mod places;
pub(super) mod tape;

use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use onym_crypto::edge::unix_now_ms;
use places::{Place, Places};
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use tape::Writer;

/// Name of the first file, which says what the others are.
pub(super) const LABEL: &str = "onym-backup.json";
/// The form of the archive. A later one is refused by `onym restore`.
pub(super) const FORMAT: u32 = 1;

/// Write configuration, keys and state into one file.
///
/// A tar archive that only its owner reads: it has private keys. A part that is not on this machine
/// is left out. Programs whose --state is taken must be stopped; a node may go on.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym backup onym.backup
  sudo -u onym HOME=/var/lib/onym onym backup /var/lib/onym/onym.backup
  onym backup all.backup --state repo=/var/lib/onym-repo --state manager=/var/lib/onym-manager

`onym restore FILE` puts the parts back. `tar tf FILE` lists it.")]
pub(crate) struct Args {
    /// File to write, which must not exist yet.
    file: PathBuf,
    #[command(flatten)]
    places: Places,
}

/// The first file of a backup.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Label {
    pub(super) format: u32,
    /// Version of the program that made it.
    pub(super) version: String,
    pub(super) made_ms: u64,
}

#[derive(Debug, Serialize)]
struct Made {
    file: PathBuf,
    bytes: u64,
    /// Files by part.
    parts: BTreeMap<String, usize>,
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let mut found = Vec::new();
    let mut parts = BTreeMap::new();
    for place in args.places.all()? {
        let files = files(&place)?;
        if !files.is_empty() {
            parts.insert(place.prefix.clone(), files.len());
        }
        found.extend(files);
    }
    if found.is_empty() {
        return Err(Failure::new(Exit::NotFound, "there is nothing to back up")
            .why("this user has no configuration, keys or routing folder in the usual places")
            .next("name them with --config, --keys, --routing, --state")
            .into());
    }
    let cannot = || format!("{} was not written", args.file.display());
    let out = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&args.file);
    let out = out.map_err(|e| {
        let next = match e.kind() {
            io::ErrorKind::AlreadyExists => "name a file that does not exist yet",
            _ => "name a file in a folder that is there and that you may write to",
        };
        Failure::new(Exit::Failed, cannot()).why(e).next(next)
    })?;
    let written = write(out, &found);
    if written.is_err() {
        // A half backup is worse than none.
        let _ = fs::remove_file(&args.file);
    }
    written.map_err(|e| Failure::new(Exit::Failed, cannot()).why(e))?;
    let bytes = fs::metadata(&args.file)?.len();
    cx.print(&Made { file: args.file, bytes, parts }, |made| {
        let mut text = format!("{}: {}\n", made.file.display(), human::bytes(made.bytes));
        for (part, files) in &made.parts {
            text.push_str(&format!("  {part}: {}\n", human::count(*files as u64, "file")));
        }
        text.push_str("It has private keys: keep it where nobody else reads it.");
        text
    })
}

/// A file to take, and what it is called in the archive.
struct Found {
    path: String,
    at: PathBuf,
    /// How it is opened.
    flags: OFlags,
}

fn write(out: File, found: &[Found]) -> anyhow::Result<()> {
    let now = unix_now_ms();
    let label =
        Label { format: FORMAT, version: env!("CARGO_PKG_VERSION").to_owned(), made_ms: now };
    let label = serde_json::to_vec_pretty(&label)?;
    let mut tape = Writer::new(BufWriter::new(out), now / 1000);
    tape.add(LABEL, 0o600, label.len() as u64, &label[..])?;
    for file in found {
        let cannot = |e| anyhow::anyhow!("{} cannot be read: {e}", file.at.display());
        // What was a file a moment ago may be a link or a pipe now, where others write, too.
        let flags = (file.flags | OFlags::NONBLOCK).bits().cast_signed();
        let open = File::options().read(true).custom_flags(flags).open(&file.at);
        let open = open.map_err(cannot)?;
        let meta = open.metadata()?;
        if !meta.is_file() {
            return Err(cannot(io::ErrorKind::InvalidInput.into()));
        }
        tape.add(&file.path, meta.mode(), meta.len(), open)?;
    }
    let out = tape.finish()?.into_inner().map_err(|e| anyhow::anyhow!("{}", e.error()))?;
    Ok(out.sync_all()?)
}

/// The regular files of a place, in the order of their names. Sockets and locks come by themselves
/// when programs start; a link is refused, as what it leads to would be missing afterwards.
fn files(place: &Place) -> anyhow::Result<Vec<Found>> {
    let Ok(meta) = fs::metadata(&place.at) else { return Ok(Vec::new()) };
    if place.is_file {
        let (path, at) = (place.prefix.clone(), place.at.clone());
        return Ok(vec![Found { path, at, flags: OFlags::empty() }]);
    }
    let mut found = Vec::new();
    if meta.is_dir() {
        walk(&place.at, &place.prefix, &mut found)?;
    }
    Ok(found)
}

fn walk(folder: &Path, prefix: &str, found: &mut Vec<Found>) -> anyhow::Result<()> {
    let cannot = |e: io::Error| {
        Failure::new(Exit::Failed, format!("{} cannot be read", folder.display())).why(e)
    };
    let entries = fs::read_dir(folder).map_err(cannot)?.collect::<Result<Vec<_>, _>>();
    let mut entries = entries.map_err(cannot)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let at = entry.path();
        let wrong = |why: &str| Failure::new(Exit::Failed, at.display().to_string()).why(why);
        let name = entry.file_name();
        let name = name.to_str().ok_or_else(|| wrong("its name is not UTF-8"))?;
        let path = format!("{prefix}/{name}");
        let kind = entry.file_type()?;
        if kind.is_symlink() {
            return Err(wrong("a link is not backed up")
                .next("put the file itself here, or move the link away")
                .into());
        }
        if kind.is_dir() {
            walk(&at, &path, found)?;
        } else if kind.is_file() && name != "lock" {
            if name.ends_with(".redb") {
                idle(&at)?;
            }
            found.push(Found { path, at, flags: OFlags::NOFOLLOW });
        }
    }
    Ok(())
}

/// Refuses a database that a running program has open: its file is whole only when that ended.
fn idle(database: &Path) -> anyhow::Result<()> {
    let file = File::open(database)?;
    match file.try_lock_shared() {
        Ok(()) => Ok(()),
        Err(error) => Err(Failure::new(Exit::Failed, format!("{} is in use", database.display()))
            .why(error)
            .next("stop the program that has it open, and make the backup then")
            .into()),
    }
}
