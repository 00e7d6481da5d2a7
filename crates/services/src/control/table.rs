//! Tables as one instance hands them to another, in parts.

use super::{Changed, KeySpec, RouteOrigin};
use crate::kind::Kind;
use crate::rule::Rule;
use serde::{Deserialize, Serialize};
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

/// Entries of the table of one kind.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Entries {
    /// Of a backward router.
    Pending(Vec<PendingEntry>),
    /// Of a content store.
    Cached(Vec<CachedEntry>),
    /// Of a name router.
    Routes(Vec<RouteEntry>),
    /// Of a signature verifier.
    Keys(Vec<KeySpec>),
    /// Of a name filter.
    Rules(Vec<Rule>),
}

impl Entries {
    /// The kind that has such a table.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Pending(_) => Kind::BackwardRouter,
            Self::Cached(_) => Kind::ContentStore,
            Self::Routes(_) => Kind::NameRouter,
            Self::Keys(_) => Kind::SignatureVerifier,
            Self::Rules(_) => Kind::NameFilter,
        }
    }
}

/// A pending Interest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PendingEntry {
    /// The packet, in base64.
    pub interest: String,
    /// How long the last downstream still waits.
    #[serde(default)]
    pub remaining_ms: u64,
    /// Who waits.
    pub downstreams: Vec<Downstream>,
}

/// Who waits for an answer.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Downstream {
    /// Label of the face.
    pub face: String,
    /// PIT token, in hexadecimal.
    #[serde(default)]
    pub token: String,
    /// Nonce of its Interest.
    pub nonce: u32,
    /// How long it still waits.
    pub remaining_ms: u64,
    /// Who stands behind the face.
    #[serde(default)]
    pub origin: Option<u64>,
}

/// A cached packet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachedEntry {
    /// The packet, in base64.
    pub data: String,
    /// What is left of its freshness.
    pub fresh_ms: u64,
}

/// A route.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RouteEntry {
    /// The prefix.
    pub prefix: String,
    /// Label of the face.
    pub face: String,
    /// Who is meant behind the face.
    #[serde(default)]
    pub via: Option<String>,
    /// Its cost.
    #[serde(default)]
    pub cost: u64,
    /// Who made it.
    #[serde(default)]
    pub origin: RouteOrigin,
    /// The key that signed its registration.
    pub key: Option<String>,
    /// Milliseconds until it ends by itself.
    pub expires_ms: Option<u64>,
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
