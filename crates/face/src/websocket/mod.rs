//! WebSocket: one TLV per binary message, for browsers.
//!
//! The protocol runs on one control thread; see [`BridgedFace`].

mod gate;
mod task;

pub use gate::Gate;

use crate::bridge::{Arrivals, BridgedFace, Ends, Link};
use crate::certificate::Certificate;
use crate::face::{Ready, Transport};
use crate::listen::{Incoming, Listener};
use crate::stream::tcp::{self, is_loopback};
use crate::{FaceError, FaceUri, uri};
use onym_frame::BufPool;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::Scope;
use rustix::fd::{AsFd, BorrowedFd};
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Notify;

/// How often the peer is asked whether it is there; it has as long to answer.
pub const PING_EVERY: Duration = Duration::from_secs(10);

/// The face of a client, which asked for `path` at the server `ends.remote`.
fn client_face(link: Arc<Link>, ends: Ends, path: &str, scope: Scope) -> BridgedFace {
    let local = FaceUri::WebSocketClient(uri::endpoint(ends.local));
    let remote = FaceUri::WebSocket(uri::endpoint(ends.remote), path.to_owned());
    BridgedFace { link, local, remote, transport: Transport::WebSocket, scope, mtu: PACKET_LEN_MAX }
}

/// The face of a server to the client `ends.remote`.
fn server_face(link: Arc<Link>, ends: Ends, scope: Scope) -> BridgedFace {
    let local = FaceUri::WebSocket(uri::endpoint(ends.local), String::new());
    let remote = FaceUri::WebSocketClient(uri::endpoint(ends.remote));
    BridgedFace { link, local, remote, transport: Transport::WebSocket, scope, mtu: PACKET_LEN_MAX }
}

/// Starts a connection to the server at `remote`, asking for `path` (such as `/`).
///
/// # Errors
/// [`FaceError::Io`] when the control thread or descriptors cannot be had. That nobody answers is
/// told by [`receive`](crate::Face::receive).
pub fn connect(remote: SocketAddr, path: &str) -> Result<BridgedFace, FaceError> {
    connect_with(remote, path, PING_EVERY)
}

fn connect_with(
    remote: SocketAddr,
    path: &str,
    ping_every: Duration,
) -> Result<BridgedFace, FaceError> {
    let (runtime, link) = (task::runtime()?, Link::new()?);
    let scope = if is_loopback(remote.ip()) { Scope::Local } else { Scope::NonLocal };
    let face = client_face(Arc::clone(&link), Ends::towards(remote), path, scope);
    link.state().connecting = true;
    runtime.spawn(task::client(remote, path.to_owned(), link, ping_every));
    Ok(face)
}

/// Accepts WebSocket connections. The path that a client asks for does not matter.
#[derive(Debug)]
pub struct WebSocketListener {
    uri: FaceUri,
    address: SocketAddr,
    arrivals: Arc<Arrivals>,
    stop: Arc<Notify>,
}

impl WebSocketListener {
    /// Listens at `address` (port 0: one that is free) for those whom `gate` lets in.
    ///
    /// # Errors
    /// [`FaceError::Io`], for instance when the port is taken.
    pub fn bind(address: SocketAddr, gate: Gate) -> Result<Self, FaceError> {
        Self::bind_with(address, gate, PING_EVERY)
    }

    /// The same with TLS (`wss`), by the certificate of these files.
    ///
    /// # Errors
    /// As [`Self::bind`].
    pub fn bind_tls(
        address: SocketAddr,
        gate: Gate,
        certificate: Arc<Certificate>,
    ) -> Result<Self, FaceError> {
        Self::open(address, gate, Some(certificate), PING_EVERY)
    }

    fn bind_with(address: SocketAddr, gate: Gate, ping_every: Duration) -> Result<Self, FaceError> {
        Self::open(address, gate, None, ping_every)
    }

    fn open(
        address: SocketAddr,
        gate: Gate,
        certificate: Option<Arc<Certificate>>,
        ping_every: Duration,
    ) -> Result<Self, FaceError> {
        let runtime = task::runtime()?;
        let listening = |e| FaceError::io("listening for WebSocket connections", e);
        let socket: std::net::TcpListener = tcp::bound(address).map_err(listening)?.into();
        socket.set_nonblocking(true).map_err(listening)?;
        let address = socket.local_addr().map_err(listening)?;
        let listener = Self {
            uri: FaceUri::WebSocket(uri::endpoint(address), String::new()),
            address,
            arrivals: Arrivals::new()?,
            stop: Arc::default(),
        };
        let arrivals = Arc::clone(&listener.arrivals);
        let door = Arc::new(task::Door { gate, certificate, arrivals, ping_every });
        runtime.spawn(task::listen(socket, door, Arc::clone(&listener.stop)));
        Ok(listener)
    }

    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Listener for WebSocketListener {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }

    fn accept(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<Incoming>,
    ) -> Result<Ready, FaceError> {
        Ok(self.arrivals.take(budget, out))
    }
}

impl Drop for WebSocketListener {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

#[cfg(test)]
mod tests;
