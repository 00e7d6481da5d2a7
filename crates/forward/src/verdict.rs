//! Every outcome of a packet, declared once: the counter, the metric label, the trace text and the
//! row of docs/verdicts.md.

mod reference;

pub use reference::reference;

use onym_link::{LinkUnsent, PacketKind};
use onym_tables::outcomes;

outcomes! {
    /// How a network-layer packet ended. Each received packet ends in exactly one.
    Verdict {
        Forwarded "forwarded" false "Interest sent to at least one upstream"
        Aggregated "aggregated" false "Interest joined one that is pending; nothing was sent"
        Suppressed "suppressed" false "Retransmission too soon after another; nothing was sent"
        CsHit "cs_hit" false "Interest answered from the content store"
        Delivered "delivered" false "Given to the management of this node"
        Satisfied "satisfied" false "Data answered at least one pending Interest"
        Stored "stored" false "Unsolicited Data that the policy lets into the content store"
        NackForwarded "nack_forwarded" false "Nack passed on to downstreams"
        NackAbsorbed "nack_absorbed" false "Nack noted while other upstreams may still answer"
        NackRetried "nack_retried" false "Nack answered by trying another upstream"
        Malformed "malformed" true "Not an Interest or Data by the packet format"
        TooLarge "too_large" true "Packet longer than 8800 octets"
        UnexpectedField "unexpected_field" true "Link field that this kind of packet must not carry"
        IngressGone "ingress_gone" true "The face it came from is closed"
        HopLimitZero "hop_limit_zero" true "Interest received with HopLimit 0"
        Scope "scope" true "Name of /localhost from another node"
        NameTooLong "name_too_long" true "Interest name with more components than configured"
        DeadNonce "dead_nonce" true "Interest whose name and Nonce were seen in the last seconds: a loop"
        DuplicateNonce "duplicate_nonce" true "Interest whose Nonce is pending from or to another face: a loop"
        NoRoute "no_route" true "No FIB entry with a next hop for the name"
        NoEligibleNextHop "no_eligible_next_hop" true "Next hops exist, but none may be used for this Interest"
        StrategyRejected "strategy_rejected" true "The strategy refused the Interest"
        PitFull "pit_full" true "The PIT is at its limit"
        PitShare "pit_share" true "The face holds more than its share of a contended PIT"
        Congestion "congestion" true "The upstream has as many Interests pending as it can answer, and this face more than its share"
        NextHopFaceInvalid "next_hop_face_invalid" true "NextHopFaceId names a face that does not exist"
        Unsolicited "unsolicited" true "Data that no pending Interest asked for"
        NackNoEntry "nack_no_entry" true "Nack of an Interest that is not pending at that upstream"
        NackStaleNonce "nack_stale_nonce" true "Nack with another Nonce than was sent last"
        NackNotPointToPoint "nack_not_point_to_point" true "Nack from a link with several peers"
    }
}

outcomes! {
    /// Why a copy that a verdict asked for was not sent.
    Unsent {
        QueueFull "queue_full" true "The send queue of the face is at its limit"
        FaceGone "face_gone" true "The face is closed"
        OverMtu "over_mtu" true "Longer than the link carries, and fragmentation is off"
        OutHopLimit "out_hop_limit" true "HopLimit used up: the Interest may not leave this host"
        OutScope "out_scope" true "The scope of the name ends at this host"
    }
}

impl From<LinkUnsent> for Unsent {
    fn from(unsent: LinkUnsent) -> Self {
        match unsent {
            LinkUnsent::OverMtu => Self::OverMtu,
            LinkUnsent::QueueFull => Self::QueueFull,
        }
    }
}

/// Everything one forwarder counts. The two equations of the registry hold between its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counters {
    /// Packets received, by kind.
    pub received: [u64; 3],
    /// Verdicts, by kind and verdict.
    pub verdicts: [[u64; Verdict::COUNT]; 3],
    /// Copies that verdicts, timers and management asked for, by kind.
    pub asked: [u64; 3],
    /// Copies put into the outbox, by kind.
    pub sent: [u64; 3],
    /// Copies not put into the outbox, by reason (those of the link service are counted there).
    pub unsent: [u64; Unsent::COUNT],
    /// Lookups of the content store that found Data.
    pub cs_hits: u64,
    /// Lookups that did not.
    pub cs_misses: u64,
    /// PIT entries that Data satisfied.
    pub satisfied_interests: u64,
    /// PIT entries that ended otherwise.
    pub unsatisfied_interests: u64,
    /// Those of them that gave way, overdue, to newer ones of the same face in a contended PIT.
    pub displaced_interests: u64,
    /// Data with a token of ours that named a slot used by another Interest since.
    pub stale_tokens: u64,
    /// Data with a token that is not one of ours.
    pub foreign_tokens: u64,
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            received: [0; 3],
            verdicts: [[0; Verdict::COUNT]; 3],
            asked: [0; 3],
            sent: [0; 3],
            unsent: [0; Unsent::COUNT],
            cs_hits: 0,
            cs_misses: 0,
            satisfied_interests: 0,
            unsatisfied_interests: 0,
            displaced_interests: 0,
            stale_tokens: 0,
            foreign_tokens: 0,
        }
    }
}

impl Counters {
    /// Counts one packet received and its verdict.
    #[inline(always)]
    pub(crate) fn note(&mut self, kind: PacketKind, verdict: Verdict) {
        self.received[kind as usize] += 1;
        self.verdicts[kind as usize][verdict as usize] += 1;
    }

    /// How many packets of `kind` ended in `verdict`.
    #[must_use]
    pub fn verdict(&self, kind: PacketKind, verdict: Verdict) -> u64 {
        self.verdicts[kind as usize][verdict as usize]
    }

    /// The first equation: packets received = sum of verdicts, for each kind.
    #[must_use]
    pub fn receptions_balance(&self) -> bool {
        PacketKind::ALL
            .iter()
            .all(|&k| self.received[k as usize] == self.verdicts[k as usize].iter().sum::<u64>())
    }

    /// The second equation: copies asked for = copies sent + copies not sent for a reason.
    #[must_use]
    pub fn copies_balance(&self) -> bool {
        self.asked.iter().sum::<u64>()
            == self.sent.iter().sum::<u64>() + self.unsent.iter().sum::<u64>()
    }
}
