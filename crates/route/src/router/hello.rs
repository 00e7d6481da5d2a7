//! Hellos of neighbours, and the advertisements that they carry.

use super::check::Subject;
use super::neighbour::{Said, Segment};
use super::{Notice, Output, Refusal, Router, Verdict, Why};
use crate::codec::{Delta, Hello, Request};
use crate::table::{Asked, PeerId};
use onym_crypto::verify::check_parameters_digest;
use onym_endpoint::{Incoming, Packet};
use onym_tables::Tick;
use std::sync::Arc;

/// A neighbour of ours that does not name this router among those it hears, for so many intervals, is
/// heard by one way only.
const DEAF_INTERVALS: u32 = 3;

impl Router {
    /// A sync Interest arrived, by an active link or a passive one.
    pub(super) fn on_sync(&mut self, now: Tick, incoming: &Incoming) {
        self.counters.hellos += 1;
        let Some(face) = incoming.face else {
            self.counters.no_face += 1;
            if self.counters.no_face == 1 {
                self.notice(Notice::NoFaceId);
            }
            return;
        };
        let Some((packet, hello, signed)) = self.read_hello(incoming) else {
            self.counters.malformed += 1;
            return;
        };
        let (own, said) = (hello.router == *self.own, Said { boot: hello.boot, seq: hello.seq });
        if own && hello.boot == self.config.boot {
            // Heard back over a link with several peers.
            return;
        }
        // What is older than known words costs no check.
        if !own && said < self.neighbours.words(&hello.router).said {
            self.counters.replayed += 1;
            return;
        }
        let entries = hello.delta.as_ref().map_or(0, |delta| delta.entries.len());
        if !self.checks.allow(now, face, entries) {
            self.counters.flooded += 1;
            return;
        }
        let hello = Box::new(hello);
        let subject = Subject::Hello { face, hello, signed, packet: packet.clone() };
        self.verify(subject, packet, Some(face));
    }

    fn read_hello(&self, incoming: &Incoming) -> Option<(Packet, Hello, Option<u64>)> {
        let interest = incoming.interest();
        check_parameters_digest(&interest).ok()?;
        let packet = Packet::parse(interest.app_parameters?).ok()?;
        let data = packet.data();
        let router = self.names.router_of_sync(data.name)?;
        let hello = Hello::parse(data.content).ok().filter(|hello| hello.router == router)?;
        let entries = hello.delta.as_ref().map_or(0, |delta| delta.entries.len());
        if entries > self.config.table.destinations_max {
            return None;
        }
        let signed = data.signature_info().time;
        Some((packet, hello, signed))
    }

    /// Asks the shell for a verdict about `packet`; `false` when too many wait.
    pub(super) fn verify(&mut self, subject: Subject, packet: Packet, face: Option<u64>) -> bool {
        let id = self.checks.add(subject);
        match id {
            Some(id) => self.outputs.push_back(Output::Verify { id, packet, face }),
            None => self.counters.flooded += 1,
        }
        id.is_some()
    }

    /// The answer to [`Output::Verify`].
    pub fn verified(&mut self, now: Tick, id: u64, verdict: Verdict) {
        let Some(subject) = self.checks.take(id) else { return };
        match (verdict, subject) {
            (verdict, Subject::Group(id)) => self.group_verified(now, id, &verdict),
            (Verdict::Good, Subject::Hello { face, hello, signed, .. }) => {
                self.on_hello(now, face, &hello, signed);
            }
            (Verdict::Good, Subject::Segment(segment)) => self.on_segment(now, segment),
            (Verdict::Good, Subject::Echo(echo)) => self.echoed(now, echo),
            (Verdict::Bad(_), Subject::Echo(_)) => self.counters.refused += 1,
            (Verdict::Bad(why), Subject::Hello { hello, packet, .. }) => {
                self.refused(now, hello.router, &packet, why);
            }
            (Verdict::Bad(why), Subject::Segment(Segment { peer, id, packet })) => {
                if let Some(name) = self.neighbour_name(peer).cloned() {
                    self.refused(now, name, &packet, why);
                }
                self.fetch_failed(now, id);
            }
        }
        self.events(now);
        self.progress(now);
    }

    fn refused(&mut self, now: Tick, router: onym_wire::Name, packet: &Packet, why: String) {
        self.counters.refused += 1;
        let locator = packet.data().signature_info().key_locator;
        let key = locator.and_then(|locator| locator.name()).map(|name| name.to_name());
        let before = self.refusals.iter().find(|old| old.router == router);
        let known = before.filter(|old| old.key == key && old.why == why);
        let told =
            known.map(|old| old.told).filter(|told| now < told.plus_ms(super::TELL_AGAIN_MS));
        self.refusals.retain(|old| old.router != router);
        if self.refusals.len() >= super::REFUSALS_MAX {
            self.refusals.pop_front();
        }
        let (of, of_key, of_why) = (router.clone(), key.clone(), why.clone());
        let refusal =
            Refusal { router: of, key: of_key, why: of_why, at: now, told: told.unwrap_or(now) };
        self.refusals.push_back(refusal);
        if told.is_none() {
            self.notice(Notice::Refused { router, key, why });
        }
    }

