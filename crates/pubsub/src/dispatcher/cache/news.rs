//! What changed of the long publications that a cache holds, until topology managers are told.

use onym_tables::Tick;
use onym_wire::push::Id;
use std::collections::BTreeSet;
use std::time::Duration;

/// Time for which changes are collected.
const COLLECT: Duration = Duration::from_millis(50);

/// Names that came and went; at most as many as a cache holds and has just lost.
#[derive(Debug, Default)]
pub(in crate::dispatcher) struct News {
    came: BTreeSet<Id>,
    went: BTreeSet<Id>,
    due: Option<Tick>,
}

impl News {
    pub(super) fn came(&mut self, name: &Id) {
        if !self.went.remove(name) {
            self.came.insert(name.clone());
        }
    }

    pub(super) fn went(&mut self, name: &Id) {
        if !self.came.remove(name) {
            self.went.insert(name.clone());
        }
    }

    /// When they are to be told.
    pub(super) fn due(&self) -> Option<Tick> {
        let has_some = !self.came.is_empty() || !self.went.is_empty();
        // Without a time it is now.
        has_some.then(|| self.due.unwrap_or_default())
    }

    /// What is to be told now: names that came, and that went.
    pub(in crate::dispatcher) fn take(&mut self, now: Tick) -> Option<(Vec<Id>, Vec<Id>)> {
        self.due()?;
        let due = *self.due.get_or_insert(now + COLLECT);
        if due > now {
            return None;
        }
        self.due = None;
        let [came, went] = [&mut self.came, &mut self.went].map(std::mem::take);
        Some((came.into_iter().collect(), went.into_iter().collect()))
    }
}
