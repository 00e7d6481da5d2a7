//! `onym restore`: what `onym backup` took, back in its places.
//!
//! Everything is unpacked beside its place first, in folders that only this user reaches, and takes
//! its place when the whole archive was read and every digest was right.

use super::backup::places::{Place, Places};
use super::backup::tape::{Fault, Reader};
use super::backup::{FORMAT, LABEL, Label};
use crate::exit::{Exit, Failure};
use crate::human;
use crate::output::Context;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{self, BufReader};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, lchown};
use std::path::{Path, PathBuf};

/// Longest label, in octets.
const LABEL_MAX: u64 = 64 << 10;

/// Put the parts of a backup back.
///
/// Each part goes to the usual place of this machine and user, or to the one that is named, never to
/// one that the file names. A part whose place is taken is refused; with --replace what was there is
/// kept beside it as `….before-restore`. Stop the programs first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  onym restore onym.backup --list
  onym restore onym.backup
  onym restore onym.backup --only keys --keys ./keys
  onym restore all.backup --replace --state repo=/var/lib/onym-repo")]
pub(crate) struct Args {
    /// File that `onym backup` wrote.
    file: PathBuf,
    #[command(flatten)]
    places: Places,
    /// Restore this part only: config, keys, routing, or state/NAME; may be repeated.
    #[arg(long, value_name = "PART")]
    only: Vec<String>,
    /// Take the place of what is there; it is kept as `….before-restore`.
    #[arg(long)]
    replace: bool,
    /// Read all of it and show what it has; nothing is written.
    #[arg(long)]
    list: bool,
    /// Most octets that are unpacked: a number, or one with k, M, G or T.
    #[arg(long, value_name = "SIZE", default_value = "16G", value_parser = human::parse_size)]
    size_max: u64,
}

#[derive(Debug, Serialize)]
struct Done {
    version: String,
    made: String,
    /// Files by place; with --list by part.
    restored: BTreeMap<String, usize>,
    /// Parts without a place here, or not asked for.
    left: BTreeMap<String, usize>,
}

/// A place with what is on its way there.
struct Bound {
    place: Place,
    /// Beside the place, and on its file system.
    staging: PathBuf,
    /// It was made by this run.
    is_made: bool,
    files: usize,
}

impl Drop for Bound {
    fn drop(&mut self) {
        if !self.is_made {
            return;
        }
        // Nothing is there any more once it took its place.
        let _ = if self.place.is_file {
            fs::remove_file(&self.staging)
        } else {
            fs::remove_dir_all(&self.staging)
        };
    }
}

pub(crate) fn run(args: Args, cx: &Context) -> anyhow::Result<()> {
    let what = || format!("{} was not restored", args.file.display());
    let file = File::open(&args.file).map_err(|e| Failure::new(Exit::Failed, what()).why(e))?;
    let mut reader = Reader::new(BufReader::new(file), args.size_max);
    let refused = |fault: Fault| {
        Failure::new(Exit::Refused, what())
            .why(fault)
            .next("nothing was changed; take another copy of the backup")
    };
    let label = label(&mut reader).map_err(refused)?;
    if label.format > FORMAT {
        return Err(Failure::new(Exit::Refused, what())
            .why(format!(
                "it is of form {} and was made by onym {}; this is onym {} and reads form {FORMAT}",
                label.format,
                label.version,
                env!("CARGO_PKG_VERSION")
            ))
            .next("restore it with that version or a later one")
            .into());
    }
    let mut bound = if args.list { Vec::new() } else { bound(&args)? };
    let mut left = BTreeMap::new();
    while let Some(entry) = reader.next().map_err(refused)? {
        let to = bound.iter_mut().find_map(|b| {
            let below = b.place.takes(&entry.path)?.to_owned();
            Some((b, below))
        });
        let Some((bound, below)) = to else {
            *left.entry(part_of(&entry.path)).or_insert(0) += 1;
            reader.copy(&entry, &mut io::sink()).map_err(refused)?;
            continue;
        };
        free(&bound.place, args.replace)?;
        let mut out = create(bound, &below, entry.mode)?;
        reader.copy(&entry, &mut out).map_err(refused)?;
        out.sync_all()?;
        bound.files += 1;
    }
    reader.finish().map_err(refused)?;
    let restored = if args.list { std::mem::take(&mut left) } else { put_in_place(bound)? };
    let made = human::moment_ms(label.made_ms);
    cx.print(&Done { version: label.version, made, restored, left }, told)
}

fn told(done: &Done) -> String {
    let mut text = format!("made {} by onym {}\n", done.made, done.version);
    for (place, files) in &done.restored {
        text.push_str(&format!("  {place}: {}\n", human::count(*files as u64, "file")));
    }
    for (part, files) in &done.left {
        let files = human::count(*files as u64, "file");
        text.push_str(&format!("  {part}: {files}, not restored"));
        text.push_str(if part.starts_with("state/") { " (--state NAME=FOLDER)\n" } else { "\n" });
    }
    text
}

/// The first file: what the archive is.
fn label(reader: &mut Reader<BufReader<File>>) -> Result<Label, Fault> {
    let foreign = |what: &str| Fault::Foreign(what.to_owned());
    let first = reader.next()?.ok_or(Fault::CutOff)?;
    if first.path != LABEL || first.size > LABEL_MAX {
        return Err(foreign("its first file is not the label of one"));
    }
    let mut text = Vec::new();
    reader.copy(&first, &mut text)?;
    serde_json::from_slice(&text).map_err(|e| Fault::Foreign(format!("its label: {e}")))
}

