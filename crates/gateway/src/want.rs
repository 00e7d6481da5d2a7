//! From Interests to subscriptions, and from publications to Data (spec/gateway.md, section 2).

use crate::items::{Kept, Subscription, Waiting, Want};
use crate::map::place_of;
use crate::state::{AGAIN, Action, Ask, Gateway, may_pass};
use onym_client::serve::{Object, ServeOptions};
use onym_client::{Answer, Incoming, Respond as _};
use onym_frame::Buf;
use onym_tables::Tick;
use onym_wire::NackReason;
use onym_wire::interest::Interest;
use onym_wire::name::NameRef;
use onym_wire::push::{Id, Kind, Status};
use std::collections::VecDeque;
use std::time::Duration;

/// Versions of an item that are kept, so that who is fetching one gets all of it.
const VERSIONS_MAX: usize = 2;

/// What an Interest asks for.
#[derive(Debug, PartialEq, Eq)]
enum Asked {
    /// The newest version, or its metadata.
    Newest,
    /// This version.
    Version(u64),
    Nothing,
}

fn asked(interest: &Interest<'_>, rest: NameRef<'_>) -> Asked {
    let version = |at: usize| rest.get(at).and_then(|c| c.as_version());
    match rest.get(0) {
        None if interest.can_be_prefix => Asked::Newest,
        Some(c) if c.is_keyword(b"metadata") => match version(1) {
            Some(version) => Asked::Version(version),
            None if rest.len() == 1 && interest.can_be_prefix => Asked::Newest,
            None => Asked::Nothing,
        },
        Some(_) => version(0).map_or(Asked::Nothing, Asked::Version),
        None => Asked::Nothing,
    }
}

impl Gateway {
    /// An Interest under one of the prefixes.
    pub fn interest(&mut self, now: Tick, incoming: Incoming) {
        self.counters.interests += 1;
        let interest = incoming.interest();
        let place = place_of(&self.maps, interest.name);
        // What is fed from a producer has a longer route: who asks here has none.
        let place = place.filter(|place| !self.offers.contains_key(&place.id));
        let Some(place) = place else { return self.refuse(incoming, NackReason::NO_ROUTE) };
        let asked = asked(&interest, place.rest);
        let (map, id) = (place.map, place.id);
        match asked {
            Asked::Nothing => self.refuse(incoming, NackReason::NONE),
            Asked::Version(version) => {
                let want = self.wants.get_mut(&id);
                let kept = want.and_then(|w| w.kept.iter_mut().find(|k| k.version == version));
                match kept.map(|kept| answer(kept, &incoming)) {
                    Some(answer) => self.reply(incoming, answer),
                    None => self.refuse(incoming, NackReason::NONE),
                }
            }
            Asked::Newest => self.newest(now, map, id, incoming),
        }
    }

    /// The newest version of an item is asked for.
    fn newest(&mut self, now: Tick, map: usize, id: Id, incoming: Incoming) {
        let interest = incoming.interest();
        let is_fresh = interest.must_be_fresh;
        let lifetime = Duration::from_millis(interest.lifetime_or_default());
        let freshness = self.maps[map].freshness;
        if !self.wants.contains_key(&id) {
            if self.wants.len() >= self.limits.items_max {
                return self.full(incoming);
            }
            self.request(Kind::SUBSCRIBE_ITEM, id.clone(), self.maps[map].strategy);
        }
        let want = self.wants.entry(id).or_insert_with(|| Want {
            map,
            subscription: Subscription::Asked,
            waiting: Vec::new(),
            kept: VecDeque::new(),
            last: now,
            version: 0,
        });
        want.last = now;
        let kept = want.kept.back_mut();
        if let Some(kept) = kept.filter(|k| !is_fresh || now.since(k.made) < freshness) {
            let answer = answer(kept, &incoming);
            return self.reply(incoming, answer);
        }
        if self.waiting >= self.limits.interests_max {
            return self.full(incoming);
        }
        let until = now + lifetime;
        want.waiting.push(Waiting { incoming, until });
        self.waiting += 1;
        let idle = now + self.limits.idle;
        self.due_at(until.min(idle));
    }

    fn full(&mut self, incoming: Incoming) {
        self.counters.full += 1;
        self.actions.push_back(Action::Refuse(incoming, NackReason::CONGESTION));
    }

    fn refuse(&mut self, incoming: Incoming, reason: NackReason) {
        self.counters.refused += 1;
        self.actions.push_back(Action::Refuse(incoming, reason));
    }

    fn reply(&mut self, incoming: Incoming, answer: Result<Buf, NackReason>) {
        match answer {
            Ok(data) => {
                self.counters.answered += 1;
                self.actions.push_back(Action::Reply(incoming, data));
            }
            Err(reason) => self.refuse(incoming, reason),
        }
    }

