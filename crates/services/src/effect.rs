//! What an element cannot do without I/O.

use crate::ports::FarEnd;
use crate::rule::Rule;
use onym_tables::FaceId;

/// What an element asks its shell to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Make a face of the producer side with this label.
    Connect {
        /// Its label.
        label: String,
        /// The far end.
        uri: String,
        /// Who is there.
        far_end: FarEnd,
    },
    /// Close a face.
    Close(FaceId),
    /// Hand rules to a name filter.
    AddRules(RulesForFilter),
}

/// Rules that a name filter should have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RulesForFilter {
    /// Where the control interface of the filter is, without path.
    pub url: String,
    /// Bearer token for it.
    pub token: Option<String>,
    /// The rules.
    pub rules: Vec<Rule>,
}
