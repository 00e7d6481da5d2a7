//! What the control thread asks of a shard for viewers.

use onym_engine::Reply;
use onym_watch::{Filter, PrefixRow, RoundTrip, Span, Taken};

/// What a shard counted of traffic while it was watched.
#[derive(Debug, Default)]
pub(crate) struct Watched {
    /// Prefixes, in no order.
    pub(crate) prefixes: Vec<PrefixRow>,
    /// At most so many packets a prefix may have had that is not among them.
    pub(crate) unseen_max: u64,
    /// Faces that were measured, in no order.
    pub(crate) round_trips: Vec<RoundTrip>,
}

/// An order about what viewers are shown.
#[derive(Debug)]
pub(crate) enum WatchOrder {
    /// What was kept for a viewer since it asked last; none: there is no room for it. The offset is what
    /// is between the shell's clock and Unix time, in nanoseconds.
    Take { viewer: u64, filter: Filter, unix_offset: u64, reply: Reply<Option<Taken>> },
    /// A viewer that not every shard had room for goes.
    End { viewer: u64 },
    /// What was counted of prefixes of `depth` components, and of faces; `seed` draws the samples.
    Traffic { seed: u64, depth: usize, reply: Reply<Watched> },
    /// Spans that have ended.
    Spans { reply: Reply<Vec<Span>> },
    /// Ends what nobody asked about for long.
    EndLeases,
}
