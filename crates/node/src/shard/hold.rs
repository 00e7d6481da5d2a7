//! What a face does to the push half of its shard while its queue is long.

use onym_tables::Tick;

/// What a face does to the push half of its shard.
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
