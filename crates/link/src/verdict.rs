//! The verdicts of frames in the link service, declared once.

onym_tables::outcomes! {
    /// What became of one frame in the link service. Each frame gets exactly one.
    FrameVerdict {
        Packet "packet" false "A network-layer packet was handed on."
        FragmentHeld "fragment_held" false "A fragment was kept until its packet is complete."
        Idle "idle" false "A frame without a packet, which carried acknowledgements or was about the path's MTU."
        LpMalformed "lp_malformed" true "The frame is not an Interest, a Data or a well-formed LpPacket."
        LpUnknownCritical "lp_unknown_critical" true "The LpPacket has an unknown field that may not be ignored."
        FragInvalid "frag_invalid" true "Fragment numbers contradict each other, or the whole would pass 8800 octets."
        FragRefused "frag_refused" true "A fragment on a face that does not reassemble."
        ReassemblyFull "reassembly_full" true "A bound of reassembly leaves no room for the fragment."
        DuplicateSequence "duplicate_sequence" true "The Sequence was seen before: a retransmission whose acknowledgement was lost, or a repeated fragment."
        LpEmpty "lp_empty" true "The LpPacket carries neither a packet nor an acknowledgement, nor is it about the path's MTU."
        UnexpectedField "unexpected_field" true "A link-layer field that may not go with this kind of packet, or not on this face."
    }
}

impl FrameVerdict {
    /// Whether a stream face is closed on it: the neighbour does not speak the protocol.
    #[must_use]
    pub const fn closes_stream(self) -> bool {
        matches!(self, Self::LpMalformed | Self::LpUnknownCritical)
    }
}
