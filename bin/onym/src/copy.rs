//! Files of the network on their way to this machine: whole, or not under their names; what was
//! interrupted goes on.

mod part;
mod tree;

pub(crate) use tree::{Delete, Tree};

use crate::exit::{Exit, Failure};
use crate::human;
use crate::remote::Remote;
use crate::session;
use anyhow::Context as _;
use onym_client::blocking::Watch;
use onym_client::{Error, FetchError};
use onym_repo::file::FileMetadata;
use onym_wire::Name;
use part::Part;
use serde::Serialize;
use std::path::Path;

/// What was done.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Tally {
    pub(crate) files: u64,
    pub(crate) bytes: u64,
    /// Octets that had come before an interruption.
    pub(crate) resumed: u64,
    /// Files that were there already.
    pub(crate) same: u64,
    pub(crate) removed: u64,
    /// Names that cannot be those of files here.
    pub(crate) skipped: u64,
}

impl Tally {
    pub(crate) fn text(&self) -> String {
        let mut text =
            format!("{} fetched, {}", human::count(self.files, "file"), human::bytes(self.bytes));
        let others = [
            (self.resumed, "of them before the interruption"),
            (self.same, "the same already"),
            (self.removed, "removed"),
            (self.skipped, "skipped"),
        ];
        for (at, (count, what)) in others.into_iter().enumerate() {
            if count > 0 {
                let count = if at == 0 { human::bytes(count) } else { count.to_string() };
                text += &format!(", {count} {what}");
            }
        }
        text
    }
}

/// Versions of a file that are tried while it changes.
const VERSIONS_MAX: usize = 3;

/// Fetches the file `name`, which `metadata` describes, as `to`.
pub(crate) fn file(
    remote: &mut Remote,
    name: &Name,
    metadata: FileMetadata,
    to: &Path,
    tally: &mut Tally,
) -> anyhow::Result<()> {
    let mut metadata = metadata;
    for tries in 1.. {
        let error = match version(remote, &metadata, to, tally)? {
            Ok(()) => return Ok(()),
            Err(error) => error,
        };
        // It may have changed: then its old version is refused.
        let gone = matches!(
            &error,
            Error::Fetch(FetchError::Refused { .. } | FetchError::ProducerNack { .. })
        );
        let newer = if gone && tries < VERSIONS_MAX { remote.metadata(name)? } else { None };
        match newer.filter(|newer| newer.name != metadata.name) {
            Some(newer) => metadata = newer,
            None => return Err(failure(error)),
        }
    }
    Ok(())
}

/// The same for one version; the inner error is the network's.
fn version(
    remote: &mut Remote,
    metadata: &FileMetadata,
    to: &Path,
    tally: &mut Tally,
) -> anyhow::Result<Result<(), Error>> {
    let cannot = || format!("cannot write {}", to.display());
    let mut part = Part::open(to, metadata).with_context(cannot)?;
    let had = part.octets();
    if let Some(first) = part.next_segment() {
        let mut notice = |watch: Watch<'_>| {
            if let Watch::Notice(notice) = watch {
                crate::output::tell(format_args!("onym: {}", session::notice_text(&notice)));
            }
        };
        if let Err(error) = remote.fetch(metadata, first, part.sink(), &mut notice) {
            part.keep().with_context(cannot)?;
            return Ok(Err(error));
        }
    }
    let octets = part.finish().with_context(cannot)?;
    tally.files += 1;
    tally.bytes += octets;
    tally.resumed += had;
    Ok(Ok(()))
}

/// As [`session::failure`], for what goes on where it ended.
fn failure(error: Error) -> anyhow::Error {
    match error {
        Error::Stopped => Failure::new(Exit::Stopped, "stopped")
            .next("the same command goes on where this one ended")
            .into(),
        error => session::failure(error),
    }
}
