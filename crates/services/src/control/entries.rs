//! Entries of tables.

use super::{KeySpec, RouteOrigin};
use crate::kind::Kind;
use crate::rule::Rule;
use serde::{Deserialize, Serialize};

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
