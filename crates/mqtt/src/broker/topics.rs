//! Who gets what: filters, the topics that they mean, and what comes of these.

use super::holder::Holder;
use super::session::Session;
use super::wanted::{Filter, Wanted, granted};
use super::{Action, Broker};
use crate::packet::{Level, Message, Reason};
use crate::topic;
use onym_topics::items;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most topics of all bridges that are remembered for wildcards.
const KNOWN_MAX: usize = 65_536;
/// Who subscribed gets the message that is kept of a topic, when it comes within so long.
const KEPT_WITHIN: Duration = Duration::from_secs(2);

impl Broker {
    pub(super) fn subscribe(
        &mut self,
        now: Instant,
        session: u64,
        filter: Arc<str>,
        level: Level,
    ) -> Result<Level, Reason> {
        let is_wild = topic::filter(&filter)?;
        if !is_wild {
            items(&self.root, &filter).ok_or(Reason::Filter)?;
        }
        let Some(known) = self.sessions.get_mut(&session) else { return Ok(level) };
        let before = known.filters.get(&filter).map(|filter| filter.level);
        if before.is_none() && known.filters.len() >= self.limits.filters {
            return Err(Reason::Full);
        }
        if !is_wild {
            let holder = known.holder;
            self.make_room(&filter, holder);
            self.want(now, session, &filter, level)?;
        }
        if let Some(known) = self.sessions.get_mut(&session) {
            known.filters.insert(filter.clone(), Filter { is_wild, level });
        }
        if before.is_some_and(|before| before > level) {
            self.grant_anew(session);
        }
        if is_wild {
            let meant = self.known.iter().filter(|topic| topic::matches(&filter, topic));
            for topic in meant.cloned().collect::<Vec<_>>() {
                if self.want(now, session, &topic, level).is_err() {
                    self.unfollowed += 1;
                }
            }
        }
        Ok(level)
    }

    /// Where there is no more room for a topic, sessions without connection give way, as long as there
    /// are topics that nobody else wants. Those of others do not for who has too many topics.
    fn make_room(&mut self, topic: &Arc<str>, holder: Holder) {
        let is_away = |session: &u64| {
            self.sessions.get(session).is_none_or(|session| session.connection.is_none())
        };
        let is_left = |wanted: &Wanted| wanted.sessions.keys().all(is_away);
        let is_full = !self.places.has_room(holder) && !self.wanted.contains_key(topic);
        let oldest = self.away.oldest().and_then(|session| self.sessions.get(session));
        let is_due = self.places.is_full() || oldest.is_some_and(|oldest| oldest.holder == holder);
        if is_full && is_due && self.wanted.values().any(is_left) && self.give_way() {
            self.make_room(topic, holder);
        }
    }

    /// A session is to get what comes of a topic.
    fn want(
        &mut self,
        now: Instant,
        session: u64,
        topic: &Arc<str>,
        level: Level,
    ) -> Result<(), Reason> {
        if !self.wanted.contains_key(topic) {
            let items = items(&self.root, topic).ok_or(Reason::Topic)?;
            let Some(holder) = self.sessions.get(&session).map(|known| known.holder) else {
                return Ok(());
            };
            if !self.places.take(holder) {
                return Err(Reason::Full);
            }
            for (path, is_kept) in [(&items.value, false), (&items.retained, true)] {
                self.items.insert(path.id.clone(), (topic.clone(), is_kept));
                self.actions.push(Action::Subscribe(path.clone()));
            }
            let (sessions, waiting) = Default::default();
            let kept = self.retained.get(topic);
            self.wanted.insert(topic.clone(), Wanted { items, holder, sessions, kept, waiting });
        }
        let Some(wanted) = self.wanted.get_mut(topic) else { return Ok(()) };
        let granted = wanted.sessions.entry(session).or_insert(level);
        *granted = level.max(*granted);
        match &wanted.kept {
            Some((payload, of)) => {
                let (topic, payload, of) = (topic.clone(), payload.clone(), *of);
                let kept = Message { topic, payload, retain: true };
                self.deliver(session, kept, of.min(level));
            }
            None => _ = wanted.waiting.insert(session, now + KEPT_WITHIN),
        }
        Ok(())
    }

