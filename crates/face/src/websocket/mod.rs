//! WebSocket: one TLV per binary message, for browsers.
//!
//! The protocol runs on one control thread; see [`BridgedFace`].

mod gate;
mod task;

pub use gate::Gate;

use crate::bridge::{Arrivals, BridgedFace, BridgedListener, Ends, Link};
use crate::certificate::Certificate;
use crate::face::Transport;
use crate::stream::tcp::{self, is_loopback};
use crate::{FaceError, FaceUri, uri};
use onym_wire::PACKET_LEN_MAX;
use onym_wire::mgmt::Scope;
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

/// Listens at `address` (port 0: one that is free) for those whom `gate` lets in; with `certificate`
/// by TLS (`wss`). The path that a client asks for does not matter.
///
/// # Errors
/// [`FaceError::Io`], for instance when the port is taken.
pub fn listen(
    address: SocketAddr,
    gate: Gate,
    certificate: Option<Arc<Certificate>>,
) -> Result<BridgedListener, FaceError> {
    listen_with(address, gate, certificate, PING_EVERY)
}

fn listen_with(
    address: SocketAddr,
    gate: Gate,
    certificate: Option<Arc<Certificate>>,
    ping_every: Duration,
) -> Result<BridgedListener, FaceError> {
    let runtime = task::runtime()?;
    let listening = |e| FaceError::io("listening for WebSocket connections", e);
    let socket: std::net::TcpListener = tcp::bound(address).map_err(listening)?.into();
    socket.set_nonblocking(true).map_err(listening)?;
    let address = socket.local_addr().map_err(listening)?;
    let uri = FaceUri::WebSocket(uri::endpoint(address), String::new());
    let (arrivals, stop) = (Arrivals::new()?, Arc::new(Notify::new()));
    let shared = Arc::clone(&arrivals);
    let door = Arc::new(task::Door { gate, certificate, arrivals: shared, ping_every });
    runtime.spawn(task::listen(socket, door, Arc::clone(&stop)));
    Ok(BridgedListener { uri, address, arrivals, stop })
}

#[cfg(test)]
mod tests;
