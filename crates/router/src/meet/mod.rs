//! Which unicast faces a router has beside those that its configuration names: to neighbours met on a
//! link with several peers, and to neighbours called by a host name, wherever that leads now.
//!
//! A state machine: what was heard and `now` go in, [`Output`]s come out.

pub(crate) mod hello;
pub(crate) mod lan;
mod peer;
#[cfg(test)]
mod tests;

use hello::Hello;
use lan::{Lan, Way};
use onym_route::Link;
use onym_tables::{Rng, Tick};
use onym_wire::Name;
use onym_wire::faceuri::FaceUri;
use peer::{Peer, State};

pub(crate) use peer::Made;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Neighbours met on one interface, at most; a further one is refused, counted.
const PEERS_MAX: usize = 64;
/// Hellos of one link that are checked: so many at once, and so many each second.
const BURST: u64 = 100;
const RATE: u64 = 50;
/// Least time between two hellos to a link.
const SPACING_MS: u64 = 500;
/// Who hears a newcomer answers within this time, so that not all answer at once.
const ANSWER_MS: u64 = 200;
/// Between two hellos of a link lies at least this time for each neighbour there.
const EACH_MS: u64 = 50;
/// A neighbour may be met at several addresses: this long the better one is waited for.
const SETTLE_MS: u64 = 250;
/// Of two the one whose name is less makes the face, so that there are not two of them at different
/// addresses; the other one makes it after this time if it is not there.
const DEFER_MS: u64 = 1500;
/// While a neighbour is heard by a face that it made itself, none is made for it: looked at again then.
const HEARD_MS: u64 = 1000;
/// Bounds of what others say about their intervals.
const INTERVAL_MS: std::ops::RangeInclusive<u64> = 100..=60_000;
/// Intervals without a hello after which a neighbour is not there any more.
const MISSES: u64 = 3;

/// What the shell shall do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Output {
    /// Say by the multicast face `lan` where this router is reached.
    Say { lan: u64, reach: FaceUri, interval_ms: u64 },
    /// Make a face; the answer goes to [`Meet::made`].
    Make { id: u64, way: Way, mtu: Option<u64> },
    /// Take a face away that was made here.
    Destroy { face: u64 },
    /// A link for the router.
    Up { face: u64, link: Link },
    /// It is none any more.
    Down { face: u64 },
}

/// Who a face leads to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Who {
    /// A router met on an interface.
    Met(Name, String),
    /// The neighbour of the configuration with this number, named by its host.
    Host(usize),
}

/// What became of hellos.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Said here.
    pub said: u64,
    /// Heard and taken.
    pub taken: u64,
    /// Signed by nobody who may.
    pub refused: u64,
    /// Not looked at: too many came.
    pub flooded: u64,
    /// Said before.
    pub replayed: u64,
    /// Without an address on the link where they came.
    pub elsewhere: u64,
    /// Too many neighbours there.
    pub full: u64,
}

