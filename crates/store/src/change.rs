//! Changes of a store, and their results.

use onym_wire::name::Name;

/// Who a packet belongs to: an index into the owners of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct OwnerId(pub u16);

impl OwnerId {
    /// Whoever runs the store.
    pub const LOCAL: Self = Self(0);
}

/// One change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// Keeps a packet.
    Insert {
        /// The whole Data element.
        packet: Vec<u8>,
        /// Whose quota it counts against, and who may replace and delete it.
        owner: OwnerId,
        /// When it goes by itself, in milliseconds since the Unix epoch; 0 is never.
        expires_ms: u64,
        /// When it came, which its freshness counts from; 0 is now.
        arrived_ms: u64,
    },
    /// Forgets the packet of exactly this name.
    Delete {
        /// The name.
        name: Name,
        /// Only when it belongs to this owner; `None` whoever it belongs to.
        owner: Option<OwnerId>,
    },
    /// Remembers something that is no packet, or forgets it.
    Note {
        /// Its key, up to 4096 octets.
        key: Vec<u8>,
        /// Its value, up to 1 MiB.
        value: Option<Vec<u8>>,
    },
}

impl Change {
    /// Keeps `packet` without end, as the local owner's.
    #[must_use]
    pub fn insert(packet: Vec<u8>) -> Self {
        Self::arrived(packet, 0)
    }

    /// As [`Change::insert`], for a packet that came at `arrived_ms`; 0 is now.
    #[must_use]
    pub fn arrived(packet: Vec<u8>, arrived_ms: u64) -> Self {
        Self::Insert { packet, owner: OwnerId::LOCAL, expires_ms: 0, arrived_ms }
    }

    /// Forgets the packet `name`, whoever it belongs to.
    #[must_use]
    pub fn delete(name: Name) -> Self {
        Self::Delete { name, owner: None }
    }

    /// Octets that it brings, about.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Insert { packet, .. } => packet.len(),
            Self::Delete { name, .. } => name.value().len(),
            Self::Note { key, value } => key.len() + value.as_ref().map_or(0, Vec::len),
        }
    }
}

/// What a change did. It is on the disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Done {
    /// The packet is new.
    New,
    /// It took the place of another one of this name.
    Replaced,
    /// It was there already, octet for octet.
    Had,
    /// The packet is gone.
    Deleted,
    /// There was nothing to delete.
    Missing,
    /// The note is kept, or gone.
    Noted,
}

/// Why a change was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// It is not one whole Data of at most 8800 octets.
    #[error("it is not a Data packet")]
    Malformed,
    /// The name is longer than 4096 octets.
    #[error("its name is longer than 4096 octets")]
    NameTooLong,
    /// Key or value of a note is too long.
    #[error("the note is longer than 1 MiB, or its key than 4096 octets")]
    NoteTooLong,
    /// A packet of this name belongs to somebody else.
    #[error("a packet of this name belongs to another owner")]
    NotYours,
    /// The store is full.
    #[error("the store is full ({0})")]
    Full(&'static str),
    /// The owner has as much as it may have.
    #[error("the quota of the owner is used up ({0})")]
    Quota(&'static str),
    /// Hardly anything is free on the disk.
    #[error("the disk is full: less than {0} octets are free")]
    DiskFull(u64),
    /// The disk cannot be written.
    #[error("the disk is read-only")]
    ReadOnly,
    /// The disk failed; the change may come back after a crash, or not.
    #[error("the disk failed: {0}")]
    Disk(String),
}
