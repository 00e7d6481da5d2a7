//! The broker without I/O: what clients say goes in, answers and orders to the node come out.

mod delivery;
mod holder;
mod places;
mod retained;
mod session;
mod topics;
mod wanted;

use crate::packet::{
    Answer, Connect, Level, Message, Quality, RECEIVE_MAX, Reason, Said, Version, Welcome,
};
use holder::Holder;
use onym_tables::shares::Shares;
use onym_topics::{directory, items};
use onym_wire::push::{Id, Label, Path};
use places::Places;
use retained::Retained;
use session::Session;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use wanted::Wanted;

/// A connection that says nothing is waited for so long before it says who it is.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often connections and sessions are looked at whose time may be over.
const LOOK: Duration = Duration::from_millis(100);

/// Bounds of a bridge.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Connections.
    pub clients: usize,
    /// Octets of a packet.
    pub packet: usize,
    /// Octets that wait for a client, and as many of QoS 1 and 2 that it has not acknowledged;
    /// publications beyond are dropped and counted.
    pub queue: usize,
    /// Filters of a client.
    pub filters: usize,
    /// Topics that clients publish, and those that they subscribed to.
    pub topics: usize,
    /// Octets that clients had retained; the oldest of the address that has most are forgotten.
    pub retained: usize,
    /// Sessions without connection; the oldest of the address that has most end.
    pub sessions: usize,
    /// Octets of such a session; publications beyond are dropped and counted.
    pub session: usize,
    /// Seconds that a session is kept without connection.
    pub age: u32,
}

impl Limits {
    /// Seconds that a session is kept whose client says so many.
    pub(crate) fn kept_for(&self, expiry: u32) -> u32 {
        expiry.min(self.age)
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            clients: 1024,
            packet: 256 << 10,
            queue: 1 << 20,
            filters: 256,
            topics: 10_000,
            retained: 16 << 20,
            sessions: 1024,
            session: 256 << 10,
            age: 86_400,
        }
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
        payload: Arc<[u8]>,
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
struct Connection {
    peer: IpAddr,
    /// Its version and its session; none: it has not said who it is.
    of: Option<(Version, u64)>,
    will: Option<(Message, Level)>,
    heard: Instant,
    /// Silence after which it is gone.
    patience: Option<Duration>,
}

/// A client that said who it is.
#[derive(Debug, Clone, Copy)]
struct Known {
    client: u64,
    version: Version,
    session: u64,
}

#[derive(Debug)]
pub(crate) struct Broker {
    root: Path,
    limits: Limits,
    connections: BTreeMap<u64, Connection>,
    sessions: BTreeMap<u64, Session>,
    /// The session that was made last.
    last: u64,
    names: BTreeMap<Arc<str>, u64>,
    /// What names begin with that clients get here, and the last one.
    prefix: Label,
    fresh: u64,
    /// Sessions without connection.
    away: Shares<Holder, u64>,
    retained: Retained,
    wanted: BTreeMap<Arc<str>, Wanted>,
    /// The topic of each item that is subscribed, and whether it is what is kept.
    items: BTreeMap<Id, (Arc<str>, bool)>,
    /// Who has places of what is wanted, and of what is published.
    places: Places,
    published: BTreeSet<Arc<str>>,
    published_places: Places,
    known: BTreeSet<Arc<str>>,
    actions: Vec<Action>,
    /// When it is to be looked next whose time is over.
    look: Option<Instant>,
    /// Topics that were not followed for want of room.
    pub(crate) unfollowed: u64,
    /// Publications of QoS 1 and 2 for which there was no room, and of any that were larger than their client
    /// takes.
    pub(crate) dropped: u64,
    /// Publications of QoS 1 and 2 that were not acknowledged when their sessions ended.
    pub(crate) unacknowledged: u64,
    /// Sessions that ended early, for want of room.
    pub(crate) forgotten: u64,
    /// Retained messages that were forgotten, for want of room.
    pub(crate) unretained: u64,
}

impl Broker {
    /// Names that clients get here begin with `prefix`.
    pub(crate) fn new(root: Path, limits: Limits, prefix: Label) -> Self {
        let (connections, sessions, names, away, retained) = Default::default();
        let (wanted, items, published, known, actions) = Default::default();
        Self {
            root,
            limits,
            connections,
            sessions,
            last: 0,
            names,
            prefix,
            fresh: 0,
            away,
            retained,
            wanted,
            items,
            places: Places::new(limits.topics),
            published,
            published_places: Places::new(limits.topics),
            known,
            actions,
            look: None,
            unfollowed: 0,
            dropped: 0,
            unacknowledged: 0,
            forgotten: 0,
            unretained: 0,
        }
    }

