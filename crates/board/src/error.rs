//! What can go wrong on a blackboard.

use onym_wire::tlv::Malformed;
use std::io;

/// Why an operation on a blackboard failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BoardError {
    /// The system refused something.
    #[error("{what}: {source}")]
    Io {
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// A configuration that cannot be.
    #[error("{0}")]
    Config(&'static str),
    /// A publication longer than a slot.
    #[error("a publication of {octets} octets does not fit into a slot of {most}")]
    TooLong {
        /// Its octets.
        octets: usize,
        /// What a slot holds.
        most: usize,
    },
    /// All seats are taken.
    #[error("the blackboard has its limit of {0} subscribers")]
    Full(usize),
    /// The publisher does not admit us.
    #[error("the publisher refused: {0}")]
    Refused(String),
    /// What the publisher granted cannot be.
    #[error("the publisher's grant is invalid: {0}")]
    Grant(#[from] Malformed),
    /// The publisher said nothing in time.
    #[error("the publisher did not answer")]
    Silent,
    /// The memory holds what an honest publisher never writes.
    #[error("the publisher violated the protocol: {0}")]
    Lie(&'static str),
    /// The publisher is gone, and all that it published was read.
    #[error("the publisher is gone")]
    Ended,
}

impl BoardError {
    pub(crate) fn io(what: &'static str, source: impl Into<io::Error>) -> Self {
        Self::Io { what, source: source.into() }
    }
}
