//! Statistics of a content store.

use serde::Serialize;

/// A content store.
#[derive(Debug, Clone, Serialize)]
pub struct ContentStore {
    /// Lookups that found Data.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Data cached.
    pub entries: u64,
    /// Their octets.
    pub bytes: u64,
    /// Data that were cached.
    pub inserted: u64,
    /// Data evicted.
    pub evicted: u64,
    /// Data that the configuration keeps out.
    pub not_admitted: u64,
    /// The last whole period.
    pub period: CachePeriod,
}

/// A period of a content store.
#[derive(Debug, Clone, Serialize)]
pub struct CachePeriod {
    /// Its length, in milliseconds.
    pub ms: u64,
    /// Lookups that found Data.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Share of hits; none without lookups.
    pub ratio: Option<f64>,
}
