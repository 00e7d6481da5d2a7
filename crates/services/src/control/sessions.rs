//! Sessions of a dispatcher as the control interface writes them.

use crate::ports::Counts;
use serde::Serialize;

/// Whether the paths of a session are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum SessionState {
    /// All of them.
    Up,
    /// Not yet all.
    Connecting,
}

/// A session.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SessionInfo {
    /// Its number.
    pub session: u32,
    /// Label of the client's face.
    pub client: String,
    /// Number of the client's face.
    pub id: u32,
    /// What the client sent.
    #[serde(rename = "in")]
    pub received: Counts,
    /// What the client got.
    #[serde(rename = "out")]
    pub sent: Counts,
    /// When it began, in milliseconds since the Unix epoch.
    pub since_ms: u64,
    /// Whether its paths are connected.
    pub state: SessionState,
}
