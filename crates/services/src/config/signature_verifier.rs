//! Configuration of a signature verifier.

use serde::{Deserialize, Serialize};

/// Which Data is verified.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// All.
    Full,
    /// Each with a probability that follows the queue.
    Statistical,
}

/// The name filter that gets rules about failures.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Filter {
    /// Where its control interface is.
    pub url: String,
    /// Bearer token for it.
    #[serde(default)]
    pub token: Option<String>,
    /// Names that fail under a prefix before the prefix itself is filtered.
    #[serde(default = "after")]
    pub after: usize,
    /// How long a rule lasts, in milliseconds.
    #[serde(default = "lifetime_ms")]
    pub lifetime_ms: u64,
    /// Most rules.
    #[serde(default = "rules_max")]
    pub rules_max: usize,
}

fn after() -> usize {
    3
}

fn lifetime_ms() -> u64 {
    60_000
}

fn rules_max() -> usize {
    1000
}

/// Configuration of a signature verifier.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SignatureVerifier {
    /// Whether Data with a wrong signature is dropped.
    pub drop: bool,
    /// Whether Data of unknown keys is dropped.
    pub no_key_drop: bool,
    /// Whether Data with a digest only, or without a signature, is dropped.
    pub unsigned_drop: bool,
    /// Whether the key must be bound to a prefix of the name.
    pub bind: bool,
    /// Which Data is verified.
    pub mode: Mode,
    /// Lower end of the probability in mode `statistical`, from 0 to 1.
    pub sample_min: f64,
    /// Data that waits for a thread, at least 1; beyond, nothing more is read.
    pub queue_max: usize,
    /// Whether certificates that key locators name are fetched.
    pub fetch_keys: bool,
    /// The name filter that gets rules about failures.
    pub filter: Option<Filter>,
}

impl Default for SignatureVerifier {
    fn default() -> Self {
        Self {
            drop: true,
            no_key_drop: true,
            unsigned_drop: true,
            bind: false,
            mode: Mode::Full,
            sample_min: 0.05,
            queue_max: 4096,
            fetch_keys: false,
            filter: None,
        }
    }
}
