//! The kinds of services.

use serde::Serialize;
use std::str::FromStr;

/// A kind of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Routes Interests by name and takes registrations (the FIB).
    NameRouter,
    /// Remembers Interests and takes Data back (the PIT).
    BackwardRouter,
    /// Splits the packets of each client onto two paths.
    PacketDispatcher,
    /// Caches.
    ContentStore,
    /// Chooses among faces.
    StrategyForwarder,
    /// Verifies signatures of Data.
    SignatureVerifier,
    /// Drops by name.
    NameFilter,
    /// Router, pending table, cache and dispatcher in one.
    Forwarder,
}

impl Kind {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NameRouter,
        Self::BackwardRouter,
        Self::PacketDispatcher,
        Self::ContentStore,
        Self::StrategyForwarder,
        Self::SignatureVerifier,
        Self::NameFilter,
        Self::Forwarder,
    ];

    /// Its word in commands and JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::NameRouter => "name-router",
            Self::BackwardRouter => "backward-router",
            Self::PacketDispatcher => "packet-dispatcher",
            Self::ContentStore => "content-store",
            Self::StrategyForwarder => "strategy-forwarder",
            Self::SignatureVerifier => "signature-verifier",
            Self::NameFilter => "name-filter",
            Self::Forwarder => "forwarder",
        }
    }

    /// Its short form in descriptions.
    #[must_use]
    pub const fn short(self) -> &'static str {
        match self {
            Self::NameRouter => "NR",
            Self::BackwardRouter => "BR",
            Self::PacketDispatcher => "PD",
            Self::ContentStore => "CS",
            Self::StrategyForwarder => "SF",
            Self::SignatureVerifier => "SV",
            Self::NameFilter => "NF",
            Self::Forwarder => "FW",
        }
    }
}

/// No kind has that word.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown kind {0:?}; there are name-router, backward-router, packet-dispatcher, content-store, strategy-forwarder, signature-verifier, name-filter, forwarder"
)]
pub struct UnknownKind(String);

impl FromStr for Kind {
    type Err = UnknownKind;

    fn from_str(word: &str) -> Result<Self, UnknownKind> {
        let fits = |k: &Self| k.word() == word || k.short() == word;
        Self::ALL.into_iter().find(fits).ok_or_else(|| UnknownKind(word.to_owned()))
    }
}
