//! What clients have beyond their connections, and which of it is kept without one.

use super::delivery::Delivery;
use super::holder::Holder;
use super::wanted::{Filter, Wanted};
use super::{Action, Broker};
use crate::packet::{
    Answer, Connect, Delivered, Level, Message, Quality, Reason, Version, published_len,
};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

#[derive(Debug)]
pub(super) struct Session {
    /// Empty: nobody can come back to it.
    pub(super) name: Arc<str>,
    /// None: it waits for its client.
    pub(super) connection: Option<u64>,
    /// Where its client is, or was.
    pub(super) holder: Holder,
    pub(super) filters: BTreeMap<Arc<str>, Filter>,
    /// What is to come exactly once and was not let go of.
    pub(super) held: BTreeSet<u16>,
    pub(super) delivery: Delivery,
    /// Octets of publications with which it takes no more.
    room: usize,
    /// Octets of a packet that its client takes.
    pub(super) packet_max: usize,
    /// Seconds that it outlives its connection, as its client says.
    expiry: u32,
    absence: Option<Absence>,
}

/// Of a session without connection.
#[derive(Debug, Clone, Copy)]
struct Absence {
    until: Instant,
    /// Whose share it is of, and the number that it has there.
    holder: Holder,
    serial: u64,
}

impl Session {
    fn new(name: Arc<str>, holder: Holder) -> Self {
        let (filters, held, delivery) = Default::default();
        let (connection, absence, packet_max, expiry, room) = (None, None, usize::MAX, 0, 0);
        Self {
            name,
            connection,
            holder,
            filters,
            held,
            delivery,
            room,
            packet_max,
            expiry,
            absence,
        }
    }

    /// What it takes without its publications.
    fn octets(&self) -> usize {
        let filters = self.filters.keys().map(|filter| size_of::<Filter>() + filter.len());
        self.name.len() + filters.sum::<usize>()
    }

    /// Whether its client takes a message of this length.
    pub(super) fn takes(&self, message: &Message, level: Level) -> bool {
        published_len(message, level) <= self.packet_max
    }

    fn is_over(&self, now: Instant) -> bool {
        self.absence.is_some_and(|absence| absence.until <= now)
    }
}

impl Broker {
    /// The session of a client that connects, and whether it was there.
    pub(super) fn open(
        &mut self,
        now: Instant,
        client: u64,
        connect: &Connect,
    ) -> Result<(u64, bool), Reason> {
        let name = match (connect.client.is_empty(), connect.version) {
            (true, Version::V3) if !connect.is_clean => return Err(Reason::Name),
            (true, Version::V5) => self.fresh_name(),
            _ => connect.client.clone(),
        };
        let Some(peer) = self.connections.get(&client).map(|connection| connection.peer) else {
            return Err(Reason::Protocol);
        };
        let before = self.names.get(&name).copied();
        let before = before.filter(|before| self.takes_over(now, *before, connect.is_clean));
        let session = before.unwrap_or_else(|| {
            self.last += 1;
            if !name.is_empty() {
                self.names.insert(name.clone(), self.last);
            }
            self.sessions.insert(self.last, Session::new(name, peer.into()));
            self.last
        });
        if let Some(known) = self.sessions.get_mut(&session) {
            (known.connection, known.room) = (Some(client), self.limits.queue);
            known.holder = peer.into();
            known.expiry = connect.expiry;
            known.packet_max = usize::try_from(connect.packet_max).unwrap_or(usize::MAX);
            let (most, least) = (known.packet_max, Level::Least);
            let fits = |message: &Message| published_len(message, least) <= most;
            self.dropped += known.delivery.resume(connect.receive_max, fits);
        }
        Ok((session, before.is_some()))
    }

    /// A name that no session has.
    fn fresh_name(&mut self) -> Arc<str> {
        loop {
            self.fresh += 1;
            let name = Arc::from(format!("{}-{}", self.prefix, self.fresh).as_str());
            if !self.names.contains_key(&name) {
                return name;
            }
        }
    }

    /// Takes a session from its connection; whether there is one to go on with.
    fn takes_over(&mut self, now: Instant, session: u64, is_clean: bool) -> bool {
        let Some(known) = self.sessions.get_mut(&session) else { return false };
        let is_kept = !is_clean && known.expiry > 0 && !known.is_over(now);
        if let Some(absence) = known.absence.take() {
            self.away.remove(absence.holder, absence.serial, 1);
        }
        let before = known.connection.take();
        if !is_kept {
            self.forget(session);
        }
        if let Some(before) = before {
            self.end(now, before, Reason::TakenOver);
        }
        is_kept
    }

