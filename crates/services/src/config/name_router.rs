//! Configuration of a name router, and of a merged forwarder, which routes by name as well.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How registrations are judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum RegistrationPolicy {
    /// Signed by a known key that is bound to the prefix.
    #[default]
    Keys,
    /// Any that is intact.
    Open,
    /// None.
    Off,
}

/// Which routes an Interest takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Matching {
    /// All on the path of its name, as in the paper.
    AllPrefixes,
    /// Those of the longest prefix.
    Longest,
}

/// Configuration of a name router.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameRouter {
    /// Which routes an Interest takes.
    #[serde(rename = "match")]
    pub matching: Matching,
    /// Whether an Interest without a route is answered by Nack NoRoute; one of local scope always is.
    pub nack: bool,
    /// Whether Data counts only from a face with a route that is a prefix of its name.
    pub check_prefix: bool,
    /// How registrations are judged.
    pub registration: RegistrationPolicy,
    /// Routes; one more is refused.
    pub routes_max: usize,
    /// Label of the face of a strategy forwarder, to which Interests are handed on with their next
    /// hops.
    pub strategy_forwarder: Option<String>,
    /// Prefixes of the regions that this router is in.
    pub regions: Vec<String>,
}

impl Default for NameRouter {
    fn default() -> Self {
        Self {
            matching: Matching::AllPrefixes,
            nack: false,
            check_prefix: true,
            registration: RegistrationPolicy::Keys,
            routes_max: 65_536,
            strategy_forwarder: None,
            regions: Vec::new(),
        }
    }
}

/// Configuration of a merged forwarder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Forwarder {
    /// Whether Data counts only from a face with a route that is a prefix of its name.
    pub check_prefix: bool,
    /// How registrations are judged.
    pub registration: RegistrationPolicy,
    /// Routes; one more is refused.
    pub routes_max: usize,
    /// Packets of the content store.
    pub cs_capacity: usize,
    /// Strategies of a node, by prefix.
    pub strategies: BTreeMap<String, String>,
}

impl Default for Forwarder {
    fn default() -> Self {
        Self {
            check_prefix: true,
            registration: RegistrationPolicy::Keys,
            routes_max: 65_536,
            cs_capacity: 65_536,
            strategies: BTreeMap::new(),
        }
    }
}
