//! WebSocket: one TLV per binary message, for browsers.
//!
//! The protocol runs on one control thread (tokio); frames cross to the face by two bounded queues.
//! This is not the fast path: each frame is copied.

mod certificate;
mod gate;
mod link;
mod task;
mod unfinished;

pub use certificate::Certificate;
pub use gate::Gate;

use crate::face::{Counters, Face, Flush, Ready, Transport};
use crate::listen::{Incoming, Listener};
use crate::stream::tcp::{self, is_loopback};
use crate::{FaceError, FaceUri, uri};
use gate::Ends;
use link::Link;
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_sys::epoll::Waker;
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::Scope;
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// How often the peer is asked whether it is there; it has as long to answer.
pub const PING_EVERY: Duration = Duration::from_secs(10);

/// A face to one WebSocket peer.
#[derive(Debug)]
pub struct WebSocketFace {
    link: Arc<Link>,
    local: FaceUri,
    remote: FaceUri,
    scope: Scope,
}

/// Which end of a connection we are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Client,
    Server,
}

impl WebSocketFace {
    fn new(link: Arc<Link>, role: Role, ends: Ends, path: &str, scope: Scope) -> Self {
        let Ends { local, remote } = ends;
        let server = |at| FaceUri::WebSocket(uri::endpoint(at), path.to_owned());
        let client = |at| FaceUri::WebSocketClient(uri::endpoint(at));
        let (local_uri, remote_uri) = match role {
            Role::Client => (client(local), server(remote)),
            Role::Server => (server(local), client(remote)),
        };
        Self { link, local: local_uri, remote: remote_uri, scope }
    }
}

/// Starts a connection to the server at `remote`, asking for `path` (such as `/`).
///
/// # Errors
/// [`FaceError::Io`] when the control thread or descriptors cannot be had. That nobody answers is
/// told by [`Face::receive`].
pub fn connect(remote: SocketAddr, path: &str) -> Result<WebSocketFace, FaceError> {
    connect_with(remote, path, PING_EVERY)
}

fn connect_with(
    remote: SocketAddr,
    path: &str,
    ping_every: Duration,
) -> Result<WebSocketFace, FaceError> {
    let (runtime, link) = (task::runtime()?, Link::new()?);
    // Our address is not known before the connection is there; the family's any stands for it.
    let local = match remote {
        SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
        SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
    };
    let scope = if is_loopback(remote.ip()) { Scope::Local } else { Scope::NonLocal };
    let ends = Ends { local, remote };
    let face = WebSocketFace::new(Arc::clone(&link), Role::Client, ends, path, scope);
    link.state().connecting = true;
    runtime.spawn(task::client(remote, path.to_owned(), link, ping_every));
    Ok(face)
}

impl Face for WebSocketFace {
    fn local_uri(&self) -> &FaceUri {
        &self.local
    }

    fn remote_uri(&self) -> &FaceUri {
        &self.remote
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.link.wake.as_fd()
    }

    fn receive(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<RxFrame>,
    ) -> Result<Ready, FaceError> {
        let mut state = self.link.state();
        let n = state.inbound.frames.len().min(budget);
        for _ in 0..n {
            let Some(bytes) = state.inbound.pop() else { break };
            out.push(RxFrame { endpoint: 0, bytes });
        }
        if n > 0 {
            self.link.changed.notify_one();
        }
        if !state.inbound.frames.is_empty() {
            return Ok(Ready::More);
        }
        if let Some(error) = state.closed.take() {
            return Err(error);
        }
        // Cleared under the lock, so a frame that comes later wakes again.
        self.link.wake.clear();
        Ok(Ready::Idle)
    }

    fn flush(&mut self, queue: &mut TxQueue) -> Result<Flush, FaceError> {
        if queue.is_empty() {
            return Ok(Flush::Done);
        }
        let mut state = self.link.state();
        if state.is_over {
            return Err(state.closed.take().unwrap_or(FaceError::Closed));
        }
        let mut taken = 0;
        for (head, body) in queue.iter() {
            if !state.outbound.has_room(head.len() + body.len()) {
                break;
            }
            state.outbound.push(Buf::joined(head, body));
            taken += 1;
        }
        queue.pop(taken);
        state.sender_waits = !queue.is_empty();
        self.link.changed.notify_one();
        Ok(if queue.is_empty() { Flush::Done } else { Flush::Blocked })
    }

    fn mtu(&self) -> usize {
        PACKET_LEN_MAX
    }

    fn room_is_writable(&self) -> bool {
        false
    }

    fn transport(&self) -> Transport {
        Transport::WebSocket
    }

    fn scope(&self) -> Scope {
        self.scope
    }

    fn is_connecting(&self) -> bool {
        self.link.state().connecting
    }

    fn queue_octets(&self) -> usize {
        self.link.state().outbound.octets
    }

    fn counters(&self) -> Counters {
        self.link.state().counters
    }
}

impl Drop for WebSocketFace {
    fn drop(&mut self) {
        self.link.state().is_over = true;
        self.link.changed.notify_one();
    }
}

/// Connections whose handshake is done and that nobody has taken yet.
type Accepted = Arc<Mutex<VecDeque<WebSocketFace>>>;

/// Accepts WebSocket connections. The path that a client asks for does not matter.
#[derive(Debug)]
pub struct WebSocketListener {
    uri: FaceUri,
    address: SocketAddr,
    accepted: Accepted,
    waker: Arc<Waker>,
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
        let waker = Waker::new().map_err(|e| FaceError::io("making an eventfd", e))?;
        let listener = Self {
            uri: FaceUri::WebSocket(uri::endpoint(address), String::new()),
            address,
            accepted: Accepted::default(),
            waker: Arc::new(waker),
            stop: Arc::default(),
        };
        let door = Arc::new(task::Door {
            gate,
            certificate,
            accepted: Arc::clone(&listener.accepted),
            waker: Arc::clone(&listener.waker),
            ping_every,
        });
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
        self.waker.as_fd()
    }

    fn accept(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<Incoming>,
    ) -> Result<Ready, FaceError> {
        let mut accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        let n = accepted.len().min(budget);
        out.extend(accepted.drain(..n).map(|face| Incoming::Face(Box::new(face))));
        if !accepted.is_empty() {
            return Ok(Ready::More);
        }
        self.waker.clear();
        Ok(Ready::Idle)
    }
}

impl Drop for WebSocketListener {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}

#[cfg(test)]
mod tests;
