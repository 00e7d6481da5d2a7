//! Configuration of a packet dispatcher.

use crate::ports::FarEnd;
use serde::{Deserialize, Serialize};

/// Configuration of a packet dispatcher.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PacketDispatcher {
    /// URI of the face for Interests; none until it is set.
    pub consumer_path: Option<String>,
    /// URI of the face for registrations and Data; none until it is set.
    pub producer_path: Option<String>,
    /// Who is at the end of both paths.
    pub peer: FarEnd,
    /// Whether sessions are connected anew when a path changes.
    pub repoint: bool,
    /// Clients at once; beyond, a new one is closed.
    pub sessions_max: usize,
    /// Silence after which a session ends, in milliseconds; 0: never.
    pub idle_ms: u64,
}

impl Default for PacketDispatcher {
    fn default() -> Self {
        Self {
            consumer_path: None,
            producer_path: None,
            peer: FarEnd::Any,
            repoint: true,
            sessions_max: 1024,
            idle_ms: 0,
        }
    }
}
