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
    /// When the first Interest was sent, on the clock of the run.
    pub began: Option<Duration>,
    /// When the last Data came, on the clock of the run.
    pub ended: Option<Duration>,
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

    /// Adds what another application counted; latencies and the duration are left to the caller.
    pub(super) fn add(&mut self, other: &Self) {
        self.interests += other.interests;
        self.data += other.data;
        self.octets += other.octets;
        self.retransmissions += other.retransmissions;
        self.timeouts += other.timeouts;
        self.nacks += other.nacks;
        self.in_flight += other.in_flight;
        self.failed += other.failed;
        self.marks += other.marks;
        self.began = [self.began, other.began].into_iter().flatten().min();
        self.ended = self.ended.max(other.ended);
    }
}

/// One object that a consumer fetched or fetches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Transfer {
    /// Its name.
    pub name: String,
    /// When the first Interest for it was sent; `None` before that.
    pub began: Option<Duration>,
    /// When its last Data came so far.
    pub ended: Option<Duration>,
    /// Octets of content that came.
    pub octets: u64,
    /// Interests that were sent again.
    pub retransmissions: u64,
    /// Whether everything came.
    pub is_complete: bool,
}

/// Median and 99 of 100 of sorted times; 0 when there are none.
pub(super) fn percentiles(sorted: &[Duration]) -> (Duration, Duration) {
    let at = |percent: usize| sorted.get(sorted.len() * percent / 100).copied().unwrap_or_default();
    (at(50), at(99))
}
