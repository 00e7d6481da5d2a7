//! Neighbours of this node, and the flooding of link states.
//!
//! A hello crosses each link every second. A neighbour that is silent too long is gone (later on a
//! connection, whose end the shell reports at once), and the node floods that. A hello carries the
//! digest of all link states known to its sender; neighbours whose digests differ exchange their
//! link states, so losses only delay them. Links to other domains are heard alike (`exits`).
//! Where the network says that nobody is there, the neighbour is asked at once (`asking`).

mod asking;
mod exits;
mod load;
#[cfg(test)]
mod tests;

use crate::publication::{Outbox, Publication, Target};
use asking::Asking;
use exits::Exits;
use load::{Meter, own_loads};
use onym_tables::doubt::Step;
use onym_tables::{FaceId, SipKey, Tick};
use onym_wire::push::{Control, Kind, Label, Link, Role, reserved};
use std::collections::BTreeMap;
use std::time::Duration;

pub(crate) use load::HOT;

/// Time that a new neighbour, or another cost, waits for others to be said with it.
const HOLD: Duration = Duration::from_millis(10);

/// Settings of the link-state part.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node.
    pub node: Label,
    /// Its domain, where there are others.
    pub domain: Option<Label>,
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
    /// Most octets of all that is kept of them, about; beyond three quarters of it each neighbour
    /// has its share.
    pub octets_max: usize,
}

/// What a link state, and each link in it, costs in all tables of the node, about.
const STATE_OCTETS: usize = 2048;
const LINK_OCTETS: usize = 128;

fn cost(message: &Control) -> usize {
    STATE_OCTETS + LINK_OCTETS * (message.links.len() + message.exits.len() + message.loads.len())
}

impl Config {
    /// The usual times for a node.
    #[must_use]
    pub const fn new(node: Label, inside: u32, role: Role, boot: u64) -> Self {
        Self {
            node,
            domain: None,
            inside,
            role,
            boot,
            hello: Duration::from_secs(1),
            dead: Duration::from_millis(3500),
            dead_connected: Duration::from_millis(10_500),
            refresh: Duration::from_secs(60),
            age_max: Duration::from_secs(200),
            nodes_max: 4096,
            octets_max: 16 << 20,
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
    asking: Asking,
    meter: Meter,
}

impl Neighbour {
    /// It is gone; whether it was there.
    fn end(&mut self) -> bool {
        self.asking.forget();
        self.node.take().is_some()
    }
}

#[derive(Debug)]
struct State {
    number: u64,
    octets: Control,
    heard: Tick,
    /// The neighbour that it came from; none for this node.
    via: Option<FaceId>,
}

/// The link-state part of a node.
#[derive(Debug)]
pub struct LinkState {
    config: Config,
    links: BTreeMap<FaceId, Neighbour>,
    /// Links to other domains.
    exits: Exits,
    known: BTreeMap<Label, State>,
    /// What they cost, all and by the neighbour that they came from.
    octets: usize,
    octets_via: BTreeMap<FaceId, usize>,
    number: u64,
    digest: u64,
    next_hello: Tick,
    next_refresh: Tick,
    /// When a change is said: several that come together are said once.
    say_at: Option<Tick>,
    /// When this node said its links last.
    said_at: Tick,
    /// Messages that were refused.
    pub refused: u64,
    /// Times a neighbour was asked because the network said that nobody is there.
    pub doubts: u64,
}

impl LinkState {
    /// A node without links.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            links: BTreeMap::new(),
            exits: Exits::default(),
            known: BTreeMap::new(),
            octets: 0,
            octets_via: BTreeMap::new(),
            number: 0,
            digest: 0,
            next_hello: Tick(0),
            next_refresh: Tick(0),
            say_at: None,
            said_at: Tick(0),
            refused: 0,
            doubts: 0,
        }
    }

    /// Adds a link; its neighbour makes itself known.
    pub fn link_add(&mut self, now: Tick, face: FaceId, number: u32, cost: u16) {
        let (heard, dead, cost) = (now, self.config.dead, cost.max(1));
        let (node, synced) = (None, None);
        let (asking, meter) = (Asking::default(), Meter::default());
        let link = Neighbour { number, cost, node, heard, dead, synced, asking, meter };
        self.links.insert(face, link);
        self.next_hello = now;
    }

