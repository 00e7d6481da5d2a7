//! Validator configuration of ndn-cxx: rules, filters, checkers, anchors.

mod check;
pub mod info;
mod item;
mod pattern;
mod program;
mod read;
#[cfg(test)]
mod tests;

pub use info::{Include, no_include};
pub use pattern::{Expansion, Found, PATTERN_MAX, Pattern, PatternError, REPEAT_MAX};
pub use read::ConfError;

use crate::policy::Kind;
use onym_crypto::Certificate;
use onym_wire::Name;

/// The rules of a configuration, in its order. The first that is about a packet decides.
#[derive(Debug, Clone)]
pub struct Rules {
    pub(crate) rules: Vec<Rule>,
    /// The anchors that it names.
    pub anchors: Vec<Anchor>,
}

/// Where trust anchors come from.
#[derive(Debug, Clone)]
pub enum Anchor {
    /// A file with one certificate; a relative path starts at the configuration's folder.
    File {
        /// The path as written.
        path: String,
        /// Seconds between two looks at it; `None` is once.
        refresh_s: Option<u64>,
    },
    /// All files of a folder that are certificates.
    Dir {
        /// The path as written.
        path: String,
        /// Seconds between two looks at it; `None` is once.
        refresh_s: Option<u64>,
    },
    /// A certificate in the configuration itself.
    Certificate(Box<Certificate>),
    /// Everything passes.
    Any,
}

#[derive(Debug, Clone)]
pub(crate) struct Rule {
    pub(crate) id: String,
    pub(crate) kind: Kind,
    /// One must match; a rule without filters is about every packet of its kind.
    pub(crate) filters: Vec<Filter>,
    /// One must pass.
    pub(crate) checkers: Vec<Checker>,
}

#[derive(Debug, Clone)]
pub(crate) enum Filter {
    Name(Name, Relation),
    Regex(Pattern),
}

/// How two names stand to each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Equal,
    PrefixOf,
    StrictPrefixOf,
}

#[derive(Debug, Clone)]
pub(crate) struct Checker {
    pub(crate) signature: SignatureType,
    pub(crate) locator: Option<Locator>,
}

/// The words for signature types: those of ndn-cxx, and `ed25519`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SignatureType {
    Digest,
    Rsa,
    Ecdsa,
    Ed25519,
}

impl SignatureType {
    const fn number(self) -> u64 {
        match self {
            Self::Digest => 0,
            Self::Rsa => 1,
            Self::Ecdsa => 3,
            Self::Ed25519 => 5,
        }
    }

    const fn word(self) -> &'static str {
        match self {
            Self::Digest => "sha256",
            Self::Rsa => "rsa-sha256",
            Self::Ecdsa => "ecdsa-sha256",
            Self::Ed25519 => "ed25519",
        }
    }
}

#[derive(Debug, Clone)]
pub(crate) enum Locator {
    Name(Name, Relation),
    Regex(Pattern),
    Hyper(Box<Hyper>),
}

#[derive(Debug, Clone)]
pub(crate) struct Hyper {
    pub(crate) key: Pattern,
    pub(crate) key_expand: Expansion,
    pub(crate) relation: Relation,
    pub(crate) packet: Pattern,
    pub(crate) packet_expand: Expansion,
}

/// Any key may sign what is under its identity, with ECDSA or Ed25519.
pub const PRESET_HIERARCHY: &str = include_str!("conf/hierarchy.conf");

/// Commands of neighbours that register prefixes, by any key whose chain is hierarchical.
pub const PRESET_LOCALHOP: &str = include_str!("conf/localhop.conf");
