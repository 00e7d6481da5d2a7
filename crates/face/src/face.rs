//! The trait of faces, independent of the transport.

use crate::FaceError;
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_sys::peer::Credentials;
use onym_wire::faceuri::FaceUri;
use onym_wire::mgmt::{LinkType, Scope};
use rustix::fd::{AsFd, BorrowedFd};
use std::fmt;

/// Whether more frames may be waiting after [`Face::receive`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ready {
    /// Everything there was has been taken; wait for the descriptor.
    Idle,
    /// The budget ended first, or more is likely to come at once; call again soon.
    More,
    /// As [`Ready::More`], and the face has become one of another kind: its URIs, transport and
    /// [`Face::room_is_writable`] are others than before. Its descriptor is the same.
    Changed,
}

/// Whether [`Face::flush`] could send everything.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flush {
    /// The queue is empty.
    Done,
    /// The transport takes no more now; try again when the descriptor is writable or readable, as
    /// [`Face::room_is_writable`] says.
    Blocked,
}

/// What carries the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    /// A pair of queues in this process.
    Mem,
    /// Unix stream socket.
    Unix,
    /// Shared-memory ring negotiated on a Unix stream socket.
    Shm,
    /// TCP.
    Tcp,
    /// UDP to one peer.
    Udp,
    /// UDP to a group on one interface.
    UdpMulticast,
    /// Ethernet to one station.
    Ether,
    /// Ethernet to a group.
    EtherMulticast,
    /// WebSocket messages.
    WebSocket,
    /// Datagrams of QUIC.
    Quic,
    /// A socket of the kernel stack.
    Kernel,
}

impl Transport {
    /// Whether frames arrive whole, in order and without loss while the face lives, so that
    /// fragmentation and link-layer reliability have no place.
    #[must_use]
    pub fn is_reliable(self) -> bool {
        matches!(
            self,
            Self::Mem | Self::Unix | Self::Shm | Self::Tcp | Self::WebSocket | Self::Kernel
        )
    }
}

/// Frames that a face itself refused; everything else is counted by the link service.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Datagrams that hold more than one TLV.
    pub in_trailing: u64,
    /// Datagrams that are not one whole TLV of at most 8800 octets.
    pub in_malformed: u64,
    /// Datagrams that came to this socket from somebody else than the peer.
    pub in_foreign: u64,
    /// Datagrams that the kernel dropped because they were not read in time.
    pub in_overflowed: u64,
    /// Frames given up because the network does not take their length.
    pub out_too_long: u64,
    /// Frames given up because the network refused them for another reason.
    pub out_refused: u64,
    /// Frames that a fault wrapper dropped on purpose, both directions.
    pub faults: u64,
}

impl Counters {
    /// These, and what the kernel dropped of what came to `socket`; asked for when somebody wants
    /// to know, and never on the path of a packet.
    pub(crate) fn with_overflow_of(self, socket: impl AsFd) -> Self {
        let in_overflowed = onym_sys::socket::receive_fill(socket).dropped;
        Self { in_overflowed, ..self }
    }
}

/// Carries opaque frames, each one TLV. Owned by one thread; never parses names.
///
/// Once [`receive`](Self::receive) has said [`Ready::Idle`], the descriptor is level-triggered
/// readable while it has something to do; before that it may not be, so a new face is first received from.
pub trait Face: Send + fmt::Debug {
    /// Our end.
    fn local_uri(&self) -> &FaceUri;

    /// The other end.
    fn remote_uri(&self) -> &FaceUri;

    /// What to wait on.
    fn fd(&self) -> BorrowedFd<'_>;

    /// Takes about `budget` frames (at most one system call's worth more) into `out`.
    ///
    /// # Errors
    /// See [`FaceError::is_fatal`]; frames that came before the error are in `out`.
    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError>;

    /// Sends from the front of `queue`, popping what was taken.
    ///
    /// After [`Flush::Blocked`] the first frame may have been sent in part: the caller must not
    /// remove it from the queue.
    ///
    /// # Errors
    /// See [`FaceError::is_fatal`].
    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError>;

    /// Longest frame, in octets, that [`flush`](Self::flush) accepts.
    fn mtu(&self) -> usize;

    /// What carries the frames.
    fn transport(&self) -> Transport;

    /// How many neighbours there are.
    fn link(&self) -> LinkType {
        LinkType::PointToPoint
    }

    /// Whether the other side is a program on this machine.
    fn scope(&self) -> Scope {
        Scope::NonLocal
    }

    /// Who the other side is, where the transport tells: on the Unix socket, and so for the rings that
    /// were asked for there.
    fn credentials(&self) -> Option<Credentials> {
        None
    }

    /// Whether the connection is still being made: nothing is received, [`Self::flush`] is blocked
    /// and finds out when the descriptor becomes writable.
    fn is_connecting(&self) -> bool {
        false
    }

    /// How a blocked face tells that there is room again: by its descriptor being writable (true),
    /// or by being readable: then flush again after each [`Face::receive`], and do not wait for
    /// writability, which may be there all the time or never.
    fn room_is_writable(&self) -> bool {
        true
    }

    /// Lets no frame leave in IP fragments, or lets such leave again. The longest frame that the first
    /// hop takes whole; `None` where there is no such choice.
    fn send_whole(&mut self, whole: bool) -> Option<usize> {
        let _ = whole;
        None
    }

    /// Octets that were handed to the transport and not sent or acknowledged yet.
    fn queue_octets(&self) -> usize {
        0
    }

    /// Whether the receive buffer was filling up when it was last read: the sender should slow down
    /// before frames are lost.
    fn is_pressed(&self) -> bool {
        false
    }

    /// What this face refused itself.
    fn counters(&self) -> Counters {
        Counters::default()
    }
}
