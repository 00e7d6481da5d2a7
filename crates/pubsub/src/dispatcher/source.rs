//! What histories of publications are of, and who holds them.

use crate::publication::AppId;
use onym_wire::push::Id;

/// Whose share something is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Holder {
    /// An application of this node that publishes it.
    App(AppId),
    /// Publishers at other nodes.
    Network,
}

/// What a history is of.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Source {
    /// An item that an application of this node publishes.
    Own(Id),
    /// A stream of numbers of another node.
    Stream(u64),
}
