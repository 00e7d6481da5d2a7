//! What the parts that deliver publications count.

/// What a dispatcher counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Publications sent to the network.
    pub sent: u64,
    /// Publications told to who subscribed after they were published.
    pub cached: u64,
    /// Copies handed to applications.
    pub delivered: u64,
    /// Frames that came and that nobody here subscribed to: false positives.
    pub unwanted: u64,
    /// Publications for applications here that never came, as far as their numbers tell.
    pub missing: u64,
    /// Publications that came once more: over a circle, or repeated by somebody.
    pub duplicates: u64,
    /// Frames that came and could not be read.
    pub malformed: u64,
    /// Control messages refused.
    pub refused: u64,
    /// Keyed frames whose item is not that of the flow.
    pub wrong_flow: u64,
    /// Publications that could not be put together.
    pub incomplete: u64,
    /// Fragments sent again.
    pub repaired: u64,
    /// Repairs asked for.
    pub repairs_asked: u64,
}

impl std::ops::AddAssign<&Self> for Counters {
    fn add_assign(&mut self, other: &Self) {
        self.sent += other.sent;
        self.cached += other.cached;
        self.delivered += other.delivered;
        self.unwanted += other.unwanted;
        self.missing += other.missing;
        self.duplicates += other.duplicates;
        self.malformed += other.malformed;
        self.refused += other.refused;
        self.wrong_flow += other.wrong_flow;
        self.incomplete += other.incomplete;
        self.repaired += other.repaired;
        self.repairs_asked += other.repairs_asked;
    }
}
