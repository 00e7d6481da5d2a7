//! What a topology manager does for the inter-domain strategy (spec/push.md, section 6.1).
//!
//! Domains tell each other routes, from neighbour to neighbour, and facts, flooded from domain to
//! domain: what each publishes, and whose publications it wants. At the rendezvous of a domain
//! another domain stands as one node with the label of the domain: it publishes what it said that
//! it publishes, and subscribes where it said that it wants this domain's publication. All of it is
//! leased, said again from time to time, and forgotten when it is not.

use super::domains::Domains;
use super::matched::Match;
use super::{SETTLE, TopologyManager};
use crate::publication::{Outbox, Publication, responsible};
use onym_tables::{HashKey, Tick};
use onym_wire::push::{
    Control, DomainRoute, Filter, Id, Kind, Label, Role, RouteBuf, Strategy, reserved,
};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// How often everything is said again.
const REFRESH: Duration = Duration::from_secs(4);
/// What was not said for so long is forgotten.
const LEASE: Duration = Duration::from_secs(15);
/// Most facts about other domains.
pub const FACTS_MAX: usize = 65_536;
/// Octets of identifiers in one message.
const OCTETS_MAX: usize = 800;
/// Octets of routes in the message to a neighbour.
const ROUTES_OCTETS_MAX: usize = 7000;
/// Numbers of messages of a domain that are remembered.
const SEEN_MAX: usize = 512;
/// How often a withdrawal is said.
const WITHDRAWALS: u32 = 3;

/// Something that a domain says of an identifier.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(super) enum Fact {
    /// It publishes the scope.
    Scope(Id),
    /// It publishes the item.
    Item(Id),
    /// It wants the item from this domain.
    Wanted(Id, Label),
}

impl Fact {
    fn id(&self) -> &Id {
        match self {
            Self::Scope(id) | Self::Item(id) | Self::Wanted(id, _) => id,
        }
    }

    /// Class and domain, as messages carry them.
    fn class(&self) -> (u64, Option<Label>) {
        match self {
            Self::Scope(_) => (0, None),
            Self::Item(_) => (1, None),
            Self::Wanted(_, from) => (2, Some(*from)),
        }
    }

    fn of(message: &Control) -> Option<Vec<Self>> {
        let from = message.nodes.first().copied();
        let fact = |id: &Id| match (message.item, from) {
            (Some(0), None) => Some(Self::Scope(id.clone())),
            (Some(1), None) => Some(Self::Item(id.clone())),
            (Some(2), Some(from)) => Some(Self::Wanted(id.clone(), from)),
            _ => None,
        };
        let is_fit = |id: &Id| !id.is_empty() && !id.first().is_some_and(reserved::is_reserved);
        message.ids.iter().map(|id| fact(id).filter(|_| is_fit(id))).collect()
    }
}

/// Facts in messages that are not too long.
fn messages(facts: impl IntoIterator<Item = Fact>, like: &Control) -> Vec<Control> {
    let mut all: Vec<(Control, usize)> = Vec::new();
    for fact in facts {
        let (class, from) = fact.class();
        let nodes: Vec<Label> = from.into_iter().collect();
        let len = fact.id().octets().len() + 4;
        let fits = all.last().is_some_and(|(m, octets)| {
            m.item == Some(class) && m.nodes == nodes && octets + len <= OCTETS_MAX
        });
        if !fits {
            all.push((Control { item: Some(class), nodes, ..like.clone() }, 0));
        }
        if let Some((message, octets)) = all.last_mut() {
            message.ids.push(fact.id().clone());
            *octets += len;
        }
    }
    all.into_iter().map(|(message, _)| message).collect()
}

/// What is known of other domains.
#[derive(Debug)]
pub struct Federation {
    own: Label,
    pub(super) domains: Domains,
    /// What other domains said, until when.
    facts: BTreeMap<Label, BTreeMap<Fact, Tick>>,
    count: usize,
    /// Numbers of messages that came, by domain.
    seen: BTreeMap<Label, VecDeque<u64>>,
    /// When a neighbour's routes came last.
    heard: BTreeMap<Label, Tick>,
    /// What nodes of this domain publish, as each rendezvous said.
    shared: BTreeMap<Label, BTreeSet<Fact>>,
    /// What was said last.
    said: BTreeSet<Fact>,
    /// What is not so any more, and how often it is still to be said: of this domain, and to the
    /// rendezvous of other domains.
    gone: BTreeMap<(Label, Fact), u32>,
    /// What the rendezvous was told, by domain.
    asserted: BTreeSet<(Label, Fact)>,
    number: u64,
    /// When to say everything.
    due: Tick,
    /// Messages that were refused.
    pub refused: u64,
}

