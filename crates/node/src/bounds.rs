//! Bounds of what crosses between two threads. `crates/model` has smaller ones, so that its lanes are
//! full after a few publications.

/// Batches under way in one direction.
pub(crate) const DEPTH: usize = 8;
/// Most packets, and most transmissions, of one batch.
pub(crate) const BATCH_MAX: usize = 2048;
/// Octets of a batch that are enough for once.
pub(crate) const BATCH_BYTES: usize = 1 << 20;
/// What one round of a shard sends a peer at most of its own accord.
pub(crate) const ROUND_MAX: usize = 1024;
