//! Configuration of a name filter.

use serde::{Deserialize, Serialize};

/// What becomes of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Action {
    /// It passes.
    Accept,
    /// It is dropped.
    Drop,
    /// An Interest is answered by a Nack; other packets are dropped.
    Nack,
}

/// Configuration of a name filter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct NameFilter {
    /// Whether rules hold for Interests.
    pub drop_interest: bool,
    /// Whether rules hold for Data.
    pub drop_data: bool,
    /// Rules; one more is refused.
    pub rules_max: usize,
    /// What becomes of packets that no rule is about.
    pub default: Action,
}

impl Default for NameFilter {
    fn default() -> Self {
        Self { drop_interest: true, drop_data: true, rules_max: 4096, default: Action::Accept }
    }
}