    /// A hello whose signature holds.
    fn on_hello(&mut self, now: Tick, face: u64, hello: &Hello, signed: Option<u64>) {
        if hello.router == *self.own {
            let known = self.duplicate.filter(|(boot, _)| *boot == hello.boot);
            if known.is_none_or(|(_, told)| now >= told.plus_ms(super::TELL_AGAIN_MS)) {
                self.duplicate = Some((hello.boot, now));
                self.notice(Notice::Duplicate(hello.boot));
            }
            return;
        }
        if self.links.is_held(&hello.router) {
            return self.keep_held(now, hello, face);
        }
        let said = Said { boot: hello.boot, seq: hello.seq };
        let mut words = self.neighbours.words(&hello.router);
        let before = words.said;
        if !words.take(now, said, signed) {
            self.counters.replayed += 1;
            return;
        }
        let known = self.neighbours.id(&hello.router);
        let Some(peer) = known.or_else(|| self.neighbours.add(now, &hello.router)) else {
            self.counters.neighbours_refused += 1;
            return;
        };
        let (cost, unix_ms) = (self.links.cost(face), self.unix_ms(now));
        let Some(neighbour) = self.neighbours.get_mut(peer) else { return };
        neighbour.words = words;
        let ours = i64::try_from(unix_ms).ok();
        let theirs = signed.and_then(|ms| i64::try_from(ms).ok());
        neighbour.clock_ahead_ms =
            ours.zip(theirs).map(|(ours, theirs)| theirs.saturating_sub(ours));
        if hello.goodbye {
            neighbour.faces.clear();
            self.lose(now, peer, Why::Goodbye);
            return self.control_routes();
        }
        let moved = neighbour.hear(now, face, cost);
        if moved {
            self.control_routes();
            self.neighbour_faces_changed(now, peer, Why::FaceDown);
        }
        self.mutual(now, peer, hello);
        if known.is_none() {
            self.notice(Notice::NeighbourUp(hello.router.clone(), face));
            // It shall hear of this router at once, not at the next interval.
            self.publisher.greet(now);
        }
        self.take_news(now, peer, said, hello.delta.as_ref());
        if known.is_some() && said == before {
            self.counters.pings += 1;
        }
    }

    /// Whether the neighbour hears this router, as far as it tells.
    fn mutual(&mut self, now: Tick, peer: PeerId, hello: &Hello) {
        let own = Arc::clone(&self.own);
        let patience = self.config.advertise_interval * DEAF_INTERVALS;
        let Some(neighbour) = self.neighbours.get_mut(peer) else { return };
        neighbour.ours |= hello.delta.is_some() || !hello.heard.is_empty();
        let ack = hello.heard.iter().find(|heard| heard.router == *own);
        match ack {
            Some(heard) => {
                neighbour.acked = heard.seq;
                neighbour.deaf_since = None;
            }
            None if neighbour.ours => {
                neighbour.deaf_since = neighbour.deaf_since.or(Some(now));
            }
            None => {}
        }
        let deaf = neighbour.deaf_since.is_some_and(|since| now >= since + patience);
        let (usable, name, cost) = (!deaf, Arc::clone(&neighbour.name), neighbour.cost());
        let was = std::mem::replace(&mut neighbour.usable, usable);
        if usable && !was {
            // What it says has to be taken from the beginning.
            neighbour.taken = None;
            self.table.set_peer(peer, &name, cost);
        }
        if was && !usable {
            self.table.drop_peer(peer);
            self.settle(now);
            self.notice(Notice::NeighbourDown((*name).clone(), Why::OneSided));
        }
    }

    /// Takes the difference in a hello, or fetches the whole advertisement.
    fn take_news(&mut self, now: Tick, peer: PeerId, said: Said, delta: Option<&Delta>) {
        let Some(neighbour) = self.neighbours.get_mut(peer) else { return };
        if !neighbour.usable || neighbour.taken == Some(said) {
            return;
        }
        if let Some(delta) = delta {
            let base = Said { boot: said.boot, seq: delta.base };
            if neighbour.taken == Some(base) {
                neighbour.taken = Some(said);
                self.counters.deltas += 1;
                self.table.change(peer, delta);
                self.take_requests(now, peer, &delta.requests);
                self.publisher.acknowledge(now);
                return;
            }
        }
        self.fetch(now, peer, said);
    }

    /// What a neighbour asks for.
    pub(super) fn take_requests(&mut self, now: Tick, peer: PeerId, requests: &[Request]) {
        for request in requests {
            let _: Asked = self.table.asked(now, peer, request);
        }
    }
}