    pub(super) fn unsubscribe(&mut self, session: u64, filter: &Arc<str>) {
        let Some(known) = self.sessions.get_mut(&session) else { return };
        if known.filters.remove(filter).is_none() {
            return;
        }
        self.grant_anew(session);
    }

    /// A session gets of each topic what its filters grant by now, or nothing.
    fn grant_anew(&mut self, session: u64) {
        let Some(known) = self.sessions.get(&session) else { return };
        let mut unwanted = Vec::new();
        for (topic, wanted) in &mut self.wanted {
            let Some(level) = wanted.sessions.get_mut(&session) else { continue };
            match granted(known.filters.iter(), topic) {
                Some(granted) => *level = granted,
                None => unwanted.push(topic.clone()),
            }
        }
        unwanted.iter().for_each(|topic| self.unwant(session, topic));
    }

    pub(super) fn unwant(&mut self, session: u64, topic: &Arc<str>) {
        let Some(wanted) = self.wanted.get_mut(topic) else { return };
        wanted.sessions.remove(&session);
        wanted.waiting.remove(&session);
        if wanted.sessions.is_empty()
            && let Some(Wanted { items, holder, .. }) = self.wanted.remove(topic)
        {
            self.places.give_back(holder);
            for path in [items.value, items.retained] {
                self.items.remove(&path.id);
                self.actions.push(Action::Unsubscribe(path));
            }
        }
    }

    pub(super) fn value_came(&mut self, topic: &Arc<str>, payload: &Arc<[u8]>, level: Level) {
        let Some(wanted) = self.wanted.get_mut(topic) else { return };
        wanted.waiting.clear();
        let sessions: Vec<(u64, Level)> = wanted.sessions.iter().map(|(s, of)| (*s, *of)).collect();
        for (session, granted) in sessions {
            let (topic, payload) = (topic.clone(), payload.clone());
            let message = Message { topic, payload, retain: false };
            self.deliver(session, message, level.min(granted));
        }
    }

    /// What is kept of a topic is another message: who waits for one gets it. An empty one says that
    /// nothing is.
    pub(super) fn kept_came(
        &mut self,
        now: Option<Instant>,
        topic: &Arc<str>,
        payload: &Arc<[u8]>,
        level: Level,
    ) {
        let Some(wanted) = self.wanted.get_mut(topic) else { return };
        wanted.kept = (!payload.is_empty()).then(|| (payload.clone(), level));
        if payload.is_empty() {
            return;
        }
        let waiting = std::mem::take(&mut wanted.waiting);
        let is_due = |until: &Instant| now.is_some_and(|now| now <= *until);
        let due = waiting.iter().filter(|(_, until)| is_due(until));
        let of = |session| wanted.sessions.get(session).map(|granted| (*session, *granted));
        let sessions: Vec<(u64, Level)> = due.filter_map(|(session, _)| of(session)).collect();
        for (session, granted) in sessions {
            let (topic, payload) = (topic.clone(), payload.clone());
            let message = Message { topic, payload, retain: true };
            self.deliver(session, message, level.min(granted));
        }
    }

    /// A topic that clients of some bridge publish: who wants it by a wildcard gets it.
    pub(super) fn learn(&mut self, now: Instant, topic: &Arc<str>) {
        if self.known.contains(topic) || items(&self.root, topic).is_none() {
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            self.unfollowed += 1;
            return;
        }
        self.known.insert(topic.clone());
        let wild = |session: &Session| {
            granted(session.filters.iter().filter(|(_, filter)| filter.is_wild), topic)
        };
        let sessions = self.sessions.iter();
        let sessions: Vec<(u64, Level)> =
            sessions.filter_map(|(number, session)| Some((*number, wild(session)?))).collect();
        for (session, level) in sessions {
            if self.want(now, session, topic, level).is_err() {
                self.unfollowed += 1;
            }
        }
    }
}