    /// What is to be done, in order.
    pub(crate) fn actions(&mut self) -> Vec<Action> {
        std::mem::take(&mut self.actions)
    }

    /// Whether one more connection is taken.
    pub(crate) fn takes(&self) -> bool {
        self.connections.len() < self.limits.clients
    }

    /// A connection is there.
    pub(crate) fn connected(&mut self, now: Instant, client: u64, peer: IpAddr) {
        let (of, will, heard, patience) = (None, None, now, Some(PATIENCE));
        self.connections.insert(client, Connection { peer, of, will, heard, patience });
    }

    /// A connection ended; its will is published.
    pub(crate) fn gone(&mut self, now: Instant, client: u64) {
        let Some(gone) = self.connections.remove(&client) else { return };
        if let Some((_, session)) = gone.of {
            self.leave(now, client, session, gone.peer);
        }
        if let Some((will, level)) = gone.will {
            let _ = self.publish(now, gone.peer, will, level);
        }
    }

    fn end(&mut self, now: Instant, client: u64, reason: Reason) {
        self.ends(now, client, Answer::Ended(reason));
    }

    fn ends(&mut self, now: Instant, client: u64, last: Answer) {
        self.actions.push(Action::Tell(client, last));
        self.actions.push(Action::End(client));
        self.gone(now, client);
    }

    /// What cannot be read came from a client, or more than may be, or it may not connect.
    pub(crate) fn refused(&mut self, now: Instant, client: u64, reason: Reason) {
        let is_known = self.connections.get(&client).is_some_and(|known| known.of.is_some());
        // Nothing else may come where CONNACK says no.
        let last = if is_known { Answer::Ended(reason) } else { Answer::Refused(reason) };
        self.ends(now, client, last);
    }

    /// A client says something.
    pub(crate) fn said(&mut self, now: Instant, client: u64, said: Said) {
        let Some(known) = self.connections.get_mut(&client) else { return };
        known.heard = now;
        match (said, known.of) {
            (Said::Connect(connect), None) => self.connect(now, client, connect),
            (_, None) | (Said::Connect(_), _) => self.end(now, client, Reason::Protocol),
            (said, Some((version, session))) => {
                self.hears(now, Known { client, version, session }, said);
            }
        }
    }

    /// A client that said who it is says something else.
    fn hears(&mut self, now: Instant, of: Known, said: Said) {
        let Known { client, session, .. } = of;
        let answer = match said {
            Said::Connect(_) | Said::Other => return,
            Said::Publish(message, quality) => {
                return self.takes_message(now, of, message, quality);
            }
            Said::Disconnect { with_will, expiry } => {
                return self.disconnect(now, of, with_will, expiry);
            }
            Said::Acknowledge(number) => {
                return self.frees(session, |delivery| delivery.acknowledged(number));
            }
            Said::Completed(number) => {
                return self.frees(session, |delivery| delivery.completed(number));
            }
            Said::Declined(number) => {
                return self.frees(session, |delivery| delivery.declined(number));
            }
            Said::Received(number) => return self.received(client, session, number),
            Said::Release(number) => {
                if let Some(known) = self.sessions.get_mut(&session) {
                    known.held.remove(&number);
                }
                Answer::Completed(number)
            }
            Said::Subscribe(number, filters) => {
                let before = self.actions.len();
                let subscribe = |(filter, level)| self.subscribe(now, session, filter, level);
                let answers = filters.into_iter().map(subscribe).collect();
                // The answer comes before what the filters bring.
                let brought = self.actions.split_off(before);
                self.actions.push(Action::Tell(client, Answer::Subscribed(number, answers)));
                return self.actions.extend(brought);
            }
            Said::Unsubscribe(number, filters) => {
                filters.iter().for_each(|filter| self.unsubscribe(session, filter));
                Answer::Unsubscribed(number, filters.len())
            }
            Said::Ping => Answer::Pong,
        };
        self.actions.push(Action::Tell(client, answer));
    }

    fn connect(&mut self, now: Instant, client: u64, connect: Connect) {
        let (session, is_present) = match self.open(now, client, &connect) {
            Ok(session) => session,
            Err(reason) => return self.refused(now, client, reason),
        };
        let Some(known) = self.connections.get_mut(&client) else { return };
        (known.of, known.will) = (Some((connect.version, session)), connect.will);
        // One and a half times what it says.
        let silence = Duration::from_millis(u64::from(connect.keep_alive) * 1500);
        known.patience = (!silence.is_zero()).then_some(silence);
        let name = self.sessions.get(&session).map(|session| session.name.clone());
        let welcome = Welcome {
            is_present,
            packet_max: u32::try_from(self.limits.packet).unwrap_or(u32::MAX),
            expiry: self.limits.kept_for(connect.expiry),
            name: name.filter(|name| connect.client.is_empty() && !name.is_empty()),
        };
        self.actions.push(Action::Tell(client, Answer::Connected(welcome)));
        self.release_again(client, session);
        self.send(session);
    }