    /// What its client says of how long a session outlives the connection.
    pub(super) fn expire_after(&mut self, session: u64, expiry: u32) -> Result<(), Reason> {
        let Some(known) = self.sessions.get_mut(&session) else { return Ok(()) };
        if known.expiry == 0 && expiry > 0 {
            return Err(Reason::Protocol);
        }
        known.expiry = expiry;
        Ok(())
    }

    /// The connection of a session ended.
    pub(super) fn leave(&mut self, now: Instant, client: u64, session: u64, peer: IpAddr) {
        let Some(known) = self.sessions.get_mut(&session) else { return };
        if known.connection != Some(client) {
            return;
        }
        known.connection = None;
        let kept = self.limits.kept_for(known.expiry);
        let room = self.limits.session.checked_sub(known.octets());
        let (true, Some(room)) = (kept > 0, room) else {
            self.forgotten += u64::from(kept > 0);
            return self.forget(session);
        };
        known.room = room;
        self.dropped += known.delivery.pause(room);
        let holder = Holder::from(peer);
        let serial = self.away.add(holder, session, 1);
        let until = now + Duration::from_secs(kept.into());
        known.absence = Some(Absence { until, holder, serial });
        while self.away.len() > self.limits.sessions && self.give_way() {}
    }

    /// The oldest session without connection of who has most of them ends; whether there was one.
    pub(super) fn give_way(&mut self) -> bool {
        let Some(session) = self.away.oldest().copied() else { return false };
        self.forgotten += 1;
        self.forget(session);
        true
    }

    /// A session ends.
    fn forget(&mut self, session: u64) {
        let Some(over) = self.sessions.remove(&session) else { return };
        self.unacknowledged += over.delivery.unacknowledged();
        if self.names.get(&over.name) == Some(&session) {
            self.names.remove(&over.name);
        }
        if let Some(absence) = over.absence {
            self.away.remove(absence.holder, absence.serial, 1);
        }
        let is_its = |(_, wanted): &(&Arc<str>, &Wanted)| wanted.is_for(session);
        let topics: Vec<Arc<str>> =
            self.wanted.iter().filter(is_its).map(|(topic, _)| topic.clone()).collect();
        topics.iter().for_each(|topic| self.unwant(session, topic));
    }

    /// Ends the sessions whose time is over.
    pub(super) fn end_sessions(&mut self, now: Instant) {
        let over = self.sessions.iter().filter(|(_, session)| session.is_over(now));
        let over: Vec<u64> = over.map(|(number, _)| *number).collect();
        over.into_iter().for_each(|session| self.forget(session));
    }

    /// A client that is here again lets go of what it has.
    pub(super) fn release_again(&mut self, client: u64, session: u64) {
        let Some(known) = self.sessions.get(&session) else { return };
        let release = |number| Action::Tell(client, Answer::Release(number, None));
        self.actions.extend(known.delivery.released().map(release));
    }

    /// An identifier of a client may be in use no longer.
    pub(super) fn frees(&mut self, session: u64, say: impl FnOnce(&mut Delivery)) {
        if let Some(known) = self.sessions.get_mut(&session) {
            say(&mut known.delivery);
        }
        self.send(session);
    }

    /// A client has a message that is to come once: it may let go of it. That of an identifier which
    /// nothing has it may let go of, too.
    pub(super) fn received(&mut self, client: u64, session: u64, number: u16) {
        let Some(known) = self.sessions.get_mut(&session) else { return };
        let unknown = (!known.delivery.received(number)).then_some(Reason::Unknown);
        self.actions.push(Action::Tell(client, Answer::Release(number, unknown)));
    }

    /// What waits for a session leaves, as far as its client acknowledges.
    pub(super) fn send(&mut self, session: u64) {
        let Some(known) = self.sessions.get_mut(&session) else { return };
        let Some(client) = known.connection else { return };
        while let Some((of, message)) = known.delivery.pop() {
            self.actions.push(Action::Tell(client, Answer::Published(message, of)));
        }
    }

    /// A session gets a message: at once where its client need not acknowledge it and is there.
    pub(super) fn deliver(&mut self, session: u64, message: Message, level: Level) {
        let Some(known) = self.sessions.get_mut(&session) else { return };
        match known.connection {
            Some(_) if !known.takes(&message, level) => {
                self.dropped += 1;
                return;
            }
            Some(client) if level == Level::Most => {
                let answer = Answer::Published(message, Delivered::First(Quality::Most));
                return self.actions.push(Action::Tell(client, answer));
            }
            None if level == Level::Most => return,
            _ => {}
        }
        if !known.delivery.push(message, level, known.room) {
            self.dropped += 1;
        }
        self.send(session);
    }
}
