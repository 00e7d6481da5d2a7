//! The broker without I/O: what clients say goes in, answers and orders to the node come out.

mod delivery;

use crate::packet::{
    Answer, Connect, Level, Message, Quality, RECEIVE_MAX, Reason, Said, Version, published_len,
};
use crate::topic::{self, Items};
use delivery::Delivery;
use onym_wire::push::{Id, Path};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Most topics of all bridges that are remembered for wildcards.
const KNOWN_MAX: usize = 65_536;
/// A connection that says nothing is waited for so long before it says who it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// Who subscribed gets the message that is kept of a topic, when it comes within so long.
const KEPT_WITHIN: Duration = Duration::from_secs(2);

/// Bounds of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections.
    pub clients: usize,
    /// Octets of a packet.
    pub packet: usize,
    /// Octets that wait for a client, and as many of QoS 1 that it has not acknowledged; publications
    /// beyond are dropped and counted.
    pub queue: usize,
    /// Filters of a client.
    pub filters: usize,
    /// Topics that clients publish, and those that they subscribed to.
    pub topics: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { clients: 1024, packet: 256 << 10, queue: 1 << 20, filters: 256, topics: 10_000 }
    }
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Action {
    /// A client is told something.
    Tell(u64, Answer),
    /// Its connection ends.
    End(u64),
    /// An item is published; kept, where it is that of what is to be kept.
    Publish {
        item: Path,
        payload: Vec<u8>,
        is_kept: bool,
    },
    /// Nothing is kept of an item any more.
    Forget(Path),
    /// Bridges say that their clients publish this topic.
    Announce(Arc<str>),
    Subscribe(Path),
    Unsubscribe(Path),
}

/// A connection.
#[derive(Debug)]
struct Client {
    /// None: it has not said who it is.
    version: Option<Version>,
    name: Arc<str>,
    filters: BTreeMap<Arc<str>, Filter>,
    will: Option<(Message, Level)>,
    heard: Instant,
    /// Silence after which it is gone.
    patience: Option<Duration>,
    /// What is to come exactly once and was not let go of.
    held: BTreeSet<u16>,
    delivery: Delivery,
    /// Octets of a packet that it takes.
    packet_max: usize,
}

#[derive(Debug, Clone, Copy)]
struct Filter {
    is_wild: bool,
    level: Level,
}

/// The highest level that those of these filters grant which mean a topic.
fn granted<'a>(
    filters: impl Iterator<Item = (&'a Arc<str>, &'a Filter)>,
    topic: &str,
) -> Option<Level> {
    filters.filter(|(filter, _)| topic::matches(filter, topic)).map(|(_, of)| of.level).max()
}

/// A topic to which clients subscribed.
#[derive(Debug)]
struct Wanted {
    items: Items,
    /// Each with the level that it was granted.
    clients: BTreeMap<u64, Level>,
    /// The message that is kept.
    kept: Option<(Vec<u8>, Level)>,
    /// Who is to get it when it comes, until when.
    waiting: BTreeMap<u64, Instant>,
}

#[derive(Debug)]
pub(crate) struct Broker {
    root: Path,
    limits: Limits,
    clients: BTreeMap<u64, Client>,
    names: BTreeMap<Arc<str>, u64>,
    wanted: BTreeMap<Arc<str>, Wanted>,
    /// The topic of each item that is subscribed, and whether it is what is kept.
    items: BTreeMap<Id, (Arc<str>, bool)>,
    published: BTreeSet<Arc<str>>,
    known: BTreeSet<Arc<str>>,
    actions: Vec<Action>,
    /// Topics that were not followed for want of room.
    pub(crate) unfollowed: u64,
    /// Publications of QoS 1 for which there was no room, and of any that were larger than their client
    /// takes.
    pub(crate) dropped: u64,
    /// Publications of QoS 1 that were not acknowledged when their connections ended.
    pub(crate) unacknowledged: u64,
}

