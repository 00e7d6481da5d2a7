//! Applications that leave: what they published and subscribed to is withdrawn in portions.
//!
//! Withdrawing hundreds of thousands of scopes at once would block the thread for seconds and hold
//! all resulting messages in memory. Until its turn comes an identifier keeps its state; the
//! application that left gets no messages for it.

use super::leaving::LEAVE_MAX;
use super::{Dispatcher, Pending, Request};
use crate::courier::QUEUE_MAX;
use crate::publication::{AppId, Outbox};
use crate::rendezvous::graph::Held;
use onym_tables::Tick;
use onym_wire::push::{Id, Kind, Strategy};
use std::time::Duration;

/// How soon it goes on where a rendezvous has not acknowledged what was taken back before.
const AGAIN: Duration = Duration::from_millis(10);

impl Dispatcher {
    /// An application is gone, whose number is not used again: what it published and subscribed to is
    /// taken back, the first [`LEAVE_MAX`] things at once, as many more with each timeout.
    pub fn disconnect(&mut self, now: Tick, app: AppId, out: &mut Outbox) {
        if let Some(held) = self.apps.remove(&app) {
            self.leaving.push(now, app, held);
        }
        self.leave_on(now, out);
        self.forget_reader(app, out);
        out.forget(app);
    }

    /// Identifiers that applications held that left, and that are still to be taken back.
    #[must_use]
    pub fn leaving(&self) -> usize {
        self.leaving.len()
    }

    /// Takes back as much as one turn may.
    pub(super) fn leave_on(&mut self, now: Tick, out: &mut Outbox) {
        if self.leaving.due().is_none_or(|due| due > now) {
            return;
        }
        self.leaving.set_due(now);
        for _ in 0..LEAVE_MAX {
            let Some((_, held)) = self.leaving.next() else { break };
            if !self.has_room_to_leave(&held.id) {
                self.leaving.set_due(now + AGAIN);
                break;
            }
            if let Some((app, held)) = self.leaving.take() {
                self.leave_one(now, app, &held, out);
            }
        }
    }

    /// Whether the rendezvous of `id` may be asked for one more thing: a session whose queue is full
    /// would end, with all that it asked for before.
    fn has_room_to_leave(&self, id: &Id) -> bool {
        let waiting = self.rendezvous_of(id).map_or(0, |node| self.rendezvous.waiting(node));
        waiting < QUEUE_MAX / 2 && self.pending.len() + self.early.len() < self.config.pending_max
    }

    /// Takes back one thing that `app` held.
    fn leave_one(&mut self, now: Tick, app: AppId, held: &Held, out: &mut Outbox) {
        let full = self.key(held.id.clone());
        let of = if held.is_subscription {
            let of = self.subscriptions.get_mut(&full).map(|s| {
                let waited = s.waiting.len();
                s.waiting.retain(|w| w.app != app);
                (s.strategy, s.waiting.len() < waited)
            });
            if let Some((strategy, true)) = of
                && self.is_kept_before(strategy)
            {
                self.tell_answered(&full, app, out);
            }
            of.map(|(strategy, _)| strategy)
        } else {
            self.publications.get_mut(&full).map(|p| {
                p.waiting.retain(|w| w.app != app);
                p.strategy
            })
        };
        let Some(strategy) = of else { return };
        let is_last = self.remove_held(now, held, &full, app, out) == Some(true);
        // What came for what it still held is not for it.
        self.forget_reader(app, out);
        if !is_last || !strategy.has_rendezvous() {
            return;
        }
        let is_unknown = strategy != Strategy::NODE_LOCAL && self.rendezvous_of(&full).is_none();
        if is_unknown && self.early.len() >= LEAVE_MAX {
            // One that comes to know of this node again hears what it asserts then.
            return;
        }
        let kind = Kind(2 + u8::from(!held.is_scope) + 4 * u8::from(held.is_subscription));
        let id = full.last().map(Id::root).unwrap_or_default();
        let prefix = Id::from_labels(full.parent());
        let request = Request { kind, id, prefix, strategy };
        self.ask(now, Pending::new(now, &request, full), out);
    }
}
