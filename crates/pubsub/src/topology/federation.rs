//! The topology manager's part of the inter-domain strategy (spec/push.md, section 6.1).
//!
//! Domains exchange routes with their neighbours, and flood facts: what each domain publishes, and
//! whose publications it wants. To the rendezvous another domain looks like one node labelled with
//! that domain: it publishes what it announced, and subscribes where it announced interest in this
//! domain's publications. All of this is leased, refreshed periodically, and forgotten when it is
//! not refreshed. Changes are sent at once.

mod heard;
mod pace;
mod say;

use super::domains::Domains;
use super::{SETTLE, TopologyManager};
use crate::publication::Outbox;
use heard::Unheard;
use onym_tables::{SipKey, Tick};
use onym_wire::push::{
    Control, DomainRoute, Filter, Id, Kind, Label, Role, RouteBuf, Sequence, reserved,
};
use pace::Pace;
use say::Said;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// What was not said for so long is forgotten.
const LEASE: Duration = Duration::from_secs(15);
/// Most facts about other domains.
pub const FACTS_MAX: usize = 65_536;
/// Octets of identifiers in one message.
const OCTETS_MAX: usize = 800;
/// Numbers of messages of a domain that are remembered.
const SEEN_MAX: usize = 512;

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

/// The last that a domain said of something.
#[derive(Debug, Clone, Copy)]
struct Known {
    /// Until when it counts.
    until: Tick,
    /// The number of the message.
    number: u64,
    /// It is not so.
    is_gone: bool,
}

impl Known {
    /// Whether the message with this number was sent before, by the same topology manager.
    const fn is_later_than(&self, number: u64) -> bool {
        self.number >> 32 == number >> 32 && self.number > number
    }
}

/// Whether a message came behind one that was sent later.
const fn is_before(sequence: Sequence, last: Sequence) -> bool {
    let is_numbered = sequence.number != 0 && sequence.session == last.session;
    is_numbered && last.number.wrapping_sub(sequence.number).wrapping_sub(1) < u32::MAX / 2
}

/// What is known of other domains.
#[derive(Debug)]
pub struct Federation {
    own: Label,
    pub(super) domains: Domains,
    /// What other domains said.
    facts: BTreeMap<Label, BTreeMap<Fact, Known>>,
    count: usize,
    /// Numbers of messages that came, by domain.
    seen: BTreeMap<Label, VecDeque<u64>>,
    /// When a neighbour's routes came last, and in which message.
    heard: BTreeMap<Label, (Tick, Sequence)>,
    /// What nodes of this domain publish, as each rendezvous said.
    shared: BTreeMap<Label, BTreeSet<Fact>>,
    /// Links to other domains that are reached, by the domain: node, number.
    exits: BTreeMap<Label, Vec<(Label, u32)>>,
    /// Rendezvous nodes that are reached.
    rendezvous: BTreeSet<Label>,
    said: Said,
    /// What neighbours have not answered yet.
    unheard: Unheard,
    pace: Pace,
    number: u64,
    /// Messages that were refused.
    pub refused: u64,
}

impl Federation {
    pub(super) fn new(own: Label, node: Label, boot: u32, seed: u64) -> Self {
        let delivery = SipKey::new(seed, own.to_u64()).words([own.to_u64(), 0]);
        // Several topology managers of a domain number their messages apart.
        let numbers = SipKey::new(0, u64::from(boot)).words([node.to_u64(), 0]);
        let (session, number) = (numbers as u32, (numbers >> 32) << 32);
        Self {
            own,
            domains: Domains::new(own, delivery),
            facts: BTreeMap::new(),
            count: 0,
            seen: BTreeMap::new(),
            heard: BTreeMap::new(),
            shared: BTreeMap::new(),
            exits: BTreeMap::new(),
            rendezvous: BTreeSet::new(),
            said: Said::default(),
            unheard: Unheard::new(session),
            pace: Pace::default(),
            number,
            refused: 0,
        }
    }

