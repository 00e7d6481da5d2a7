//! Messages for the dispatcher: statuses, notifications, filters.

use super::{Dispatcher, Publishing};
use crate::courier::Taken;
use crate::fib::Delta;
use crate::forwarder::LINKS_MAX;
use crate::publication::{Event, Outbox};
use onym_tables::Tick;
use onym_wire::push::{Control, Id, Kind, Role, Status, Strategy, reserved};
use std::collections::BTreeMap;

/// Links of a way round a lost link at most.
pub(crate) const WAY_MAX: usize = 16;

impl Dispatcher {
    /// A message published under the dispatcher root; `is_own` when a part of this node sent it.
    pub fn control(&mut self, now: Tick, message: &Control, is_own: bool, out: &mut Outbox) {
        let (sender, sequence) = (message.sender, message.sequence);
        if sequence.number == 0 {
            // Outside of any order: only the rendezvous within this node speaks so.
            if is_own && sender == self.config.node {
                self.obey(now, message, true, out);
            } else {
                self.counters.refused += 1;
            }
            return;
        }
        let taken = self.managers.take(sender, sequence);
        if taken == Taken::InOrder {
            match message.kind {
                Kind::RELAY => match Control::parse(&message.body) {
                    Ok(inner) if inner.sequence.number == 0 => self.obey(now, &inner, false, out),
                    _ => self.counters.refused += 1,
                },
                _ => self.obey(now, message, false, out),
            }
        }
        self.managers.owe(sender, sequence.session);
    }