impl Federation {
    pub(super) fn new(own: Label, node: Label, boot: u32, seed: u64) -> Self {
        let delivery = HashKey::new(seed, own.to_u64()).words([own.to_u64(), 0]);
        // Several topology managers of a domain number their messages apart.
        let number = (HashKey::new(0, u64::from(boot)).words([node.to_u64(), 0]) >> 32) << 32;
        Self {
            own,
            domains: Domains::new(own, delivery),
            facts: BTreeMap::new(),
            count: 0,
            seen: BTreeMap::new(),
            heard: BTreeMap::new(),
            shared: BTreeMap::new(),
            said: BTreeSet::new(),
            gone: BTreeMap::new(),
            asserted: BTreeSet::new(),
            number,
            due: Tick(0),
            refused: 0,
        }
    }

    /// Whether this is the label of another domain that is known.
    pub(super) fn is_domain(&self, label: Label) -> bool {
        self.facts.contains_key(&label)
    }

    /// The routes to other domains.
    #[must_use]
    pub fn routes(&self) -> Vec<DomainRoute> {
        self.domains.routes().into_values().collect()
    }

    /// The label of this domain.
    #[must_use]
    pub const fn own(&self) -> Label {
        self.own
    }

    pub(super) const fn due(&self) -> Tick {
        self.due
    }

    fn soon(&mut self, now: Tick) {
        self.due = self.due.min(now + SETTLE);
    }

    /// Whether the message is a new one; notes it.
    fn is_new(&mut self, domain: Label, number: u64) -> bool {
        if !self.seen.contains_key(&domain) && self.seen.len() >= super::domains::DOMAINS_MAX {
            return false;
        }
        let seen = self.seen.entry(domain).or_default();
        if seen.contains(&number) {
            return false;
        }
        seen.push_back(number);
        if seen.len() > SEEN_MAX {
            seen.pop_front();
        }
        true
    }

    /// Takes the facts of a message of another domain.
    fn take(&mut self, now: Tick, domain: Label, facts: Vec<Fact>, is_gone: bool) {
        let known = self.facts.entry(domain).or_default();
        let mut is_changed = false;
        for fact in facts {
            if is_gone {
                let was_there = known.remove(&fact).is_some();
                self.count -= usize::from(was_there);
                is_changed |= was_there;
            } else if known.contains_key(&fact) || self.count < FACTS_MAX {
                let is_new = known.insert(fact, now + LEASE).is_none();
                self.count += usize::from(is_new);
                is_changed |= is_new;
            } else {
                self.refused += 1;
            }
        }
        if is_changed {
            self.soon(now);
        }
    }

    /// Forgets what was not said again.
    fn expire(&mut self, now: Tick) {
        for facts in self.facts.values_mut() {
            facts.retain(|_, until| *until > now);
        }
        self.facts.retain(|_, facts| !facts.is_empty());
        self.count = self.facts.values().map(BTreeMap::len).sum();
        let silent = |heard: &Tick| now.since(*heard) > LEASE;
        let lost: Vec<Label> =
            self.heard.iter().filter(|(_, h)| silent(h)).map(|(n, _)| *n).collect();
        for neighbour in lost {
            self.heard.remove(&neighbour);
            self.domains.forget(neighbour);
        }
    }

    /// What other domains assert at the rendezvous of this one. Scopes first, the highest first.
    fn assertions(&self) -> BTreeSet<(Label, Fact)> {
        let ours = |fact: &&Fact| !matches!(fact, Fact::Wanted(_, from) if *from != self.own);
        let of = |(domain, facts): (&Label, &BTreeMap<Fact, Tick>)| {
            let domain = *domain;
            facts.keys().filter(ours).map(move |f| (domain, f.clone())).collect::<Vec<_>>()
        };
        self.facts.iter().filter(|(d, _)| self.domains.reaches(**d)).flat_map(of).collect()
    }

    /// The domain that serves this one best with an item: the nearest, then the smallest label.
    pub(super) fn nearest(&self, publishers: &BTreeSet<Label>) -> Option<Label> {
        let far = |domain: &Label| self.domains.distance(*domain).map(|far| (far, *domain));
        publishers.iter().filter_map(far).min().map(|(_, domain)| domain)
    }
}

