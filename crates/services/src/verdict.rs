//! Every outcome of a packet in a service, declared once: counter, metric label and the row of
//! docs/verdicts-services.md.

use onym_link::PacketKind;
use onym_tables::outcomes;

outcomes! {
    /// How a packet ended in a service. Each received packet ends in exactly one.
    Verdict {
        Forwarded "forwarded" false "Sent to at least one face of the other side"
        Aggregated "aggregated" false "Interest joined one that is pending; nothing was sent"
        Suppressed "suppressed" false "Retransmission too soon after another; nothing was sent"
        CsHit "cs_hit" false "Interest answered from the content store"
        Satisfied "satisfied" false "Data answered at least one pending Interest"
        Delivered "delivered" false "Registration command answered by this service"
        Stored "stored" false "Unsolicited Data that the policy lets go on to the content store"
        NackForwarded "nack_forwarded" false "Nack passed on to downstreams"
        NackAbsorbed "nack_absorbed" false "Nack noted while other upstreams may still answer"
        Held "held" false "Kept while its side is frozen; sent when that ends"
        Malformed "malformed" true "Not an Interest or Data by the packet format"
        TooLarge "too_large" true "Packet longer than 8800 octets"
        UnexpectedField "unexpected_field" true "Link field that this kind of packet must not carry"
        Scope "scope" true "Name of /localhost from another node"
        NameTooLong "name_too_long" true "Interest name with more components than allowed"
        WrongSide "wrong_side" true "A packet of this kind is not taken from this side"
        NoFace "no_face" true "The other side has no face that may carry it"
        NoRoute "no_route" true "No route for the name"
        PrefixRejected "prefix_rejected" true "Data from a face that has no route for its name"
        Unsolicited "unsolicited" true "Data that no pending Interest asked for"
        HopLimitZero "hop_limit_zero" true "Interest received with HopLimit 0"
        DuplicateNonce "duplicate_nonce" true "Interest whose name and Nonce came before: a loop"
        Duplicate "duplicate" true "The same name and Nonce within the time of the duplicate filter"
        StrategyRejected "strategy_rejected" true "The strategy refused the Interest"
        PitFull "pit_full" true "The pending table is at its limit"
        PitShare "pit_share" true "Who sent it holds more than a share of a contended pending table"
        Congestion "congestion" true "The upstream has as many Interests pending as it can answer, and this one more than its share"
        NextHopFaceInvalid "next_hop_face_invalid" true "NextHopFaceId names a face that does not exist"
        NackNoEntry "nack_no_entry" true "Nack of an Interest that is not pending"
        NackStaleNonce "nack_stale_nonce" true "Nack with another Nonce than was sent last"
        NackNotPointToPoint "nack_not_point_to_point" true "Nack from a link with several peers"
        Filtered "filtered" true "A rule of the filter drops it"
        BadSignature "bad_signature" true "Data whose signature is wrong"
        UnknownKey "unknown_key" true "Data of a key that is not known"
        Unsigned "unsigned" true "Data without a signature by a key"
        Untrusted "untrusted" true "Data signed by a key that may not sign for its name"
        Draining "draining" true "Interest while the service drains"
        FreezeFull "freeze_full" true "What may be kept while frozen is used up"
        NoPath "no_path" true "The session has no connection on that path"
    }
}

impl From<onym_forward::Verdict> for Verdict {
    /// The outcome of a service whose stages ended a packet so.
    fn from(inner: onym_forward::Verdict) -> Self {
        use onym_forward::Verdict as Inner;
        match inner {
            Inner::Forwarded => Self::Forwarded,
            Inner::Aggregated => Self::Aggregated,
            Inner::Suppressed => Self::Suppressed,
            Inner::CsHit => Self::CsHit,
            Inner::Delivered => Self::Delivered,
            Inner::Satisfied => Self::Satisfied,
            Inner::Stored => Self::Stored,
            Inner::NackForwarded => Self::NackForwarded,
            Inner::NackAbsorbed | Inner::NackRetried => Self::NackAbsorbed,
            Inner::Malformed => Self::Malformed,
            Inner::TooLarge => Self::TooLarge,
            Inner::UnexpectedField => Self::UnexpectedField,
            Inner::IngressGone | Inner::NoEligibleNextHop => Self::NoFace,
            Inner::HopLimitZero => Self::HopLimitZero,
            Inner::Scope => Self::Scope,
            Inner::NameTooLong => Self::NameTooLong,
            Inner::DeadNonce | Inner::DuplicateNonce => Self::DuplicateNonce,
            Inner::NoRoute => Self::NoRoute,
            Inner::StrategyRejected => Self::StrategyRejected,
            Inner::PitFull => Self::PitFull,
            Inner::PitShare => Self::PitShare,
            Inner::Congestion => Self::Congestion,
            Inner::NextHopFaceInvalid => Self::NextHopFaceInvalid,
            Inner::Unsolicited => Self::Unsolicited,
            Inner::NackNoEntry => Self::NackNoEntry,
            Inner::NackStaleNonce => Self::NackStaleNonce,
            Inner::NackNotPointToPoint => Self::NackNotPointToPoint,
        }
    }
}

/// Verdicts by kind.
#[derive(Debug, Clone)]
pub struct Verdicts([[u64; Verdict::COUNT]; 3]);

impl Default for Verdicts {
    fn default() -> Self {
        Self([[0; Verdict::COUNT]; 3])
    }
}

impl Verdicts {
    /// Counts one packet.
    pub fn add(&mut self, kind: PacketKind, verdict: Verdict) {
        self.0[kind as usize][verdict as usize] += 1;
    }

    /// Adds the verdicts of another thread.
    pub fn add_all(&mut self, other: &Self) {
        for (sum, n) in self.0.iter_mut().flatten().zip(other.0.iter().flatten()) {
            *sum += n;
        }
    }

    /// Packets of `kind` that ended in `verdict`.
    #[must_use]
    pub fn of(&self, kind: PacketKind, verdict: Verdict) -> u64 {
        self.0[kind as usize][verdict as usize]
    }

    /// Packets of all kinds that ended in `verdict`.
    #[must_use]
    pub fn sum(&self, verdict: Verdict) -> u64 {
        self.0.iter().map(|kind| kind[verdict as usize]).sum()
    }

    /// All packets of `kind`.
    #[must_use]
    pub fn received(&self, kind: PacketKind) -> u64 {
        self.0[kind as usize].iter().sum()
    }
}

/// docs/verdicts-services.md.
#[must_use]
pub fn reference() -> String {
    let mut out = String::from(
        "# Verdicts of services\n\nGenerated from `onym_services::verdict`. Each packet that a \
         service receives ends in exactly one.\n\n| word | dropped | meaning |\n|---|---|---|\n",
    );
    for verdict in Verdict::ALL {
        let dropped = if verdict.is_drop() { "yes" } else { "" };
        out.push_str(&format!("| `{}` | {dropped} | {} |\n", verdict.label(), verdict.text()));
    }
    out
}

outcomes! {
    /// Why a copy that a verdict asked for was not sent.
    Unsent {
        QueueFull "queue_full" true "The send queue of the face is at its limit"
        FaceGone "face_gone" true "The face is closed or down"
        OverMtu "over_mtu" true "Longer than the link carries, and fragmentation is off"
    }
}
