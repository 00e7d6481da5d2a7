//! Statistics of a packet dispatcher.

use serde::Serialize;

/// A packet dispatcher.
#[derive(Debug, Clone, Serialize)]
pub struct PacketDispatcher {
    /// Clients.
    pub sessions: u64,
    /// Sessions opened.
    pub opened: u64,
    /// Sessions closed.
    pub closed: u64,
    /// Clients refused because of `sessions_max`.
    pub refused: u64,
}

impl PacketDispatcher {
    /// Adds what another thread of the same service counted.
    pub(super) fn add_thread(&mut self, other: &Self) {
        self.sessions += other.sessions;
        self.opened += other.opened;
        self.closed += other.closed;
        self.refused += other.refused;
    }
}
