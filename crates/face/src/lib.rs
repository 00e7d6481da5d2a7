#![doc = include_str!("../README.md")]

mod alpn;
mod bridge;
mod certificate;
mod datagram;
pub mod error;
pub mod ether;
pub mod face;
pub mod listen;
pub mod mem;
pub mod quic;
pub mod shm;
pub mod stream;
pub mod udp;
mod unix_socket;
pub mod uri;
mod wake;
pub mod websocket;
pub mod wrap;

pub use bridge::{BridgedFace, BridgedListener};
pub use certificate::Certificate;
pub use error::FaceError;
pub use ether::{EtherFace, EtherListener};
pub use face::{Counters, Face, Flush, Ready, Transport};
pub use listen::{Incoming, Listener, Peer};
pub use onym_wire::faceuri::FaceUri;
pub use shm::{AppFace, RingPolicy, ShmFace};
pub use stream::unix::UnixListener;
pub use stream::{StreamFace, tcp, unix};

/// Octets of a pool chunk that faces receive into: what one read or one joined datagram needs.
pub const CHUNK_LEN: usize = 64 << 10;

#[cfg(test)]
mod tests;
