//! Errors of faces.

use onym_wire::tlv::Malformed;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why a face or listener could not be opened, or cannot go on.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum FaceError {
    /// The peer closed the connection.
    #[error("closed by the peer")]
    Closed,
    /// The peer closed the connection in the middle of a packet.
    #[error("closed by the peer in the middle of a packet")]
    ClosedInPacket,
    /// What the peer sends on a stream is not a sequence of TLVs of at most 8800 octets.
    #[error("the stream is not a sequence of packets: {0}")]
    Malformed(#[from] Malformed),
    /// The network said that the peer is not there. The socket itself can still be used.
    #[error("the peer cannot be reached: {0}")]
    Unreachable(#[source] io::Error),
    /// The peer did not answer in time.
    #[error("no answer from the peer for {0} s")]
    Silent(u64),
    /// The shared-memory ring holds what its writer must never write.
    #[error("the shared-memory ring is broken: {0}")]
    Ring(&'static str),
    /// There is no shared-memory ring, for the reason given.
    #[error("no shared-memory ring: {0}")]
    RingRefused(String),
    /// The WebSocket peer broke the protocol.
    #[error("WebSocket: {0}")]
    WebSocket(String),
    /// There is no QUIC connection, for the reason given.
    #[error("QUIC: {0}")]
    Quic(String),
    /// The operating system refused.
    #[error("{doing}: {source}")]
    Io {
        /// What was being done.
        doing: &'static str,
        /// Its answer.
        #[source]
        source: io::Error,
    },
    /// The address or path cannot be used for this kind of face.
    #[error("{what} cannot be used: {why}")]
    Address {
        /// The address, path or interface as given.
        what: String,
        /// The reason.
        why: String,
    },
    /// Another program answers on the Unix socket; it is left alone.
    #[error("another forwarder answers on {0}; the socket is left to it")]
    InUse(PathBuf),
}

impl FaceError {
    pub(crate) fn io(doing: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { doing, source: source.into() }
    }

    /// Whether the face cannot carry anything any more. An error that is not fatal ends an
    /// on-demand face, is logged on a persistent one and ignored on a permanent one.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        !matches!(self, Self::Unreachable(_))
    }
}
