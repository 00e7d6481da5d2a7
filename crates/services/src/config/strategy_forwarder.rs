//! Configuration of a strategy forwarder.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// How a face is chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
pub enum Strategy {
    /// All of them.
    #[default]
    Multicast,
    /// One after the other.
    RoundRobin,
    /// At random, by the weights of the faces.
    Weighted,
    /// By rendezvous hashing of the name.
    HashName,
    /// The first by rank that answers.
    Failover,
    /// The one with least to answer.
    LeastOutstanding,
    /// The one that answers soonest.
    BestRoute,
    /// At random.
    Random,
}

impl Strategy {
    /// Whether it must know what is answered.
    pub(crate) fn is_watched(self) -> bool {
        matches!(self, Self::Failover | Self::LeastOutstanding | Self::BestRoute)
    }
}

/// Configuration of a strategy forwarder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StrategyForwarder {
    /// How a face is chosen where no prefix says otherwise.
    pub strategy: Strategy,
    /// Strategies by prefix.
    pub strategies: BTreeMap<String, Strategy>,
    /// Time within which the same name with the same Nonce is dropped, in milliseconds; 0: it is not.
    pub duplicate_filter_ms: u64,
    /// Time for which `failover` leaves out a face that failed, in milliseconds.
    pub hold_down_ms: u64,
    /// Interests in a row without an answer after which a face has failed.
    pub fail_after: u32,
    /// Time between two Interests that try a face again, in milliseconds.
    pub probe_ms: u64,
    /// Strategies of Interests that come with next hops, by prefix: those of a node.
    pub route_strategies: BTreeMap<String, String>,
    /// Prefixes of the regions that this node is in.
    pub regions: Vec<String>,
}

impl Default for StrategyForwarder {
    fn default() -> Self {
        Self {
            strategy: Strategy::Multicast,
            strategies: BTreeMap::new(),
            duplicate_filter_ms: 0,
            hold_down_ms: 5000,
            fail_after: 3,
            probe_ms: 1000,
            route_strategies: BTreeMap::new(),
            regions: Vec::new(),
        }
    }
}
