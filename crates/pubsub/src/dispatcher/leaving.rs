//! What is still to be withdrawn for applications that left.

use crate::publication::AppId;
use crate::rendezvous::graph::Held;
use onym_tables::Tick;
use std::collections::{BTreeSet, VecDeque};

/// What is taken back in one turn, at most: about a millisecond's work.
pub const LEAVE_MAX: usize = 256;

/// What is still to be taken back of applications that left.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    apps: VecDeque<(AppId, BTreeSet<Held>)>,
    /// When it goes on.
    at: Tick,
}

impl Leaving {
    /// When it goes on, if there is something.
    pub(super) fn due(&self) -> Option<Tick> {
        (!self.apps.is_empty()).then_some(self.at)
    }

    /// Identifiers that are still there.
    pub(super) fn len(&self) -> usize {
        self.apps.iter().map(|(_, held)| held.len()).sum()
    }

    /// An application leaves with what it held.
    pub(super) fn push(&mut self, now: Tick, app: AppId, held: BTreeSet<Held>) {
        if self.apps.is_empty() {
            self.at = now;
        }
        self.apps.push_back((app, held));
    }

    /// It goes on then.
    pub(super) fn set_due(&mut self, at: Tick) {
        self.at = at;
    }

    /// The next thing to take back: items before scopes, publications before subscriptions, deep
    /// scopes before shallow ones.
    pub(super) fn next(&self) -> Option<(AppId, &Held)> {
        let (app, held) = self.apps.front()?;
        held.first().map(|held| (*app, held))
    }

    /// Takes [`Leaving::next`] out.
    pub(super) fn take(&mut self) -> Option<(AppId, Held)> {
        let (app, held) = self.apps.front_mut()?;
        let taken = (*app, held.pop_first()?);
        if held.is_empty() {
            self.apps.pop_front();
        }
        Some(taken)
    }
}
