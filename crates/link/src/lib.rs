#![doc = include_str!("../README.md")]

mod config;
mod congestion;
mod packet;
mod path;
mod reassembly;
mod reliability;
mod rx;
mod tx;
mod verdict;

#[cfg(test)]
mod tests;

pub use config::{CongestionConfig, LinkConfig, ReassemblyLimits, ReliabilityLimits};
pub use packet::{
    AppMessage, LpIn, LpOut, Outbox, Outgoing, Packet, PacketKind, Payload, Transmit,
};
pub use path::PathMtu;
pub use reliability::ReliabilityCounters;
pub use rx::glance;
pub use verdict::FrameVerdict;

use congestion::Congestion;
use onym_frame::{Buf, TxQueue};
use onym_tables::Tick;
use onym_wire::PACKET_LEN_MAX;
use path::Path;
use reassembly::Reassembler;
use reliability::Reliability;
use std::time::Duration;

/// What a received frame was.
#[derive(Debug)]
// The packet is the common case; boxing it would allocate.
#[allow(clippy::large_enum_variant)]
pub enum Received {
    /// A packet for the forwarder.
    Packet(Packet),
    /// A fragment of a packet that is not complete yet.
    Held,
    /// Acknowledgements only, or a word about the path's MTU.
    Idle,
    /// Nothing of use; the reason is counted. On a stream face the shell closes the face when
    /// [`FrameVerdict::closes_stream`] says so.
    Dropped(FrameVerdict),
}

/// Why a packet did not get into the send queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkUnsent {
    /// The packet does not fit the face and may not be cut.
    OverMtu,
    /// The send queue is at its bound.
    QueueFull,
}

/// Everything that one link service counts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LinkCounters {
    /// Frames received, by verdict, in the order of [`FrameVerdict::ALL`].
    pub verdicts: [u64; FrameVerdict::COUNT],
    /// Frames lost after they were held, because the rest did not come in time.
    pub frag_timeout: u64,
    /// Frames lost after they were held, because of a bound or a contradiction.
    pub frag_evicted: u64,
    /// Frames put into the send queue.
    pub frames_out: u64,
    /// Packets that were cut.
    pub fragmented: u64,
    /// Packets marked because the send queue stayed long.
    pub congestion_marked: u64,
    /// Packets sent without their header fields, because these did not fit.
    pub bare: u64,
    /// Packets not sent: longer than the face takes.
    pub over_mtu: u64,
    /// Packets not sent: the send queue was full.
    pub queue_full: u64,
    /// The longest frame that was found to arrive; 0 while none is known. Not a count.
    pub path_mtu: usize,
    /// Reliability.
    pub reliability: ReliabilityCounters,
}

impl LinkCounters {
    /// Frames that ended with `verdict`.
    #[must_use]
    pub fn of(&self, verdict: FrameVerdict) -> u64 {
        self.verdicts[verdict as usize]
    }
}

/// The link service of one face.
#[derive(Debug)]
pub struct Link {
    config: LinkConfig,
    /// Longest frame that leaves without a look at the path, in octets.
    frame_len_max: usize,
    /// Longest frame that leaves, in octets.
    limit: usize,
    path: Option<Box<Path>>,
    /// Sequence of the next frame that carries one.
    sequence: u64,
    /// Octets in the socket, behind the send queue.
    socket_queue: usize,
    /// Somebody looked at that since it was told.
    has_looked: bool,
    /// With more octets than these in the send queue each packet is marked, at once.
    mark_from: usize,
    congestion: Congestion,
    reassembler: Reassembler,
    reliability: Option<Box<Reliability>>,
    /// Scratch for a frame's head.
    head: Vec<u8>,
    /// Scratch for the acknowledgements of a frame.
    acks: Vec<u64>,
    counters: LinkCounters,
}

impl Link {
    /// A link service for a face that was just opened.
    #[must_use]
    pub fn new(config: LinkConfig) -> Self {
        let reliability = config.reliability.then(|| Reliability::new(config.reliability_limits));
        let path = Path::new(config.path, frame_len_max(&config), config.first_sequence);
        let mut link = Self {
            frame_len_max: 0,
            limit: 0,
            path,
            sequence: config.first_sequence,
            socket_queue: 0,
            has_looked: false,
            mark_from: usize::MAX,
            congestion: Congestion::default(),
            reassembler: Reassembler::new(config.reassembly_limits),
            reliability: reliability.map(Box::new),
            head: Vec::new(),
            acks: Vec::new(),
            counters: LinkCounters::default(),
            config,
        };
        link.settle_lengths();
        link
    }

    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &LinkConfig {
        &self.config
    }