/// `config`, `keys`, `routing` or `state/NAME`.
fn part_of(path: &str) -> String {
    let mut parts = path.split('/');
    match (parts.next().unwrap_or_default(), parts.next()) {
        ("state", Some(name)) => format!("state/{name}"),
        (part, _) => part.to_owned(),
    }
}

fn bound(args: &Args) -> anyhow::Result<Vec<Bound>> {
    let places = args.places.all()?.into_iter();
    let wanted = |p: &Place| args.only.is_empty() || args.only.contains(&part_of(&p.prefix));
    let bound: Vec<Bound> = places
        .filter(wanted)
        .map(|place| {
            let mut staging = place.at.clone().into_os_string();
            staging.push(format!(".restoring-{}", std::process::id()));
            Bound { place, staging: PathBuf::from(staging), is_made: false, files: 0 }
        })
        .collect();
    if bound.is_empty() {
        return Err(Failure::new(Exit::Usage, "--only names no part")
            .next("there are config, keys, routing, and state/NAME with --state NAME=FOLDER")
            .into());
    }
    Ok(bound)
}

/// Refuses a place where something is, unless that may be replaced.
fn free(place: &Place, replace: bool) -> anyhow::Result<()> {
    let is_there = match fs::symlink_metadata(&place.at) {
        Err(_) => false,
        Ok(meta) if meta.is_dir() => fs::read_dir(&place.at)?.next().is_some(),
        Ok(_) => true,
    };
    if !is_there || replace {
        return Ok(());
    }
    Err(Failure::new(Exit::Refused, format!("{} is there already", place.at.display()))
        .why("nothing is overwritten without --replace")
        .next("add --replace, which keeps it as ….before-restore, or name another place")
        .into())
}

/// A new file on its way to `below` in its place.
fn create(bound: &mut Bound, below: &str, mode: u32) -> anyhow::Result<File> {
    let at = if bound.place.is_file {
        if let Some(folder) = bound.staging.parent() {
            fs::create_dir_all(folder)?;
        }
        bound.staging.clone()
    } else {
        bound.staging.join(below)
    };
    let cannot = |e: io::Error| {
        Failure::new(Exit::Failed, format!("{} cannot be written", at.display())).why(e)
    };
    if !bound.place.is_file {
        if !bound.is_made {
            if let Some(above) = bound.staging.parent() {
                fs::create_dir_all(above).map_err(cannot)?;
            }
            // A new one: whoever made it before, as a folder or as a link, would reach what it gets.
            DirBuilder::new().mode(0o700).create(&bound.staging).map_err(cannot)?;
            bound.is_made = true;
        }
        if let Some(folder) = at.parent() {
            DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(cannot)?;
        }
    }
    // Never more than its owner may write; never set-user-ID.
    let mode = mode & 0o755 | 0o600;
    let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&at);
    let file = file.map_err(cannot)?;
    bound.is_made = true;
    Ok(file)
}

/// Everything was read and is right.
fn put_in_place(bound: Vec<Bound>) -> anyhow::Result<BTreeMap<String, usize>> {
    let mut restored = BTreeMap::new();
    for bound in bound.into_iter().filter(|b| b.files > 0) {
        let at = &bound.place.at;
        let cannot = |e: io::Error| {
            Failure::new(Exit::Failed, format!("{} cannot take its place", at.display())).why(e)
        };
        own(&bound).map_err(cannot)?;
        let is_empty = fs::read_dir(at).is_ok_and(|mut entries| entries.next().is_none());
        if is_empty {
            fs::remove_dir(at).map_err(cannot)?;
        } else if fs::symlink_metadata(at).is_ok() {
            fs::rename(at, aside(at)).map_err(cannot)?;
        }
        fs::rename(&bound.staging, at).map_err(cannot)?;
        restored.insert(at.display().to_string(), bound.files);
    }
    Ok(restored)
}

/// As root: what is restored belongs to whom its place belonged, or the folder above.
fn own(bound: &Bound) -> io::Result<()> {
    if !rustix::process::geteuid().is_root() {
        return Ok(());
    }
    let model = fs::metadata(&bound.place.at);
    let above = bound.place.at.parent().filter(|p| !p.as_os_str().is_empty());
    let model = model.or_else(|_| fs::metadata(above.unwrap_or(Path::new("."))))?;
    give(&bound.staging, model.uid(), model.gid())
}

fn give(path: &Path, uid: u32, gid: u32) -> io::Result<()> {
    lchown(path, Some(uid), Some(gid))?;
    if fs::symlink_metadata(path)?.is_dir() {
        for entry in fs::read_dir(path)? {
            give(&entry?.path(), uid, gid)?;
        }
    }
    Ok(())
}

/// A name beside `at` that is not taken.
fn aside(at: &Path) -> PathBuf {
    let name = |n: u32| {
        let mut name = at.to_owned().into_os_string();
        name.push(if n == 0 {
            ".before-restore".to_owned()
        } else {
            format!(".before-restore.{n}")
        });
        PathBuf::from(name)
    };
    (0..).map(name).find(|p| fs::symlink_metadata(p).is_err()).unwrap_or_else(|| name(0))
}
