//! Requests of applications.

use super::{Aliases, Dispatcher, Pending, Publisher, Publishing, Subscribing, Word};
use crate::fib::Delta;
use crate::names::Key;
use crate::publication::{AppId, Event, Outbox, Target};
use crate::rendezvous::graph::Held;
use onym_tables::Tick;
use onym_wire::push::{Control, Id, Kind, Status, Strategy, reserved};
use smallvec::{SmallVec, smallvec};

/// A request of an application.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// Which of the eight.
    pub kind: Kind,
    /// One label, or a whole identifier when something is published once more.
    pub id: Id,
    /// The parent.
    pub prefix: Id,
    /// The strategy.
    pub strategy: Strategy,
}

/// Who waits for a status.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Waiting {
    pub(super) app: AppId,
    pub(super) tag: u64,
    /// The application takes it back, with this tag, as soon as it is there.
    pub(super) then: Option<u64>,
}

impl Dispatcher {
    /// A request of `app`; its status comes as an event with `tag`.
    pub fn request(
        &mut self,
        now: Tick,
        app: AppId,
        tag: u64,
        request: &Request,
        out: &mut Outbox,
    ) {
        self.request_named(now, app, tag, request, None, out);
    }

    /// As [`Dispatcher::request`], with the word that the last label stands for (P-72).
    pub fn request_named(
        &mut self,
        now: Tick,
        app: AppId,
        tag: u64,
        request: &Request,
        word: Option<&str>,
        out: &mut Outbox,
    ) {
        let waiting = Waiting { app, tag, then: None };
        let status = match self.check(request) {
            Err(status) => Some(status),
            Ok(full) if self.has_other_word(&full, word) => Some(Status::WORD),
            Ok(_) if !request.kind.is_withdrawal() && !self.has_room_for(app) => Some(Status::FULL),
            Ok(full) if request.strategy.has_rendezvous() => {
                if request.kind.is_withdrawal() {
                    self.withdraw(now, waiting, request, full, out)
                } else {
                    self.join(now, waiting, request, word, full, out)
                }
            }
            Ok(full) => Some(self.implicit(app, request, full, out)),
        };
        if let Some(status) = status {
            self.tell_status(&[waiting], status, out);
            let is_new = status == Status::OK && !request.kind.is_withdrawal();
            if is_new && !request.strategy.has_rendezvous() {
                self.tell_kept(app, request, out);
            } else if is_new && !request.kind.is_of_publisher() {
                self.tell_what_is_there(app, request, out);
            }
        }
    }

    /// What was published before the subscription and is still good.
    fn tell_kept(&mut self, app: AppId, request: &Request, out: &mut Outbox) {
        let Some(label) = request.id.last() else { return };
        let kept = self.cache.beneath(&request.prefix.child(label), app);
        self.counters.cached += kept.len() as u64;
        kept.into_iter().for_each(|event| out.tell(app, event));
    }

    /// The full identifier, when the shape of the request allows one.
    fn check(&self, request: &Request) -> Result<Key, Status> {
        let kind = request.kind;
        if !kind.is_request() {
            return Err(Status::UNKNOWN);
        }
        let is_publishing = kind.is_of_publisher() && !kind.is_withdrawal();
        let is_shaped = match request.id.len() {
            0 => false,
            1 => true,
            _ => is_publishing && !request.prefix.is_empty(),
        };
        let needs_parent = !kind.is_of_scope() && request.prefix.is_empty();
        let depth = request.prefix.len() + 1;
        let Some(label) = request.id.last() else { return Err(Status::WRONG_IDS) };
        if !is_shaped || needs_parent || depth > onym_wire::push::DEPTH_MAX {
            return Err(Status::WRONG_IDS);
        }
        let full = request.prefix.child(label);
        let roots = [full.first(), request.id.first().filter(|_| request.id.len() > 1)];
        if roots.into_iter().flatten().any(reserved::is_reserved) {
            return Err(Status::RESERVED);
        }
        let is_fit = request.strategy.is_known()
            && (request.strategy.has_rendezvous() || !kind.is_of_publisher());
        if is_fit { Ok(self.key(full)) } else { Err(Status::UNFIT) }
    }

