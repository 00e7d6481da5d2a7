//! Neighbours of this node, and the flooding of link states.
//!
//! A hello crosses each link every second. A neighbour that is not heard for some time is gone
//! (later on a connection, whose end the shell tells at once), and
//! the node says so to everybody. A hello carries the digest of all link states that its sender
//! knows; where two neighbours differ, they exchange them: so what a loss held back comes later.

use crate::publication::{Outbox, Publication, Target};
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::push::{Control, Kind, Label, Link, Role, reserved};
use std::collections::BTreeMap;
use std::time::Duration;

/// Time that a new neighbour waits for others to be said with it.
const HOLD: Duration = Duration::from_millis(10);

/// Settings of the link-state part.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node.
    pub node: Label,
    /// Number of its inside.
    pub inside: u32,
    /// What it does for the domain.
    pub role: Role,
    /// Number of this life of the node.
    pub boot: u64,
    /// Time between hellos.
    pub hello: Duration,
    /// Silence after which a neighbour is gone.
    pub dead: Duration,
    /// The same for one at the other end of a connection: hellos wait behind what waits there.
    pub dead_connected: Duration,
    /// Time after which a link state is said again.
    pub refresh: Duration,
    /// Age at which a link state is forgotten.
    pub age_max: Duration,
    /// Most nodes of which link states are kept.
    pub nodes_max: usize,
}

impl Config {
    /// The usual times for a node.
    #[must_use]
    pub const fn new(node: Label, inside: u32, role: Role, boot: u64) -> Self {
        Self {
            node,
            inside,
            role,
            boot,
            hello: Duration::from_secs(1),
            dead: Duration::from_millis(3500),
            dead_connected: Duration::from_millis(10_500),
            refresh: Duration::from_secs(60),
            age_max: Duration::from_secs(200),
            nodes_max: 4096,
        }
    }
}

#[derive(Debug)]
struct Neighbour {
    number: u32,
    cost: u16,
    /// The node at the other end, while it is heard.
    node: Option<Label>,
    heard: Tick,
    /// Silence after which it is gone.
    dead: Duration,
    /// When all link states were sent to it last.
    synced: Option<Tick>,
}

#[derive(Debug)]
struct State {
    number: u64,
    octets: Control,
    heard: Tick,
}

/// The link-state part of a node.
#[derive(Debug)]
pub struct LinkState {
    config: Config,
    links: BTreeMap<FaceId, Neighbour>,
    /// Links to other domains: the domain instead of a neighbour.
    exits: BTreeMap<FaceId, Link>,
    known: BTreeMap<Label, State>,
    number: u64,
    digest: u64,
    next_hello: Tick,
    next_refresh: Tick,
    /// When a change is said: several that come together are said once.
    say_at: Option<Tick>,
    /// Messages that were refused.
    pub refused: u64,
}

