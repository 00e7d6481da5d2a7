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
    /// A reader's card that does not count.
    #[error("the card {0} does not count: {1}")]
    Card(Name, &'static str),
    /// Content of a group was wanted, and this is for everybody.
    #[error("it is not encrypted, and only what is encrypted for {0} is wanted")]
    Plain(Name),
    /// Nobody has a content key.
    #[error("nobody has the content key {0}")]
    NotFound(Name),
    /// None of the reader's keys is a member's.
    #[error("no key of this reader is a member's of {0}")]
    NotMember(Name),
    /// The file of a group is damaged.
    #[error("it is no file of a group: {0}")]
    File(&'static str),
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
