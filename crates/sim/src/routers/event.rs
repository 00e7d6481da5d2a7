//! The queue of events, in order of time.

use onym_tables::Tick;
use std::cmp::Ordering;
use std::sync::Arc;

/// What is under way.
#[derive(Debug)]
pub(super) enum Parcel {
    Packet { to: usize, link: usize, wire: Arc<[u8]>, token: u64 },
    Wake(usize),
}

#[derive(Debug)]
pub(super) struct Planned {
    pub(super) at: Tick,
    pub(super) order: u64,
    pub(super) parcel: Parcel,
}

impl PartialEq for Planned {
    fn eq(&self, other: &Self) -> bool {
        (self.at, self.order) == (other.at, other.order)
    }
}
impl Eq for Planned {}
impl PartialOrd for Planned {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for Planned {
    fn cmp(&self, other: &Self) -> Ordering {
        (self.at, self.order).cmp(&(other.at, other.order))
    }
}
