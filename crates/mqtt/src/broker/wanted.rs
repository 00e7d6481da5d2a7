//! Filters of clients, and the topics that they mean.

use super::holder::Holder;
use crate::packet::Level;
use crate::topic;
use onym_topics::Items;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

#[derive(Debug, Clone, Copy)]
pub(super) struct Filter {
    pub(super) is_wild: bool,
    pub(super) level: Level,
}

/// The highest level that those of these filters grant which mean a topic.
pub(super) fn granted<'a>(
    filters: impl Iterator<Item = (&'a Arc<str>, &'a Filter)>,
    topic: &str,
) -> Option<Level> {
    filters.filter(|(filter, _)| topic::matches(filter, topic)).map(|(_, of)| of.level).max()
}

/// A topic to which clients subscribed.
#[derive(Debug)]
pub(super) struct Wanted {
    pub(super) items: Items,
    /// Whose place it has: that of who wanted it first.
    pub(super) holder: Holder,
    /// Sessions, each with the level that it was granted.
    pub(super) sessions: BTreeMap<u64, Level>,
    /// The message that is kept.
    pub(super) kept: Option<(Arc<[u8]>, Level)>,
    /// Who is to get it when it comes, until when.
    pub(super) waiting: BTreeMap<u64, Instant>,
}

impl Wanted {
    pub(super) fn is_for(&self, session: u64) -> bool {
        self.sessions.contains_key(&session)
    }
}
