//! QUIC: one frame per datagram, between nodes, and from browsers as WebTransport over HTTP/3.
//!
//! The protocol runs on one control thread; see [`BridgedFace`]. What the other end is says the
//! protocol that TLS negotiates: `ndn` or `h3` (spec/registry.md). Built with the feature `quic` only.

#[cfg(feature = "quic")]
mod carry;
#[cfg(feature = "quic")]
mod config;
#[cfg(feature = "quic")]
mod h3;
#[cfg(feature = "quic")]
mod huffman;
#[cfg(feature = "quic")]
mod qpack;
#[cfg(not(feature = "quic"))]
#[path = "absent.rs"]
mod task;
#[cfg(feature = "quic")]
mod task;

use crate::bridge::{Arrivals, BridgedFace, BridgedListener, Ends, Link};
use crate::certificate::{Certificate, certificates};
use crate::face::Transport;
use crate::websocket::Gate;
use crate::{FaceError, FaceUri, uri};
use onym_wire::mgmt::Scope;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use tokio::sync::Notify;

/// Longest frame, in octets: what the 1,200 octets that every path of QUIC carries leave beside the
/// longest header, the head of a datagram and the longest number of a WebTransport session.
pub const FRAME_MAX: usize = 1142;

fn face(link: Arc<Link>, ends: Ends) -> BridgedFace {
    let [local, remote] = [ends.local, ends.remote].map(|at| FaceUri::Quic(uri::endpoint(at)));
    let (transport, scope) = (Transport::Quic, Scope::NonLocal);
    BridgedFace { link, local, remote, transport, scope, mtu: FRAME_MAX }
}

/// Starts a connection to the node at `remote`. It must show one of the certificates in the PEM file
/// `peers`; without the file whoever answers is believed, as with UDP.
///
/// # Errors
/// [`FaceError::Address`] with the file that cannot be used; [`FaceError::Io`] and
/// [`FaceError::Quic`] when the control thread or a socket cannot be had. That nobody answers is told
/// by [`receive`](crate::Face::receive).
pub fn connect(remote: SocketAddr, peers: Option<&Path>) -> Result<BridgedFace, FaceError> {
    let (known, link) = (peers.map(certificates).transpose()?, Link::new()?);
    link.state().connecting = true;
    task::connect(remote, known, Arc::clone(&link))?;
    Ok(face(link, Ends::towards(remote)))
}

/// What all connections to one listener share.
#[cfg_attr(not(feature = "quic"), allow(dead_code))]
struct Door {
    gate: Gate,
    certificate: Arc<Certificate>,
    arrivals: Arc<Arrivals>,
    stop: Arc<Notify>,
}

/// Listens at `address` (port 0: one that is free), with a certificate of [`Certificate::load_quic`],
/// for connections of nodes, and for WebTransport sessions of browsers that `gate` lets in. The path
/// that a browser asks for does not matter.
///
/// # Errors
/// [`FaceError::Io`], for instance when the port is taken.
pub fn listen(
    address: SocketAddr,
    gate: Gate,
    certificate: Arc<Certificate>,
) -> Result<BridgedListener, FaceError> {
    let (arrivals, stop) = (Arrivals::new()?, Arc::new(Notify::new()));
    let shared = (Arc::clone(&arrivals), Arc::clone(&stop));
    let door = Door { gate, certificate, arrivals: shared.0, stop: shared.1 };
    let address = task::listen(address, door)?;
    Ok(BridgedListener { uri: FaceUri::Quic(uri::endpoint(address)), address, arrivals, stop })
}

#[cfg(feature = "quic")]
#[cfg(test)]
mod tests;
