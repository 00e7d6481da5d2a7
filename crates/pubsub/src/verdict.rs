//! Every way in which a frame ends, declared once.

onym_tables::outcomes! {
    /// How a push frame ended. Each received frame ends in exactly one.
    Verdict {
        Forwarded "push_forwarded" false "Sent over at least one link"
        Delivered "push_delivered" false "Given to the dispatcher of this node"
        Both "push_both" false "Sent over at least one link and given to the dispatcher"
        Malformed "push_malformed" true "Not a push frame by the format"
        Version "push_version" true "Frame of another version"
        Form "push_form" true "Forwarding part of an unknown form, or one that is turned off"
        HopLimit "push_hop_limit" true "Travelled as many links as it may"
        Overfull "push_overfull" true "Filter with more ones than the fill limit"
        NoMatch "push_no_match" true "The filter holds no link of this node"
        Epoch "push_epoch" true "Keyed filter of an epoch whose keys are gone"
        IngressGone "push_ingress_gone" true "The face it came from is no link of the push half"
    }
}

/// The text of docs/push-verdicts.md.
#[must_use]
pub fn reference() -> String {
    use std::fmt::Write as _;
    let mut text = String::from(
        "# Verdicts of push frames\n\nWritten by `cargo run -p onym-pubsub --example \
         verdict_reference > docs/push-verdicts.md`; do not edit.\n\n\
         Each word is the label of a counter in `/metrics` (`onym_push_frames_total`) and a word \
         of packet scripts.\nFrames received are the sum of the verdicts; deliveries are \
         `push_delivered` and `push_both` together.\n\n| word | dropped | meaning |\n|---|---|---|\n",
    );
    for verdict in Verdict::ALL {
        let dropped = if verdict.is_drop() { "yes" } else { "" };
        let (word, meaning) = (verdict.label(), verdict.text());
        let _ = writeln!(text, "| `{word}` | {dropped} | {meaning} |");
    }
    text
}

/// What a forwarder counts. Received frames are the sum of the verdicts.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames from links and from this node.
    pub received: u64,
    verdicts: [u64; Verdict::COUNT],
    /// Copies for links.
    pub copies: u64,
    /// Frames for the dispatcher.
    pub deliveries: u64,
}

impl Counters {
    /// Frames that ended so.
    #[must_use]
    pub fn of(&self, verdict: Verdict) -> u64 {
        self.verdicts[verdict as usize]
    }

    /// Counts `frames` that all ended so, with so many copies and deliveries of each.
    pub(crate) fn count(
        &mut self,
        frames: u64,
        verdict: Verdict,
        copies: usize,
        deliveries: usize,
    ) {
        self.received += frames;
        self.verdicts[verdict as usize] += frames;
        self.copies += frames * copies as u64;
        self.deliveries += frames * deliveries as u64;
    }

    /// Whether the two equations hold: what was received equals the verdicts, and deliveries are
    /// what the verdicts say; at least one copy for each frame that was forwarded.
    #[must_use]
    pub fn balance(&self) -> bool {
        let forwarded = self.of(Verdict::Forwarded) + self.of(Verdict::Both);
        self.received == self.verdicts.iter().sum::<u64>()
            && self.deliveries == self.of(Verdict::Delivered) + self.of(Verdict::Both)
            && self.copies >= forwarded
    }
}