    /// Subscriptions of strategies without rendezvous stay in this node.
    fn implicit(&mut self, app: AppId, request: &Request, full: Key, out: &mut Outbox) -> Status {
        let is_scope = request.kind.is_of_scope();
        if !request.kind.is_withdrawal() {
            let entry = self.subscriptions.get_or_insert(full.clone(), || Subscribing {
                is_scope,
                strategy: request.strategy,
                id: request.id.clone(),
                prefix: request.prefix.clone(),
                word: None,
                subscribers: SmallVec::new(),
                waiting: SmallVec::new(),
            });
            if entry.strategy != request.strategy {
                return Status::STRATEGY;
            }
            if entry.subscribers.contains(&app) {
                return Status::EXISTS;
            }
            entry.subscribers.push(app);
            let held = Held::new(is_scope, true, Id::clone(&full));
            self.apps.entry(app).or_default().insert(held);
            self.tell_joined(&full, app, out);
            return Status::OK;
        }
        let missing = if is_scope { Status::NO_SCOPE } else { Status::NO_ITEM };
        let Some(entry) = self.subscriptions.get_mut(&full) else { return missing };
        if entry.strategy != request.strategy {
            return Status::STRATEGY;
        }
        if !entry.leave(app) {
            return Status::NOT_THERE;
        }
        if entry.subscribers.is_empty() {
            self.subscriptions.remove(&full);
        }
        self.leave(app, &Held::new(is_scope, true, Id::clone(&full)));
        self.tell_left(&full, app, out);
        Status::OK
    }

    fn leave(&mut self, app: AppId, what: &Held) {
        if let Some(held) = self.apps.get_mut(&app) {
            held.remove(what);
            if held.is_empty() {
                self.apps.remove(&app);
            }
        }
    }

    /// Publishes or subscribes; `None` when the rendezvous has to answer.
    fn join(
        &mut self,
        now: Tick,
        waiting: Waiting,
        request: &Request,
        word: Option<&str>,
        full: Key,
        out: &mut Outbox,
    ) -> Option<Status> {
        let is_subscription = !request.kind.is_of_publisher();
        let is_scope = request.kind.is_of_scope();
        let found = if is_subscription {
            self.subscriptions.get_mut(&full).map(|s| {
                let has = s.subscribers.contains(&waiting.app);
                (s.is_scope, s.strategy, has, s.subscribers.is_empty(), &mut s.waiting)
            })
        } else {
            self.publications.get_mut(&full).map(|p| {
                let has = p.publishers.iter().any(|p| p.app == waiting.app);
                (p.is_scope, p.strategy, has, p.publishers.is_empty(), &mut p.waiting)
            })
        };
        if let Some((was_scope, strategy, has, is_asking, others)) = found {
            if was_scope != is_scope {
                return Some(if was_scope { Status::IS_SCOPE } else { Status::IS_ITEM });
            }
            if strategy != request.strategy {
                return Some(Status::STRATEGY);
            }
            if has || others.iter().any(|w| w.app == waiting.app) {
                return Some(Status::EXISTS);
            }
            if is_subscription && !self.children.is_whole(&full) {
                return Some(Status::FULL);
            }
            let held = self.apps.entry(waiting.app).or_default();
            held.insert(Held::new(is_scope, is_subscription, Id::clone(&full)));
            if is_asking {
                others.push(waiting);
                if is_subscription && self.is_kept_before(strategy) {
                    self.tell_awaiting(&full, waiting.app, out);
                }
                return None;
            }
            self.settle_one(is_subscription, &full, waiting.app, out);
            return Some(Status::OK);
        }
        if self.pending.len() + self.early.len() >= self.config.pending_max {
            return Some(Status::FULL);
        }
        let held = Held::new(is_scope, is_subscription, Id::clone(&full));
        self.apps.entry(waiting.app).or_default().insert(held);
        self.enter(request, word, &full, waiting, out);
        let mut pending = Pending::new(now, request, full);
        pending.word = word.map(Word::from);
        self.ask(now, pending, out);
        None
    }

    /// Notes a publication or subscription that the rendezvous is asked for.
    fn enter(
        &mut self,
        request: &Request,
        word: Option<&str>,
        full: &Key,
        waiting: Waiting,
        out: &mut Outbox,
    ) {
        let word = word.map(Word::from);
        let (is_scope, strategy) = (request.kind.is_of_scope(), request.strategy);
        let (id, prefix) = (request.id.clone(), request.prefix.clone());
        let app = waiting.app;
        let waiting = smallvec![waiting];
        if request.kind.is_of_publisher() {
            let entry = Publishing {
                is_scope,
                strategy,
                id,
                prefix,
                word,
                publishers: SmallVec::new(),
                waiting,
                is_matched: false,
                route: None,
                reply: None,
                hops: 0,
                aliases: Aliases::from_elem(Id::clone(full), 1),
            };
            self.publications.insert(full.clone(), entry);
        } else {
            if self.is_kept_before(strategy) {
                self.tell_awaiting(full, app, out);
            }
            let subscribers = SmallVec::new();
            let entry = Subscribing { is_scope, strategy, id, prefix, word, subscribers, waiting };
            self.subscriptions.insert(full.clone(), entry);
        }
    }

