//! Packets that go in and out of an endpoint.

use onym_wire::{Data, Interest, LpHeader, LpPacket, Malformed, NackReason};
use std::sync::Arc;

/// A packet that arrived, with the link fields that an endpoint needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inbound<'a> {
    /// An Interest or Data element.
    pub wire: &'a [u8],
    /// PIT token, empty when there is none.
    pub pit_token: &'a [u8],
    /// The reason, when the packet is a Nack of the Interest in `wire`.
    pub nack: Option<NackReason>,
    /// IncomingFaceId.
    pub incoming_face: Option<u64>,
}

impl<'a> Inbound<'a> {
    /// A packet without link fields.
    #[must_use]
    pub fn bare(wire: &'a [u8]) -> Self {
        Self { wire, ..Self::default() }
    }

    /// Reads a frame that holds a whole packet: bare, or in an LpPacket.
    ///
    /// # Errors
    /// [`Malformed`] for frames that are no such thing: also for pieces of a packet, which the link
    /// service puts together, and for frames without a packet.
    pub fn from_frame(frame: &'a [u8]) -> Result<Self, Malformed> {
        let lp = LpPacket::parse(frame)?;
        let wire = lp.fragment.ok_or(Malformed::Truncated)?;
        if lp.frag_count > 1 {
            return Err(Malformed::Truncated);
        }
        let pit_token = lp.pit_token.unwrap_or_default();
        Ok(Self { wire, pit_token, nack: lp.nack, incoming_face: lp.incoming_face })
    }
}

/// A packet to send.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Transmit {
    /// An Interest or Data element.
    pub wire: Vec<u8>,
    /// PIT token, empty when there is none.
    pub pit_token: Vec<u8>,
    /// The reason, when the packet is a Nack of the Interest in `wire`.
    pub nack: Option<NackReason>,
    /// NextHopFaceId: the face that the node shall send an Interest to.
    pub next_hop_face: Option<u64>,
}

impl Transmit {
    /// The frame: the packet alone, or in an LpPacket when it has link fields.
    #[must_use]
    pub fn to_frame(&self) -> Vec<u8> {
        let header = LpHeader {
            pit_token: &self.pit_token,
            nack: self.nack,
            next_hop_face: self.next_hop_face,
            ..LpHeader::default()
        };
        let mut frame = Vec::with_capacity(self.wire.len() + 64);
        header.write(&mut frame, self.wire.len());
        frame.extend_from_slice(&self.wire);
        frame
    }
}

/// Data that arrived, checked for its form; its signature was not looked at. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Packet {
    wire: Arc<[u8]>,
}

impl Packet {
    /// Checks and copies a Data element.
    ///
    /// # Errors
    /// [`Malformed`].
    pub fn parse(wire: &[u8]) -> Result<Self, Malformed> {
        Data::parse(wire)?;
        Ok(Self { wire: wire.into() })
    }

    /// The view of the Data.
    #[must_use]
    pub fn data(&self) -> Data<'_> {
        Data::parse(&self.wire).expect("invariant: checked when it was made")
    }

    /// The Data element.
    #[must_use]
    pub fn wire(&self) -> &[u8] {
        &self.wire
    }
}

/// An Interest that arrived. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Incoming {
    wire: Arc<[u8]>,
    pub(crate) token: Vec<u8>,
    /// IncomingFaceId, where the node tells it.
    pub face: Option<u64>,
}

impl Incoming {
    /// `inbound.wire` was checked.
    pub(crate) fn new(inbound: &Inbound<'_>) -> Self {
        let (wire, token) = (inbound.wire.into(), inbound.pit_token.to_vec());
        Self { wire, token, face: inbound.incoming_face }
    }

    /// The view of the Interest.
    #[must_use]
    pub fn interest(&self) -> Interest<'_> {
        Interest::parse(&self.wire).expect("invariant: checked when it arrived")
    }
}
