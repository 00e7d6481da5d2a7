//! Tables as one instance hands them to another, in parts.

use super::{Changed, Entries};
use serde::Serialize;
use std::collections::BTreeMap;

/// Most entries of a part.
pub const CHUNK_MAX: usize = 1000;

/// Which part of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page {
    /// The cursor of the part before, 0 for the first part.
    pub after: u64,
    /// Entries, at least 1 and at most [`CHUNK_MAX`].
    pub limit: u64,
}

impl Default for Page {
    fn default() -> Self {
        Self { after: 0, limit: CHUNK_MAX as u64 }
    }
}

/// A part of a table.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Table {
    /// Its entries.
    pub entries: Entries,
    /// Where the next part begins.
    pub cursor: u64,
    /// Whether nothing follows.
    pub last: bool,
}

/// A part of another instance's table.
#[derive(Debug, Clone, PartialEq)]
pub struct Import {
    /// Its entries.
    pub entries: Entries,
    /// Labels of faces there, and the labels here that they stand for.
    pub faces: BTreeMap<String, String>,
}

/// What became of a part of another instance's table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Merged {
    /// Whether an entry is new.
    pub changed: bool,
    /// Entries that were there.
    pub merged: u64,
    /// Entries that were not.
    pub new: u64,
    /// Entries that cannot be here.
    pub refused: u64,
}

impl Merged {
    pub(crate) fn add_new(&mut self) {
        self.changed = true;
        self.new += 1;
    }

    pub(crate) fn add_known(&mut self) {
        self.merged += 1;
    }
}

impl From<Changed> for Merged {
    fn from(changed: Changed) -> Self {
        let Changed { changed, added, unchanged, .. } = changed;
        Self { changed, merged: unchanged, new: added, refused: 0 }
    }
}
