//! What is waited for while the queue of a face is long.

use onym_tables::Tick;

/// Octets of the push half in the queue of a face that hold the push half of its shard back.
pub(crate) const HOLD_AT: usize = 256 << 10;

/// Whether a face with a long queue is waited for: by the push half of its shard, or by itself.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum Hold {
    /// Nothing.
    #[default]
    Free,
    /// It is waited for, since then, when so many octets had left to it.
    Since(Tick, u64),
    /// It was waited for long enough.
    Slow,
}
