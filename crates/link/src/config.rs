//! Options of a link service.

use crate::PathMtu;
use std::time::Duration;

/// When to mark packets because the send queue stays long.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CongestionConfig {
    /// How long the queue must stay above the threshold before the first mark.
    pub base_interval: Duration,
    /// Queue length above which there is congestion, in octets.
    pub threshold: usize,
}

impl Default for CongestionConfig {
    fn default() -> Self {
        Self { base_interval: Duration::from_millis(100), threshold: 65_536 }
    }
}

/// Bounds of reassembly on one face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReassemblyLimits {
    /// Most packets in reassembly at once; each holds one chunk of 8800 octets.
    pub messages_max: usize,
    /// Most octets of fragments held, over all packets, 256 added for each packet.
    pub octets_max: usize,
    /// How long an incomplete packet waits for its next fragment.
    pub timeout: Duration,
}

impl Default for ReassemblyLimits {
    fn default() -> Self {
        Self { messages_max: 128, octets_max: 512 * 1024, timeout: Duration::from_millis(500) }
    }
}

/// Bounds of reliability on one face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReliabilityLimits {
    /// Most frames sent and not yet acknowledged; further ones leave without a promise.
    pub unacked_max: usize,
    /// Most acknowledgements waiting for a frame to carry them; the oldest is forgotten.
    pub acks_max: usize,
    /// Most received sequence numbers remembered; the oldest is forgotten.
    pub recent_max: usize,
}

impl Default for ReliabilityLimits {
    fn default() -> Self {
        Self { unacked_max: 4096, acks_max: 4096, recent_max: 8192 }
    }
}

/// Configuration of the link service of one face; may change while the face is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LinkConfig {
    /// Largest frame of the face in octets; `None` on streams, where a frame is at most 8800.
    pub mtu: Option<usize>,
    /// Cut packets that are longer than the MTU; without it they are not sent.
    pub fragmentation: bool,
    /// Accept fragments; without it they are refused.
    pub reassembly: bool,
    /// Acknowledge and retransmit; both ends must agree, point-to-point faces only.
    pub reliability: bool,
    /// Mark packets when the send queue stays long.
    pub congestion_marking: Option<CongestionConfig>,
    /// Honour `NextHopFaceId` and tell `IncomingFaceId`: for local applications that ask.
    pub local_fields: bool,
    /// Pass `NonDiscovery` and `PrefixAnnouncement`; without it they are ignored.
    pub self_learning: bool,
    /// Take frames and messages of the push half, for a shell that hands them there; without it
    /// they are no packets.
    pub push: bool,
    /// The peer is a service of the same chain: say where packets entered the chain and which next
    /// hops Interests have, and take the same from it. Without it both are ignored and not sent.
    pub services: bool,
    /// Take and send the contexts of traces with Interests; without it they are ignored and not sent.
    pub traces: bool,
    /// What is done about the MTU of the path.
    pub path: PathMtu,
    /// First Sequence number of fragments, and what probes of the path begin with; arbitrary, best
    /// different after each start.
    pub first_sequence: u64,
    /// Bounds of reassembly.
    pub reassembly_limits: ReassemblyLimits,
    /// Bounds of reliability.
    pub reliability_limits: ReliabilityLimits,
}

impl LinkConfig {
    /// A stream face (TCP, Unix): no fragmentation, congestion marks on.
    #[must_use]
    pub fn stream() -> Self {
        Self {
            mtu: None,
            fragmentation: false,
            reassembly: false,
            reliability: false,
            congestion_marking: Some(CongestionConfig::default()),
            local_fields: false,
            self_learning: true,
            push: false,
            services: false,
            path: PathMtu::Off,
            traces: false,
            first_sequence: 0,
            reassembly_limits: ReassemblyLimits::default(),
            reliability_limits: ReliabilityLimits::default(),
        }
    }

    /// The same face where its peer is a service of the same chain. On streams, too, packets that
    /// grow over the longest frame by their fields are cut.
    #[must_use]
    pub fn between_services(self) -> Self {
        Self { services: true, fragmentation: true, reassembly: true, ..self }
    }

    /// A datagram face (UDP, Ethernet) with frames of at most `mtu` octets.
    #[must_use]
    pub fn datagram(mtu: usize) -> Self {
        let path = PathMtu::Answer;
        Self { mtu: Some(mtu), fragmentation: true, reassembly: true, path, ..Self::stream() }
    }
}
