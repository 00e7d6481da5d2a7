//! Every end of a frame in the link service, declared once.

/// Declares the verdicts of frames: the word is the counter, the metric label and the text.
macro_rules! frame_verdicts {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, $accepted:literal;)+) => {
        /// What became of one frame in the link service. Each frame gets exactly one.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum FrameVerdict {
            $($(#[doc = $doc])+ $variant,)+
        }

        impl FrameVerdict {
            /// All of them, in the order of their counters.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// How many there are.
            pub const COUNT: usize = Self::ALL.len();

            /// The word of the registry.
            #[must_use]
            pub const fn word(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What it means, for the reference.
            #[must_use]
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+),)+ }
            }

            /// Whether the frame was of use; otherwise it was dropped for this reason.
            #[must_use]
            pub const fn is_accepted(self) -> bool {
                match self { $(Self::$variant => $accepted,)+ }
            }
        }
    };
}

frame_verdicts! {
    /// A network-layer packet was handed on.
    Packet = "packet", true;
    /// A fragment was kept until its packet is complete.
    FragmentHeld = "fragment_held", true;
    /// A frame without a packet, which carried acknowledgements.
    Idle = "idle", true;
    /// The frame is not an Interest, a Data or a well-formed LpPacket.
    LpMalformed = "lp_malformed", false;
    /// The LpPacket has an unknown field that may not be ignored.
    LpUnknownCritical = "lp_unknown_critical", false;
    /// Fragment numbers contradict each other, or the whole would pass 8800 octets.
    FragInvalid = "frag_invalid", false;
    /// A fragment on a face that does not reassemble.
    FragRefused = "frag_refused", false;
    /// The fragment was kept from by a bound of reassembly.
    ReassemblyFull = "reassembly_full", false;
    /// The Sequence was seen before: a retransmission whose acknowledgement was lost, or a repeated fragment.
    DuplicateSequence = "duplicate_sequence", false;
    /// The LpPacket carries neither a packet nor an acknowledgement.
    LpEmpty = "lp_empty", false;
    /// A link-layer field that may not go with this kind of packet, or not on this face.
    UnexpectedField = "unexpected_field", false;
}

impl FrameVerdict {
    /// Whether a stream face is closed on it: the neighbour does not speak the protocol.
    #[must_use]
    pub const fn closes_stream(self) -> bool {
        matches!(self, Self::LpMalformed | Self::LpUnknownCritical)
    }
}
