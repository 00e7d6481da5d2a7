//! The kinds of services.

use crate::element::Element;
use onym_tables::HashKey;
use std::str::FromStr;

/// A kind of service.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
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

    pub(crate) fn element(self, key: &HashKey, seed: u64) -> Box<dyn Element> {
        match self {
            Self::NameRouter => Box::new(crate::name_router::NameRouter::new()),
            Self::BackwardRouter => {
                Box::new(crate::backward_router::BackwardRouter::new(key, seed))
            }
            Self::PacketDispatcher => Box::new(crate::dispatcher::PacketDispatcher::new()),
            Self::ContentStore => Box::new(crate::content_store::ContentCache::new(key)),
            Self::StrategyForwarder => {
                Box::new(crate::strategy_forwarder::StrategyForwarder::new(key, seed))
            }
            Self::SignatureVerifier => Box::new(crate::verifier::SignatureVerifier::new()),
            Self::NameFilter => Box::new(crate::name_filter::NameFilter::new()),
            Self::Forwarder => Box::new(crate::forwarder::MergedForwarder::new(key, seed)),
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
