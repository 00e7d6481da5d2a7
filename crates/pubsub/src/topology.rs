//! The topology manager: knows the map of the domain, makes trees for what the rendezvous matched,
//! and tells publishers their filters.

mod backups;
mod caches;
pub mod domains;
mod federation;
mod loads;
pub mod map;
mod matched;
mod moves;
mod relief;
mod repair;
mod route;
#[cfg(test)]
mod tests;

pub use caches::{NAMES_MAX, NODE_NAMES_MAX};
pub use federation::{FACTS_MAX, Federation};
pub use map::{LinkId, Map, NodeState, Tree};
pub use matched::{MatchView, TreeView};
pub use relief::AROUND_MAX;
pub use repair::NOTED_MAX;
pub use route::{Keyed, Routing};

use crate::courier::{Courier, Taken, Traffic};
use crate::publication::{Outbox, Target, responsible};
use backups::Backups;
use loads::Loads;
use matched::Match;
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Control, Home, Id, Kind, Label, Role, Route, RouteBuf, reserved};
use relief::Relief;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time from a change of the map to the new trees: link states come in swarms. The first link that goes
/// is mended at once.
const SETTLE: Duration = Duration::from_millis(50);
/// Times that a rendezvous is asked for its matches by a topology manager that is new.
const ASKS_MAX: u32 = 5;
/// Rendezvous nodes, and topology managers, that serve a domain: each dispatcher is told all of them,
/// with the ways there.
const HOMES_MAX: usize = 64;
/// Most items of which matches are kept.
pub const MATCHES_MAX: usize = 1_000_000;

/// Settings of a topology manager.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node that it runs on.
    pub node: Label,
    /// How filters are made.
    pub routing: Routing,
    /// Start of session numbers.
    pub boot: u32,
    /// Whether nodes are told ways round their links, for when these are lost.
    pub backups: bool,
    /// The label of the domain, where it has neighbours.
    pub domain: Option<Label>,
}

/// A topology manager.
#[derive(Debug)]
pub struct TopologyManager {
    config: Config,
    map: Map,
    /// What is sent over links.
    loads: Loads,
    relief: Relief,
    backups: Backups,
    /// Last boot that each node told.
    boots: KeyedMap<Label, u64>,
    /// By rendezvous node and number of the item.
    matches: BTreeMap<(Label, u64), Match>,
    /// Matches by names of items whose fragments have no way back.
    one_way: KeyedMap<Id, (Label, u64)>,
    /// Lost fragments that were asked for.
    repairs: repair::Repairs,
    /// What nodes hold for late subscribers.
    caches: caches::Caches,
    /// Sessions to dispatchers.
    dispatchers: Courier,
    /// Sessions from rendezvous nodes.
    rendezvous: Courier,
    /// What each dispatcher was told of rendezvous nodes and topology managers.
    homes: KeyedMap<Label, Vec<Home>>,
    /// Ways from this node.
    ways: KeyedMap<Label, Option<RouteBuf>>,
    /// Ways to subscribers, as the map is now.
    kept: matched::Kept,
    settle: Option<Tick>,
    /// When matches that were not told again are forgotten.
    stale_at: Option<Tick>,
    /// Rendezvous nodes that were asked for their matches, how often and when next; those that
    /// spoke are asked no more.
    asked: BTreeMap<Label, (u32, Tick)>,
    /// Links that went since the trees were made; `None` when something else changed too.
    gone: Option<BTreeSet<u32>>,
    /// Homes whose lease in a store holds; without one, all that are on the map.
    roster: Option<BTreeSet<Label>>,
    /// Other domains.
    federation: Option<Federation>,
    /// Messages that were refused.
    pub refused: u64,
    /// Trees made.
    pub trees: u64,
}

