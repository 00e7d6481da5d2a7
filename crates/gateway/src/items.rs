//! What the gateway keeps of an item: wanted by name, or fed from a producer.

use onym_client::Incoming;
use onym_client::serve::Object;
use onym_tables::Tick;
use onym_wire::name::Name;
use std::collections::VecDeque;

/// An item that somebody asked for by name.
#[derive(Debug)]
pub(crate) struct Want {
    pub(crate) map: usize,
    pub(crate) subscription: Subscription,
    pub(crate) waiting: Vec<Waiting>,
    /// The oldest first.
    pub(crate) kept: VecDeque<Kept>,
    /// An Interest asked for it last.
    pub(crate) last: Tick,
    pub(crate) version: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Subscription {
    /// The dispatcher was asked.
    Asked,
    There,
    /// Refused; to be tried again.
    Again(Tick),
}

#[derive(Debug)]
pub(crate) struct Waiting {
    pub(crate) incoming: Incoming,
    pub(crate) until: Tick,
}

#[derive(Debug)]
pub(crate) struct Kept {
    pub(crate) object: Object,
    pub(crate) version: u64,
    pub(crate) bytes: usize,
    pub(crate) made: Tick,
}

/// An item that is fed from a producer.
#[derive(Debug)]
pub(crate) struct Offer {
    pub(crate) map: usize,
    pub(crate) name: Name,
    pub(crate) is_configured: bool,
    pub(crate) is_published: bool,
    pub(crate) is_started: bool,
    pub(crate) is_fetching: bool,
    /// The next attempt: to publish the item, or to fetch.
    pub(crate) due: Tick,
    pub(crate) failures: u32,
    /// The version published last, since there are subscribers.
    pub(crate) told: Option<Name>,
}