/// Counts down withdrawals.
fn said_once(gone: &mut BTreeMap<(Label, Fact), u32>) {
    gone.values_mut().for_each(|left| *left = left.saturating_sub(1));
    gone.retain(|_, left| *left > 0);
}

impl TopologyManager {
    /// The routes and domains that are known; none where the domain has no label.
    #[must_use]
    pub fn federation(&self) -> Option<&Federation> {
        self.federation.as_ref()
    }

    /// Neighbour domains with the links to them: node, number of the link.
    fn exits(&self) -> BTreeMap<Label, Vec<(Label, u32)>> {
        let mut exits: BTreeMap<Label, Vec<(Label, u32)>> = BTreeMap::new();
        for (node, state) in self.map.nodes() {
            for exit in &state.exits {
                exits.entry(exit.neighbour).or_default().push((*node, exit.number));
            }
        }
        exits
    }

    /// The map changed: neighbours came or went.
    pub(super) fn exits_changed(&mut self, now: Tick) {
        let exits = self.exits();
        let seed = self.config.routing.scheme.seed;
        let Some(federation) = &mut self.federation else { return };
        let own = federation.own.to_u64();
        for gone in federation.domains.neighbours().into_iter().filter(|n| !exits.contains_key(n)) {
            federation.domains.neighbour_gone(gone);
            self.repairs.neighbour_gone(gone);
        }
        for neighbour in exits.into_keys().filter(|n| *n != federation.own) {
            let tag = HashKey::new(seed, own).words([neighbour.to_u64(), 1]);
            federation.domains.neighbour_set(neighbour, tag);
        }
        federation.soon(now);
    }

    /// A border node passes on what came from another domain.
    pub(super) fn domain_says(&mut self, now: Tick, message: &Control, out: &mut Outbox) {
        let from = message.nodes.first().copied().unwrap_or_default();
        let exits = self.map.nodes().get(&message.sender).map(|state| &state.exits);
        let is_theirs = exits.is_some_and(|exits| exits.iter().any(|e| e.neighbour == from));
        let Some(federation) = &mut self.federation else {
            self.refused += 1;
            return;
        };
        let inner = Control::parse(&message.body).ok().filter(|_| is_theirs);
        let is_node = |label: Label| self.map.nodes().contains_key(&label);
        let inner = inner.filter(|m| m.sender != federation.own && !is_node(m.sender));
        let Some(inner) = inner else {
            federation.refused += 1;
            return;
        };
        match inner.kind {
            Kind::DOMAIN_ROUTES if inner.sender == from => {
                federation.heard.insert(from, now);
                if federation.domains.receive(from, inner.domains) {
                    federation.soon(now);
                    self.settle.get_or_insert(now + SETTLE);
                    self.gone = None;
                }
            }
            Kind::DOMAIN_FACTS => {
                let Some(facts) = Fact::of(&inner) else {
                    federation.refused += 1;
                    return;
                };
                if federation.is_new(inner.sender, inner.number) {
                    // A match may know it before: another manager of this domain heard it first.
                    if !federation.is_domain(inner.sender) {
                        self.settle.get_or_insert(now + SETTLE);
                        self.gone = None;
                    }
                    federation.take(now, inner.sender, facts, inner.is_full);
                    self.flood(&inner, Some(from), out);
                }
            }
            Kind::DOMAIN_REPAIR => self.domain_asks(now, from, &inner, out),
            _ => federation.refused += 1,
        }
    }

    /// What a rendezvous says that nodes of this domain publish for others.
    pub(super) fn shared(&mut self, now: Tick, message: &Control) {
        let Some(federation) = &mut self.federation else { return };
        let Some(facts) = Fact::of(message) else {
            federation.refused += 1;
            return;
        };
        let known = federation.shared.entry(message.sender).or_default();
        if message.is_full {
            known.clear();
        }
        known.extend(facts);
        federation.soon(now);
    }

    /// Sends a message to every neighbour domain but one.
    fn flood(&mut self, message: &Control, except: Option<Label>, out: &mut Outbox) {
        for neighbour in self.exits().into_keys() {
            if Some(neighbour) != except && neighbour != message.sender {
                self.tell_domain(neighbour, message, out);
            }
        }
    }