    /// Whether what comes before the answer to a subscription is kept: within a node of one shard that
    /// is there before anything is published.
    #[inline]
    pub(super) fn is_kept_before(&self, strategy: Strategy) -> bool {
        strategy != Strategy::NODE_LOCAL || self.config.shards > 1
    }

    fn settle_one(&mut self, is_subscription: bool, full: &Key, app: AppId, out: &mut Outbox) {
        if is_subscription {
            if let Some(s) = self.subscriptions.get_mut(full) {
                s.subscribers.push(app);
                self.tell_joined(full, app, out);
            }
        } else if let Some(p) = self.publications.get_mut(full) {
            p.publishers.push(Publisher::new(app));
        }
    }

    /// Takes back; `None` when the rendezvous has to answer.
    fn withdraw(
        &mut self,
        now: Tick,
        waiting: Waiting,
        request: &Request,
        full: Key,
        out: &mut Outbox,
    ) -> Option<Status> {
        let is_subscription = !request.kind.is_of_publisher();
        let entry = if is_subscription {
            self.subscriptions.get_mut(&full).map(|s| (s.strategy, s.is_scope, &mut s.waiting))
        } else {
            self.publications.get_mut(&full).map(|p| (p.strategy, p.is_scope, &mut p.waiting))
        };
        if let Some((strategy, is_scope, others)) = entry {
            if is_scope != request.kind.is_of_scope() {
                return Some(if is_scope { Status::NO_ITEM } else { Status::NO_SCOPE });
            }
            if strategy != request.strategy {
                return Some(Status::STRATEGY);
            }
            if let Some(own) = others.iter_mut().find(|w| w.app == waiting.app) {
                let is_first = own.then.is_none();
                own.then.get_or_insert(waiting.tag);
                return (!is_first).then_some(Status::NOT_THERE);
            }
            match self.remove(now, is_subscription, (&full, waiting.app), out) {
                None => return Some(Status::NOT_THERE),
                Some(false) => return Some(Status::OK),
                Some(true) => {}
            }
        }
        // Also when nothing is known here: the rendezvous knows the right status.
        let pending = Pending { waiting: Some(waiting), ..Pending::new(now, request, full) };
        self.ask(now, pending, out);
        None
    }

    /// Removes an application from what it held; whether it was the last one, `None` when it was not
    /// there.
    pub(super) fn remove_held(
        &mut self,
        now: Tick,
        held: &Held,
        full: &Key,
        app: AppId,
        out: &mut Outbox,
    ) -> Option<bool> {
        self.remove(now, held.is_subscription, (full, app), out)
    }

    /// Removes an application; whether it was the last one, `None` when it was not there.
    fn remove(
        &mut self,
        now: Tick,
        is_subscription: bool,
        (full, app): (&Key, AppId),
        out: &mut Outbox,
    ) -> Option<bool> {
        let (is_scope, is_last) = if is_subscription {
            let mut was_there = None;
            let is_over = |s: &mut Subscribing| {
                was_there = s.leave(app).then_some(s.is_scope);
                was_there.is_some() && s.subscribers.is_empty()
            };
            let is_last = self.subscriptions.remove_if(full, is_over).is_some();
            let is_scope = was_there?;
            self.tell_left(full, app, out);
            if is_last {
                self.forget_unwanted(full);
                self.children.forget(full);
            }
            (is_scope, is_last)
        } else {
            self.end_retained(now, full, app, out);
            let p = self.publications.get_mut(full)?;
            let at = p.publishers.iter().position(|p| p.app == app)?;
            let publisher = p.publishers.remove(at);
            let (is_scope, is_last) = (p.is_scope, p.publishers.is_empty());
            let aliases = p.aliases.clone();
            if publisher.is_started {
                self.elect(&aliases, out);
            }
            if publisher.is_installed {
                // After the next one is started, which goes on with the numbers at the same shard.
                out.delta(Delta::Withdrawn(full.clone(), app));
            }
            if is_last {
                self.publications.remove(full);
            }
            self.open_next(full, out);
            (is_scope, is_last)
        };
        self.leave(app, &Held::new(is_scope, is_subscription, Id::clone(full)));
        Some(is_last)
    }

