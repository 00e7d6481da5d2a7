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
        NackForwarded "nack_forwarded" false "Nack passed on to downstreams"
        NackAbsorbed "nack_absorbed" false "Nack noted while other upstreams may still answer"
        Held "held" false "Kept while its side is frozen; sent when that ends"
        Malformed "malformed" true "Not an Interest or Data by the packet format"
        WrongSide "wrong_side" true "A packet of this kind is not taken from this side"
        NoFace "no_face" true "The other side has no face that may carry it"
        NoRoute "no_route" true "No route for the name"
        PrefixRejected "prefix_rejected" true "Data from a face that has no route for its name"
        Unsolicited "unsolicited" true "Data that no pending Interest asked for"
        HopLimitZero "hop_limit_zero" true "Interest received with HopLimit 0"
        DuplicateNonce "duplicate_nonce" true "Interest whose name and Nonce came before: a loop"
        Duplicate "duplicate" true "The same name and Nonce within the time of the duplicate filter"
        NoEntry "no_entry" true "The pending table cannot take one more variant of the name"
        NackNoEntry "nack_no_entry" true "Nack of an Interest that is not pending"
        Filtered "filtered" true "A rule of the filter drops it"
        BadSignature "bad_signature" true "Data whose signature is wrong"
        UnknownKey "unknown_key" true "Data of a key that is not known"
        Unsigned "unsigned" true "Data without a signature by a key"
        Untrusted "untrusted" true "Data signed by a key that may not sign for its name"
        Draining "draining" true "Interest while the service drains"
        FreezeFull "freeze_full" true "What may be kept while frozen is used up"
        NoPath "no_path" true "The session has no connection on that path"
        Refused "refused" true "The merged forwarder dropped it; its own counters say why"
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