    /// The link costs this from now on.
    pub fn link_cost(&mut self, now: Tick, face: FaceId, cost: u16) {
        let Some(link) = self.links.get_mut(&face).filter(|l| l.cost != cost.max(1)) else {
            return;
        };
        link.cost = cost.max(1);
        self.say_by(now + HOLD);
    }

    /// Says the links of this node at that moment, if not before.
    fn say_by(&mut self, at: Tick) {
        self.say_at = Some(self.say_at.map_or(at, |due| due.min(at)));
    }

    /// The link is a connection: its end is told by [`link_down`](Self::link_down).
    pub fn link_connected(&mut self, face: FaceId) {
        if let Some(link) = self.links.get_mut(&face) {
            link.dead = self.config.dead_connected;
        }
        self.exits.connected(face, self.config.dead_connected);
    }

    /// Until `then` nothing was taken from the link: that its neighbour was not heard says nothing.
    pub fn not_listened(&mut self, face: FaceId, then: Tick) {
        if let Some(link) = self.links.get_mut(&face) {
            link.heard = link.heard.max(then);
        }
        self.exits.not_listened(face, then);
    }

    /// Adds a link to another domain: it is said like any other while that domain is heard (P-81).
    pub fn exit_add(&mut self, now: Tick, face: FaceId, exit: Link) {
        self.exits.add(face, exit, self.config.dead);
        self.next_hello = now;
    }

    /// The domain at the other end of a link, when it leads to one.
    #[must_use]
    pub fn exit(&self, face: FaceId) -> Option<Label> {
        self.exits.domain(face)
    }

    /// The face of the link with this number to another domain.
    #[must_use]
    pub fn face_of_exit(&self, number: u32) -> Option<FaceId> {
        self.exits.face_of(number)
    }

    /// A message of another domain came over the link to it.
    pub(crate) fn exit_heard(
        &mut self,
        now: Tick,
        face: FaceId,
        message: &Control,
        out: &mut Outbox,
    ) {
        let Some(heard) = self.exits.heard(now, face, message) else { return };
        if let Some(number) = heard.answer {
            out.publish(self.exit_hello(face, number));
        }
        if heard.is_curious {
            self.exit_ask(now, face, out);
        }
        // At once: the topology managers get the message behind it.
        if heard.is_up_now {
            self.say(now, out);
        }
    }

    /// The link is known to be gone, sooner than its silence would tell.
    pub fn link_down(&mut self, now: Tick, face: FaceId, out: &mut Outbox) {
        let was_heard = self.links.get_mut(&face).is_some_and(Neighbour::end);
        if was_heard || self.exits.down(face) {
            self.say(now, out);
        }
    }

    /// The network refused what was sent over the link: anybody may have said so, and the neighbour is
    /// asked (P-86).
    pub fn link_refused(&mut self, now: Tick, face: FaceId, out: &mut Outbox) {
        let link = self.links.get_mut(&face).filter(|link| link.node.is_some());
        let is_doubted = match link {
            Some(link) => link.asking.refused(now),
            None => self.exits.refused(now, face),
        };
        if is_doubted {
            self.doubts += 1;
            self.inquire(now, out);
        }
    }

    /// Questions of doubts that are due; whether a link without an answer went.
    fn inquire(&mut self, now: Tick, out: &mut Outbox) -> bool {
        let mut asked = Vec::new();
        let mut is_changed = false;
        for (face, link) in &mut self.links {
            match link.asking.step(now) {
                Some(Step::Ask) => asked.push(*face),
                Some(Step::End) => is_changed |= link.end(),
                None => {}
            }
        }
        asked.into_iter().for_each(|face| self.ask(now, face, out));
        let (asked, is_down) = self.exits.inquire(now);
        asked.into_iter().for_each(|face| self.exit_ask(now, face, out));
        is_changed | is_down
    }

    /// Removes a link.
    pub fn link_remove(&mut self, now: Tick, face: FaceId, out: &mut Outbox) {
        self.link_down(now, face, out);
        self.links.remove(&face);
        self.exits.remove(face);
    }

    /// The node at the other end of a link, while it is heard.
    #[must_use]
    pub fn neighbour(&self, face: FaceId) -> Option<Label> {
        self.links.get(&face).and_then(|l| l.node)
    }

