//! Rules of a filter as the control interface writes them; [`Rule`] is the rule itself.

use crate::rule::{Match, Rule};
use serde::{Deserialize, Serialize};

/// Which rule: those that match the same are one.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleId {
    /// A name, a prefix or a regular expression.
    pub prefix: String,
    /// Which of them.
    #[serde(default, rename = "match")]
    pub how: Match,
}

/// A rule with what it did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct RuleInfo {
    /// The rule.
    #[serde(flatten)]
    pub rule: Rule,
    /// Packets that it decided.
    pub hits: u64,
    /// Milliseconds until it ends by itself.
    pub left_ms: Option<u64>,
}
