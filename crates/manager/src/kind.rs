//! The kinds of functions, and what the manager knows of each.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What a service does (`spec/services.md`; the short forms are those of the paper).
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Remembers Interests, routes Data back (PIT).
    BackwardRouter,
    /// Keeps Data.
    ContentStore,
    /// Name router, backward router and dispatcher in one process.
    Forwarder,
    /// Drops by name.
    NameFilter,
    /// Routes Interests by name and accepts registrations (FIB).
    NameRouter,
    /// Splits the traffic of one client face onto two paths; at the edge.
    PacketDispatcher,
    /// Checks the signatures of Data.
    SignatureVerifier,
    /// Chooses among egress faces.
    StrategyForwarder,
}

/// How many neighbours one side of a function can tell apart (paper, section 3.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cardinality {
    /// One: with several neighbours every packet goes to all of them.
    One,
    /// Any number.
    Many,
}

/// All kinds with their short forms.
pub const KINDS: [(Kind, &str); 8] = [
    (Kind::BackwardRouter, "BR"),
    (Kind::ContentStore, "CS"),
    (Kind::Forwarder, "FW"),
    (Kind::NameFilter, "NF"),
    (Kind::NameRouter, "NR"),
    (Kind::PacketDispatcher, "PD"),
    (Kind::SignatureVerifier, "SV"),
    (Kind::StrategyForwarder, "SF"),
];

impl Kind {
    /// The word of descriptions, commands and metrics.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::BackwardRouter => "backward-router",
            Self::ContentStore => "content-store",
            Self::Forwarder => "forwarder",
            Self::NameFilter => "name-filter",
            Self::NameRouter => "name-router",
            Self::PacketDispatcher => "packet-dispatcher",
            Self::SignatureVerifier => "signature-verifier",
            Self::StrategyForwarder => "strategy-forwarder",
        }
    }

    /// The two letters of the paper.
    #[must_use]
    pub fn short(self) -> &'static str {
        KINDS.iter().find(|(k, _)| *k == self).map_or("", |(_, s)| s)
    }

    /// Finds a kind by its word or its two letters, in any case.
    #[must_use]
    pub fn find(text: &str) -> Option<Self> {
        let by = |(kind, short): &&(Self, &str)| {
            kind.word().eq_ignore_ascii_case(text) || short.eq_ignore_ascii_case(text)
        };
        KINDS.iter().find(by).map(|(kind, _)| *kind)
    }

    /// Whether a face of it takes only Interests or only Data (paper, Table 1).
    #[must_use]
    pub fn is_oriented(self) -> bool {
        matches!(self, Self::NameRouter | Self::BackwardRouter)
    }

    /// Whether an Interest cannot come round through it twice.
    #[must_use]
    pub fn breaks_loops(self) -> bool {
        matches!(self, Self::BackwardRouter | Self::Forwarder)
    }

    /// How many sources it can tell apart. The producer side of a name router tells all apart.
    #[must_use]
    pub fn ingress(self) -> Cardinality {
        match self {
            Self::BackwardRouter | Self::PacketDispatcher | Self::Forwarder => Cardinality::Many,
            _ => Cardinality::One,
        }
    }

    /// How many targets it can tell apart.
    #[must_use]
    pub fn egress(self) -> Cardinality {
        match self {
            Self::NameRouter
            | Self::PacketDispatcher
            | Self::StrategyForwarder
            | Self::Forwarder => Cardinality::Many,
            _ => Cardinality::One,
        }
    }

    /// The names of its ingresses, the usual one first: where neighbours and clients connect.
    #[must_use]
    pub fn ingresses(self) -> &'static [&'static str] {
        match self {
            Self::NameRouter => &["consumer", "producer"],
            Self::StrategyForwarder => &["in", "producer"],
            Self::PacketDispatcher => &["clients"],
            _ => &["in"],
        }
    }

    /// Whether producers are linked to it by `=>`, and their Interests come out there.
    #[must_use]
    pub fn has_producer_side(self) -> bool {
        matches!(self, Self::NameRouter | Self::Forwarder | Self::StrategyForwarder)
    }

    /// Whether it has a table of routes that the manager writes.
    #[must_use]
    pub fn has_routes(self) -> bool {
        matches!(self, Self::NameRouter | Self::Forwarder)
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kind_is_found_by_its_word_and_by_its_letters() {
        for (kind, short) in KINDS {
            assert_eq!(Kind::find(kind.word()), Some(kind));
            assert_eq!(Kind::find(&short.to_lowercase()), Some(kind));
            assert_eq!(kind.short(), short);
        }
        assert_eq!(Kind::find("switch"), None);
    }
}