    /// Sends a message to a neighbour domain, over the link to it with the smallest number.
    pub(super) fn tell_domain(&mut self, neighbour: Label, message: &Control, out: &mut Outbox) {
        let exits = self.exits().remove(&neighbour).unwrap_or_default();
        let Some((node, number)) = exits.into_iter().min_by_key(|(_, number)| *number) else {
            return;
        };
        let (item, body) = (Some(u64::from(number)), message.octets());
        let wrapped = Control { item, body, ..self.message(Kind::DOMAIN_OUT) };
        self.publish_to_dispatcher(node, &wrapped, out);
    }

    /// Says everything again when it is time: routes and facts to other domains, their facts to the
    /// rendezvous, filters to border nodes.
    pub(super) fn federate(&mut self, now: Tick, out: &mut Outbox) {
        let Some(federation) = self.federation.as_mut().filter(|f| f.due <= now) else { return };
        let wants: BTreeSet<Fact> = self.matches.values().flat_map(Match::wants).collect();
        federation.due = now + REFRESH;
        federation.expire(now);
        let (own, neighbours) = (federation.own, federation.domains.neighbours());
        let routes: Vec<(Label, Vec<DomainRoute>)> =
            neighbours.into_iter().map(|n| (n, federation.domains.routes_for(n))).collect();
        // Facts of this domain.
        let facts: BTreeSet<Fact> =
            federation.shared.values().flatten().cloned().chain(wants).collect();
        let before = std::mem::replace(&mut federation.said, facts.clone());
        let gone = &mut federation.gone;
        gone.extend(before.difference(&facts).map(|f| ((own, f.clone()), WITHDRAWALS)));
        // Facts of others, at the rendezvous.
        let asserted = federation.assertions();
        let before = std::mem::replace(&mut federation.asserted, asserted.clone());
        let gone = &mut federation.gone;
        gone.extend(before.difference(&asserted).map(|pair| (pair.clone(), WITHDRAWALS)));
        gone.retain(|(domain, fact), _| {
            let is_so_again = asserted.contains(&(*domain, fact.clone()));
            !(is_so_again || (*domain == own && facts.contains(fact)))
        });
        let gone: Vec<(Label, Fact)> = federation.gone.keys().cloned().collect();
        said_once(&mut federation.gone);
        for (neighbour, mut domains) in routes {
            // The nearest first: what does not fit a frame is not reached over this domain.
            domains.sort_by_key(|route| route.path.len());
            let mut octets = 0;
            domains.retain(|route| {
                octets += 24 + 16 * route.path.len();
                octets <= ROUTES_OCTETS_MAX
            });
            let message = Control { domains, ..Control::new(Kind::DOMAIN_ROUTES, own) };
            self.tell_domain(neighbour, &message, out);
        }
        let like = Control::new(Kind::DOMAIN_FACTS, own);
        let withdrawn = gone.iter().filter(|(domain, _)| *domain == own).map(|(_, f)| f.clone());
        let mut all = messages(withdrawn, &Control { is_full: true, ..like.clone() });
        all.extend(messages(facts, &like));
        for mut message in all {
            if let Some(federation) = &mut self.federation {
                federation.number += 1;
                message.number = federation.number;
            }
            self.flood(&message, None, out);
        }
        for (domain, fact) in gone.iter().rev().filter(|(domain, _)| *domain != own) {
            self.assert(*domain, fact, true, out);
        }
        for (domain, fact) in &asserted {
            self.assert(*domain, fact, false, out);
        }
        self.tell_borders(out);
    }

    /// Asserts at the rendezvous what another domain said, or takes it back.
    fn assert(&mut self, domain: Label, fact: &Fact, is_gone: bool, out: &mut Outbox) {
        let kind = match fact {
            Fact::Scope(_) => Kind::PUBLISH_SCOPE,
            Fact::Item(_) => Kind::PUBLISH_ITEM,
            Fact::Wanted(..) => Kind::SUBSCRIBE_ITEM,
        };
        let id = fact.id();
        let (Some(root), Some(label)) = (id.first(), id.last()) else { return };
        let nodes = self.map.nodes().iter().filter(|(_, n)| n.role.has(Role::RENDEZVOUS));
        let Some(owner) = responsible(root, nodes.map(|(label, _)| *label)) else { return };
        let message = Control {
            ids: vec![Id::root(label)],
            prefix: Id::from_labels(id.father()),
            strategy: Strategy::INTER_DOMAIN,
            nodes: vec![self.config.node],
            ..Control::new(if is_gone { kind.withdrawal() } else { kind }, domain)
        };
        if let Some(target) = self.way(owner) {
            out.publish(Publication::control(target, reserved::RENDEZVOUS, domain, &message));
        }
    }

