//! Publications that come before the answer to the subscription that they are for (P-25): a rendezvous
//! that matches answers the subscriber and starts the publisher at once, and what the publisher
//! says may be faster, or the answer may be lost and said again.

use super::{Dispatcher, data};
use crate::publication::Outbox;
use onym_wire::push::Id;
use std::collections::VecDeque;

/// Publications that are kept at most, and their octets; at the bound the oldest is nobody's.
const PUBLICATIONS_MAX: usize = 256;
const OCTETS_MAX: usize = 1 << 20;

/// The names of an item and what was published.
type Publication = (Box<[Id]>, Box<[u8]>);

/// What waits for the answer.
#[derive(Debug, Default)]
pub(super) struct Awaited {
    kept: VecDeque<Publication>,
    octets: usize,
}

impl Awaited {
    /// Keeps a publication; how many had to go for it.
    fn keep(&mut self, ids: &[Id], payload: &[u8]) -> u64 {
        self.kept.push_back((ids.into(), payload.into()));
        self.octets += payload.len();
        let mut gone = 0;
        while self.kept.len() > PUBLICATIONS_MAX || self.octets > OCTETS_MAX {
            let Some((_, payload)) = self.kept.pop_front() else { break };
            self.octets -= payload.len();
            gone += 1;
        }
        gone
    }
}

impl Dispatcher {
    /// A publication that no application here has subscribed to: it is kept when one is about to.
    pub(super) fn nobody_has(&mut self, ids: &[Id], payload: &[u8]) {
        let waits = |name| self.subscriptions.get(name).is_some_and(|s| !s.waiting.is_empty());
        let is_awaited = ids.iter().any(|id| data::names_above(id, false).any(waits));
        self.counters.unwanted += if is_awaited { self.awaited.keep(ids, payload) } else { 1 };
    }

    /// The subscription `full` is answered: what came for it before is handed out now.
    pub(super) fn answered(&mut self, full: &Id, out: &mut Outbox) {
        if self.awaited.kept.is_empty() {
            return;
        }
        let Awaited { kept, .. } = std::mem::take(&mut self.awaited);
        for (ids, payload) in kept {
            let is_of = |id: &Id| data::names_above(id, false).any(|name| name == full.octets());
            if !ids.iter().any(is_of) {
                self.counters.unwanted += self.awaited.keep(&ids, &payload);
            } else if self.deliver(&ids, &payload, false, None, out) == 0 {
                self.counters.unwanted += 1;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Request};
    use super::*;
    use crate::publication::{AppId, Event, Said};
    use onym_tables::Tick;
    use onym_wire::push::{
        Control, Filter, Frame, FrameBuilder, Home, Kind, Label, Role, RouteBuf, Sequence, Status,
        Strategy,
    };

    const NOW: Tick = Tick(1);
    const APP: AppId = AppId(1);
    const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;

    fn label(n: u64) -> Label {
        Label::from_u64(n)
    }

    /// A message of the rendezvous and topology manager, the `number`th.
    fn told(dispatcher: &mut Dispatcher, number: u32, message: Control, out: &mut Outbox) {
        let sequence = Sequence { session: 9, number };
        dispatcher.control(NOW, &Control { sequence, ..message }, false, out);
    }

    /// A dispatcher that asked the rendezvous for /1/2 and has no answer yet; its request's place.
    fn asking(out: &mut Outbox) -> (Dispatcher, Sequence) {
        let mut dispatcher = Dispatcher::new(Config::new(label(1), 1));
        let route = RouteBuf::flat(0, &Filter::EMPTY);
        let role = Role::RENDEZVOUS.and(Role::TOPOLOGY);
        let homes = vec![Home { role, node: label(5), route }];
        let message = Control { homes, ..Control::new(Kind::HOMES, label(5)) };
        told(&mut dispatcher, 1, message, out);
        let (id, prefix) = (Id::root(label(2)), Id::root(label(1)));
        let request = Request { kind: Kind::SUBSCRIBE_ITEM, id, prefix, strategy: STRATEGY };
        dispatcher.request(NOW, APP, 7, &request, out);
        let Some(Said::Publication(sent)) = out.said.back() else { panic!("a request") };
        let place = Control::parse(&sent.payload).expect("a message").sequence;
        (dispatcher, place)
    }

    fn publication(dispatcher: &mut Dispatcher, payload: &[u8], out: &mut Outbox) {
        let (ids, mut octets) = (["/1/2".parse().unwrap()], Vec::new());
        let route = RouteBuf::flat(0, &Filter::EMPTY);
        let (route, options) = (&route, &[][..]);
        FrameBuilder { hop_limit: 9, strategy: STRATEGY, route, ids: &ids, options, payload }
            .write(&mut octets);
        dispatcher.receive(NOW, &Frame::parse(&octets).unwrap(), out);
    }

    fn answer(dispatcher: &mut Dispatcher, request: Sequence, status: Status, out: &mut Outbox) {
        let response = Control {
            request,
            status: Some(status),
            epoch: Some(1),
            ..Control::new(Kind::RESPONSE, label(5))
        };
        let relay = Control { body: response.octets(), ..Control::new(Kind::RELAY, label(5)) };
        told(dispatcher, 2, relay, out);
    }

    #[test]
    fn what_comes_before_the_answer_is_told_behind_it() {
        let mut out = Outbox::default();
        let (mut dispatcher, request) = asking(&mut out);
        publication(&mut dispatcher, b"early", &mut out);
        assert!(out.events.is_empty(), "{:?}", out.events);
        answer(&mut dispatcher, request, Status::OK, &mut out);
        let told: Vec<&Event> = out.events.iter().map(|(_, event)| event).collect();
        let data = Event::Data { id: "/1/2".parse().unwrap(), payload: b"early"[..].into() };
        assert_eq!(told, [&Event::Status { tag: 7, status: Status::OK }, &data]);
        assert_eq!((dispatcher.counters.delivered, dispatcher.counters.unwanted), (1, 0));
    }

    #[test]
    fn what_comes_before_a_refusal_is_nobodys() {
        let mut out = Outbox::default();
        let (mut dispatcher, request) = asking(&mut out);
        publication(&mut dispatcher, b"early", &mut out);
        answer(&mut dispatcher, request, Status::NO_ITEM, &mut out);
        assert_eq!(out.events.len(), 1, "{:?}", out.events);
        assert_eq!((dispatcher.counters.delivered, dispatcher.counters.unwanted), (0, 1));
    }

    #[test]
    fn what_waits_for_an_answer_is_bounded() {
        let mut out = Outbox::default();
        let (mut dispatcher, request) = asking(&mut out);
        let all = PUBLICATIONS_MAX as u64 + 10;
        (0..all).for_each(|n| publication(&mut dispatcher, &n.to_be_bytes(), &mut out));
        assert_eq!(dispatcher.counters.unwanted, 10);
        answer(&mut dispatcher, request, Status::OK, &mut out);
        assert_eq!(dispatcher.counters.delivered, PUBLICATIONS_MAX as u64);
    }
}
