//! Statistics of a backward router.

use super::Durations;
use serde::Serialize;

/// A backward router.
#[derive(Debug, Clone, Serialize)]
pub struct BackwardRouter {
    /// Retransmissions that were forwarded.
    pub retransmitted: u64,
    /// Data without a pending Interest.
    pub unsolicited: u64,
    /// PIT entries.
    pub entries: u64,
    /// Most PIT entries.
    pub capacity: u64,
    /// PIT entries made.
    pub inserted: u64,
    /// Interests that found the same one pending.
    pub aggregated: u64,
    /// Retransmissions that came too soon.
    pub suppressed: u64,
    /// Pending Interests that Data answered.
    pub satisfied: u64,
    /// Pending Interests that ended without Data.
    pub expired: u64,
    /// Overdue pending Interests that gave way to new ones.
    pub evicted: u64,
    /// Interests that looped.
    pub loops: u64,
    /// Round-trip times.
    pub rtt_ms: Durations,
    /// The last whole period.
    pub period: PendingPeriod,
}

/// A period of a backward router.
#[derive(Debug, Clone, Serialize)]
pub struct PendingPeriod {
    /// Its length, in milliseconds.
    pub ms: u64,
    /// Data without a pending Interest.
    pub unsolicited: u64,
    /// All Data.
    pub data: u64,
}
