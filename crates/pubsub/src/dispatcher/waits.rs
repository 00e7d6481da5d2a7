//! Publishers that wait for applications of this node that are behind, where they asked for that
//! (P-93).
//!
//! What such an application is still to be told stays in the history, beyond the number that its
//! publisher asked for; as long as there is such an excess the publisher is not read, so it is what
//! was on its way. The time of a stretch is bounded: then the excess goes, and who was waited for in
//! vain is waited for nowhere until it has caught up.

use super::Dispatcher;
use super::source::{Holder, Source};
use crate::publication::{AppId, Event, Outbox};
use onym_tables::Tick;
use std::collections::{BTreeMap, BTreeSet};

/// Publishers that are not read.
#[derive(Debug, Default)]
pub(super) struct Waits {
    /// The publisher of each history, and until when it waits.
    held: BTreeMap<Source, (AppId, Tick)>,
    by_time: BTreeSet<(Tick, Source)>,
    /// How often one waited in vain.
    pub(super) in_vain: u64,
}

impl Waits {
    /// Histories of which the publisher waits.
    pub(super) fn held(&self) -> impl Iterator<Item = &Source> {
        self.held.keys()
    }

    pub(super) fn next_timeout(&self) -> Option<Tick> {
        self.by_time.first().map(|(until, _)| *until)
    }

    fn hold(&mut self, source: &Source, app: AppId, until: Tick) {
        self.held.insert(source.clone(), (app, until));
        self.by_time.insert((until, source.clone()));
    }

    /// The publisher that waited.
    fn release(&mut self, source: &Source) -> Option<AppId> {
        let (app, until) = self.held.remove(source)?;
        self.by_time.remove(&(until, source.clone()));
        Some(app)
    }

    /// A publisher that waited for as long as it may.
    fn due(&self, now: Tick) -> Option<Source> {
        self.by_time.first().filter(|(until, _)| *until <= now).map(|(_, source)| source.clone())
    }
}

impl Dispatcher {
    /// A history has too much: what nobody needs goes, and for the rest its publisher waits.
    pub(super) fn wait_for_readers(&mut self, now: Tick, source: &Source, out: &mut Outbox) {
        if !self.has_excess(source) {
            return self.go_on(source, out);
        }
        if self.waits.held.contains_key(source) {
            return;
        }
        let holder = self.retained.get(source).map(|history| history.holder);
        if let Some(Holder::App(app)) = holder {
            self.waits.hold(source, app, now + self.config.hold);
            out.tell(app, Event::Wait(true));
        }
    }

    /// Something changed for a history: what nobody needs any more goes, and its publisher goes on
    /// where it waited and need not.
    pub(super) fn look(&mut self, source: &Source, out: &mut Outbox) {
        if !self.has_excess(source) {
            self.go_on(source, out);
        }
    }

    /// An application is gone, or what it subscribed to is.
    pub(super) fn forget_reader(&mut self, app: AppId, out: &mut Outbox) {
        for source in self.readers.forget(app) {
            self.look(&source, out);
        }
    }

    /// Forgets what is too old, and ends stretches that are over.
    pub(super) fn waits_timeout(&mut self, now: Tick, out: &mut Outbox) {
        if self.retained.expire(now) {
            let held: Vec<Source> = self.waits.held().cloned().collect();
            held.iter().for_each(|source| self.look(source, out));
        }
        while let Some(source) = self.waits.due(now) {
            if self.has_excess(&source) {
                self.give_up(&source, out);
            }
            self.go_on(&source, out);
        }
    }

    /// The publisher of a history waited in vain.
    fn give_up(&mut self, source: &Source, out: &mut Outbox) {
        self.waits.in_vain += 1;
        self.retained.trim(source, None);
        let first = self.retained.get(source).map_or(0, |history| history.popped());
        for source in self.readers.give_up(source, first) {
            self.look(&source, out);
        }
    }

    /// Whether a history has too much, when all is forgotten that nobody needs.
    fn has_excess(&mut self, source: &Source) -> bool {
        let kept = self.readers.slowest(source);
        self.retained.trim(source, kept)
    }

    fn go_on(&mut self, source: &Source, out: &mut Outbox) {
        if let Some(app) = self.waits.release(source) {
            out.tell(app, Event::Wait(false));
        }
    }
}
