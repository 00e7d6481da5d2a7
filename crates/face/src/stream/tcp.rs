//! TCP.

use super::{StreamFace, Uris};
use crate::face::{Ready, Transport};
use crate::listen::{Incoming, Listener, Reserve};
use crate::{FaceError, FaceUri, uri};
use onym_frame::BufPool;
use onym_wire::mgmt::Scope;
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use socket2::{Domain, Protocol, SockRef, Socket, Type};
use std::io;
use std::net::{IpAddr, SocketAddr};

/// Starts a connection to `remote`; the face is connecting until its descriptor is writable.
///
/// # Errors
/// [`FaceError::Io`] when it fails at once, for want of a route or of descriptors.
pub fn connect(remote: SocketAddr) -> Result<StreamFace, FaceError> {
    let socket = new_socket(remote).map_err(|e| FaceError::io("making a TCP socket", e))?;
    let connecting = match socket.connect(&remote.into()) {
        Ok(()) => false,
        Err(e) if e.raw_os_error() == Some(Errno::INPROGRESS.raw_os_error()) => true,
        Err(e) => return Err(FaceError::io("connecting", e)),
    };
    Ok(StreamFace { connecting, ..face(socket.into(), remote)? })
}

fn new_socket(address: SocketAddr) -> io::Result<Socket> {
    let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
    socket.set_nonblocking(true)?;
    Ok(socket)
}

fn face(fd: OwnedFd, remote: SocketAddr) -> Result<StreamFace, FaceError> {
    let socket = SockRef::from(&fd);
    // Interests are small and wait for nobody: batching is done by the queue, not by the kernel.
    socket.set_tcp_nodelay(true).map_err(|e| FaceError::io("setting TCP_NODELAY", e))?;
    let local = socket.local_addr().map_err(|e| FaceError::io("asking for our address", e))?;
    let local = local.as_socket().unwrap_or(remote);
    let both = is_loopback(local.ip()) && is_loopback(remote.ip());
    let scope = if both { Scope::Local } else { Scope::NonLocal };
    let uris = Uris { local: uri::tcp(local), remote: uri::tcp(remote) };
    Ok(StreamFace::new(fd, uris, Transport::Tcp, scope))
}

/// Whether an address is in 127/8 or is ::1.
pub(crate) fn is_loopback(ip: IpAddr) -> bool {
    ip.is_loopback()
}

/// Accepts TCP connections.
#[derive(Debug)]
pub struct TcpListener {
    socket: Socket,
    uri: FaceUri,
    address: SocketAddr,
    reserve: Reserve,
}

/// Connections waiting to be accepted.
const BACKLOG: i32 = 128;

/// A socket that listens at `address`; one of IPv6 leaves the port of IPv4 alone.
pub(crate) fn bound(address: SocketAddr) -> io::Result<Socket> {
    let socket = new_socket(address)?;
    socket.set_reuse_address(true)?;
    if address.is_ipv6() {
        socket.set_only_v6(true)?;
    }
    socket.bind(&address.into())?;
    socket.listen(BACKLOG)?;
    Ok(socket)
}

impl TcpListener {
    /// Listens at `address` (port 0: one that is free).
    ///
    /// # Errors
    /// [`FaceError::Io`], for instance when the port is taken.
    pub fn bind(address: SocketAddr) -> Result<Self, FaceError> {
        let socket = bound(address).map_err(|e| FaceError::io("listening on TCP", e))?;
        let address = socket.local_addr().ok().and_then(|a| a.as_socket()).unwrap_or(address);
        Ok(Self { socket, uri: uri::tcp(address), address, reserve: Reserve::new() })
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Listener for TcpListener {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    fn accept(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<Incoming>,
    ) -> Result<Ready, FaceError> {
        for _ in 0..budget {
            match self.socket.accept() {
                Ok((socket, address)) => {
                    let Some(remote) = address.as_socket() else { continue };
                    socket
                        .set_nonblocking(true)
                        .map_err(|e| FaceError::io("making a TCP socket non-blocking", e))?;
                    // A connection that is gone already has no address any more.
                    if let Ok(face) = face(socket.into(), remote) {
                        out.push(Incoming::Face(Box::new(face)));
                    }
                }
                Err(e) if e.kind() == io::ErrorKind::WouldBlock => return Ok(Ready::Idle),
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) if e.kind() == io::ErrorKind::ConnectionAborted => {}
                Err(e) => {
                    if Errno::from_io_error(&e).is_some_and(Reserve::is_for) {
                        self.reserve.turn_away(|| drop(self.socket.accept()));
                    }
                    return Err(FaceError::io("accepting on TCP", e));
                }
            }
        }
        Ok(Ready::More)
    }
}
