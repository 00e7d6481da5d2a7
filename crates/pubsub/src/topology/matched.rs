//! Matches of the rendezvous and the trees that serve them.

use super::federation::Fact;
use super::map::{Around, LinkId};
use super::moves::Moves;
use super::{TopologyManager, Tree};
use crate::dispatcher::WAY_MAX;
use crate::publication::Outbox;
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::{Control, Id, Kind, Label, Route, RouteBuf};
use std::collections::{BTreeMap, BTreeSet};

/// Links that a publication for other domains may travel.
const HOPS_ABROAD: u64 = 128;

/// Ways that are kept at most; at the bound all are made anew.
const KEPT_MAX: usize = 4096;

/// Ways by publisher and subscribers.
pub(super) type Kept = KeyedMap<Label, KeyedMap<Vec<Label>, Way>>;

/// How subscribers of this domain are reached, whatever the item.
#[derive(Debug, Clone)]
pub(super) struct Way {
    route: Option<RouteBuf>,
    reply: Option<RouteBuf>,
    hops: u64,
    links: Vec<u32>,
}

/// What publishers are to be told, and the ways of those that served others before to who came.
type Plan = (BTreeMap<Label, Sent>, BTreeMap<Label, Option<RouteBuf>>);

/// Who serves whom.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// Subscribers of this domain, by publisher.
    pub(super) served: BTreeMap<Label, Vec<Label>>,
    /// Other domains, by publisher.
    by_domains: BTreeMap<Label, Vec<Label>>,
    /// Those that no publisher of this domain reaches.
    foreign: Vec<Label>,
}

/// What a publisher was told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Sent {
    route: Option<RouteBuf>,
    reply: Option<RouteBuf>,
    hops: u64,
    ids: Vec<Id>,
    links: Vec<u32>,
}

impl Sent {
    fn is_one_way(&self) -> bool {
        self.route.is_some() && self.reply.is_none()
    }
}

/// Who sends fragments again.
#[derive(Debug)]
pub(super) enum Server {
    /// Another domain.
    Domain(Label),
    /// Nodes of this one.
    Publishers(Vec<Label>),
}

/// A match, for status and pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatchView {
    /// Names of the item.
    pub ids: Vec<Id>,
    /// Nodes that publish it.
    pub publishers: Vec<Label>,
    /// Nodes that subscribed.
    pub subscribers: Vec<Label>,
    /// What each publisher that serves somebody was told.
    pub trees: Vec<TreeView>,
    /// Loaded links that its trees go round.
    pub around: Vec<LinkId>,
}

/// The tree of one publisher.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeView {
    /// Its root.
    pub publisher: Label,
    /// Numbers of its links.
    pub links: Vec<u32>,
    /// Links from the root to the farthest receiver.
    pub hops: u64,
    /// The filter; none when all receivers are on the publisher's node, or no form fits.
    pub route: Option<RouteBuf>,
}

/// Publishers and subscribers of an item.
#[derive(Debug, Default)]
pub(super) struct Match {
    ids: Vec<Id>,
    publishers: BTreeSet<Label>,
    subscribers: BTreeSet<Label>,
    version: u64,
    /// By publisher.
    pub(super) sent: BTreeMap<Label, Sent>,
    /// When it is forgotten unless it is told again.
    pub(super) stale: Option<Tick>,
    /// Some subscriber is out of reach.
    is_partial: bool,
    /// Nodes of this domain that another domain serves, and that domain.
    foreign: Option<(Label, Vec<Label>)>,
    /// Names by which the match is found for repairs: those of an item whose fragments have no way
    /// back.
    one_way: Vec<Id>,
    /// Loaded links that its trees go round, with what those counted when that was decided: a tree
    /// that is made anew stays where it is.
    pub(super) around: Around,
    pub(super) moves: Moves,
    /// They were served so once: border nodes have to be told when it ends.
    was_foreign: bool,
}

impl Match {
    /// Whether one of these links is in a tree, or a receiver was out of reach.
    pub(super) fn uses_any(&self, links: &BTreeSet<u32>) -> bool {
        self.is_partial || self.sent.values().any(|s| s.links.iter().any(|l| links.contains(l)))
    }

    /// Numbers of the links of its trees.
    pub(super) fn links(&self) -> BTreeSet<u32> {
        self.sent.values().flat_map(|sent| sent.links.iter().copied()).collect()
    }