    /// Whether topology managers wait for an acknowledgement.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        self.managers.owes()
    }

    /// Acknowledges to topology managers what came, after it was obeyed: the first message tells the
    /// way back.
    pub(crate) fn acknowledge(&mut self, out: &mut Outbox) {
        for (manager, taken) in self.managers.pay() {
            let ack = Control { request: taken, ..self.message(Kind::ACK) };
            if let Some(target) = self.way(manager, Role::TOPOLOGY) {
                let node = self.config.node;
                out.control(target, reserved::TOPOLOGY, node, ack);
            }
        }
    }

    fn obey(&mut self, now: Tick, message: &Control, is_node_local: bool, out: &mut Outbox) {
        match message.kind {
            Kind::START | Kind::ROUTE => {
                self.start(message, is_node_local, out);
                self.replay(now, message, out);
            }
            Kind::STOP => self.stop(&message.ids, is_node_local, out),
            kind @ (Kind::SCOPE_PUBLISHED | Kind::SCOPE_UNPUBLISHED) => {
                self.scopes(kind, &message.ids, out);
            }
            Kind::RESPONSE => self.response(now, message, is_node_local, out),
            Kind::ASSERT if !is_node_local => {
                self.note_epoch(message);
                self.rounds.insert(message.sender, message.number);
                self.assert_where(now, out, |owner| owner == message.sender);
            }
            Kind::ACK if !is_node_local => {
                if self.rendezvous.acked(now, message.sender, message.request).is_lost {
                    self.assert_all(now, message.sender, out);
                }
            }
            Kind::HOMES if !is_node_local => self.homes_told(now, message, out),
            Kind::ANSWER if !is_node_local => self.answer(now, message, out),
            Kind::BACKUP if !is_node_local => self.backup(message),
            _ => self.counters.refused += 1,
        }
    }

    fn homes_told(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let before = self.owners();
        self.homes.clone_from(&message.homes);
        self.asks.are_known = message.item == Some(1);
        self.keeps |= self.asks.are_known;
        self.announce_all(out);
        self.assert_moved(now, &before, out);
        self.early_again(now, out);
    }

    /// Ways round links of this node, by their numbers.
    #[must_use]
    pub const fn backups(&self) -> &BTreeMap<u32, Vec<u32>> {
        &self.backups
    }

    /// A way round a link of this node, or none any more.
    fn backup(&mut self, message: &Control) {
        let link = message.item.and_then(|number| u32::try_from(number).ok());
        let is_one_more = link.is_some_and(|link| !self.backups.contains_key(&link));
        match link {
            Some(link) if message.way.is_empty() => drop(self.backups.remove(&link)),
            Some(link)
                if message.way.len() <= WAY_MAX
                    && (!is_one_more || self.backups.len() < LINKS_MAX) =>
            {
                self.backups.insert(link, message.way.clone());
            }
            _ => self.counters.refused += 1,
        }
    }

    fn note_epoch(&mut self, message: &Control) {
        if let Some(epoch) = message.epoch {
            self.epochs.insert(message.sender, epoch);
        }
    }

    fn response(&mut self, now: Tick, message: &Control, is_node_local: bool, out: &mut Outbox) {
        let status = message.status.unwrap_or(Status::UNKNOWN);
        let pending = if is_node_local {
            self.local.pop_front()
        } else {
            let node = message.sender;
            let acked = self.rendezvous.acked(now, node, message.request);
            acked.ready.into_iter().for_each(|m| self.publish_to_rendezvous(node, m, out));
            self.note_epoch(message);
            self.pending.remove(&(node, message.request))
        };
        match pending {
            Some(pending) => self.settle(now, pending, status, out),
            None => self.counters.refused += 1,
        }
    }

    /// The item has subscribers, or the way to them changed.
    fn start(&mut self, message: &Control, is_node_local: bool, out: &mut Outbox) {
        let hops = u8::try_from(message.hops).unwrap_or(u8::MAX);
        for id in &message.ids {
            let is_right = |p: &Publishing| {
                !p.is_scope && (p.strategy == Strategy::NODE_LOCAL) == is_node_local
            };
            let entry = self.publications.entry(id).filter(|(_, p)| is_right(p));
            let Some((key, entry)) = entry else { continue };
            entry.is_matched = true;
            entry.route.clone_from(&message.route);
            entry.reply.clone_from(&message.reply);
            entry.hops = hops;
            entry.aliases = message.ids.iter().cloned().collect();
            if let Some(app) = entry.publishers.iter().find(|p| p.is_started).map(|p| p.app) {
                let way = entry.way(key);
                out.delta(Delta::Started { key: key.clone(), app, way });
            } else if let [_] = &message.ids[..] {
                // The only name: nobody else can be started.
                return Self::start_first(key, entry, out);
            }
        }
        if message.ids.len() > 1
            && let Some(ours) = message.ids.iter().find(|id| self.publications.contains(*id))
        {
            for id in &message.ids {
                self.names.insert(id.clone(), ours.clone());
            }
        }
        self.elect(&message.ids, out);
    }

    fn stop(&mut self, ids: &[Id], is_node_local: bool, out: &mut Outbox) {
        for id in ids {
            self.names.remove(id);
            let is_right = |p: &Publishing| {
                !p.is_scope && (p.strategy == Strategy::NODE_LOCAL) == is_node_local
            };
            let entry = self.publications.entry(id).filter(|(_, p)| is_right(p));
            let Some((key, entry)) = entry else { continue };
            (entry.is_matched, entry.route, entry.reply) = (false, None, None);
            for publisher in entry.publishers.iter_mut().filter(|p| p.is_started) {
                publisher.is_started = false;
                out.delta(Delta::Stopped(key.clone(), publisher.app));
                out.tell(publisher.app, Event::StopPublish(id.clone()));
            }
        }
    }

    /// A publication under a further name of an item that is matched already shares its filter.
    pub(super) fn inherit(&mut self, full: &Id) {
        let other = self.names.get(full).and_then(|ours| self.publications.get(ours));
        let other = other.filter(|p| p.is_matched && p.aliases.contains(full));
        let Some(other) = other else { return };
        let (route, reply, hops) = (other.route.clone(), other.reply.clone(), other.hops);
        let aliases = other.aliases.clone();
        if let Some(p) = self.publications.get_mut(full).filter(|p| !p.is_matched) {
            (p.is_matched, p.route, p.reply, p.hops, p.aliases) =
                (true, route, reply, hops, aliases);
        }
    }
}
