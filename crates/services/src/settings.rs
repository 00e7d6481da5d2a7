//! Configuration that all kinds have in common.

use serde::{Deserialize, Serialize};

/// How what answers finds one of several faces.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Default)]
#[serde(rename_all = "lowercase")]
pub enum Return {
    /// By three octets in front of the PIT token.
    #[default]
    Token,
    /// To all of them, as in the paper.
    Multicast,
    /// To the one that rendezvous hashing of the name chooses.
    Hash,
}

/// Settings of every kind.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// How answers find back.
    #[serde(rename = "return")]
    pub return_by: Return,
    /// Components of a name that are hashed, 0 for all.
    pub hash_components: usize,
    /// Octets in the send queue of a face.
    pub queue_bytes_max: usize,
    /// Period of statistics and reports, in milliseconds.
    pub report_ms: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            return_by: Return::Token,
            hash_components: 0,
            queue_bytes_max: 8 << 20,
            report_ms: 2000,
        }
    }
}