    /// Whether this is the label of another domain that is known, by its facts or a route: one
    /// that took back all that it said is told nothing even so.
    pub(super) fn is_domain(&self, label: Label) -> bool {
        self.facts.contains_key(&label) || self.domains.reaches(label)
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

    pub(super) fn due(&self) -> Tick {
        let pace = self.pace.due();
        self.unheard.due().map_or(pace, |due| due.min(pace))
    }

    /// Nodes with links to other domains.
    fn borders(&self) -> BTreeSet<Label> {
        self.exits.values().flatten().map(|(node, _)| *node).collect()
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

    /// Takes the facts of a message of another domain; what a later one said stays.
    fn take(&mut self, now: Tick, message: &Control, facts: Vec<Fact>) {
        let (number, is_gone) = (message.number, message.is_full);
        let known = self.facts.entry(message.sender).or_default();
        let mut is_changed = false;
        for fact in facts {
            let before = known.get(&fact);
            if before.is_some_and(|known| known.is_later_than(number)) {
                continue;
            }
            if before.is_none() && self.count >= FACTS_MAX {
                self.refused += u64::from(!is_gone);
                continue;
            }
            let was_so = before.is_some_and(|known| !known.is_gone);
            is_changed |= was_so == is_gone;
            self.count += usize::from(before.is_none());
            known.insert(fact, Known { until: now + LEASE, number, is_gone });
        }
        if is_changed {
            self.pace.changed(now);
        }
    }

    /// Forgets what was not said again; whether neighbours are silent.
    fn expire(&mut self, now: Tick) -> bool {
        for facts in self.facts.values_mut() {
            facts.retain(|_, known| known.until > now);
        }
        self.facts.retain(|_, facts| !facts.is_empty());
        self.count = self.facts.values().map(BTreeMap::len).sum();
        let silent = |(heard, _): &(Tick, Sequence)| now.since(*heard) > LEASE;
        let lost: Vec<Label> =
            self.heard.iter().filter(|(_, h)| silent(h)).map(|(n, _)| *n).collect();
        for neighbour in &lost {
            self.heard.remove(neighbour);
            self.domains.forget(*neighbour);
            self.unheard.forget(*neighbour);
        }
        !lost.is_empty()
    }

    /// Takes the routes of a neighbour; whether that changed a route. Who is reached anew is told
    /// everything, and so is a neighbour that asks for it.
    fn take_routes(&mut self, now: Tick, neighbour: Label, message: Control) -> bool {
        let heard = self.heard.get(&neighbour);
        if heard.is_some_and(|(_, last)| is_before(message.sequence, *last)) {
            return false;
        }
        let before = self.domains.reached();
        let is_changed = self.domains.receive(neighbour, message.domains);
        // Of one to which no link is known yet nothing was taken: it will be asked.
        if !self.exits.contains_key(&neighbour) {
            return false;
        }
        self.heard.insert(neighbour, (now, message.sequence));
        if message.is_full || (is_changed && !self.domains.reached().is_subset(&before)) {
            self.pace.reached(now);
        }
        if !is_changed {
            return false;
        }
        self.pace.changed(now);
        true
    }

    /// Rendezvous nodes are others, or one began anew: it is told everything.
    fn served_by(&mut self, now: Tick, rendezvous: BTreeSet<Label>) {
        if self.rendezvous != rendezvous {
            self.rendezvous = rendezvous;
            self.pace.reached(now);
        }
    }

    /// What other domains assert at the rendezvous of this one. Scopes first, the highest first.
    fn assertions(&self) -> BTreeSet<(Label, Fact)> {
        let ours = |fact: &&Fact| !matches!(fact, Fact::Wanted(_, from) if *from != self.own);
        let of = |(domain, facts): (&Label, &BTreeMap<Fact, Known>)| {
            let domain = *domain;
            let so = facts.iter().filter(|(_, known)| !known.is_gone).map(|(fact, _)| fact);
            so.filter(ours).map(move |f| (domain, f.clone())).collect::<Vec<_>>()
        };
        self.facts.iter().filter(|(d, _)| self.domains.reaches(**d)).flat_map(of).collect()
    }

    /// The domain that serves this one best with an item: the nearest, then the smallest label.
    pub(super) fn nearest(&self, publishers: &BTreeSet<Label>) -> Option<Label> {
        let far = |domain: &Label| self.domains.distance(*domain).map(|far| (far, *domain));
        publishers.iter().filter_map(far).min().map(|(_, domain)| domain)
    }
}

impl TopologyManager {
    /// The routes and domains that are known; none where the domain has no label.
    #[must_use]
    pub fn federation(&self) -> Option<&Federation> {
        self.federation.as_ref()
    }

    /// Neighbour domains with the links to them that are reached.
    fn exits(&mut self, own: Label) -> BTreeMap<Label, Vec<(Label, u32)>> {
        let of = |(node, state): (&Label, &super::NodeState)| {
            let node = *node;
            let exits = state.exits.iter().filter(|exit| exit.neighbour != own);
            exits.map(move |exit| (exit.neighbour, (node, exit.number))).collect::<Vec<_>>()
        };
        let all: Vec<_> = self.map.nodes().iter().flat_map(of).collect();
        let mut exits: BTreeMap<Label, Vec<(Label, u32)>> = BTreeMap::new();
        for (neighbour, exit) in all {
            if self.map.distance(self.config.node, exit.0).is_some() {
                exits.entry(neighbour).or_default().push(exit);
            }
        }
        exits
    }

    /// The map changed: neighbours came or went.
    pub(super) fn exits_changed(&mut self, now: Tick) {
        let Some(own) = self.federation.as_ref().map(Federation::own) else { return };
        let exits = self.exits(own);
        let mut rendezvous: BTreeSet<Label> = self.homes_of(Role::RENDEZVOUS).into_iter().collect();
        rendezvous.retain(|node| self.map.distance(self.config.node, *node).is_some());
        let seed = self.config.routing.scheme.seed;
        let Some(federation) = &mut self.federation else { return };
        federation.served_by(now, rendezvous);
        federation.pace.changed(now);
        if federation.exits == exits {
            return;
        }
        // Filters that lead out do so by these links.
        self.gone = None;
        for gone in federation.domains.neighbours().into_iter().filter(|n| !exits.contains_key(n)) {
            federation.domains.neighbour_gone(gone);
            federation.heard.remove(&gone);
            federation.unheard.forget(gone);
            self.repairs.neighbour_gone(gone);
        }
        for neighbour in exits.keys() {
            let tag = SipKey::new(seed, own.to_u64()).words([neighbour.to_u64(), 1]);
            federation.domains.neighbour_set(*neighbour, tag);
        }
        federation.exits = exits;
    }

    /// A node of this domain knows nothing of what it was told.
    pub(super) fn node_anew(&mut self, now: Tick, node: Label) {
        let Some(federation) = &mut self.federation else { return };
        federation.said.forget_node(node);
        federation.pace.changed(now);
        if federation.rendezvous.remove(&node) {
            federation.pace.reached(now);
        }
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
        // Of one to which no link is known yet nothing is taken.
        let is_asked = inner.sequence.number != 0 && federation.exits.contains_key(&from);
        let (own, sequence) = (federation.own, inner.sequence);
        match inner.kind {
            Kind::DOMAIN_HEARD if inner.sender == from => {
                return federation.unheard.heard(from, inner.request);
            }
            Kind::DOMAIN_ROUTES if inner.sender == from => {
                if federation.take_routes(now, from, inner) {
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
                    federation.take(now, &inner, facts);
                    self.flood(now, &inner, Some(from), out);
                }
            }
            Kind::DOMAIN_REPAIR => return self.domain_asks(now, from, &inner, out),
            _ => {
                federation.refused += 1;
                return;
            }
        }
        if is_asked {
            let heard = Control { request: sequence, ..Control::new(Kind::DOMAIN_HEARD, own) };
            self.tell_domain(from, &heard, out);
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
        federation.pace.changed(now);
    }

    /// Sends a message to every neighbour domain but one.
    fn flood(&mut self, now: Tick, message: &Control, except: Option<Label>, out: &mut Outbox) {
        let Some(federation) = &self.federation else { return };
        for neighbour in federation.domains.neighbours() {
            if Some(neighbour) != except && neighbour != message.sender {
                self.tell_heard(now, neighbour, message, out);
            }
        }
    }

    /// Sends a message to a neighbour domain until that answers it.
    fn tell_heard(&mut self, now: Tick, neighbour: Label, message: &Control, out: &mut Outbox) {
        let Some(federation) = &mut self.federation else { return };
        let message = federation.unheard.send(now, neighbour, message);
        self.tell_domain(neighbour, &message, out);
    }

    /// Sends a message to a neighbour domain, over the link to it with the smallest number.
    pub(super) fn tell_domain(&mut self, neighbour: Label, message: &Control, out: &mut Outbox) {
        let exits = self.federation.as_ref().and_then(|f| f.exits.get(&neighbour));
        let exit = exits.and_then(|exits| exits.iter().min_by_key(|(_, number)| *number));
        let Some((node, number)) = exit.copied() else { return };
        let (item, body) = (Some(u64::from(number)), message.octets());
        let wrapped = Control { item, body, ..self.message(Kind::DOMAIN_OUT) };
        self.publish_to_dispatcher(node, wrapped, out);
    }

    /// The numbers of links from a node to another one.
    fn way_numbers(&mut self, from: Label, to: Label) -> Option<Vec<u32>> {
        let tree = self.map.tree(from, &[to]).filter(|tree| tree.unreached.is_empty())?;
        Some(tree.links.iter().map(|l| l.number).collect())
    }

    /// The way from a node to a neighbour domain: the nearest exit, the last link included.
    fn way_out(&mut self, from: Label, neighbour: Label) -> Option<Vec<u32>> {
        let exits = self.federation.as_ref()?.exits.get(&neighbour)?.clone();
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

    /// A match changed what this domain wants of others, or whom their publications reach.
    pub(super) fn federation_soon(&mut self, now: Tick) {
        if let Some(federation) = &mut self.federation {
            federation.pace.changed(now);
        }
    }
}

#[cfg(test)]
mod tests;
