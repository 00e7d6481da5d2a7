//! A folder of the network with all that is below it.

use super::part::{END, modified};
use super::{Tally, file};
use crate::exit::{Exit, Failure};
use crate::plain;
use crate::remote::Remote;
use anyhow::Context as _;
use onym_repo::file::{FileMetadata, LISTED_MAX, Listed};
use onym_wire::Name;
use std::collections::HashSet;
use std::ffi::{OsStr, OsString};
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

/// Folders in folders, at most.
const DEPTH_MAX: usize = 64;
/// Files and folders in all, at most: a producer may have folders without end.
const ENTRIES_MAX: u64 = 1_000_000;

/// What becomes of files here that the folder of the network does not have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Delete {
    Never,
    Gone,
}

/// How a folder is copied.
pub(crate) struct Tree<'a> {
    pub(crate) remote: &'a mut Remote,
    /// Files with the size and time that the network says are not fetched.
    pub(crate) skip_same: bool,
    pub(crate) delete: Delete,
    /// Nothing is changed.
    pub(crate) dry: bool,
    /// Told what is done, in words, as it is done.
    pub(crate) tell: &'a mut dyn FnMut(&str, &Path),
    pub(crate) tally: Tally,
    entries: u64,
}

impl<'a> Tree<'a> {
    pub(crate) fn new(remote: &'a mut Remote, tell: &'a mut dyn FnMut(&str, &Path)) -> Self {
        Self {
            remote,
            skip_same: false,
            delete: Delete::Never,
            dry: false,
            tell,
            tally: Tally::default(),
            entries: 0,
        }
    }

    /// Copies what the folder `name` has into `to`, which is made when it is not there.
    pub(crate) fn copy(
        &mut self,
        name: &Name,
        listing: &FileMetadata,
        to: &Path,
    ) -> anyhow::Result<()> {
        self.folder(name, listing, to, 0)
    }

    fn folder(
        &mut self,
        name: &Name,
        listing: &FileMetadata,
        to: &Path,
        depth: usize,
    ) -> anyhow::Result<()> {
        if depth > DEPTH_MAX {
            return Err(refused(format!("{name} lies more than {DEPTH_MAX} folders deep")));
        }
        let listed = self.remote.listed(listing)?;
        if !self.dry {
            make_folder(to, depth).with_context(|| format!("cannot make {}", to.display()))?;
        }
        let mut kept = HashSet::new();
        for one in &listed {
            self.entries += 1;
            if self.entries > ENTRIES_MAX {
                return Err(refused(format!("there are more than {ENTRIES_MAX} files")));
            }
            if is_name(one) {
                let own = OsStr::from_bytes(&one.name);
                kept.insert(own.to_owned());
                let mut below = name.clone();
                below.append_generic(&one.name);
                self.entry(&below, one.is_folder, &to.join(own), depth)?;
            } else {
                self.tally.skipped += 1;
                let shown = String::from_utf8_lossy(&one.name);
                crate::output::tell(format_args!("onym: {name}: skipped {}", plain::line(&shown)));
            }
        }
        // A listing that is full may have left something out.
        if self.delete == Delete::Gone && listed.len() < LISTED_MAX {
            let cannot = || format!("cannot remove what has gone from {}", to.display());
            self.remove_others(to, &kept).with_context(cannot)?;
        }
        Ok(())
    }

    fn entry(
        &mut self,
        name: &Name,
        is_folder: bool,
        to: &Path,
        depth: usize,
    ) -> anyhow::Result<()> {
        let Some(metadata) = self.remote.metadata(name)? else {
            // It was listed a moment ago, and has gone since.
            self.tally.skipped += 1;
            return Ok(());
        };
        if metadata.is_folder() != is_folder {
            return Err(refused(format!("{name} is listed as what it is not")));
        }
        if is_folder {
            return self.folder(name, &metadata, to, depth + 1);
        }
        if self.skip_same && is_same(to, &metadata) {
            self.tally.same += 1;
            return Ok(());
        }
        (self.tell)("fetched", to);
        if self.dry {
            self.tally.files += 1;
            self.tally.bytes += metadata.size.unwrap_or(0);
            return Ok(());
        }
        file(self.remote, name, metadata, to, &mut self.tally)
    }

    /// Removes from `folder` what is not among `kept`. Links are removed, not what they lead to.
    fn remove_others(&mut self, folder: &Path, kept: &HashSet<OsString>) -> io::Result<()> {
        let entries = match fs::read_dir(folder) {
            // A dry run made no folder.
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
            entries => entries?,
        };
        for entry in entries {
            let entry = entry?;
            if kept.contains(&entry.file_name()) {
                continue;
            }
            (self.tell)("removed", &entry.path());
            self.tally.removed += 1;
            match (self.dry, entry.file_type()?.is_dir()) {
                (true, _) => {}
                (false, true) => fs::remove_dir_all(entry.path())?,
                (false, false) => fs::remove_file(entry.path())?,
            }
        }
        Ok(())
    }
}

fn refused(what: String) -> anyhow::Error {
    Failure::new(Exit::Refused, what).next("copy folders below it by their own names").into()
}

/// Whether a name of a listing can be that of a file here. Those of parts are ours.
fn is_name(one: &Listed) -> bool {
    !one.name.contains(&0) && !one.name.ends_with(END)
}

/// Makes a folder, or finds one; below the first one a link is none.
fn make_folder(at: &Path, depth: usize) -> io::Result<()> {
    match fs::create_dir(at) {
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
            let found = if depth == 0 { fs::metadata(at)? } else { fs::symlink_metadata(at)? };
            if found.is_dir() { Ok(()) } else { Err(io::ErrorKind::NotADirectory.into()) }
        }
        made => made,
    }
}

/// Whether `at` is what `metadata` says, by size and time.
fn is_same(at: &Path, metadata: &FileMetadata) -> bool {
    let Ok(found) = fs::symlink_metadata(at) else { return false };
    let time = metadata.mtime_ns > 0 && found.modified().is_ok_and(|t| t == modified(metadata));
    found.is_file() && metadata.size == Some(found.len()) && time
}