impl LinkState {
    /// A node without links.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            links: BTreeMap::new(),
            exits: BTreeMap::new(),
            known: BTreeMap::new(),
            number: 0,
            digest: 0,
            next_hello: Tick(0),
            next_refresh: Tick(0),
            say_at: None,
            refused: 0,
        }
    }

    /// Adds a link; its neighbour makes itself known.
    pub fn link_add(&mut self, now: Tick, face: FaceId, number: u32, cost: u16) {
        let (heard, dead, cost) = (now, self.config.dead, cost.max(1));
        let link = Neighbour { number, cost, node: None, heard, dead, synced: None };
        self.links.insert(face, link);
        self.next_hello = now;
    }

    /// The link is a connection: its end is told by [`link_down`](Self::link_down).
    pub fn link_connected(&mut self, face: FaceId) {
        if let Some(link) = self.links.get_mut(&face) {
            link.dead = self.config.dead_connected;
        }
    }

    /// Until `then` nothing was taken from the link: that its neighbour was not heard says nothing.
    pub fn not_listened(&mut self, face: FaceId, then: Tick) {
        if let Some(link) = self.links.get_mut(&face) {
            link.heard = link.heard.max(then);
        }
    }

    /// Adds a link to another domain: it is said like any other, and no neighbour is looked for.
    pub fn exit_add(&mut self, now: Tick, face: FaceId, exit: Link) {
        self.exits.insert(face, exit);
        self.say_at.get_or_insert(now + HOLD);
    }

    /// The domain at the other end of a link, when it leads to one.
    #[must_use]
    pub fn exit(&self, face: FaceId) -> Option<Label> {
        self.exits.get(&face).map(|exit| exit.neighbour)
    }

    /// The face of the link with this number to another domain.
    #[must_use]
    pub fn face_of_exit(&self, number: u32) -> Option<FaceId> {
        self.exits.iter().find(|(_, exit)| exit.number == number).map(|(face, _)| *face)
    }

    /// The link is known to be gone, sooner than its silence would tell.
    pub fn link_down(&mut self, now: Tick, face: FaceId, out: &mut Outbox) {
        let link = self.links.get_mut(&face);
        if link.is_some_and(|l| l.node.take().is_some()) {
            self.say(now, out);
        }
    }

    /// Removes a link.
    pub fn link_remove(&mut self, now: Tick, face: FaceId, out: &mut Outbox) {
        self.link_down(now, face, out);
        self.links.remove(&face);
        if self.exits.remove(&face).is_some() {
            self.say(now, out);
        }
    }

    /// The node at the other end of a link, while it is heard.
    #[must_use]
    pub fn neighbour(&self, face: FaceId) -> Option<Label> {
        self.links.get(&face).and_then(|l| l.node)
    }

    /// A hello or a link state that came over `face`.
    pub fn receive(&mut self, now: Tick, face: FaceId, message: Control, out: &mut Outbox) {
        match message.kind {
            Kind::HELLO => self.hello(now, face, &message, out),
            Kind::LINK_STATE => self.link_state(now, face, message, out),
            _ => self.refused += 1,
        }
    }

    fn hello(&mut self, now: Tick, face: FaceId, message: &Control, out: &mut Outbox) {
        if message.sender == self.config.node {
            self.refused += 1;
            return;
        }
        let Some(link) = self.links.get_mut(&face) else {
            self.refused += 1;
            return;
        };
        link.heard = now;
        let is_new = link.node.replace(message.sender) != Some(message.sender);
        // A neighbour that knows something else gets all, at most once in a hello's time.
        let is_due = link.synced.is_none_or(|t| now.since(t) >= self.config.hello / 2);
        let differs = is_new || message.digest != self.digest;
        if differs && is_due {
            link.synced = Some(now);
        }
        if is_new {
            self.say_at.get_or_insert(now + HOLD);
            out.publish(self.hello_message(Target::Face(face)));
        }
        if differs && is_due {
            for state in self.known.values() {
                out.publish(flood(Target::Face(face), &state.octets));
            }
        }
    }

    fn link_state(&mut self, now: Tick, face: FaceId, message: Control, out: &mut Outbox) {
        let node = message.sender;
        if node == self.config.node {
            // What this node said in an earlier life must be older than what it says now.
            if message.number > self.number
                || (message.number == self.number && message.epoch != Some(self.config.boot))
            {
                self.number = message.number;
                self.say(now, out);
            }
            return;
        }
        let known = self.known.get(&node);
        if known.is_some_and(|k| k.number >= message.number) {
            return;
        }
        if known.is_none() && self.known.len() >= self.config.nodes_max {
            self.refused += 1;
            return;
        }
        self.note(now, message.clone());
        out.publish(flood(Target::Neighbours(Some(face)), &message));
        tell_own(message, out);
    }

    fn note(&mut self, now: Tick, message: Control) {
        let (node, number) = (message.sender, message.number);
        self.digest ^= part(node, number);
        let state = State { number, octets: message, heard: now };
        if let Some(before) = self.known.insert(node, state) {
            self.digest ^= part(node, before.number);
        }
    }

    /// Says the links of this node to everybody.
    fn say(&mut self, now: Tick, out: &mut Outbox) {
        self.number += 1;
        self.say_at = None;
        let link = |l: &Neighbour| {
            l.node.map(|neighbour| Link { neighbour, number: l.number, cost: l.cost })
        };
        let message = Control {
            number: self.number,
            epoch: Some(self.config.boot),
            item: Some(u64::from(self.config.inside)),
            role: self.config.role,
            links: self.links.values().filter_map(link).collect(),
            exits: self.exits.values().copied().collect(),
            ..Control::new(Kind::LINK_STATE, self.config.node)
        };
        self.note(now, message.clone());
        self.next_refresh = now + self.config.refresh;
        out.publish(flood(Target::Neighbours(None), &message));
        tell_own(message, out);
    }

    fn hello_message(&self, target: Target) -> Publication {
        let node = self.config.node;
        let message = Control { digest: self.digest, ..Control::new(Kind::HELLO, node) };
        Publication::control(target, reserved::HELLO, node, &message)
    }

    /// Hellos, silent neighbours, old link states.
    pub fn handle_timeout(&mut self, now: Tick, out: &mut Outbox) {
        let mut is_changed = self.number == 0;
        for link in self.links.values_mut() {
            if link.node.is_some() && now.since(link.heard) >= link.dead {
                link.node = None;
                is_changed = true;
            }
        }
        let is_due = self.say_at.is_some_and(|at| at <= now);
        if is_changed || is_due || self.next_refresh <= now {
            self.say(now, out);
        }
        if self.next_hello <= now && !self.links.is_empty() {
            self.next_hello = now + self.config.hello;
            out.publish(self.hello_message(Target::Neighbours(None)));
        }
        let is_old = |s: &State| now.since(s.heard) > self.config.age_max;
        let old: Vec<Label> =
            self.known.iter().filter(|(_, s)| is_old(s)).map(|(n, _)| *n).collect();
        for node in old.into_iter().filter(|n| *n != self.config.node) {
            if let Some(state) = self.known.remove(&node) {
                self.digest ^= part(node, state.number);
                // Full: what is said last, the node is gone.
                let gone = Control { is_full: true, links: Vec::new(), ..state.octets };
                tell_own(gone, out);
            }
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Tick> {
        let dead = self.links.values().filter(|l| l.node.is_some()).map(|l| l.heard + l.dead);
        let hello = (!self.links.is_empty()).then_some(self.next_hello);
        let first = (self.number == 0).then_some(Tick(0));
        dead.chain([self.next_refresh]).chain(hello).chain(first).chain(self.say_at).min()
    }
}

fn part(node: Label, number: u64) -> u64 {
    HashKey::new(0, 0).words([node.to_u64(), number])
}

/// Tells the topology manager of this node.
fn tell_own(message: Control, out: &mut Outbox) {
    out.control(Target::Here, reserved::LINK_STATE, message.sender, message);
}

fn flood(target: Target, message: &Control) -> Publication {
    Publication::control(target, reserved::LINK_STATE, message.sender, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A node that heard its neighbour once, now; and what it does with an outbox.
    fn heard_once() -> (LinkState, Outbox) {
        let [own, other] = [1, 2].map(Label::from_u64);
        let mut node = LinkState::new(Config::new(own, 0, Role::default(), 1));
        node.link_add(Tick(0), FaceId(300), 1, 1);
        let mut out = Outbox::default();
        node.receive(Tick(0), FaceId(300), Control::new(Kind::HELLO, other), &mut out);
        assert_eq!(node.neighbour(FaceId(300)), Some(other));
        (node, out)
    }

    fn is_there_after(node: &mut LinkState, out: &mut Outbox, ms: u64) -> bool {
        node.handle_timeout(Tick(0).plus_ms(ms), out);
        node.neighbour(FaceId(300)).is_some()
    }

    #[test]
    fn a_silent_neighbour_is_gone_later_on_a_connection_and_not_while_nobody_listens() {
        let (mut node, mut out) = heard_once();
        assert!(is_there_after(&mut node, &mut out, 3400));
        assert!(!is_there_after(&mut node, &mut out, 3600));

        let (mut node, mut out) = heard_once();
        node.link_connected(FaceId(300));
        assert!(is_there_after(&mut node, &mut out, 10_000));
        assert!(!is_there_after(&mut node, &mut out, 11_000));

        let (mut node, mut out) = heard_once();
        node.not_listened(FaceId(300), Tick(0).plus_ms(3000));
        assert!(is_there_after(&mut node, &mut out, 6400));
        assert!(!is_there_after(&mut node, &mut out, 6600));
    }
}
