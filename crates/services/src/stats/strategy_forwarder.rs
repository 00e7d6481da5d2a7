//! Statistics of a strategy forwarder.

use serde::Serialize;

/// A strategy forwarder.
#[derive(Debug, Clone, Serialize)]
pub struct StrategyForwarder {
    /// Its faces to producers.
    pub faces: Vec<Upstream>,
    /// How often a dead face was left.
    pub failovers: u64,
    /// Interests dropped by the duplicate filter.
    pub duplicates: u64,
}

/// A face of a strategy forwarder.
#[derive(Debug, Clone, Serialize)]
pub struct Upstream {
    /// Its label.
    pub label: String,
    /// Interests sent.
    pub interests: u64,
    /// Data received.
    pub data: u64,
    /// Interests that wait for an answer.
    pub outstanding: u64,
    /// Smoothed round-trip time.
    pub rtt_ms: Option<u64>,
    /// Whether it answers.
    pub alive: bool,
}