    /// Starts one publisher of an item with these names, unless one is started (P-26).
    pub(super) fn elect(&mut self, ids: &[Id], out: &mut Outbox) {
        let is_started = |p: &Publishing| p.publishers.iter().any(|p| p.is_started);
        if ids.len() > 1 && ids.iter().filter_map(|id| self.publications.get(id)).any(is_started) {
            return;
        }
        for id in ids {
            let entry = self.publications.entry(id);
            let entry = entry.filter(|(_, p)| p.is_matched && !is_started(p));
            let Some((key, entry)) = entry else { continue };
            if !entry.publishers.is_empty() {
                return Self::start_first(key, entry, out);
            }
        }
    }

    /// Starts one publisher of an item, unless one is started or nobody subscribed.
    fn elect_one(&mut self, full: &Key, out: &mut Outbox) {
        let entry = self.publications.entry(full);
        if let Some((key, entry)) = entry
            && entry.is_matched
            && !entry.publishers.iter().any(|p| p.is_started)
        {
            Self::start_first(key, entry, out);
        }
    }

    /// Starts the first publisher of an item, where there is one.
    pub(super) fn start_first(key: &Key, entry: &mut Publishing, out: &mut Outbox) {
        let way = entry.way(key);
        let Some(publisher) = entry.publishers.first_mut() else { return };
        (publisher.is_started, publisher.is_installed) = (true, true);
        let app = publisher.app;
        out.delta(Delta::Started { key: key.clone(), app, way });
        out.tell(app, Event::StartPublish(Id::clone(key)));
    }

    /// Sends a request to its rendezvous, or keeps it until one is known.
    pub(super) fn ask(&mut self, now: Tick, pending: Pending, out: &mut Outbox) {
        let message = Control {
            ids: vec![pending.id.clone()],
            prefix: pending.prefix.clone(),
            strategy: pending.strategy,
            word: pending.word.clone(),
            ..self.message(pending.kind)
        };
        if pending.strategy == Strategy::NODE_LOCAL {
            self.local.push_back(pending);
            let (root, node) = (reserved::RENDEZVOUS, self.config.node);
            return out.control(Target::Here, root, node, message);
        }
        let Some(node) = self.rendezvous_of(&pending.full) else {
            let due = pending.since + self.config.patience;
            return self.early.push((due, pending));
        };
        match self.rendezvous.send(now, node, message) {
            Some(ready) => {
                let sequence = self.rendezvous.last_sent(node);
                self.pending.insert((node, sequence), pending);
                ready.into_iter().for_each(|m| self.publish_to_rendezvous(node, m, out));
            }
            None => self.settle(now, pending, Status::FULL, out),
        }
    }

    /// Requests that waited for a rendezvous to be known, or for their time.
    pub(super) fn early_again(&mut self, now: Tick, out: &mut Outbox) {
        if self.early.is_empty() {
            return;
        }
        let early = std::mem::take(&mut self.early);
        for (due, pending) in early {
            if self.rendezvous_of(&pending.full).is_some() && (due <= now || !pending.is_assertion)
            {
                self.ask(now, pending, out);
            } else if due <= now && !pending.is_assertion {
                self.settle(now, pending, Status::UNREACHED, out);
            } else {
                let due = if due <= now { now + self.config.patience } else { due };
                self.early.push((due, pending));
            }
        }
    }

