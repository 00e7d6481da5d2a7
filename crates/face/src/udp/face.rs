//! One UDP peer.

use super::send::{self, Offload};
use super::{Buffers, UdpOptions, open};
use crate::datagram::{Burst, Layout, receive_error};
use crate::face::{Counters, Face, Flush, Ready, Transport};
use crate::{FaceError, FaceUri, uri};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_sys::mmsg::Source;
use rustix::fd::{AsFd, BorrowedFd};
use socket2::Socket;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

/// A face to one UDP peer: a connected socket, which may share its port with a listener.
#[derive(Debug)]
pub struct UdpFace {
    socket: Socket,
    local: FaceUri,
    remote: FaceUri,
    peer: SocketAddr,
    mtu: usize,
    offload: Offload,
    counters: Counters,
    buffers: Buffers,
    pressure: Pressure,
}

impl UdpFace {
    /// A face to `peer` from `local`, or from a free port when `None`.
    ///
    /// # Errors
    /// [`FaceError::Io`]: the port is taken, there is no route.
    pub fn connect(
        local: Option<SocketAddr>,
        peer: SocketAddr,
        options: &UdpOptions,
    ) -> Result<Self, FaceError> {
        let any: IpAddr = match peer {
            SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
            SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
        };
        let (socket, buffers) = open(local.unwrap_or(SocketAddr::new(any, 0)), options)?;
        socket.connect(&peer.into()).map_err(|e| FaceError::io("connecting a UDP socket", e))?;
        let local = socket.local_addr().map_err(|e| FaceError::io("asking for our address", e))?;
        Ok(Self {
            socket,
            local: uri::udp(local.as_socket().unwrap_or(peer)),
            remote: uri::udp(peer),
            peer,
            mtu: options.mtu.min(onym_wire::PACKET_LEN_MAX),
            offload: Offload::new(options),
            counters: Counters::default(),
            buffers,
            pressure: Pressure::default(),
        })
    }

    /// What the kernel granted for the socket's buffers.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }
}

impl Face for UdpFace {
    fn local_uri(&self) -> &FaceUri {
        &self.local
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.remote
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn receive(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let enough = out.len() + budget;
        let peer = self.peer;
        self.pressure.before(&self.socket);
        while out.len() < enough {
            let mut burst = Burst {
                fd: self.socket.as_fd(),
                layout: Layout::Datagram,
                counters: &mut self.counters,
            };
            let more = burst.receive(pool, |source, bytes, counters| match source {
                // Sent to the port before the socket was connected.
                Source::Inet(from) if !same(from, peer) => counters.in_foreign += 1,
                _ => {
                    self.pressure.octets += bytes.len();
                    out.push(RxFrame { endpoint: 0, bytes });
                }
            });
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(Ready::Idle),
                Err(e) => return receive_error(e),
            }
        }
        Ok(Ready::More)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        send::flush(self.socket.as_fd(), queue, &mut self.offload, &mut self.counters)
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn transport(&self) -> Transport {
        Transport::Udp
    }

    fn send_whole(&mut self, whole: bool) -> Option<usize> {
        let set = match whole {
            true => onym_sys::socket::refuse_ip_fragments(&self.socket),
            false => onym_sys::socket::allow_ip_fragments(&self.socket),
        };
        set.ok()?;
        let headers = if self.peer.is_ipv4() { 20 + 8 } else { 40 + 8 };
        Some(onym_sys::socket::route_mtu(&self.socket).ok()?.saturating_sub(headers))
    }

    fn queue_octets(&self) -> usize {
        onym_sys::socket::send_queue_octets(&self.socket)
    }

    fn is_pressed(&self) -> bool {
        self.pressure.is_pressed
    }

    fn counters(&self) -> Counters {
        self.counters.with_overflow_of(&self.socket)
    }
}

/// Sees the receive buffer fill up. A sender on the same machine, or one switch away, has no queue
/// of its own that would grow: frames wait in this buffer and are lost here first.
#[derive(Debug, Default)]
struct Pressure {
    /// Octets received since the kernel was last asked.
    octets: usize,
    is_pressed: bool,
}

impl Pressure {
    /// The buffer is asked for once so many octets came, so that a quiet face costs nothing.
    const ASK_AFTER: usize = 16 << 10;

    /// Looks at the buffer before it is read.
    fn before(&mut self, socket: &Socket) {
        self.is_pressed = false;
        if self.octets >= Self::ASK_AFTER {
            self.octets = 0;
            let fill = onym_sys::socket::receive_fill(socket);
            self.is_pressed = fill.used > fill.limit / 4;
        }
    }
}

/// Whether two addresses are the same peer (the flow label of IPv6 says nothing).
fn same(a: SocketAddr, b: SocketAddr) -> bool {
    a.ip() == b.ip() && a.port() == b.port()
}
