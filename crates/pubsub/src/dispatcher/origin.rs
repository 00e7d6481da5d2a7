//! Which shard passed a publication.

/// What a shard passed to the control plane, by its number among all that it did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Origin {
    /// The shard.
    pub shard: u16,
    /// The number.
    pub number: u64,
}
