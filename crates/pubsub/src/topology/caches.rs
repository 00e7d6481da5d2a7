//! Which nodes hold long publications for late subscribers, and which of them answers whom (P-88,
//! P-89): the nearest one.

use super::TopologyManager;
use super::map::Around;
use crate::publication::Outbox;
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Control, Id, Kind, Label, RouteBuf, reserved};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Most names that all nodes hold, and most of one.
pub const NAMES_MAX: usize = 65_536;
/// See [`NAMES_MAX`].
pub const NODE_NAMES_MAX: usize = 4096;
/// What a node said is forgotten when it did not say it again for so long.
const LEASE: Duration = Duration::from_secs(30);
/// Publications that one subscription brings at most.
const ANSWER_MAX: usize = 64;
/// Holders whose loads are looked at: the nearest ones.
const NEAR_MAX: usize = 4;
/// A node that asks again so soon is not answered again.
const AGAIN: Duration = Duration::from_secs(2);
/// For so long who answers is asked for what is lost of it.
const ANSWERS: Duration = Duration::from_secs(30);
/// Caches that are asked in turn for what a node misses of a publication: the nearest ones.
const HOLDERS_MAX: usize = 8;
/// Answers of which that is known.
const ANSWERS_MAX: usize = 16_384;

/// What a node holds.
#[derive(Debug, Default)]
struct Holds {
    names: BTreeSet<Id>,
    heard: Tick,
}

/// What nodes hold.
#[derive(Debug, Default)]
pub(super) struct Caches {
    nodes: BTreeMap<Label, Holds>,
    /// Who holds each name, and the names beneath each other one.
    by_name: KeyedMap<Id, BTreeSet<Label>>,
    beneath: KeyedMap<Id, BTreeSet<Id>>,
    count: usize,
    /// Who answers a node with a name, since when.
    answers: KeyedMap<(Label, Id), (Label, Tick)>,
}

impl Caches {
    /// Whether any node holds something.
    pub(super) fn are_known(&self) -> bool {
        !self.nodes.is_empty()
    }

    pub(super) fn next_timeout(&self) -> Option<Tick> {
        self.nodes.values().map(|holds| holds.heard + LEASE).min()
    }

    /// A node holds these, too; for how many there was no room.
    fn add(&mut self, now: Tick, node: Label, names: &[Id]) -> u64 {
        let mut refused = 0;
        let holds = self.nodes.entry(node).or_default();
        holds.heard = now;
        for name in names {
            let is_full = self.count >= NAMES_MAX || holds.names.len() >= NODE_NAMES_MAX;
            if is_full && !holds.names.contains(name) {
                refused += 1;
            } else if holds.names.insert(name.clone()) {
                self.count += 1;
                self.by_name.entry(name.clone()).or_default().insert(node);
                let above = Id::from_labels(name.parent());
                self.beneath.entry(above).or_default().insert(name.clone());
            }
        }
        if holds.names.is_empty() {
            self.nodes.remove(&node);
        }
        refused
    }

    fn remove(&mut self, node: Label, names: &[Id]) {
        let Some(holds) = self.nodes.get_mut(&node) else { return };
        for name in names {
            if !holds.names.remove(name) {
                continue;
            }
            self.count -= 1;
            let Some(by) = self.by_name.get_mut(name) else { continue };
            by.remove(&node);
            if !by.is_empty() {
                continue;
            }
            self.by_name.remove(name);
            let above = Id::from_labels(name.parent());
            if let Some(beneath) = self.beneath.get_mut(&above) {
                beneath.remove(name);
                if beneath.is_empty() {
                    self.beneath.remove(&above);
                }
            }
        }
        if holds.names.is_empty() {
            self.nodes.remove(&node);
        }
    }

    pub(super) fn forget(&mut self, node: Label) {
        let names: Vec<Id> =
            self.nodes.get(&node).map_or_else(Vec::new, |h| h.names.iter().cloned().collect());
        self.remove(node, &names);
    }

    fn expire(&mut self, now: Tick) {
        let is_late = |holds: &Holds| now.since(holds.heard) >= LEASE;
        let late: Vec<Label> =
            self.nodes.iter().filter(|(_, h)| is_late(h)).map(|(node, _)| *node).collect();
        late.into_iter().for_each(|node| self.forget(node));
    }

    /// What a subscription of `node` to `name` may be answered with: names that it does not hold
    /// itself and was not sent just now, with who holds them.
    fn wanted(&self, now: Tick, node: Label, name: &Id) -> Vec<(Id, Vec<Label>)> {
        let beneath = self.beneath.get(name).into_iter().flatten();
        let all = std::iter::once(name).chain(beneath);
        let was_sent = |name: &Id| {
            let sent = self.answers.get(&(node, name.clone()));
            sent.is_some_and(|(_, at)| now.since(*at) < AGAIN)
        };
        all.filter_map(|name| Some((name, self.by_name.get(name)?)))
            .filter(|(name, by)| !by.contains(&node) && !was_sent(name))
            .take(ANSWER_MAX)
            .map(|(name, by)| (name.clone(), by.iter().copied().collect()))
            .collect()
    }

