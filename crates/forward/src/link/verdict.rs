//! Every end of a frame in the link service, declared once.

/// Declares the verdicts of frames: the word is the counter, the metric label and the text.
macro_rules! frame_verdicts {
    ($($(#[doc = $doc:literal])+ $variant:ident = $word:literal, $drop:literal;)+) => {
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

            /// The word that metrics, traces and scripts use.
            #[must_use]
            pub const fn label(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }

            /// What it means, for people.
            #[must_use]
            pub const fn text(self) -> &'static str {
                match self { $(Self::$variant => concat!($($doc),+).trim_ascii(),)+ }
            }

            /// Whether the frame was lost by it.
            #[must_use]
            pub const fn is_drop(self) -> bool {
                match self { $(Self::$variant => $drop,)+ }
            }
        }
    };
}

frame_verdicts! {
    /// A network-layer packet was handed on.
    Packet = "packet", false;
    /// A fragment was kept until its packet is complete.
    FragmentHeld = "fragment_held", false;
    /// A frame without a packet, which carried acknowledgements.
    Idle = "idle", false;
    /// The frame is not an Interest, a Data or a well-formed LpPacket.
    LpMalformed = "lp_malformed", true;
    /// The LpPacket has an unknown field that may not be ignored.
    LpUnknownCritical = "lp_unknown_critical", true;
    /// Fragment numbers contradict each other, or the whole would pass 8800 octets.
    FragInvalid = "frag_invalid", true;
    /// A fragment on a face that does not reassemble.
    FragRefused = "frag_refused", true;
    /// A bound of reassembly leaves no room for the fragment.
    ReassemblyFull = "reassembly_full", true;
    /// The Sequence was seen before: a retransmission whose acknowledgement was lost, or a repeated fragment.
    DuplicateSequence = "duplicate_sequence", true;
    /// The LpPacket carries neither a packet nor an acknowledgement.
    LpEmpty = "lp_empty", true;
    /// A link-layer field that may not go with this kind of packet, or not on this face.
    UnexpectedField = "unexpected_field", true;
}

impl FrameVerdict {
    /// Whether a stream face is closed on it: the neighbour does not speak the protocol.
    #[must_use]
    pub const fn closes_stream(self) -> bool {
        matches!(self, Self::LpMalformed | Self::LpUnknownCritical)
    }
}