impl TopologyManager {
    /// A topology manager that knows nothing yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let Config { node, boot, .. } = config;
        let seed = config.routing.scheme.seed;
        Self {
            federation: config.domain.map(|own| Federation::new(own, node, boot, seed)),
            map: Map::default(),
            loads: Loads::default(),
            relief: Relief::default(),
            backups: Backups::default(),
            boots: KeyedMap::default(),
            matches: BTreeMap::new(),
            one_way: KeyedMap::default(),
            repairs: repair::Repairs::default(),
            caches: caches::Caches::default(),
            dispatchers: Courier::new(config.node, config.boot),
            rendezvous: Courier::new(config.node, config.boot),
            homes: KeyedMap::default(),
            ways: KeyedMap::default(),
            kept: KeyedMap::default(),
            settle: None,
            stale_at: None,
            asked: BTreeMap::new(),
            gone: Some(BTreeSet::new()),
            roster: None,
            refused: 0,
            trees: 0,
            config,
        }
    }

    /// The map.
    #[must_use]
    pub fn map(&self) -> &Map {
        &self.map
    }

    /// What a link carries, in kilobits per second, and how much of it is used, in percent.
    #[must_use]
    pub fn used(&self, link: LinkId) -> Option<(u64, u64)> {
        self.loads.used(link)
    }

    /// The rendezvous nodes and topology managers whose lease in a store holds. Dispatchers hear of
    /// those that are on the map, too; of all on the map when none of the two is both.
    pub fn roster(&mut self, now: Tick, nodes: BTreeSet<Label>) {
        if self.roster.as_ref() != Some(&nodes) {
            self.roster = Some(nodes);
            self.settle.get_or_insert(now);
        }
    }

    /// Rendezvous nodes or topology managers that serve.
    fn homes_of(&mut self, role: Role) -> Vec<Label> {
        let have = self.map.nodes().iter().filter(|(_, node)| node.role.has(role));
        let (spare, all): (Vec<_>, Vec<_>) =
            have.map(|(label, node)| (*label, node.role)).partition(|(_, r)| r.has(Role::STANDBY));
        let [spare, mut all] =
            [spare, all].map(|of| of.into_iter().map(|(label, _)| label).collect::<Vec<_>>());
        if !spare.is_empty() {
            let own = self.config.node;
            all.retain(|node| self.map.distance(own, *node).is_some());
            if all.is_empty() {
                // The first by label: the same one in the eyes of all.
                all.extend(spare.into_iter().find(|node| self.map.distance(own, *node).is_some()));
            }
        }
        let is_on = |n: &Label| self.roster.as_ref().is_none_or(|roster| roster.contains(n));
        let on: Vec<Label> = all.iter().copied().filter(is_on).collect();
        let mut homes = if on.is_empty() { all } else { on };
        // The same in all managers, as they go by the order of labels.
        homes.truncate(HOMES_MAX);
        homes
    }

    /// Messages to dispatchers and rendezvous nodes.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        [self.dispatchers.traffic(), self.rendezvous.traffic()].into_iter().sum()
    }

    /// A message published under the topology root, or a link state of any node.
    pub fn receive(&mut self, now: Tick, message: Control, out: &mut Outbox) {
        match message.kind {
            Kind::LINK_STATE => self.link_state(now, &message, out),
            Kind::MATCH | Kind::RELAY | Kind::SHARED => self.rendezvous_says(now, message, out),
            Kind::ACK => self.acked(now, &message, out),
            Kind::DOMAIN_IN => self.domain_says(now, &message, out),
            Kind::REPAIR => self.node_asks(now, &message, out),
            Kind::CACHED => self.cached(now, &message, out),
            Kind::WANTED => self.wanted(now, &message, out),
            _ => self.refused += 1,
        }
    }

    fn link_state(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let node = message.sender;
        let before = self.map.costs();
        let state = (!message.is_full).then(|| NodeState::of(message)).flatten();
        if let Some(boot) = message.epoch
            && self.boots.insert(node, boot).is_some_and(|known| known != boot)
        {
            self.lost(now, node, out);
            self.node_anew(now, node);
            self.caches.forget(node);
        }
        let loads = if message.is_full { &[][..] } else { &message.loads };
        if self.loads.set(node, loads) {
            self.relief.wake(now);
        }
        let is_new = !self.map.nodes().contains_key(&node);
        if !self.map.set(node, state) {
            return;
        }
        self.kept.clear();
        self.backups.wake(now);
        let after = self.map.costs();
        let only_gone = !is_new && after.is_subset(&before);
        match &mut self.gone {
            Some(gone) if only_gone => gone.extend(before.difference(&after).map(|l| l.0)),
            gone => *gone = None,
        }
        if !only_gone {
            self.settle = Some(now + SETTLE);
        } else if self.settle.is_none() {
            // The first of a swarm: whoever lost a link of a tree does not wait for the others.
            self.ways.clear();
            self.mend(now, out);
        }
        self.settle.get_or_insert(now + SETTLE);
    }

    fn rendezvous_says(&mut self, now: Tick, message: Control, out: &mut Outbox) {
        let (sender, sequence) = (message.sender, message.sequence);
        if !self.map.nodes().get(&sender).is_some_and(|n| n.role.has(Role::RENDEZVOUS)) {
            self.refused += 1;
            return;
        }
        let taken = self.rendezvous.take(sender, sequence);
        self.rendezvous.owe(sender, sequence.session);
        if taken != Taken::InOrder {
            return;
        }
        self.asked.insert(sender, (ASKS_MAX, Tick::NEVER));
        if sequence.number == 1 {
            // A rendezvous that begins anew tells all its matches again.
            let theirs = self.matches.range_mut((sender, 0)..=(sender, u64::MAX));
            theirs.for_each(|(_, m)| m.stale = Some(now + SETTLE * 100));
            self.stale_at = Some(now + SETTLE * 100);
        }
        if message.kind == Kind::RELAY {
            // Nobody answers another domain.
            let is_node = |n: &Label| self.federation.as_ref().is_none_or(|f| !f.is_domain(*n));
            let nodes: Vec<Label> = message.nodes.iter().copied().filter(is_node).collect();
            for node in nodes {
                let relay = Control { body: message.body.clone(), ..self.message(Kind::RELAY) };
                self.send(now, node, relay, out);
            }
        } else if message.kind == Kind::SHARED {
            self.shared(now, &message);
        } else {
            self.matched(now, message, out);
        }
    }

    /// Whether rendezvous nodes wait for an acknowledgement.
    #[inline]
    pub(crate) fn owes(&self) -> bool {
        self.rendezvous.owes()
    }

    /// Acknowledges to rendezvous nodes what came.
    pub(crate) fn acknowledge(&mut self, out: &mut Outbox) {
        for (node, taken) in self.rendezvous.pay() {
            let ack = Control { request: taken, ..self.message(Kind::ACK) };
            self.publish_to_rendezvous(node, ack, out);
        }
    }

    /// A dispatcher acknowledged, or forgot its session.
    fn acked(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let node = message.sender;
        let acked = self.dispatchers.acked(now, node, message.request);
        acked.ready.into_iter().for_each(|m| self.publish_to_dispatcher(node, m, out));
        if acked.is_lost {
            self.lost(now, node, out);
        }
    }

    /// The dispatcher of `node` knows nothing of what it was told.
    fn lost(&mut self, now: Tick, node: Label, out: &mut Outbox) {
        self.dispatchers.end(node);
        self.homes.remove(&node);
        self.backups.forget(node);
        self.backups.wake(now);
        self.tell_homes(now, node, out);
        let theirs: Vec<(Label, u64)> = self
            .matches
            .iter()
            .filter(|(_, m)| m.sent.contains_key(&node))
            .map(|(k, _)| *k)
            .collect();
        for key in theirs {
            if let Some(m) = self.matches.get_mut(&key) {
                m.sent.remove(&node);
            }
            self.renew(now, key, out);
        }
    }

    fn message(&self, kind: Kind) -> Control {
        Control::new(kind, self.config.node)
    }

    /// Sends a message to a dispatcher, in order.
    fn send(&mut self, now: Tick, node: Label, message: Control, out: &mut Outbox) {
        match self.dispatchers.send(now, node, message) {
            Some(ready) => ready.into_iter().for_each(|m| self.publish_to_dispatcher(node, m, out)),
            None => self.refused += 1,
        }
    }

    /// The way from this node to another one; `None` when there is none.
    fn way(&mut self, node: Label) -> Option<Target> {
        if node == self.config.node {
            return Some(Target::Here);
        }
        if !self.ways.contains_key(&node) {
            let route = self
                .map
                .tree(self.config.node, &[node])
                .and_then(|tree| self.config.routing.route(&self.map, self.config.node, &tree));
            self.ways.insert(node, route);
        }
        self.ways.get(&node).cloned().flatten().map(Target::Route)
    }

    fn publish_to_dispatcher(&mut self, node: Label, message: Control, out: &mut Outbox) {
        // Without a way the courier repeats until there is one, or gives up.
        if let Some(target) = self.way(node) {
            out.control(target, reserved::DISPATCHER, node, message);
        }
    }

    fn publish_to_rendezvous(&mut self, node: Label, message: Control, out: &mut Outbox) {
        if let Some(target) = self.way(node) {
            let sender = self.config.node;
            out.control(target, reserved::RENDEZVOUS, sender, message);
        }
    }

    /// Tells a dispatcher how rendezvous nodes and topology managers are reached, if that changed.
    /// A manager that hands it to another one sets right what it said last: the other one may have
    /// spoken before.
    fn tell_homes(&mut self, now: Tick, node: Label, out: &mut Outbox) {
        let mut managers = self.homes_of(Role::TOPOLOGY);
        managers.retain(|m| self.map.distance(*m, node).is_some());
        let is_ours = responsible(node, managers) == Some(self.config.node);
        if !is_ours && !self.homes.contains_key(&node) {
            return;
        }
        let homes = self.homes_for(node);
        let is_told = self.homes.get(&node) == Some(&homes);
        if is_ours {
            self.homes.insert(node, homes.clone());
        } else {
            self.homes.remove(&node);
        }
        if !is_told {
            self.say_homes(now, node, homes, out);
        }
    }

    fn say_homes(&mut self, now: Tick, node: Label, homes: Vec<Home>, out: &mut Outbox) {
        let item = self.caches.are_known().then_some(1);
        let message = Control { homes, item, ..self.message(Kind::HOMES) };
        self.send(now, node, message, out);
    }

    /// Rendezvous nodes and topology managers that serve, with the ways to them from `node`.
    fn homes_for(&mut self, node: Label) -> Vec<Home> {
        let serving = [Role::RENDEZVOUS, Role::TOPOLOGY].map(|role| (role, self.homes_of(role)));
        let role_of = |label: &Label| {
            let roles = serving.iter().filter(|(_, all)| all.contains(label));
            roles.map(|(role, _)| *role).fold(Role::default(), Role::and)
        };
        let all = self.map.nodes().keys().map(|label| (*label, role_of(label)));
        let wanted: Vec<(Label, Role)> = all.filter(|(_, r)| *r != Role::default()).collect();
        let way = |(home, role)| {
            self.route_between(node, home).map(|route| Home { role, node: home, route })
        };
        wanted.into_iter().filter_map(way).collect()
    }

    /// The way from one node to another; form link when they are the same.
    fn route_between(&mut self, from: Label, to: Label) -> Option<RouteBuf> {
        if from == to {
            return Some(RouteBuf::from(Route::Link));
        }
        let tree = self.map.tree(from, &[to])?;
        self.config.routing.route(&self.map, from, &tree)
    }

    /// Another epoch of keyed tags: publishers get filters of it, while those of the last one are
    /// still good.
    pub fn epoch_start(&mut self, now: Tick, number: u8, out: &mut Outbox) {
        let Some(keyed) = &mut self.config.routing.keyed else { return };
        keyed.epoch = number;
        let all: Vec<(Label, u64)> = self.matches.keys().copied().collect();
        for key in all {
            self.renew(now, key, out);
        }
    }

    /// Makes trees anew after the map changed, and repeats what is not acknowledged.
    pub fn handle_timeout(&mut self, now: Tick, out: &mut Outbox) {
        if self.settle.is_some_and(|due| due <= now) {
            self.settle = None;
            self.ways.clear();
            self.exits_changed(now);
            self.renew_all(now, out);
        }
        self.relieve(now, out);
        self.tell_backups(now, out);
        self.ask_matches(now, out);
        self.federate(now, out);
        self.caches_timeout(now, out);
        if self.stale_at.is_some_and(|at| at <= now) {
            self.stale_at = None;
            let stale = |m: &Match| m.stale.is_some_and(|due| due <= now);
            let gone: Vec<(Label, u64)> =
                self.matches.iter().filter(|(_, m)| stale(m)).map(|(k, _)| *k).collect();
            gone.into_iter().for_each(|key| self.forget(now, key, out));
        }
        let (again, lost) = self.dispatchers.repeat(now);
        for (node, message) in again {
            self.publish_to_dispatcher(node, message, out);
        }
        for node in lost {
            self.homes.remove(&node);
            self.backups.forget(node);
            self.matches.values_mut().for_each(|m| drop(m.sent.remove(&node)));
        }
    }

    /// Asks rendezvous nodes that did not speak yet for their matches.
    fn ask_matches(&mut self, now: Tick, out: &mut Outbox) {
        let due: Vec<Label> =
            self.asked.iter().filter(|(_, (_, at))| *at <= now).map(|(n, _)| *n).collect();
        for node in due {
            if let Some((count, at)) = self.asked.get_mut(&node) {
                *count += 1;
                *at = if *count >= ASKS_MAX { Tick::NEVER } else { now.plus_ms(1000) };
            }
            let wanted = self.message(Kind::MATCH_WANTED);
            self.publish_to_rendezvous(node, wanted, out);
        }
    }

    fn renew_all(&mut self, now: Tick, out: &mut Outbox) {
        let nodes: Vec<Label> = self.map.nodes().keys().copied().collect();
        for node in nodes {
            if self.map.distance(self.config.node, node).is_some() {
                if self.map.nodes().get(&node).is_some_and(|n| n.role.has(Role::RENDEZVOUS)) {
                    self.asked.entry(node).or_insert((0, now.plus_ms(20)));
                }
                self.tell_homes(now, node, out);
            } else {
                // What it was told and did not acknowledge stays: it may be back in a moment, and
                // waits for its answers. The courier gives up in time.
                self.homes.remove(&node);
            }
        }
        self.mend(now, out);
    }

    /// Makes trees anew: when links only went, those that did not use them stay the shortest ones.
    fn mend(&mut self, now: Tick, out: &mut Outbox) {
        let gone = self.gone.replace(BTreeSet::new());
        let is_hit = |m: &Match| gone.as_ref().is_none_or(|gone| m.uses_any(gone));
        let wanted: Vec<(Label, u64)> =
            self.matches.iter().filter(|(_, m)| is_hit(m)).map(|(k, _)| *k).collect();
        for key in wanted {
            self.renew(now, key, out);
        }
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Tick> {
        let asked = self.asked.values().map(|(_, at)| *at).min();
        let federation = self.federation.as_ref().map(Federation::due);
        let (caches, relief) = (self.caches.next_timeout(), self.relief.next_timeout());
        let dispatchers = self.dispatchers.next_timeout();
        let backups = self.backups.next_timeout().filter(|_| self.config.backups);
        [self.settle, self.stale_at, asked, federation, caches, relief, backups, dispatchers]
            .into_iter()
            .flatten()
            .min()
    }
}
