//! Which shard passed a publication, and how it came.

use onym_tables::FaceId;
use onym_wire::push::Flags;

/// What a shard passed to the control plane, by its number among all that it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// The shard.
    pub shard: u16,
    /// The number.
    pub number: u64,
}

/// How a frame of data came to the control plane.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Came {
    /// The face that it came over.
    pub face: FaceId,
    /// Its flags.
    pub flags: Flags,
    /// The shard that passed it.
    pub origin: Origin,
}
