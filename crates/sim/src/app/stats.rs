//! What an application counts.

use std::time::Duration;

/// What an application achieved.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct AppStats {
    /// `consumer` or `producer`.
    pub kind: &'static str,
    /// Its prefix.
    pub prefix: String,
    /// Interests sent (consumer) or received (producer).
    pub interests: u64,
    /// Data received (consumer, each name once) or sent (producer).
    pub data: u64,
    /// Octets of content in these Data.
    pub octets: u64,
    /// Interests that were sent again.
    pub retransmissions: u64,
    /// Interests that nothing answered in time.
    pub timeouts: u64,
    /// Interests that a Nack and nothing else answered.
    pub nacks: u64,
    /// Interests that wait for an answer now.
    pub in_flight: u64,
    /// Names given up.
    pub failed: u64,
    /// Data that came marked as congested.
    pub marks: u64,
    /// From the first Interest to the last Data.
    pub duration: Duration,
    /// Time from the first Interest for a name to its Data: median and 99 of 100.
    pub latency_p50: Duration,
    /// As above.
    pub latency_p99: Duration,
}

impl AppStats {
    /// Whether each Interest that a consumer sent is answered, Nacked, timed out or under way.
    #[must_use]
    pub fn balance(&self) -> bool {
        let ended = self.data + self.nacks + self.timeouts;
        self.kind != "consumer" || self.interests == ended + self.in_flight
    }
}