    /// Changes the configuration of an open face. What reliability and reassembly hold stays,
    /// unless they are switched off or their bounds change.
    pub fn configure(&mut self, config: LinkConfig) {
        match &mut self.path {
            Some(path) => path.change(config.path, frame_len_max(&config)),
            None => {
                self.path = Path::new(config.path, frame_len_max(&config), config.first_sequence);
            }
        }
        if (!config.reliability || config.reliability_limits != self.config.reliability_limits)
            && let Some(old) = self.reliability.take()
        {
            self.counters.reliability = old.counters;
        }
        if config.reliability && self.reliability.is_none() {
            let mut new = Reliability::new(config.reliability_limits);
            new.counters = self.counters.reliability;
            self.reliability = Some(Box::new(new));
        }
        if !config.reassembly || config.reassembly_limits != self.config.reassembly_limits {
            self.counters.frag_timeout += self.reassembler.frag_timeout;
            self.counters.frag_evicted += self.reassembler.frag_evicted + self.reassembler.frames();
            self.reassembler = Reassembler::new(config.reassembly_limits);
        }
        self.reassembler.set_patience(Duration::ZERO);
        self.congestion = Congestion::default();
        self.config = config;
        self.settle_lengths();
    }

    /// What is asked at each packet follows from the path.
    fn settle_lengths(&mut self) {
        let all = frame_len_max(&self.config);
        let path = self.path.as_ref();
        (self.frame_len_max, self.limit) = path.map_or((all, all), |p| (p.quick(), p.limit()));
    }

    /// Whether no frame may leave in IP fragments, because frames are as long as the path takes. Who
    /// owns the face looks before and after each [`Self::handle_timeout`], and tells the first hop.
    #[must_use]
    pub fn sends_whole(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.sends_whole())
    }

    /// Whether what the first hop takes is to be told, perhaps again.
    #[must_use]
    pub fn wants_first_hop(&self) -> bool {
        self.path.as_ref().is_some_and(|path| path.asks_hop())
    }

    /// Tells the longest frame that the first hop takes, without end where nobody knows.
    pub fn set_first_hop(&mut self, octets: usize) {
        if let Some(path) = &mut self.path {
            path.set_first_hop(octets);
            self.settle_lengths();
        }
    }

    /// Tells how many octets wait in the socket behind the send queue, for congestion marks.
    pub fn set_socket_queue(&mut self, octets: usize) {
        (self.socket_queue, self.has_looked) = (octets, false);
    }

    /// Marks each packet, at once, that finds more octets than these in the send queue, where
    /// congestion is marked at all; until then only a queue that stays long is told.
    pub fn set_mark_from(&mut self, octets: usize) {
        self.mark_from = octets;
    }

    /// Whether a mark was thought of since the octets in the socket were last told: where none is,
    /// nobody has to be asked for them.
    #[must_use]
    pub const fn wants_socket_queue(&self) -> bool {
        self.has_looked
    }

    /// When [`Self::handle_timeout`] wants to be called; [`Tick::NEVER`] when it does not.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        let reliability = self.reliability.as_ref().map_or(Tick::NEVER, |r| r.poll_timeout());
        let path = self.path.as_ref().map_or(Tick::NEVER, |p| p.poll_timeout());
        self.reassembler.poll_timeout().min(reliability).min(path)
    }

    /// Does what is due: drops incomplete packets, sends again what was not acknowledged, sends
    /// acknowledgements that found no packet to go with.
    pub fn handle_timeout(&mut self, now: Tick, queue: &mut TxQueue) {
        if self.reassembler.poll_timeout() <= now {
            self.reassembler.handle_timeout(now);
        }
        if let Some(reliability) = &mut self.reliability {
            reliability.handle_timeout(now);
            self.send_lost(now, queue);
            self.send_idle(now, queue);
        }
        self.handle_path(now, queue);
    }

    /// Answers the probes of the peer, and sends ours.
    fn handle_path(&mut self, now: Tick, queue: &mut TxQueue) {
        let Some(path) = self.path.as_mut().filter(|path| path.poll_timeout() <= now) else {
            return;
        };
        let head = &mut self.head;
        path.handle_timeout(now, self.counters.frames_out, |write| {
            head.clear();
            write(head);
            queue.push(head, None).is_ok()
        });
        self.settle_lengths();
    }

    /// The next Interest that reliability gave up: the strategy should hear of it.
    pub fn next_given_up(&mut self) -> Option<Buf> {
        self.reliability.as_mut()?.next_given_up()
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> LinkCounters {
        let mut counters = self.counters;
        counters.path_mtu = self.path.as_ref().and_then(|path| path.found()).unwrap_or(0);
        counters.frag_timeout += self.reassembler.frag_timeout;
        counters.frag_evicted += self.reassembler.frag_evicted;
        if let Some(reliability) = &self.reliability {
            counters.reliability = reliability.counters;
        }
        counters
    }
}

/// NDNLPv2 peers drop a frame above 8800 octets even where the link carries it.
fn frame_len_max(config: &LinkConfig) -> usize {
    config.mtu.unwrap_or(PACKET_LEN_MAX).min(PACKET_LEN_MAX)
}
