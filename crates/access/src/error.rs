//! What can go wrong.

use onym_wire::{Malformed, Name};

/// A key or content that cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The octets are not what is expected.
    #[error("it cannot be read: {0}")]
    Malformed(#[from] Malformed),
    /// The name is not that of such a key.
    #[error("{0} is not the name of such a key")]
    Name(Name),
    /// It belongs to another group.
    #[error("{name} belongs to another group than {group}")]
    Group {
        /// What was given.
        name: Name,
        /// What was expected.
        group: Name,
    },
    /// It does not decrypt: another key, or changed. What exactly is not told.
    #[error("it does not decrypt with this key")]
    NotReadable,
    /// The member's key cannot be used for this.
    #[error("the key of {0} cannot be used: {1}")]
    Member(Name, &'static str),
    /// The content key sealed as much as it may.
    #[error("the content key has reached its limit: generate a new one")]
    UsedUp,
    /// The cryptographic library refused.
    #[error("the cryptographic library refused")]
    Library,
    /// A signature, certificate or key.
    #[error(transparent)]
    Crypto(#[from] onym_crypto::Error),
}
