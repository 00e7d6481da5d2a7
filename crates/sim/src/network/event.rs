//! What happens, and when.

use onym_frame::Buf;
use onym_tables::Tick;
use std::cmp::Ordering;

#[derive(Debug)]
pub(super) enum Happening {
    /// A frame arrives at a port.
    Frame { node: usize, port: usize, bytes: Buf },
    /// A frame was worked on by the processor of its node.
    Worked { node: usize, port: usize, bytes: Buf },
    /// A frame arrives at an application.
    AppFrame { app: usize, bytes: Buf },
    /// A node's timer.
    NodeTimeout(usize),
    /// An application's timer.
    AppTimeout(usize),
    /// A link goes down or up, both directions.
    LinkState { link: usize, is_up: bool },
}

/// Something that happens at a moment; of the same moment, in the order in which it was planned.
#[derive(Debug)]
pub(super) struct Event {
    pub(super) at: Tick,
    pub(super) order: u64,
    pub(super) what: Happening,
}

impl PartialEq for Event {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Event {}

impl PartialOrd for Event {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Event {
    /// The earliest is the greatest, as [`BinaryHeap`] wants it.
    fn cmp(&self, other: &Self) -> Ordering {
        (other.at, other.order).cmp(&(self.at, self.order))
    }
}