    fn note_answer(&mut self, now: Tick, node: Label, name: Id, by: Label) {
        if self.answers.len() >= ANSWERS_MAX {
            self.answers.retain(|_, (_, at)| now.since(*at) < AGAIN);
        }
        if self.answers.len() < ANSWERS_MAX {
            self.answers.insert((node, name), (by, now));
        }
    }

    /// Who holds an item, by the first of its names that anybody holds.
    fn holders<'a>(&self, names: &'a [Id]) -> Option<(&'a Id, &BTreeSet<Label>)> {
        names.iter().find_map(|name| Some((name, self.by_name.get(name)?)))
    }

    /// Who answers `node` with an item of one of these names.
    fn answers_with(&self, now: Tick, node: Label, names: &[Id]) -> Option<Label> {
        let of = |name: &Id| self.answers.get(&(node, name.clone()));
        let (by, at) = names.iter().find_map(of)?;
        (now.since(*at) < ANSWERS).then_some(*by)
    }
}

impl TopologyManager {
    /// A node says what it holds.
    pub(super) fn cached(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let node = message.sender;
        let is_fit = |id: &Id| id.first().is_some_and(|root| !reserved::is_reserved(root));
        if !self.map.nodes().contains_key(&node) || !message.ids.iter().all(is_fit) {
            self.refused += 1;
            return;
        }
        let were_known = self.caches.are_known();
        match message.item {
            Some(1) => self.caches.remove(node, &message.ids),
            _ => {
                if message.is_full {
                    self.caches.forget(node);
                }
                self.refused += self.caches.add(now, node, &message.ids);
            }
        }
        self.caches_known(now, were_known, out);
    }

    /// Tells dispatchers when there are caches that hold something, and when there are none.
    fn caches_known(&mut self, now: Tick, were_known: bool, out: &mut Outbox) {
        if were_known == self.caches.are_known() {
            return;
        }
        let told: Vec<_> = self.homes.iter().map(|(node, homes)| (*node, homes.clone())).collect();
        told.into_iter().for_each(|(node, homes)| self.say_homes(now, node, homes, out));
    }

    /// What nodes did not say again is forgotten.
    pub(super) fn caches_timeout(&mut self, now: Tick, out: &mut Outbox) {
        if self.caches.next_timeout().is_some_and(|due| due <= now) {
            let were_known = self.caches.are_known();
            self.caches.expire(now);
            self.caches_known(now, were_known, out);
        }
    }

    /// A node has a new subscriber: the nearest caches answer it.
    pub(super) fn wanted(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let node = message.sender;
        let [name] = &message.ids[..] else {
            self.refused += 1;
            return;
        };
        if !self.map.nodes().contains_key(&node) {
            self.refused += 1;
            return;
        }
        let mut asked: BTreeMap<Label, Vec<Id>> = BTreeMap::new();
        for (name, holders) in self.caches.wanted(now, node, name) {
            if let Some(holder) = self.nearest(holders, node) {
                asked.entry(holder).or_default().push(name);
            }
        }
        for (holder, names) in asked {
            // A keyed filter is an item's own.
            for name in names {
                let Some((route, hops)) = self.way_to_one(holder, node, &name) else { continue };
                self.caches.note_answer(now, node, name.clone(), holder);
                let (ids, nodes, route) = (vec![name], vec![node], Some(route));
                let message = Control { ids, nodes, route, hops, ..self.message(Kind::ANSWER) };
                self.send(now, holder, message, out);
            }
        }
    }

    /// Who answers a node: the nearest holder, and of the nearest few the one whose way there counts
    /// least with the loads that there are.
    fn nearest(&mut self, holders: Vec<Label>, node: Label) -> Option<Label> {
        // From the asker, so that the paths of one node are all that is looked for.
        let distance = |holder: Label| Some((self.map.distance(node, holder)?, holder));
        let mut near: Vec<_> = holders.into_iter().filter_map(distance).collect();
        if self.loads.are_low() {
            return near.into_iter().min().map(|(_, holder)| holder);
        }
        near.sort_unstable();
        near.truncate(NEAR_MAX);
        let count = |(far, holder): (u64, Label)| {
            let (count, _) = self.loaded_way(holder, node)?;
            Some((count, far, holder))
        };
        near.into_iter().filter_map(count).min().map(|(.., holder)| holder)
    }

    /// A node misses fragments of what caches may have: one of the nearest sends them, each time
    /// that it asks in vain the next one, the publisher's node behind the others.
    pub(super) fn ask_holder(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let node = message.sender;
        let Some((publication, names)) = message.ids.split_first() else { return };
        let Some((name, holders)) = self.caches.holders(names) else { return };
        let order = |holder: &Label| {
            let distance = self.map.distance(node, *holder)?;
            Some((message.publishers.contains(holder), distance, *holder))
        };
        let mut nearest: Vec<_> =
            holders.iter().filter(|holder| **holder != node).filter_map(order).collect();
        nearest.sort_unstable();
        nearest.truncate(HOLDERS_MAX);
        let turn = usize::try_from(message.number).unwrap_or(0).checked_rem(nearest.len());
        let Some((.., holder)) = turn.and_then(|turn| nearest.get(turn)).copied() else { return };
        let Some((route, hops)) = self.way_to_one(holder, node, name) else { return };
        let (ids, nodes, missing) =
            (vec![publication.clone()], vec![node], message.missing.clone());
        let like = self.message(Kind::ANSWER);
        let message = Control { ids, nodes, missing, route: Some(route), hops, ..like };
        self.send(now, holder, message, out);
    }

