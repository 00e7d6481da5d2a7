//! Statistics of a merged forwarder.

use super::Registrations;
use serde::Serialize;

/// A merged forwarder.
#[derive(Debug, Clone, Serialize)]
pub struct Forwarder {
    /// Routes in the FIB.
    pub routes: u64,
    /// Registrations by producers.
    pub registrations: Registrations,
    /// PIT entries.
    pub pit_entries: u64,
    /// Data cached.
    pub cs_entries: u64,
    /// Lookups in the cache that found Data.
    pub hits: u64,
    /// Lookups that did not.
    pub misses: u64,
    /// Pending Interests that Data answered.
    pub satisfied: u64,
    /// Pending Interests that ended without Data.
    pub unsatisfied: u64,
    /// Data outside of the prefixes of their producer.
    pub prefix_rejected: u64,
}