    /// The numbers of links from a node to another one.
    fn way_numbers(&mut self, from: Label, to: Label) -> Option<Vec<u32>> {
        let tree = self.map.tree(from, &[to]).filter(|tree| tree.unreached.is_empty())?;
        Some(tree.links.iter().map(|l| l.number).collect())
    }

    /// The way from a node to a neighbour domain: the nearest exit, the last link included.
    fn way_out(&mut self, from: Label, neighbour: Label) -> Option<Vec<u32>> {
        let exits = self.exits().remove(&neighbour)?;
        let far = |(node, number): (Label, u32)| {
            self.map.distance(from, node).map(|far| (far, number, node))
        };
        let (_, number, node) = exits.into_iter().filter_map(far).min()?;
        let mut numbers = self.way_numbers(from, node)?;
        numbers.push(number);
        Some(numbers)
    }

    /// The filter of these numbers in table 0, unless it is too full.
    fn filter_of(&self, numbers: impl IntoIterator<Item = u32>) -> Option<Filter> {
        let mut filter = Filter::EMPTY;
        let scheme = self.config.routing.scheme;
        numbers.into_iter().for_each(|n| filter.add(&scheme.tag(n, 0)));
        (filter.ones() <= self.config.routing.fill_max).then_some(filter)
    }

    /// The forwarding part from a publisher to receivers in this domain (`numbers`, of links and
    /// insides) and to other domains.
    pub(super) fn domain_route(
        &mut self,
        publisher: Label,
        mut numbers: Vec<u32>,
        domains: &[Label],
    ) -> Option<RouteBuf> {
        let tree = self.federation.as_ref()?.domains.tree(domains)?;
        for neighbour in tree.neighbours {
            numbers.extend(self.way_out(publisher, neighbour)?);
        }
        let filter = self.filter_of(numbers)?;
        tree.stages.within(0, &filter)
    }

    /// Tells each border node the filters by which frames of other domains go on.
    fn tell_borders(&mut self, out: &mut Outbox) {
        let Some(federation) = &self.federation else { return };
        let (delivery, tags) = (federation.domains.delivery(), federation.domains.exit_tags());
        let has_exits = self.map.nodes().iter().filter(|(_, state)| !state.exits.is_empty());
        let borders: Vec<Label> = has_exits.map(|(node, _)| *node).collect();
        let served: Vec<(Vec<Id>, Vec<Label>)> =
            self.matches.values().filter_map(Match::served_by_others).collect();
        for border in borders {
            for (neighbour, tag) in &tags {
                let way = self.way_out(border, *neighbour);
                let filter = way.and_then(|numbers| self.filter_of(numbers));
                let message = Control {
                    item: Some(*tag),
                    epoch: Some(delivery),
                    route: filter.map(|f| RouteBuf::flat(0, &f)),
                    ..self.message(Kind::BORDER)
                };
                self.publish_to_dispatcher(border, &message, out);
            }
            for (ids, receivers) in &served {
                let filter = self.receivers_from(border, receivers);
                let message = Control {
                    ids: ids.clone(),
                    route: filter.map(|f| RouteBuf::flat(0, &f)),
                    ..self.message(Kind::BORDER)
                };
                self.publish_to_dispatcher(border, &message, out);
            }
        }
    }

    /// Items have no receivers here any more that other domains serve.
    pub(super) fn tell_nobody(&mut self, ids: &[Id], out: &mut Outbox) {
        let has_exits = self.map.nodes().iter().filter(|(_, state)| !state.exits.is_empty());
        let borders: Vec<Label> = has_exits.map(|(node, _)| *node).collect();
        let message = Control { ids: ids.to_vec(), ..self.message(Kind::BORDER) };
        borders.iter().for_each(|border| self.publish_to_dispatcher(*border, &message, out));
    }

    fn receivers_from(&mut self, border: Label, receivers: &[Label]) -> Option<Filter> {
        let tree = self.map.tree(border, receivers).filter(|_| !receivers.is_empty())?;
        let insides = tree.insides.iter().map(|i| i.0);
        let numbers: Vec<u32> = tree.links.iter().map(|l| l.number).chain(insides).collect();
        self.filter_of(numbers)
    }

    /// A match changed what this domain wants of others, or whom their publications reach.
    pub(super) fn federation_soon(&mut self, now: Tick) {
        if let Some(federation) = &mut self.federation {
            federation.soon(now);
        }
    }
}

#[cfg(test)]
mod tests;
