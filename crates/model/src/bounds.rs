//! Bounds of what crosses between two threads: so small that a few publications fill a lane.

pub(crate) const DEPTH: usize = 1;
pub(crate) const BATCH_MAX: usize = 2;
pub(crate) const BATCH_BYTES: usize = 1 << 10;
pub(crate) const ROUND_MAX: usize = 1;