    fn way_to_one(&mut self, from: Label, to: Label, item: &Id) -> Option<(RouteBuf, u64)> {
        let around =
            if self.loads.are_low() { Around::new() } else { self.loaded_way(from, to)?.1 };
        let tree = self.map.tree_around(from, &[to], &around)?;
        let route = self.config.routing.data_route(&self.map, from, &tree, item)?;
        Some((route, u64::from(tree.depth())))
    }

    /// A node misses fragments of what a cache sends it: that is asked; whether there is one.
    pub(super) fn ask_cache(&mut self, now: Tick, message: &Control, out: &mut Outbox) -> bool {
        let names = message.ids.get(1..).unwrap_or_default();
        let Some(by) = self.caches.answers_with(now, message.sender, names) else { return false };
        let Some(target) = self.way(by) else { return false };
        let ids = message.ids.iter().take(1).cloned().collect();
        let (missing, nodes) = (message.missing.clone(), vec![message.sender]);
        let asked = Control { ids, nodes, missing, ..self.message(Kind::REPAIR) };
        out.control(target, reserved::REPAIR, by, asked);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n: u64) -> Label {
        Label::from_u64(n)
    }

    /// The names `/ROOT/1` to `/ROOT/COUNT`.
    fn names(root: u64, count: u64) -> Vec<Id> {
        let above = Id::root(node(root));
        (1..=count).map(|n| above.child(node(n))).collect()
    }

    #[test]
    fn a_subscription_is_answered_with_names_that_it_covers_and_the_node_does_not_hold() {
        let (mut caches, now) = (Caches::default(), Tick::from_ms(5));
        caches.add(now, node(1), &names(7, 3));
        caches.add(now, node(2), &names(7, 1));
        caches.add(now, node(2), &names(8, 1));
        let wanted = |caches: &Caches, now, by: u64, name: &str| -> Vec<(String, usize)> {
            let found = caches.wanted(now, node(by), &name.parse().unwrap());
            found.into_iter().map(|(name, by)| (name.to_string(), by.len())).collect()
        };
        let two = |n: &str, by| (format!("/0007/{n}"), by);
        assert_eq!(wanted(&caches, now, 9, "/7/1"), [two("0001", 2)]);
        let all = [two("0001", 2), two("0002", 1), two("0003", 1)];
        assert_eq!(wanted(&caches, now, 9, "/7"), all);
        assert_eq!(wanted(&caches, now, 2, "/7"), all[1..]);
        assert!(
            wanted(&caches, now, 1, "/7").is_empty() && wanted(&caches, now, 9, "/9").is_empty()
        );
        // Who was answered is not answered again at once, and its repairs find who did.
        caches.note_answer(now, node(9), names(7, 1)[0].clone(), node(2));
        assert_eq!(wanted(&caches, now, 9, "/7"), all[1..]);
        assert_eq!(wanted(&caches, now + AGAIN, 9, "/7"), all);
        assert_eq!(caches.answers_with(now, node(9), &names(7, 1)), Some(node(2)));
        assert_eq!(caches.answers_with(now + ANSWERS, node(9), &names(7, 1)), None);
        caches.add(now, node(3), &names(5, 100));
        assert_eq!(wanted(&caches, now, 9, "/5").len(), ANSWER_MAX);
    }

    #[test]
    fn what_is_known_is_bounded_by_node_and_in_all_and_ends_with_the_lease() {
        let (mut caches, now) = (Caches::default(), Tick::from_ms(5));
        let mut refused = 0;
        for by in 1..=20 {
            refused += caches.add(now, node(by), &names(by, 5000));
            assert!(caches.nodes.get(&node(by)).is_none_or(|h| h.names.len() <= NODE_NAMES_MAX));
        }
        assert_eq!(caches.count, NAMES_MAX);
        assert_eq!(refused, 20 * 5000 - NAMES_MAX as u64);
        caches.remove(node(1), &names(1, 5000));
        caches.forget(node(2));
        assert_eq!(caches.count, NAMES_MAX - 2 * NODE_NAMES_MAX);
        caches.add(now + LEASE / 2, node(3), &[]);
        caches.expire(now + LEASE);
        assert_eq!((caches.nodes.len(), caches.count), (1, NODE_NAMES_MAX));
        assert_eq!(caches.next_timeout(), Some(now + LEASE / 2 + LEASE));
        caches.expire(now + LEASE * 2);
        assert!(!caches.are_known() && caches.by_name.is_empty() && caches.beneath.is_empty());
    }
}
