//! The port where unknown UDP peers send their first frames.

use super::{Buffers, UdpFace, UdpOptions, new_socket, open};
use crate::datagram::{Burst, Layout, receive_error};
use crate::face::{Counters, Face, Ready};
use crate::listen::{Incoming, Listener, Peer};
use crate::{FaceError, FaceUri, uri};
use onym_frame::{BufPool, RxFrame};
use onym_sys::mmsg::Source;
use rustix::fd::{AsFd, BorrowedFd};
use socket2::Socket;
use std::net::SocketAddr;

/// Listens for UDP peers. Each gets a connected socket on the same port by
/// [`face_for`](Listener::face_for); the kernel then prefers that socket for its datagrams.
#[derive(Debug)]
pub struct UdpListener {
    socket: Socket,
    uri: FaceUri,
    address: SocketAddr,
    options: UdpOptions,
    counters: Counters,
    buffers: Buffers,
}

impl UdpListener {
    /// Listens at `address` (port 0: one that is free).
    ///
    /// # Errors
    /// [`FaceError::Io`]: the port is taken, even by a socket that shares it.
    pub fn bind(address: SocketAddr, options: &UdpOptions) -> Result<Self, FaceError> {
        // Sharing is for our own sockets. A first bind without it finds other programs.
        new_socket(address)
            .and_then(|probe| probe.bind(&address.into()))
            .map_err(|e| FaceError::io("listening on UDP", e))?;
        let (socket, buffers) = open(address, options)?;
        let bound = socket.local_addr().map_err(|e| FaceError::io("asking for our address", e))?;
        let address = bound.as_socket().unwrap_or(address);
        let counters = Counters::default();
        Ok(Self { socket, uri: uri::udp(address), address, options: *options, counters, buffers })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What the kernel granted for the socket's buffers.
    #[must_use]
    pub fn buffers(&self) -> Buffers {
        self.buffers
    }
}

impl Listener for UdpListener {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn counters(&self) -> Counters {
        self.counters.with_overflow_of(&self.socket)
    }

    fn accept(
        &mut self,
        pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<Incoming>,
    ) -> Result<Ready, FaceError> {
        let enough = out.len() + budget;
        while out.len() < enough {
            let mut burst = Burst {
                fd: self.socket.as_fd(),
                layout: Layout::Datagram,
                counters: &mut self.counters,
            };
            let more = burst.receive(pool, |source, bytes, counters| match source {
                Source::Inet(from) => {
                    let frame = RxFrame { endpoint: 0, bytes };
                    out.push(Incoming::Frame { peer: Peer::Udp(from), frame });
                }
                _ => counters.in_foreign += 1,
            });
            match more {
                Ok(true) => {}
                Ok(false) => return Ok(Ready::Idle),
                Err(e) => return receive_error(e),
            }
        }
        Ok(Ready::More)
    }

    fn face_for(&mut self, peer: Peer) -> Result<Box<dyn Face>, FaceError> {
        let Peer::Udp(peer) = peer else {
            return Err(FaceError::Address {
                what: format!("{peer:?}"),
                why: "not a UDP address".into(),
            });
        };
        Ok(Box::new(UdpFace::connect(Some(self.address), peer, &self.options)?))
    }
}