    /// Who serves this subscriber, where fragments have no way back: another domain, or publishers
    /// of this one.
    pub(super) fn server_of(&self, subscriber: Label) -> Option<Server> {
        let is_in = |(_, nodes): &&(Label, Vec<Label>)| nodes.contains(&subscriber);
        if let Some((domain, _)) = self.foreign.as_ref().filter(is_in) {
            return Some(Server::Domain(*domain));
        }
        self.subscribers
            .contains(&subscriber)
            .then(|| Server::Publishers(self.one_way_publishers()))
    }

    /// Publishers whose filters have no way back.
    pub(super) fn one_way_publishers(&self) -> Vec<Label> {
        self.sent.iter().filter(|(_, s)| s.is_one_way()).map(|(node, _)| *node).collect()
    }

    /// Who wants the item, of nodes and domains.
    pub(super) fn subscribers(&self) -> impl Iterator<Item = Label> {
        self.subscribers.iter().copied()
    }

    /// What this domain wants of another one.
    pub(super) fn wants(&self) -> Vec<Fact> {
        let Some((domain, _)) = &self.foreign else { return Vec::new() };
        self.ids.iter().map(|id| Fact::Wanted(id.clone(), *domain)).collect()
    }

    /// The names of the item and its receivers here, when another domain serves some or did.
    pub(super) fn served_by_others(&self) -> Option<(Vec<Id>, Vec<Label>)> {
        let receivers = self.foreign.as_ref().map(|(_, nodes)| nodes.clone());
        self.was_foreign.then(|| (self.ids.clone(), receivers.unwrap_or_default()))
    }
}

fn tree_view(publisher: Label, sent: &Sent) -> TreeView {
    let Sent { links, hops, route, .. } = sent.clone();
    TreeView { publisher, links, hops, route }
}

impl TopologyManager {
    /// The matches, or that of the item with this id, `most` of them.
    #[must_use]
    pub fn match_views(&self, id: Option<&Id>, most: usize) -> Vec<MatchView> {
        let is_meant = |m: &&Match| id.is_none_or(|id| m.ids.contains(id));
        let view = |m: &Match| MatchView {
            ids: m.ids.clone(),
            publishers: m.publishers.iter().copied().collect(),
            subscribers: m.subscribers.iter().copied().collect(),
            trees: m.sent.iter().map(|(publisher, sent)| tree_view(*publisher, sent)).collect(),
            around: m.around.keys().copied().collect(),
        };
        self.matches.values().filter(is_meant).take(most).map(view).collect()
    }

    /// A match, or how it changed.
    pub(super) fn matched(&mut self, now: Tick, message: Control, out: &mut Outbox) {
        let Some(item) = message.item else {
            self.refused += 1;
            return;
        };
        let key = (message.sender, item);
        if message.is_full && message.subscribers.is_empty() {
            if let Some(m) = self.matches.get_mut(&key) {
                m.publishers = message.publishers.into_iter().collect();
            }
            return self.forget(now, key, out);
        }
        // Only who served others before has something for those that came.
        let served = self.matches.get(&key).filter(|m| !m.sent.is_empty());
        let came: Vec<Label> = served.map_or_else(Vec::new, |m| {
            let subscribers = message.subscribers.iter().copied();
            subscribers.filter(|subscriber| !m.subscribers.contains(subscriber)).collect()
        });
        if message.is_full {
            if self.matches.len() >= super::MATCHES_MAX && !self.matches.contains_key(&key) {
                self.refused += 1;
                return;
            }
            let m = self.matches.entry(key).or_default();
            m.publishers = message.publishers.into_iter().collect();
            m.subscribers = message.subscribers.into_iter().collect();
        } else {
            let known = self.matches.get_mut(&key).filter(|m| m.version + 1 == message.version);
            let Some(m) = known else {
                let wanted = Control { item: Some(item), ..self.message(Kind::MATCH_WANTED) };
                return self.publish_to_rendezvous(message.sender, wanted, out);
            };
            m.publishers.extend(message.publishers);
            m.publishers.retain(|p| !message.nodes.contains(p));
            m.subscribers.extend(message.subscribers);
            m.subscribers.retain(|s| !message.gone.contains(s));
        }
        if let Some(m) = self.matches.get_mut(&key) {
            (m.ids, m.version, m.stale) = (message.ids, message.version, None);
        }
        self.renew_for(now, key, &came, out);
    }

