//! Configuration of a content store.

use serde::{Deserialize, Serialize};

/// Which Interests a cache answers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Mode {
    /// MustBeFresh by fresh Data, others by any.
    Protocol,
    /// MustBeFresh passes by; others by fresh Data only.
    Paper,
}

/// What is evicted first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Order {
    /// What was used least recently.
    Lru,
    /// What came first, stale before fresh.
    Fifo,
}

/// Configuration of a content store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ContentStore {
    /// Packets; 0 turns the cache off.
    pub capacity: usize,
    /// Octets.
    pub bytes_max: usize,
    /// What is evicted first.
    pub policy: Order,
    /// Which Interests it answers.
    pub mode: Mode,
    /// Whether stale Data answers, in mode `protocol` and without MustBeFresh.
    pub serve_stale: bool,
    /// Whether Data without FreshnessPeriod is kept.
    pub admit_unfresh: bool,
    /// Whether Data is kept.
    pub admit: bool,
    /// Whether Interests are answered.
    pub serve: bool,
    /// Caches that share the names among them, at least 1.
    pub siblings: u32,
    /// Which of them this one is, from 0.
    pub self_index: u32,
}

impl Default for ContentStore {
    fn default() -> Self {
        Self {
            capacity: 65_536,
            bytes_max: 512 << 20,
            policy: Order::Lru,
            mode: Mode::Protocol,
            serve_stale: true,
            admit_unfresh: true,
            admit: true,
            serve: true,
            siblings: 1,
            self_index: 0,
        }
    }
}