    /// The dispatcher answered a subscription.
    pub(crate) fn subscribed(&mut self, now: Tick, ask: &Ask, status: Status) {
        let Some(want) = self.wants.get_mut(&ask.id) else {
            // Nobody waits any more.
            return self.request(Kind::UNSUBSCRIBE_ITEM, ask.id.clone(), ask.strategy);
        };
        match status {
            Status::OK | Status::EXISTS => want.subscription = Subscription::There,
            status if may_pass(status) => {
                want.subscription = Subscription::Again(now + AGAIN);
                self.due_at(now + AGAIN);
            }
            status => {
                tracing::debug!(id = %ask.id, %status, "an item cannot be subscribed to");
                let waiting = std::mem::take(&mut want.waiting);
                self.forget(&ask.id);
                self.waiting -= waiting.len();
                waiting.into_iter().for_each(|w| self.refuse(w.incoming, NackReason::NO_ROUTE));
            }
        }
    }

    /// A publication for a subscription of the gateway.
    pub fn published(&mut self, now: Tick, id: &Id, payload: Vec<u8>) {
        let clock = self.unix_ms(now);
        let Some(want) = self.wants.get_mut(id) else {
            self.counters.publications_lost += 1;
            return;
        };
        let map = &self.maps[want.map];
        let (Some(name), bytes) = (map.name_of(id), payload.len()) else { return };
        let version = clock.max(want.version + 1);
        let options = ServeOptions {
            freshness: map.freshness,
            signer: self.signer.clone(),
            ..ServeOptions::new(version)
        };
        let object = match Object::new(name, payload, options) {
            Ok(object) => object,
            Err(error) => {
                tracing::warn!(%id, %error, "a publication was not made available as Data");
                self.counters.publications_lost += 1;
                return;
            }
        };
        self.counters.publications_in += 1;
        want.version = version;
        let mut kept = Kept { object, version, bytes, made: now };
        let waiting = std::mem::take(&mut want.waiting);
        self.waiting -= waiting.len();
        let answers: Vec<_> = waiting
            .into_iter()
            .map(|w| {
                let answer = answer(&mut kept, &w.incoming);
                (w.incoming, answer)
            })
            .collect();
        want.kept.push_back(kept);
        self.kept_bytes += bytes;
        while want.kept.len() > VERSIONS_MAX {
            self.kept_bytes -= want.kept.pop_front().map_or(0, |kept| kept.bytes);
        }
        answers.into_iter().for_each(|(incoming, answer)| self.reply(incoming, answer));
        self.make_room();
    }

    /// Forgets the oldest publications until the rest has room.
    fn make_room(&mut self) {
        while self.kept_bytes > self.limits.kept_bytes_max {
            let oldest = self.wants.values_mut().filter(|w| !w.kept.is_empty());
            let Some(want) = oldest.min_by_key(|w| w.kept.front().map(|k| k.made)) else { return };
            self.kept_bytes -= want.kept.pop_front().map_or(0, |kept| kept.bytes);
        }
    }

    fn forget(&mut self, id: &Id) {
        if let Some(want) = self.wants.remove(id) {
            self.kept_bytes -= want.kept.iter().map(|k| k.bytes).sum::<usize>();
        }
    }

    /// Ends Interests and subscriptions whose time is over; when the next one is.
    pub(crate) fn wants_timeout(&mut self, now: Tick) -> Tick {
        let (mut next, mut idle, mut again) = (Tick::NEVER, Vec::new(), Vec::new());
        for (id, want) in &mut self.wants {
            let before = want.waiting.len();
            want.waiting.retain(|w| w.until > now);
            let expired = before - want.waiting.len();
            self.waiting -= expired;
            self.counters.expired += expired as u64;
            let end = want.last + self.limits.idle;
            if want.waiting.is_empty() && end <= now {
                idle.push(id.clone());
                continue;
            }
            if let Subscription::Again(at) = want.subscription {
                if at <= now {
                    want.subscription = Subscription::Asked;
                    again.push((id.clone(), want.map));
                } else {
                    next = next.min(at);
                }
            }
            next = want.waiting.iter().map(|w| w.until).fold(next, Tick::min);
            next = if want.waiting.is_empty() { next.min(end) } else { next };
        }
        for (id, map) in again {
            self.request(Kind::SUBSCRIBE_ITEM, id, self.maps[map].strategy);
        }
        for id in idle {
            let strategy = self.wants.get(&id).map(|want| self.maps[want.map].strategy);
            self.forget(&id);
            if let Some(strategy) = strategy {
                self.request(Kind::UNSUBSCRIBE_ITEM, id, strategy);
            }
        }
        next
    }
}

fn answer(kept: &mut Kept, incoming: &Incoming) -> Result<Buf, NackReason> {
    let mut out = Vec::new();
    match kept.object.respond(incoming, &mut out) {
        Answer::Written => Ok(Buf::copy_from(&out)),
        Answer::Shared(data) => Ok(data),
        Answer::Nack(reason) => Err(reason),
        Answer::Nothing => Err(NackReason::NONE),
    }
}
