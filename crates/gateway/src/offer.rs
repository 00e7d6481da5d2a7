//! From producers to subscribers (spec/gateway.md, section 3).

use crate::items::Offer;
use crate::map::place_of;
use crate::state::{AGAIN, Action, Ask, Gateway, may_pass};
use onym_tables::Tick;
use onym_wire::name::Name;
use onym_wire::push::{Id, Kind, Status};
use std::collections::HashSet;
use std::time::Duration;

/// Longest wait between two attempts to fetch from a producer that does not answer.
const PATIENCE: Duration = Duration::from_secs(30);

impl Gateway {
    /// Publishes an item that a producer feeds, unless it is there.
    pub(crate) fn offer(&mut self, map: usize, id: Id) {
        self.offer_as(map, id, false);
    }

    /// The same for an item of the configuration, which stays whatever its producer says.
    pub(crate) fn offer_configured(&mut self, map: usize, id: Id) {
        self.offer_as(map, id, true);
    }

    fn offer_as(&mut self, map: usize, id: Id, is_configured: bool) {
        if let Some(offer) = self.offers.get_mut(&id) {
            offer.is_configured |= is_configured;
            return;
        }
        if self.offers.len() >= self.limits.offers_max {
            tracing::debug!(%id, "no room for another item of a producer");
            return;
        }
        let Some(name) = self.maps[map].name_of(&id) else { return };
        self.ask_publish(&id, map);
        let offer = Offer {
            map,
            name,
            is_configured,
            is_published: false,
            is_started: false,
            is_fetching: false,
            due: Tick::NEVER,
            failures: 0,
            told: None,
        };
        self.offers.insert(id, offer);
    }

    fn ask_publish(&mut self, id: &Id, map: usize) {
        let strategy = self.maps[map].strategy;
        self.scopes_to(id, id.len() - 1, strategy);
        self.request(Kind::PUBLISH_ITEM, id.clone(), strategy);
    }

    /// The prefixes that have routes: each name of whole labels beneath a map is an item that a
    /// producer feeds; those that are gone are taken back.
    pub fn routes(&mut self, prefixes: &[Name]) {
        let mut there = HashSet::new();
        for name in prefixes {
            let place = place_of(&self.maps, name.as_ref());
            let place = place.filter(|p| p.rest.is_empty() && self.maps[p.map].is_by_routes);
            if let Some((map, id)) = place.map(|p| (p.map, p.id)) {
                there.insert(id.clone());
                self.offer(map, id);
            }
        }
        let is_gone = |(id, offer): &(&Id, &Offer)| !offer.is_configured && !there.contains(*id);
        let gone: Vec<Id> = self.offers.iter().filter(is_gone).map(|(id, _)| id.clone()).collect();
        for id in gone {
            let Some(offer) = self.offers.remove(&id) else { continue };
            if offer.is_fetching {
                self.actions.push_back(Action::Cancel(id.clone()));
            }
            self.request(Kind::UNPUBLISH_ITEM, id, self.maps[offer.map].strategy);
        }
    }

    /// The dispatcher answered the publication of an item.
    pub(crate) fn offered(&mut self, now: Tick, ask: &Ask, status: Status) {
        let Some(offer) = self.offers.get_mut(&ask.id) else { return };
        offer.is_published = matches!(status, Status::OK | Status::EXISTS);
        if offer.is_published {
            return;
        }
        tracing::debug!(id = %ask.id, %status, "an item of a producer is not published");
        offer.due = now + if may_pass(status) { AGAIN } else { PATIENCE };
        let due = offer.due;
        self.due_at(due);
    }

    /// The item has subscribers.
    pub fn started(&mut self, now: Tick, id: &Id) {
        let Some(offer) = self.offers.get_mut(id) else { return };
        (offer.is_started, offer.due, offer.failures, offer.told) = (true, now, 0, None);
        self.due_at(now);
    }

    /// The item has none any more.
    pub fn stopped(&mut self, id: &Id) {
        let Some(offer) = self.offers.get_mut(id) else { return };
        offer.is_started = false;
        if std::mem::take(&mut offer.is_fetching) {
            self.actions.push_back(Action::Cancel(id.clone()));
        }
    }

    /// The newest version is found; whether its content is wanted. When it is not, the fetch is
    /// over.
    pub fn found(&mut self, now: Tick, id: &Id, version: &Name) -> bool {
        let Some(offer) = self.offers.get_mut(id) else { return false };
        let is_new = offer.told.as_ref() != Some(version);
        if !is_new {
            self.rest(now, id);
        }
        is_new
    }

    /// The content of a version has come.
    pub fn fetched(&mut self, now: Tick, id: &Id, version: Name, content: Vec<u8>) {
        self.rest(now, id);
        let Some(offer) = self.offers.get_mut(id).filter(|offer| offer.is_started) else { return };
        if offer.told.as_ref() != Some(&version) {
            offer.told = Some(version);
            self.counters.publications_out += 1;
            let strategy = self.maps[offer.map].strategy;
            self.actions.push_back(Action::Publish(id.clone(), strategy, content));
        }
    }

    /// A fetch ended well; the next one comes after a while.
    fn rest(&mut self, now: Tick, id: &Id) {
        let Some(offer) = self.offers.get_mut(id) else { return };
        (offer.is_fetching, offer.failures) = (false, 0);
        offer.due = now + self.limits.poll;
        let due = offer.due;
        self.due_at(due);
    }

    /// A fetch ended without an object.
    pub fn fetch_failed(&mut self, now: Tick, id: &Id) {
        self.counters.fetches_failed += 1;
        let Some(offer) = self.offers.get_mut(id) else { return };
        offer.is_fetching = false;
        let wait = self.limits.poll * (1 << offer.failures.min(8));
        offer.failures += 1;
        offer.due = now + wait.min(PATIENCE.max(self.limits.poll));
        let due = offer.due;
        self.due_at(due);
    }

    /// Starts what is due; when the next one is.
    pub(crate) fn offers_timeout(&mut self, now: Tick) -> Tick {
        let (mut next, mut again) = (Tick::NEVER, Vec::new());
        for (id, offer) in &mut self.offers {
            if offer.is_fetching || (offer.is_published && !offer.is_started) {
                continue;
            }
            if offer.due > now {
                next = next.min(offer.due);
            } else if offer.is_started {
                offer.is_fetching = true;
                self.actions.push_back(Action::Fetch(id.clone(), offer.name.clone()));
            } else {
                offer.due = Tick::NEVER;
                again.push((id.clone(), offer.map));
            }
        }
        again.iter().for_each(|(id, map)| self.ask_publish(id, *map));
        next
    }
}