    /// Ends a match: its publishers are stopped.
    pub(super) fn forget(&mut self, now: Tick, key: (Label, u64), out: &mut Outbox) {
        let Some(m) = self.matches.remove(&key) else { return };
        self.relief.bent.remove(&key);
        self.forget_names(key, &m.one_way);
        if m.was_foreign {
            self.tell_nobody(&m.ids, out);
            self.federation_soon(now);
        }
        for node in m.sent.keys().filter(|n| m.publishers.contains(n)) {
            let stop = Control { ids: m.ids.clone(), ..self.message(Kind::STOP) };
            self.send(now, *node, stop, out);
        }
    }

    /// Makes the trees of a match and tells publishers what changed for them.
    pub(super) fn renew(&mut self, now: Tick, key: (Label, u64), out: &mut Outbox) {
        self.renew_for(now, key, &[], out);
    }

    /// As [`TopologyManager::renew`], for subscribers that came: a publisher that served others
    /// before is told the way to those, for what it retains (P-68).
    fn renew_for(&mut self, now: Tick, key: (Label, u64), came: &[Label], out: &mut Outbox) {
        let Some(mut m) = self.matches.remove(&key) else { return };
        self.widen(&mut m);
        if m.around.is_empty() {
            self.relief.bent.remove(&key);
        } else {
            self.relief.bent.insert(key);
        }
        let (wanted, late) = self.plan(&mut m, came);
        for (node, sent) in &wanted {
            let before = m.sent.get(node);
            let late = late.get(node).and_then(Option::as_ref);
            if before == Some(sent) && late.is_none() {
                continue;
            }
            let kind = if before.is_some() { Kind::ROUTE } else { Kind::START };
            let message = Control {
                ids: sent.ids.clone(),
                route: sent.route.clone(),
                reply: sent.reply.clone(),
                late: late.cloned(),
                hops: sent.hops,
                ..self.message(kind)
            };
            self.send(now, *node, message, out);
        }
        for (node, before) in &m.sent {
            if !wanted.contains_key(node) && m.publishers.contains(node) {
                let stop = Control { ids: before.ids.clone(), ..self.message(Kind::STOP) };
                self.send(now, *node, stop, out);
            }
        }
        if m.sent != wanted {
            self.backups.wake(now);
        }
        m.sent = wanted;
        self.find_for_repairs(key, &mut m);
        if m.was_foreign {
            self.federation_soon(now);
        }
        self.matches.insert(key, m);
    }

    /// A match whose fragments have no way back is found by its names.
    fn find_for_repairs(&mut self, key: (Label, u64), m: &mut Match) {
        let is_one_way = m.foreign.is_some() || m.sent.values().any(Sent::is_one_way);
        let names: &[Id] = if is_one_way { &m.ids } else { &[] };
        if m.one_way != names {
            self.forget_names(key, &m.one_way);
            m.one_way = names.to_vec();
        }
        self.one_way.extend(m.one_way.iter().map(|id| (id.clone(), key)));
    }

    fn forget_names(&mut self, key: (Label, u64), names: &[Id]) {
        for name in names {
            // Another match may have had it meanwhile.
            if self.one_way.get(name) == Some(&key) {
                self.one_way.remove(name);
            }
        }
    }

    /// Each subscriber is served by its nearest publisher (P-29), by ways that go round loaded links.
    pub(super) fn shares(&mut self, m: &Match, around: &Around) -> Shares {
        let mut shares = Shares::default();
        for subscriber in &m.subscribers {
            if self.federation.as_ref().is_some_and(|f| f.is_domain(*subscriber)) {
                // The first publisher of this domain: the way out is a small part of the way.
                let own = m.publishers.iter().find(|p| self.map.nodes().contains_key(*p));
                let Some(own) = own else { continue };
                shares.served.entry(*own).or_default();
                shares.by_domains.entry(*own).or_default().push(*subscriber);
                continue;
            }
            let distance = |p: &Label| {
                self.map.distance_around(*p, *subscriber, around).map(|distance| (distance, *p))
            };
            match m.publishers.iter().filter_map(distance).min() {
                Some((_, nearest)) => shares.served.entry(nearest).or_default().push(*subscriber),
                None => shares.foreign.push(*subscriber),
            }
        }
        shares
    }