    /// Whether the link with this number is there, and no hello of its neighbour is missed.
    pub(crate) fn is_heard(&self, now: Tick, number: u32) -> bool {
        let mut links = self.links.values().filter(|l| l.number == number && l.node.is_some());
        links.any(|link| now.since(link.heard) < self.missed_after(link))
    }

    /// When the next hello is missed, of those links.
    pub(crate) fn next_missed(&self, is_meant: impl Fn(&u32) -> bool) -> Option<Tick> {
        let links = self.links.values().filter(|l| l.node.is_some() && is_meant(&l.number));
        links.map(|link| link.heard + self.missed_after(link)).min()
    }

    /// Silence after which a hello is missed: on a connection it may wait behind what waits there.
    fn missed_after(&self, link: &Neighbour) -> Duration {
        if link.dead == self.config.dead { self.config.hello * 3 / 2 } else { link.dead }
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
        let answer = link.asking.heard(now, message);
        let is_curious = link.asking.is_curious(message);
        let is_new = link.node.replace(message.sender) != Some(message.sender);
        // A neighbour that knows something else gets all, at most once in a hello's time.
        let is_due = link.synced.is_none_or(|t| now.since(t) >= self.config.hello / 2);
        let differs = is_new || message.digest != self.digest;
        if differs && is_due {
            link.synced = Some(now);
        }
        if is_new {
            self.say_by(now + HOLD);
        }
        if is_new || is_curious {
            self.ask(now, face, out);
        }
        if let Some(number) = answer {
            out.publish(self.hello_message(Target::Face(face), number));
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
        let before = known.map_or(0, |k| cost(&k.octets));
        let is_one_more = known.is_none() && self.known.len() >= self.config.nodes_max;
        let message = essence(message);
        if is_one_more || !self.has_room_for(face, before, cost(&message)) {
            self.refused += 1;
            return;
        }
        self.note(now, Some(face), message.clone());
        out.publish(flood(Target::Neighbours(Some(face)), &message));
        tell_own(message, out);
    }

    /// Whether a link state that came over `face` may cost `octets` where it cost `before`.
    fn has_room_for(&self, face: FaceId, before: usize, octets: usize) -> bool {
        let max = self.config.octets_max;
        let all = self.octets - before + octets;
        if octets <= before || all < max - max / 4 {
            return true;
        }
        // One more than there are: room for who comes next.
        let share = max / (self.links.len() + 1);
        let own = self.octets_via.get(&face).copied().unwrap_or(0);
        all <= max && own + octets <= share
    }

    fn note(&mut self, now: Tick, via: Option<FaceId>, message: Control) {
        let (node, number) = (message.sender, message.number);
        self.forget(node);
        self.digest ^= part(node, number);
        let octets = cost(&message);
        self.octets += octets;
        if let Some(face) = via {
            *self.octets_via.entry(face).or_default() += octets;
        }
        self.known.insert(node, State { number, octets: message, heard: now, via });
    }

    /// Takes out what is known of a node.
    fn forget(&mut self, node: Label) -> Option<State> {
        let state = self.known.remove(&node)?;
        self.digest ^= part(node, state.number);
        let octets = cost(&state.octets);
        self.octets -= octets;
        if let Some(face) = state.via
            && let Some(own) = self.octets_via.get_mut(&face)
        {
            *own -= octets;
            if *own == 0 {
                self.octets_via.remove(&face);
            }
        }
        Some(state)
    }

    /// Says the links of this node to everybody.
    fn say(&mut self, now: Tick, out: &mut Outbox) {
        self.number += 1;
        (self.say_at, self.said_at) = (None, now);
        let link = |l: &Neighbour| {
            l.node.map(|neighbour| Link { neighbour, number: l.number, cost: l.cost })
        };
        let heard = self.links.values_mut().filter(|link| link.node.is_some());
        let loads = heard.filter_map(|link| link.meter.say(link.number)).collect();
        let message = Control {
            number: self.number,
            epoch: Some(self.config.boot),
            item: Some(u64::from(self.config.inside)),
            role: self.config.role,
            loads,
            links: self.links.values().filter_map(link).collect(),
            exits: self.exits.up().collect(),
            ..Control::new(Kind::LINK_STATE, self.config.node)
        };
        self.note(now, None, message.clone());
        self.next_refresh = now + self.config.refresh;
        out.publish(flood(Target::Neighbours(None), &message));
        tell_own(message, out);
    }

    /// A hello for another domain, over the link to it.
    fn exit_hello(&self, face: FaceId, number: u64) -> Publication {
        let message = Control { number, ..self.of_domain() };
        Publication::control(Target::Face(face), reserved::DOMAINS, message.sender, &message)
    }

    /// A hello in the name of the domain. Without a label of its own it has no links to others.
    fn of_domain(&self) -> Control {
        Control::new(Kind::HELLO, self.config.domain.unwrap_or_default())
    }

    /// Asks the other domain of a link whether it is there.
    fn exit_ask(&mut self, now: Tick, face: FaceId, out: &mut Outbox) {
        let hello = self.of_domain();
        if let Some(question) = self.exits.ask(now, face, hello) {
            let (root, domain) = (reserved::DOMAINS, question.sender);
            out.publish(Publication::control(Target::Face(face), root, domain, &question));
        }
    }

    /// A hello; with the number of a question it answers that.
    fn hello_message(&self, target: Target, number: u64) -> Publication {
        let node = self.config.node;
        let message = Control { digest: self.digest, number, ..Control::new(Kind::HELLO, node) };
        Publication::control(target, reserved::HELLO, node, &message)
    }

    /// Asks the neighbour of a link whether it is there.
    fn ask(&mut self, now: Tick, face: FaceId, out: &mut Outbox) {
        let node = self.config.node;
        let hello = Control { digest: self.digest, ..Control::new(Kind::HELLO, node) };
        if let Some(link) = self.links.get_mut(&face) {
            let question = link.asking.ask(now, hello);
            out.publish(Publication::control(Target::Face(face), reserved::HELLO, node, &question));
        }
    }

    /// Hellos, silent neighbours, old link states.
    pub fn handle_timeout(&mut self, now: Tick, out: &mut Outbox) {
        let mut is_changed = self.number == 0;
        for link in self.links.values_mut() {
            if now.since(link.heard) >= link.dead {
                is_changed |= link.end();
            }
        }
        is_changed |= self.exits.silent(now);
        is_changed |= self.inquire(now, out);
        let is_due = self.say_at.is_some_and(|at| at <= now);
        if is_changed || is_due || self.next_refresh <= now {
            self.say(now, out);
        }
        if self.next_hello <= now && self.has_hellos() {
            self.next_hello = now + self.config.hello;
            if !self.links.is_empty() {
                out.publish(self.hello_message(Target::Neighbours(None), 0));
            }
            let faces = self.exits.faces().filter(|_| self.config.domain.is_some());
            faces.for_each(|face| out.publish(self.exit_hello(face, 0)));
        }
        let is_old = |s: &State| now.since(s.heard) > self.config.age_max;
        let others = self.known.iter().filter(|(n, _)| **n != self.config.node);
        let old: Vec<Label> = others.filter(|(_, s)| is_old(s)).map(|(n, _)| *n).collect();
        for node in old {
            if let Some(state) = self.forget(node) {
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
        let dead = dead.chain(self.exits.next_silence());
        let asked = self.links.values().map(|l| l.asking.due()).chain(self.exits.due());
        let dead = dead.chain(asked.filter(|due| *due != Tick::NEVER));
        let hello = self.has_hellos().then_some(self.next_hello);
        let first = (self.number == 0).then_some(Tick(0));
        dead.chain([self.next_refresh]).chain(hello).chain(first).chain(self.say_at).min()
    }

    fn has_hellos(&self) -> bool {
        !self.links.is_empty() || (self.config.domain.is_some() && !self.exits.is_empty())
    }
}

/// What of a link state is kept and passed on: a stranger may have put anything beside it.
fn essence(message: Control) -> Control {
    let loads = own_loads(&message);
    let Control { number, epoch, item, role, mut links, mut exits, sender, .. } = message;
    links.shrink_to_fit();
    exits.shrink_to_fit();
    let like = Control::new(Kind::LINK_STATE, sender);
    Control { number, epoch, item, role, links, exits, loads, ..like }
}

fn part(node: Label, number: u64) -> u64 {
    SipKey::new(0, 0).words([node.to_u64(), number])
}

/// Tells the topology manager of this node.
fn tell_own(message: Control, out: &mut Outbox) {
    out.control(Target::Here, reserved::LINK_STATE, message.sender, message);
}

fn flood(target: Target, message: &Control) -> Publication {
    Publication::control(target, reserved::LINK_STATE, message.sender, message)
}