impl Broker {
    pub(crate) fn new(root: Path, limits: Limits) -> Self {
        let (clients, names, wanted, items, actions) = Default::default();
        let (published, known) = Default::default();
        Self {
            root,
            limits,
            clients,
            names,
            wanted,
            items,
            published,
            known,
            actions,
            unfollowed: 0,
            dropped: 0,
            unacknowledged: 0,
        }
    }

    /// What is to be done, in order.
    pub(crate) fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Whether one more connection is taken.
    pub(crate) fn takes(&self) -> bool {
        self.clients.len() < self.limits.clients
    }

    /// A connection is there.
    pub(crate) fn connected(&mut self, now: Instant, client: u64) {
        let (name, filters, held) = Default::default();
        let patience = Some(PATIENCE);
        let (delivery, packet_max) = (Delivery::default(), usize::MAX);
        let (version, will, heard) = (None, None, now);
        let fresh =
            Client { version, name, filters, will, heard, patience, held, delivery, packet_max };
        self.clients.insert(client, fresh);
    }

    /// A connection ended; its will is published.
    pub(crate) fn gone(&mut self, client: u64) {
        let Some(gone) = self.clients.remove(&client) else { return };
        self.unacknowledged += gone.delivery.unacknowledged();
        if self.names.get(&gone.name) == Some(&client) {
            self.names.remove(&gone.name);
        }
        let topics: Vec<Arc<str>> = self
            .wanted
            .iter()
            .filter(|(_, w)| w.clients.contains_key(&client))
            .map(|(t, _)| t.clone())
            .collect();
        topics.iter().for_each(|topic| self.unwant(client, topic));
        if let Some((will, level)) = gone.will {
            let _ = self.publish(will, level);
        }
    }

    fn end(&mut self, client: u64, reason: Reason) {
        self.actions.push(Action::Tell(client, Answer::Ended(reason)));
        self.actions.push(Action::End(client));
        self.gone(client);
    }

    /// What cannot be read came from a client, or more than may be.
    pub(crate) fn refused(&mut self, client: u64, reason: Reason) {
        if self.clients.get(&client).is_some_and(|client| client.version.is_some()) {
            return self.end(client, reason);
        }
        // Nothing else may come where CONNACK says no.
        self.actions.push(Action::Tell(client, Answer::Refused(reason)));
        self.actions.push(Action::End(client));
        self.gone(client);
    }

