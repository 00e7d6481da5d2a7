//! How a command of `nfdc` ends.

/// How a command ended that did not do what it was to do: what `nfdc` says, and its exit code.
pub(super) struct Ended(pub(super) u8, pub(super) String);

pub(super) type Done<T> = Result<T, Ended>;