    fn disconnect(&mut self, now: Instant, of: Known, with_will: bool, expiry: Option<u32>) {
        let Known { client, session, .. } = of;
        if let Some(expiry) = expiry
            && let Err(reason) = self.expire_after(session, expiry)
        {
            return self.end(now, client, reason);
        }
        if let Some(known) = self.connections.get_mut(&client).filter(|_| !with_will) {
            known.will = None;
        }
        self.actions.push(Action::End(client));
        self.gone(now, client);
    }

    fn takes_message(&mut self, now: Instant, of: Known, message: Message, quality: Quality) {
        let Known { client, version, session } = of;
        if let Quality::Exactly(number) = quality
            && let Some(known) = self.sessions.get_mut(&session)
        {
            if known.held.contains(&number) {
                // Said again: it was taken.
                return self.actions.push(Action::Tell(client, Answer::Received(number, None)));
            }
            if known.held.len() >= usize::from(RECEIVE_MAX) {
                return self.end(now, client, Reason::Full);
            }
        }
        let Some(&Connection { peer, .. }) = self.connections.get(&client) else { return };
        let refused = self.publish(now, peer, message, quality.into()).err();
        if let (Some(reason), Version::V3) = (refused, version) {
            // Its version knows no other way to say so.
            return self.end(now, client, reason);
        }
        let answer = match quality {
            Quality::Most => return,
            Quality::Least(number) => Answer::Acknowledged(number, refused),
            Quality::Exactly(number) => {
                if let (None, Some(known)) = (refused, self.sessions.get_mut(&session)) {
                    known.held.insert(number);
                }
                Answer::Received(number, refused)
            }
        };
        self.actions.push(Action::Tell(client, answer));
    }

    /// Publishes a message: to clients here, and by the node.
    fn publish(
        &mut self,
        now: Instant,
        peer: IpAddr,
        message: Message,
        level: Level,
    ) -> Result<(), Reason> {
        let items = items(&self.root, &message.topic).ok_or(Reason::Topic)?;
        let Message { topic, payload, retain } = message;
        if !self.published.contains(&topic) {
            if !self.published_places.take(peer.into()) {
                return Err(Reason::Full);
            }
            self.published.insert(topic.clone());
            self.actions.push(Action::Announce(topic.clone()));
            self.learn(now, &topic);
        }
        self.value_came(&topic, &payload, level);
        let item = items.value;
        self.actions.push(Action::Publish { item, payload: payload.clone(), is_kept: false });
        if retain {
            self.kept_came(None, &topic, &payload, level);
            self.retain(&topic, &payload, level, peer.into());
        }
        Ok(())
    }

    /// A publication of the node; which QoS it had elsewhere is not known.
    pub(crate) fn data(&mut self, now: Instant, id: &Id, payload: &[u8]) {
        if let Some((topic, is_kept)) = self.items.get(id).cloned() {
            let payload = Arc::from(payload);
            match is_kept {
                true => self.kept_came(Some(now), &topic, &payload, Level::Exactly),
                false => {
                    // It may come before the word that there is such a topic.
                    self.learn(now, &topic);
                    self.value_came(&topic, &payload, Level::Exactly);
                }
            }
        } else if id.starts_with(&directory(&self.root).id)
            && let Ok(topic) = std::str::from_utf8(payload)
        {
            self.learn(now, &Arc::from(topic));
        }
    }

    /// Ends the connections of clients that are silent for too long, and sessions whose time is over.
    pub(crate) fn handle_timeout(&mut self, now: Instant) {
        if self.look.is_some_and(|look| now < look) {
            return;
        }
        self.look = Some(now + LOOK);
        let is_silent = |connection: &Connection| {
            let silence = now.duration_since(connection.heard);
            connection.patience.is_some_and(|patience| silence > patience)
        };
        let silent = self.connections.iter().filter(|(_, connection)| is_silent(connection));
        let silent: Vec<u64> = silent.map(|(number, _)| *number).collect();
        silent.into_iter().for_each(|client| self.end(now, client, Reason::Silent));
        self.end_sessions(now);
    }

    /// The node is gone.
    pub(crate) fn stop(&mut self) {
        let left = self.sessions.values().map(|session| session.delivery.unacknowledged());
        self.unacknowledged += left.sum::<u64>();
        for client in self.connections.keys() {
            self.actions.push(Action::Tell(*client, Answer::Ended(Reason::NodeGone)));
            self.actions.push(Action::End(*client));
        }
    }
}

#[cfg(test)]
mod tests;