    fn plan(&mut self, m: &mut Match, came: &[Label]) -> Plan {
        let Shares { served, mut by_domains, foreign } = self.shares(m, &m.around);
        let domain = self.federation.as_ref().and_then(|f| f.nearest(&m.publishers));
        m.is_partial = !foreign.is_empty();
        m.foreign = domain.filter(|_| m.is_partial).map(|domain| (domain, foreign));
        m.was_foreign |= m.foreign.is_some();
        let (mut wanted, mut late) = Plan::default();
        for (publisher, subscribers) in served {
            if !came.is_empty() && m.sent.contains_key(&publisher) {
                late.insert(publisher, self.way_to_late(m, publisher, &subscribers, came));
            }
            let domains = by_domains.remove(&publisher).unwrap_or_default();
            if let Some(sent) = self.tree_for(m, publisher, &subscribers, &domains) {
                wanted.insert(publisher, sent);
            }
        }
        (wanted, late)
    }

    /// The way from a publisher to those of these subscribers that came at other nodes: mostly one
    /// path, which is little beside the tree of all.
    fn way_to_late(
        &mut self,
        m: &Match,
        publisher: Label,
        subscribers: &[Label],
        came: &[Label],
    ) -> Option<RouteBuf> {
        let is_late = |s: &&Label| came.contains(s) && **s != publisher;
        let late: Vec<Label> = subscribers.iter().filter(is_late).copied().collect();
        if late.is_empty() {
            return None;
        }
        let tree = self.map.tree_around(publisher, &late, &m.around)?;
        self.config.routing.data_route(&self.map, publisher, &tree, m.ids.first()?)
    }

    /// What a publisher is told about these subscribers and other domains.
    fn tree_for(
        &mut self,
        m: &Match,
        publisher: Label,
        subscribers: &[Label],
        domains: &[Label],
    ) -> Option<Sent> {
        let others: Vec<Label> = subscribers.iter().copied().filter(|s| *s != publisher).collect();
        let ids = m.ids.clone();
        if domains.is_empty() {
            if subscribers.is_empty() {
                return None;
            }
            let way = self.way_to(m, publisher, others)?;
            let Way { route, reply, hops, links } = way;
            return Some(Sent { route, reply, hops, ids, links });
        }
        let tree = self.made_tree(m, publisher, &others)?;
        let links: Vec<u32> = tree.links.iter().map(|l| l.number).collect();
        let insides = tree.insides.iter().map(|i| i.0);
        let numbers = links.iter().copied().chain(insides).collect();
        match self.domain_route(publisher, numbers, domains) {
            // How long the ways within other domains are is not known here.
            Some(route) => {
                Some(Sent { route: Some(route), reply: None, hops: HOPS_ABROAD, ids, links })
            }
            None if subscribers.is_empty() => None,
            None => {
                let Way { route, reply, hops, links } =
                    self.way_of(publisher, &tree, m.ids.first()?);
                Some(Sent { route, reply, hops, ids, links })
            }
        }
    }

    fn made_tree(&mut self, m: &Match, publisher: Label, others: &[Label]) -> Option<Tree> {
        self.trees += 1;
        self.map.tree_around(publisher, others, &m.around)
    }

    /// The way to subscribers of this domain. Many items have the same few subscribers, so what was
    /// made is kept until the map changes; keyed filters are an item's own, and so are ways round
    /// loaded links.
    fn way_to(&mut self, m: &Match, publisher: Label, others: Vec<Label>) -> Option<Way> {
        let is_kept = self.config.routing.keyed.is_none() && m.around.is_empty();
        let kept = self.kept.get(&publisher).and_then(|of| of.get(&others));
        if let Some(way) = kept.filter(|_| is_kept) {
            return Some(way.clone());
        }
        let tree = self.made_tree(m, publisher, &others)?;
        let way = self.way_of(publisher, &tree, m.ids.first()?);
        if is_kept {
            if self.kept.values().map(KeyedMap::len).sum::<usize>() >= KEPT_MAX {
                self.kept.clear();
            }
            self.kept.entry(publisher).or_default().insert(others, way.clone());
        }
        Some(way)
    }

    fn way_of(&self, publisher: Label, tree: &Tree, item: &Id) -> Way {
        let routing = self.config.routing;
        let route = routing.data_route(&self.map, publisher, tree, item);
        let is_flat = route.as_ref().is_some_and(|r| matches!(r.as_ref(), Route::Flat { .. }));
        // What goes round a lost link travels further.
        let spare = if self.config.backups && is_flat { WAY_MAX } else { 0 };
        Way {
            route,
            reply: routing.reply(tree),
            hops: u64::from(tree.depth()) + spare as u64,
            links: tree.links.iter().map(|l| l.number).collect(),
        }
    }
}