    /// A client says something.
    pub(crate) fn said(&mut self, now: Instant, client: u64, said: Said) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        known.heard = now;
        match (said, known.version) {
            (Said::Connect(connect), None) => self.connect(client, connect),
            (_, None) | (Said::Connect(_), _) => self.end(client, Reason::Protocol),
            (Said::Publish(message, quality), Some(version)) => {
                self.takes_message(client, version, message, quality);
            }
            (Said::Acknowledge(number), _) => {
                known.delivery.acknowledged(number);
                self.send(client);
            }
            (Said::Release(number), _) => {
                known.held.remove(&number);
                self.actions.push(Action::Tell(client, Answer::Completed(number)));
            }
            (Said::Subscribe(number, filters), _) => {
                let before = self.actions.len();
                let subscribe = |(filter, level)| self.subscribe(now, client, filter, level);
                let answers = filters.into_iter().map(subscribe).collect();
                // The answer comes before what the filters bring.
                let brought = self.actions.split_off(before);
                self.actions.push(Action::Tell(client, Answer::Subscribed(number, answers)));
                self.actions.extend(brought);
            }
            (Said::Unsubscribe(number, filters), _) => {
                filters.iter().for_each(|filter| self.unsubscribe(client, filter));
                let answer = Answer::Unsubscribed(number, filters.len());
                self.actions.push(Action::Tell(client, answer));
            }
            (Said::Ping, _) => self.actions.push(Action::Tell(client, Answer::Pong)),
            (Said::Disconnect(with_will), _) => {
                if !with_will {
                    known.will = None;
                }
                self.actions.push(Action::End(client));
                self.gone(client);
            }
            (Said::Other, _) => {}
        }
    }

    fn connect(&mut self, client: u64, connect: Connect) {
        let before = match connect.client.is_empty() {
            true => None,
            false => self.names.insert(connect.client.clone(), client),
        };
        if let Some(before) = before {
            self.end(before, Reason::TakenOver);
        }
        let Some(known) = self.clients.get_mut(&client) else { return };
        (known.version, known.name) = (Some(connect.version), connect.client);
        (known.will, known.delivery) = (connect.will, Delivery::new(connect.receive_max));
        known.packet_max = usize::try_from(connect.packet_max).unwrap_or(usize::MAX);
        // One and a half times what it says.
        let silence = Duration::from_millis(u64::from(connect.keep_alive) * 1500);
        known.patience = (!silence.is_zero()).then_some(silence);
        let most = u32::try_from(self.limits.packet).unwrap_or(u32::MAX);
        self.actions.push(Action::Tell(client, Answer::Connected(most)));
    }

    fn takes_message(&mut self, client: u64, version: Version, message: Message, quality: Quality) {
        if let Quality::Exactly(number) = quality
            && let Some(known) = self.clients.get_mut(&client)
        {
            if known.held.contains(&number) {
                // Said again: it was taken.
                return self.actions.push(Action::Tell(client, Answer::Received(number, None)));
            }
            if known.held.len() >= usize::from(RECEIVE_MAX) {
                return self.end(client, Reason::Full);
            }
        }
        let refused = self.publish(message, quality.into()).err();
        if let (Some(reason), Version::V3) = (refused, version) {
            // Its version knows no other way to say so.
            return self.end(client, reason);
        }
        let answer = match quality {
            Quality::Most => return,
            Quality::Least(number) => Answer::Acknowledged(number, refused),
            Quality::Exactly(number) => {
                if let (None, Some(known)) = (refused, self.clients.get_mut(&client)) {
                    known.held.insert(number);
                }
                Answer::Received(number, refused)
            }
        };
        self.actions.push(Action::Tell(client, answer));
    }

    /// Publishes a message: to clients here, and by the node.
    fn publish(&mut self, message: Message, level: Level) -> Result<(), Reason> {
        let items = topic::items(&self.root, &message.topic)?;
        let Message { topic, payload, retain } = message;
        if !self.published.contains(&topic) {
            if self.published.len() >= self.limits.topics {
                return Err(Reason::Full);
            }
            self.published.insert(topic.clone());
            self.actions.push(Action::Announce(topic.clone()));
            self.learn(Instant::now(), &topic);
        }
        self.value_came(&topic, &payload, level);
        if retain {
            self.kept_came(None, &topic, &payload, level);
        }
        let item = items.value;
        self.actions.push(Action::Publish { item, payload: payload.clone(), is_kept: false });
        match retain {
            true if payload.is_empty() => self.actions.push(Action::Forget(items.retained)),
            true => {
                let item = items.retained;
                self.actions.push(Action::Publish { item, payload, is_kept: true });
            }
            false => {}
        }
        Ok(())
    }

    fn subscribe(
        &mut self,
        now: Instant,
        client: u64,
        filter: Arc<str>,
        level: Level,
    ) -> Result<Level, Reason> {
        let is_wild = topic::filter(&filter)?;
        if !is_wild {
            topic::items(&self.root, &filter).map_err(|_| Reason::Filter)?;
        }
        let Some(known) = self.clients.get_mut(&client) else { return Ok(level) };
        let before = known.filters.get(&filter).map(|filter| filter.level);
        if before.is_none() && known.filters.len() >= self.limits.filters {
            return Err(Reason::Full);
        }
        if !is_wild {
            self.want(now, client, &filter, level)?;
        }
        if let Some(known) = self.clients.get_mut(&client) {
            known.filters.insert(filter.clone(), Filter { is_wild, level });
        }
        if before.is_some_and(|before| before > level) {
            self.grant_anew(client);
        }
        if is_wild {
            let meant = self.known.iter().filter(|topic| topic::matches(&filter, topic));
            for topic in meant.cloned().collect::<Vec<_>>() {
                if self.want(now, client, &topic, level).is_err() {
                    self.unfollowed += 1;
                }
            }
        }
        Ok(level)
    }

    /// A client is to get what comes of a topic.
    fn want(
        &mut self,
        now: Instant,
        client: u64,
        topic: &Arc<str>,
        level: Level,
    ) -> Result<(), Reason> {
        if !self.wanted.contains_key(topic) {
            if self.wanted.len() >= self.limits.topics {
                return Err(Reason::Full);
            }
            let items = topic::items(&self.root, topic)?;
            for (path, is_kept) in [(&items.value, false), (&items.retained, true)] {
                self.items.insert(path.id.clone(), (topic.clone(), is_kept));
                self.actions.push(Action::Subscribe(path.clone()));
            }
            let (clients, kept, waiting) = Default::default();
            self.wanted.insert(topic.clone(), Wanted { items, clients, kept, waiting });
        }
        let Some(wanted) = self.wanted.get_mut(topic) else { return Ok(()) };
        let granted = wanted.clients.entry(client).or_insert(level);
        *granted = level.max(*granted);
        match &wanted.kept {
            Some((payload, of)) => {
                let (topic, payload, of) = (topic.clone(), payload.clone(), *of);
                let kept = Message { topic, payload, retain: true };
                self.deliver(client, kept, of.min(level));
            }
            None => _ = wanted.waiting.insert(client, now + KEPT_WITHIN),
        }
        Ok(())
    }

    fn unsubscribe(&mut self, client: u64, filter: &Arc<str>) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        if known.filters.remove(filter).is_none() {
            return;
        }
        self.grant_anew(client);
    }

    /// A client gets of each topic what its filters grant by now, or nothing.
    fn grant_anew(&mut self, client: u64) {
        let Some(known) = self.clients.get(&client) else { return };
        let mut unwanted = Vec::new();
        for (topic, wanted) in &mut self.wanted {
            let Some(level) = wanted.clients.get_mut(&client) else { continue };
            match granted(known.filters.iter(), topic) {
                Some(granted) => *level = granted,
                None => unwanted.push(topic.clone()),
            }
        }
        unwanted.iter().for_each(|topic| self.unwant(client, topic));
    }

    fn unwant(&mut self, client: u64, topic: &Arc<str>) {
        let Some(wanted) = self.wanted.get_mut(topic) else { return };
        wanted.clients.remove(&client);
        wanted.waiting.remove(&client);
        if wanted.clients.is_empty()
            && let Some(Wanted { items, .. }) = self.wanted.remove(topic)
        {
            for path in [items.value, items.retained] {
                self.items.remove(&path.id);
                self.actions.push(Action::Unsubscribe(path));
            }
        }
    }

    /// A publication of the node; which QoS it had elsewhere is not known.
    pub(crate) fn data(&mut self, now: Instant, id: &Id, payload: &[u8]) {
        if let Some((topic, is_kept)) = self.items.get(id).cloned() {
            match is_kept {
                true => self.kept_came(Some(now), &topic, payload, Level::Least),
                false => {
                    // It may come before the word that there is such a topic.
                    self.learn(now, &topic);
                    self.value_came(&topic, payload, Level::Least);
                }
            }
        } else if id.starts_with(&topic::directory(&self.root).id)
            && let Ok(topic) = std::str::from_utf8(payload)
        {
            self.learn(now, &Arc::from(topic));
        }
    }

    fn value_came(&mut self, topic: &Arc<str>, payload: &[u8], level: Level) {
        let Some(wanted) = self.wanted.get_mut(topic) else { return };
        wanted.waiting.clear();
        let clients: Vec<(u64, Level)> = wanted.clients.iter().map(|(c, of)| (*c, *of)).collect();
        for (client, granted) in clients {
            let (topic, payload) = (topic.clone(), payload.to_vec());
            let message = Message { topic, payload, retain: false };
            self.deliver(client, message, level.min(granted));
        }
    }

    /// What is kept of a topic is another message: who waits for one gets it.
    fn kept_came(&mut self, now: Option<Instant>, topic: &Arc<str>, payload: &[u8], level: Level) {
        let Some(wanted) = self.wanted.get_mut(topic) else { return };
        wanted.kept = (!payload.is_empty()).then(|| (payload.to_vec(), level));
        let waiting = std::mem::take(&mut wanted.waiting);
        let is_due = |until: &Instant| now.is_some_and(|now| now <= *until);
        let due = waiting.iter().filter(|(_, until)| is_due(until));
        let of = |client| wanted.clients.get(client).map(|granted| (*client, *granted));
        let clients: Vec<(u64, Level)> = due.filter_map(|(client, _)| of(client)).collect();
        for (client, granted) in clients {
            let (topic, payload) = (topic.clone(), payload.to_vec());
            let message = Message { topic, payload, retain: true };
            self.deliver(client, message, level.min(granted));
        }
    }

    /// A client gets a message, at once where it need not acknowledge it.
    fn deliver(&mut self, client: u64, message: Message, level: Level) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        if published_len(&message, level) > known.packet_max {
            self.dropped += 1;
            return;
        }
        if level == Level::Most {
            return self.actions.push(Action::Tell(client, Answer::Published(message, None)));
        }
        if !known.delivery.push(message, self.limits.queue) {
            self.dropped += 1;
        }
        self.send(client);
    }

    /// What waits for a client leaves, as far as it acknowledges.
    fn send(&mut self, client: u64) {
        let Some(known) = self.clients.get_mut(&client) else { return };
        while let Some((number, message)) = known.delivery.pop() {
            let answer = Answer::Published(message, Some(number));
            self.actions.push(Action::Tell(client, answer));
        }
    }

    /// A topic that clients of some bridge publish: who wants it by a wildcard gets it.
    fn learn(&mut self, now: Instant, topic: &Arc<str>) {
        if self.known.contains(topic) || topic::items(&self.root, topic).is_err() {
            return;
        }
        if self.known.len() >= KNOWN_MAX {
            self.unfollowed += 1;
            return;
        }
        self.known.insert(topic.clone());
        let wild = |client: &Client| {
            granted(client.filters.iter().filter(|(_, filter)| filter.is_wild), topic)
        };
        let clients = self.clients.iter();
        let clients: Vec<(u64, Level)> =
            clients.filter_map(|(number, client)| Some((*number, wild(client)?))).collect();
        for (client, level) in clients {
            if self.want(now, client, topic, level).is_err() {
                self.unfollowed += 1;
            }
        }
    }

    /// Ends the connections of clients that are silent for too long.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        let is_silent = |client: &Client| {
            client.patience.is_some_and(|patience| now.duration_since(client.heard) > patience)
        };
        let silent: Vec<u64> =
            self.clients.iter().filter(|(_, c)| is_silent(c)).map(|(number, _)| *number).collect();
        silent.into_iter().for_each(|client| self.end(client, Reason::Silent));
    }

    /// The node is gone.
    pub(crate) fn stop(&mut self) {
        let all: Vec<u64> = self.clients.keys().copied().collect();
        let left = self.clients.values().map(|client| client.delivery.unacknowledged());
        self.unacknowledged += left.sum::<u64>();
        for client in all {
            self.actions.push(Action::Tell(client, Answer::Ended(Reason::NodeGone)));
            self.actions.push(Action::End(client));
        }
    }
}

#[cfg(test)]
mod tests;
