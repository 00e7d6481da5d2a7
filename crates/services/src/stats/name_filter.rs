//! Statistics of a name filter.

use serde::Serialize;

/// A name filter.
#[derive(Debug, Clone, Serialize)]
pub struct NameFilter {
    /// Interests dropped.
    pub dropped_interests: u64,
    /// Data dropped.
    pub dropped_data: u64,
    /// Its rules.
    pub rules: u64,
}
