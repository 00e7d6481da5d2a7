//! A rule of a name filter as it is written.

use crate::config::Action;
use serde::{Deserialize, Serialize};

/// Which packets a rule is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Applies {
    /// Interests.
    Interest,
    /// Data.
    Data,
    /// Both.
    #[default]
    Both,
}

impl Applies {
    pub(crate) fn covers(self, kind: Self) -> bool {
        self == Self::Both || self == kind
    }
}

/// How the text of a rule is compared with a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Match {
    /// It is the name.
    Exact,
    /// It is a prefix of the name.
    #[default]
    Prefix,
    /// It is a regular expression for the URI of the name.
    Regex,
}

fn operator() -> String {
    "operator".into()
}

fn drop_it() -> Action {
    Action::Drop
}

/// A rule as it is written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// A name, a prefix or a regular expression.
    pub prefix: String,
    /// Which of them.
    #[serde(default, rename = "match")]
    pub how: Match,
    /// What becomes of packets.
    #[serde(default = "drop_it")]
    pub action: Action,
    /// Of which packets.
    #[serde(default)]
    pub applies: Applies,
    /// How long it lasts, in milliseconds; without end where it says nothing.
    #[serde(default)]
    pub lifetime_ms: Option<u64>,
    /// Who made it.
    #[serde(default = "operator")]
    pub origin: String,
}