    /// The status of a request is known.
    pub(super) fn settle(&mut self, now: Tick, pending: Pending, status: Status, out: &mut Outbox) {
        if pending.kind.is_withdrawal() {
            let is_gone = matches!(status, Status::NOT_THERE | Status::NO_ITEM | Status::NO_SCOPE);
            if let Some(waiting) = pending.waiting {
                let status = if pending.is_assertion && is_gone { Status::OK } else { status };
                self.tell_status(&[waiting], status, out);
            }
            return;
        }
        // The rendezvous knew of this node from before: so it is done.
        let is_done = matches!(status, Status::OK | Status::EXISTS);
        if is_done {
            if status == Status::OK && pending.kind == Kind::SUBSCRIBE_SCOPE {
                self.children.doubt(&pending.full, now + 3 * self.config.keep_alive);
            }
            return self.settle_done(now, &pending, out);
        }
        let is_early = matches!(status, Status::NO_PARENT | Status::NO_SCOPE | Status::NO_ITEM);
        if pending.is_assertion && (is_early || status == Status::UNREACHED) {
            // Another node has not asserted the parent yet.
            return self.early.push((now.plus_ms(200), pending));
        }
        let pending = &pending;
        let full = &pending.full;
        let (waiting, apps): (_, Vec<AppId>) = if pending.kind.is_of_publisher() {
            let Some(p) = self.publications.remove(full) else { return };
            self.open_next(full, out);
            for publisher in p.publishers.iter().filter(|p| p.is_installed) {
                out.delta(Delta::Withdrawn(full.clone(), publisher.app));
            }
            let started = p.publishers.iter().filter(|p| p.is_started);
            started.for_each(|p| out.tell(p.app, Event::StopPublish(Id::clone(full))));
            (p.waiting, p.publishers.iter().map(|p| p.app).collect())
        } else {
            let Some(s) = self.subscriptions.remove(full) else { return };
            self.forget_unwanted(full);
            self.children.forget(full);
            for app in &s.subscribers {
                self.tell_left(full, *app, out);
            }
            (s.waiting, s.subscribers.to_vec())
        };
        let is_subscription = !pending.kind.is_of_publisher();
        let held = Held::new(pending.kind.is_of_scope(), is_subscription, Id::clone(full));
        for app in waiting.iter().map(|w| w.app).chain(apps) {
            self.leave(app, &held);
        }
        self.tell_status(&waiting, status, out);
        if is_subscription {
            self.answered(pending, &waiting, out);
        }
        let then = waiting.iter().filter_map(|w| w.then.map(|tag| Waiting { tag, ..*w }));
        self.tell_status(&then.collect::<Vec<_>>(), Status::NOT_THERE, out);
    }

    fn settle_done(&mut self, now: Tick, pending: &Pending, out: &mut Outbox) {
        let (full, is_subscription) = (&pending.full, !pending.kind.is_of_publisher());
        // A withdrawal in between leaves nothing to settle.
        let waiting = if is_subscription {
            let Some(s) = self.subscriptions.get_mut(full) else { return };
            let waiting = std::mem::take(&mut s.waiting);
            for waiting in &waiting {
                s.subscribers.push(waiting.app);
            }
            for waiting in &waiting {
                self.tell_joined(full, waiting.app, out);
            }
            waiting
        } else {
            self.inherit(full);
            let Some(p) = self.publications.get_mut(full) else { return };
            p.publishers.extend(p.waiting.iter().map(|waiting| Publisher::new(waiting.app)));
            std::mem::take(&mut p.waiting)
        };
        self.tell_status(&waiting, Status::OK, out);
        if is_subscription {
            self.answered(pending, &waiting, out);
            if self.keeps {
                self.tell_earlier(now, full, &waiting, out);
            }
        } else {
            self.elect_one(full, out);
        }
        if !waiting.is_empty() && waiting.iter().all(|waiting| waiting.then.is_none()) {
            return;
        }
        let request = Request {
            kind: pending.kind.withdrawal(),
            id: full.last().map(Id::root).unwrap_or_default(),
            prefix: Id::from_labels(full.parent()),
            strategy: pending.strategy,
        };
        for waiting in waiting {
            if let Some(tag) = waiting.then {
                self.request(now, waiting.app, tag, &request, out);
            }
        }
        let is_left = if is_subscription {
            self.subscriptions.get(full).is_some_and(|s| s.subscribers.is_empty())
        } else {
            self.publications.get(full).is_some_and(|p| p.publishers.is_empty())
        };
        if is_left {
            // Everybody who waited has gone.
            if is_subscription {
                self.subscriptions.remove(full);
                self.children.forget(full);
            } else {
                self.publications.remove(full);
            }
            self.ask(now, Pending::new(now, &request, full.clone()), out);
        }
    }

    /// A subscription is answered, and its applications are told: what came for it before is
    /// handed out now.
    #[inline]
    fn answered(&self, pending: &Pending, waiting: &[Waiting], out: &mut Outbox) {
        if self.is_kept_before(pending.strategy) {
            waiting.iter().for_each(|waiting| self.tell_answered(&pending.full, waiting.app, out));
        }
    }
}