impl std::ops::AddAssign for Counters {
    /// The sums of both.
    fn add_assign(&mut self, other: Self) {
        self.said += other.said;
        self.taken += other.taken;
        self.refused += other.refused;
        self.flooded += other.flooded;
        self.replayed += other.replayed;
        self.elsewhere += other.elsewhere;
        self.full += other.full;
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

struct Place {
    lan: Lan,
    say_at: Tick,
    said: Option<Tick>,
    /// Hellos that may be checked, in thousandths, and since when.
    tokens: u64,
    filled: Tick,
}

/// The state machine.
pub(crate) struct Meet {
    own: Name,
    interval: Duration,
    /// Silence after which another way is tried.
    dead: Duration,
    places: BTreeMap<u64, Place>,
    peers: BTreeMap<Who, Peer>,
    next_id: u64,
    rng: Rng,
    outputs: VecDeque<Output>,
    pub(crate) counters: Counters,
}

impl Meet {
    pub(crate) fn new(own: Name, interval: Duration, dead: Duration, seed: u64) -> Self {
        Self {
            own,
            interval,
            dead,
            places: BTreeMap::new(),
            peers: BTreeMap::new(),
            next_id: 0,
            rng: Rng::new(seed),
            outputs: VecDeque::new(),
            counters: Counters::default(),
        }
    }

    // --- links

    /// The links that the forwarder has now.
    pub(crate) fn set_lans(&mut self, now: Tick, lans: Vec<Lan>) {
        let there: BTreeSet<u64> = lans.iter().map(|lan| lan.face).collect();
        self.places.retain(|face, _| there.contains(face));
        // The same for all: of several kinds of address the best is known as soon as the others.
        let jitter = self.rng.below(ANSWER_MS);
        for lan in lans {
            if lan.reach.is_none() && !self.places.contains_key(&lan.face) {
                let (face, interface) = (lan.face, &lan.interface.name);
                tracing::warn!(
                    target: "onym::route",
                    face,
                    "{interface}: the node does not listen there, so routers cannot be told where it is \
                     reached: set faces.udp.listen"
                );
            }
            match self.places.get_mut(&lan.face) {
                Some(place) => place.lan = lan,
                None => {
                    let place = Place {
                        say_at: now.plus_ms(jitter),
                        said: None,
                        tokens: BURST * 1000,
                        filled: now,
                        lan,
                    };
                    self.places.insert(place.lan.face, place);
                }
            }
        }
        let interfaces: BTreeSet<&str> =
            self.places.values().map(|place| place.lan.interface.name.as_str()).collect();
        let lost = |who: &Who| matches!(who, Who::Met(_, at) if !interfaces.contains(at.as_str()));
        let lost: Vec<Who> = self.peers.keys().filter(|who| lost(who)).cloned().collect();
        lost.iter().for_each(|who| self.forget(who));
    }

    /// Whether a hello that came by `face` is worth a check: it is a link, and not too many came.
    pub(crate) fn allow(&mut self, now: Tick, face: u64) -> bool {
        let Some(place) = self.places.get_mut(&face) else { return false };
        let earned = millis(now.since(place.filled)).saturating_mul(RATE);
        place.tokens = place.tokens.saturating_add(earned).min(BURST * 1000);
        place.filled = now;
        if place.tokens < 1000 {
            self.counters.flooded += 1;
            return false;
        }
        place.tokens -= 1000;
        true
    }

    /// A hello whose signature holds came by `face`.
    pub(crate) fn heard(&mut self, now: Tick, face: u64, hello: &Hello) {
        if hello.router == self.own {
            return;
        }
        let Some(place) = self.places.get(&face) else { return };
        let Some(way) = place.lan.way(&hello.reach) else {
            self.counters.elsewhere += 1;
            return;
        };
        let interface = place.lan.interface.name.clone();
        let here = |who: &Who| matches!(who, Who::Met(_, at) if *at == interface);
        let count = self.peers.keys().filter(|who| here(who)).count();
        let who = Who::Met(hello.router.clone(), interface.clone());
        let is_new = !self.peers.contains_key(&who);
        if is_new && count >= PEERS_MAX {
            self.counters.full += 1;
            return;
        }
        let wait = SETTLE_MS + if self.own < hello.router { 0 } else { DEFER_MS };
        let peer = self.peers.entry(who).or_insert_with(|| Peer::new(now.plus_ms(wait), 1, None));
        let interval = hello.interval_ms.clamp(*INTERVAL_MS.start(), *INTERVAL_MS.end());
        if !peer.hear(now, way, hello.signed_ms, interval * MISSES) {
            self.counters.replayed += 1;
            return;
        }
        self.counters.taken += 1;
        if is_new {
            self.answer(now, &interface);
        }
    }

    /// Says soon that this router is there, by all kinds of address of an interface: who came is to
    /// choose among them.
    fn answer(&mut self, now: Tick, interface: &str) {
        let jitter = self.rng.below(ANSWER_MS);
        for place in self.places.values_mut().filter(|p| p.lan.interface.name == interface) {
            let earliest = place.said.map_or(now, |said| said.plus_ms(SPACING_MS));
            place.say_at = place.say_at.min(now.plus_ms(jitter).max(earliest));
        }
    }

    // --- names

    /// The host of neighbour `index` has these addresses now, best first.
    pub(crate) fn resolved(&mut self, now: Tick, index: usize, link: &Link, ways: Vec<Way>) {
        let peer = self
            .peers
            .entry(Who::Host(index))
            .or_insert_with(|| Peer::new(now, link.cost, link.mtu));
        if let Some((face, is_own)) = peer.resolve(now, ways) {
            self.drop_face(face, is_own);
        }
    }

    // --- faces

    /// The face asked for by `id` is there, new or not; or it cannot be made.
    pub(crate) fn made(&mut self, now: Tick, id: u64, answer: Result<Made, ()>) {
        let making = |peer: &Peer| matches!(&peer.state, State::Making { id: of, .. } if *of == id);
        let Some((who, peer)) = self.peers.iter_mut().find(|(_, peer)| making(peer)) else {
            // Nobody wants it any more.
            if let Ok(Made { face, is_own: true }) = answer {
                self.outputs.push_back(Output::Destroy { face });
            }
            return;
        };
        match answer {
            Ok(made) => {
                let (uri, face) = (peer.up(now, made), made.face);
                let link = Link { uri, mtu: peer.mtu, cost: peer.cost };
                tracing::debug!(target: "onym::route", ?who, face, "a link was made");
                self.outputs.push_back(Output::Up { face, link });
            }
            Err(()) => peer.failed(now),
        }
    }

    /// A face is gone.
    pub(crate) fn face_gone(&mut self, now: Tick, face: u64) {
        self.places.remove(&face);
        for peer in self.peers.values_mut().filter(|peer| peer.face() == Some(face)) {
            (peer.state, peer.next) = (State::Idle, now.plus_ms(SPACING_MS));
        }
    }

    /// The forwarder was started again: no face of before is there.
    pub(crate) fn forget_faces(&mut self, now: Tick) {
        self.places.clear();
        self.outputs.clear();
        for peer in self.peers.values_mut() {
            (peer.state, peer.next) = (State::Idle, now);
        }
    }

    /// Neighbours that the router hears, by each face, and who is held down.
    pub(crate) fn look(&mut self, now: Tick, heard: &[(Name, u64)], held: &BTreeSet<Name>) {
        let mut lost = Vec::new();
        let mut dropped = Vec::new();
        for (who, peer) in &mut self.peers {
            let is_held = matches!(who, Who::Met(router, _) if held.contains(router));
            let is_heard = peer.face().is_some_and(|face| heard.iter().any(|(_, f)| *f == face));
            if let Who::Met(router, _) = who
                && peer.state == State::Idle
                && heard.iter().any(|(name, _)| name == router)
            {
                peer.next = peer.next.max(now.plus_ms(HEARD_MS));
            }
            let is_over = matches!(who, Who::Met(..)) && !is_heard && now >= peer.until;
            if is_over {
                lost.push(who.clone());
            } else if is_held {
                peer.next = now.plus_ms(SPACING_MS);
                dropped.extend(peer.drop_face());
            } else if is_heard {
                peer.heard();
            } else {
                dropped.extend(peer.silent(now, self.dead));
            }
        }
        dropped.into_iter().for_each(|(face, is_own)| self.drop_face(face, is_own));
        lost.iter().for_each(|who| self.forget(who));
    }

    fn forget(&mut self, who: &Who) {
        if let Some(mut peer) = self.peers.remove(who)
            && let Some((face, is_own)) = peer.drop_face()
        {
            self.drop_face(face, is_own);
        }
    }

    fn drop_face(&mut self, face: u64, is_own: bool) {
        self.outputs.push_back(Output::Down { face });
        if is_own {
            self.outputs.push_back(Output::Destroy { face });
        }
    }

    // --- time and output

    pub(crate) fn poll_timeout(&self) -> Tick {
        let says = self.places.values().filter(|p| p.lan.reach.is_some()).map(|p| p.say_at);
        let looks = self.peers.values().map(Peer::due);
        says.chain(looks).min().unwrap_or(Tick::NEVER)
    }

    pub(crate) fn handle_timeout(&mut self, now: Tick) {
        let here = |interface: &str, who: &Who| matches!(who, Who::Met(_, at) if at == interface);
        for (face, place) in self.places.iter_mut().filter(|(_, p)| p.say_at <= now) {
            let Some(reach) = place.lan.reach.clone() else { continue };
            let count =
                self.peers.keys().filter(|who| here(&place.lan.interface.name, who)).count();
            let least = EACH_MS * count as u64;
            let interval_ms = millis(self.interval).max(least);
            // The first may be lost: who listens may just begin to.
            let wait = if place.said.is_none() { interval_ms.min(1000) } else { interval_ms };
            place.say_at = now.plus_ms(wait - wait * (self.rng.below(20)) / 100);
            place.said = Some(now);
            self.counters.said += 1;
            self.outputs.push_back(Output::Say { lan: *face, reach, interval_ms });
        }
        for peer in self.peers.values_mut() {
            if let Some(way) = peer.begin(now, self.next_id) {
                let (id, mtu) = (self.next_id, peer.mtu);
                self.next_id += 1;
                self.outputs.push_back(Output::Make { id, way, mtu });
            }
        }
    }

    /// Begins to make a face to `uri` for the next host, and tells the number.
    #[cfg(test)]
    pub(crate) fn make_for_tests(&mut self, now: Tick, uri: &str) -> u64 {
        let way = Way { kind: lan::Kind::Udp4, uri: uri.to_owned(), local: None };
        let link = Link { uri: uri.to_owned(), mtu: None, cost: 1 };
        self.resolved(now, self.peers.len(), &link, vec![way]);
        self.handle_timeout(now);
        self.outputs.clear();
        self.next_id - 1
    }

    pub(crate) fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }
}
