//! What a topology manager sends for its domain: routes and facts to other domains, facts of those
//! to the rendezvous, filters to border nodes. Changes are sent at once, everything periodically
//! (P-61, P-66).

use super::{FACTS_MAX, Fact, Federation, messages};
use crate::publication::{Outbox, responsible};
use crate::topology::matched::Match;
use crate::topology::{SETTLE, TopologyManager};
use onym_tables::Tick;
use onym_wire::push::{
    Control, DomainRoute, Filter, Id, Kind, Label, Role, RouteBuf, Strategy, reserved,
};
use std::collections::{BTreeMap, BTreeSet};

/// Octets of routes in the message to a neighbour.
const ROUTES_OCTETS_MAX: usize = 7000;
/// How often a withdrawal is said.
const WITHDRAWALS: u32 = 3;

/// Something that a border node is told a filter for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Way {
    /// To the exit with this tag.
    Exit(u64),
    /// To the receivers of the item.
    Item(Vec<Id>),
}

/// What was said last.
#[derive(Debug, Default)]
pub(super) struct Said {
    /// Of this domain to all others.
    facts: BTreeSet<Fact>,
    /// To each neighbour.
    routes: BTreeMap<Label, Vec<DomainRoute>>,
    /// To the rendezvous, by domain.
    asserted: BTreeSet<(Label, Fact)>,
    /// What is not so any more, and how often it is still to be said: of this domain, and to the
    /// rendezvous of other domains.
    gone: BTreeMap<(Label, Fact), u32>,
    /// To border nodes.
    borders: BTreeMap<Label, BTreeMap<Way, Option<Filter>>>,
}

/// What is to be said now.
struct Round {
    routes: Vec<(Label, Vec<DomainRoute>)>,
    facts: Vec<Fact>,
    asserted: Vec<(Label, Fact)>,
    gone: Vec<(Label, Fact)>,
}

impl Said {
    /// Notes what is so, and that it is not so any more; what of it is to be said.
    fn facts(&mut self, own: Label, now: BTreeSet<Fact>, is_full: bool) -> Vec<Fact> {
        let before = std::mem::replace(&mut self.facts, now);
        let is_told = |f: &&Fact| is_full || !before.contains(f);
        let told = self.facts.iter().filter(is_told).cloned().collect();
        let lost = before.difference(&self.facts).map(|f| ((own, f.clone()), WITHDRAWALS));
        self.gone.extend(lost);
        told
    }

    fn asserted(&mut self, now: BTreeSet<(Label, Fact)>, is_full: bool) -> Vec<(Label, Fact)> {
        let before = std::mem::replace(&mut self.asserted, now);
        let is_told = |f: &&(Label, Fact)| is_full || !before.contains(f);
        let told = self.asserted.iter().filter(is_told).cloned().collect();
        let lost = before.difference(&self.asserted).map(|f| (f.clone(), WITHDRAWALS));
        self.gone.extend(lost);
        told
    }

    /// Withdrawals to be said: those that never were, and in a full round all.
    fn gone(&mut self, own: Label, is_full: bool) -> Vec<(Label, Fact)> {
        let (facts, asserted) = (&self.facts, &self.asserted);
        self.gone.retain(|pair, _| {
            !(asserted.contains(pair) || (pair.0 == own && facts.contains(&pair.1)))
        });
        let is_told = |left: u32| is_full || left == WITHDRAWALS;
        let told: Vec<_> =
            self.gone.iter().filter(|(_, left)| is_told(**left)).map(|(p, _)| p.clone()).collect();
        self.gone.values_mut().filter(|left| is_told(**left)).for_each(|left| *left -= 1);
        self.gone.retain(|_, left| *left > 0);
        if self.gone.len() > FACTS_MAX {
            // Those were said once: who did not hear it forgets them by their lease.
            self.gone.clear();
        }
        told
    }

    /// Nothing is known of what this node was told.
    pub(super) fn forget_node(&mut self, node: Label) {
        self.borders.remove(&node);
    }

    /// Border nodes are told that the item has no receivers.
    fn forget_item(&mut self, ids: &[Id]) {
        let item = Way::Item(ids.to_vec());
        self.borders.values_mut().for_each(|ways| {
            let _ = ways.remove(&item);
        });
    }
}

impl Federation {
    /// What each neighbour is told, as far as it fits a frame and is other than what it was told.
    fn routes_to_tell(&mut self, is_full: bool) -> Vec<(Label, Vec<DomainRoute>)> {
        let neighbours = self.domains.neighbours();
        self.said.routes.retain(|neighbour, _| neighbours.contains(neighbour));
        let mut all = Vec::new();
        for neighbour in neighbours {
            let mut routes = self.domains.routes_for(neighbour);
            // The nearest first: what does not fit a frame is not reached over this domain.
            routes.sort_by_key(|route| route.path.len());
            let mut octets = 0;
            routes.retain(|route| {
                octets += 24 + 16 * route.path.len();
                octets <= ROUTES_OCTETS_MAX
            });
            if is_full || self.said.routes.get(&neighbour) != Some(&routes) {
                self.said.routes.insert(neighbour, routes.clone());
                all.push((neighbour, routes));
            }
        }
        all
    }

    /// Begins a round: what is said in it, given what this domain wants of others.
    fn round(&mut self, now: Tick, wants: BTreeSet<Fact>) -> Round {
        let is_full = self.pace.begin(now);
        let facts = self.shared.values().flatten().cloned().chain(wants).collect();
        let assertions = self.assertions();
        let facts = self.said.facts(self.own, facts, is_full);
        let asserted = self.said.asserted(assertions, is_full);
        let gone = self.said.gone(self.own, is_full);
        if is_full {
            self.said.borders.clear();
        }
        Round { routes: self.routes_to_tell(is_full), facts, asserted, gone }
    }
}

impl TopologyManager {
    /// Says what is due: to other domains, to the rendezvous, to border nodes.
    pub(in crate::topology) fn federate(&mut self, now: Tick, out: &mut Outbox) {
        let again = self.federation.as_mut().map(|f| f.unheard.again(now)).unwrap_or_default();
        for (neighbour, message) in again {
            self.tell_domain(neighbour, &message, out);
        }
        let is_due = |f: &&mut Federation| f.pace.due() <= now;
        let Some(federation) = self.federation.as_mut().filter(is_due) else { return };
        if federation.expire(now) {
            // What went over a neighbour that is silent goes another way.
            self.settle.get_or_insert(now + SETTLE);
            self.gone = None;
        }
        let wants: BTreeSet<Fact> = self.matches.values().flat_map(Match::wants).collect();
        let own = federation.own;
        let round = federation.round(now, wants);
        for (neighbour, domains) in round.routes {
            let is_heard = |f: &Federation| f.heard.contains_key(&neighbour);
            let is_full = !self.federation.as_ref().is_some_and(is_heard);
            let message = Control { domains, is_full, ..Control::new(Kind::DOMAIN_ROUTES, own) };
            self.tell_heard(now, neighbour, &message, out);
        }
        let like = Control::new(Kind::DOMAIN_FACTS, own);
        let (ours, theirs): (Vec<_>, Vec<_>) = round.gone.into_iter().partition(|(d, _)| *d == own);
        let withdrawn = ours.into_iter().map(|(_, fact)| fact);
        let mut all = messages(withdrawn, &Control { is_full: true, ..like.clone() });
        all.extend(messages(round.facts, &like));
        for mut message in all {
            if let Some(federation) = &mut self.federation {
                federation.number += 1;
                message.number = federation.number;
            }
            self.flood(now, &message, None, out);
        }
        for (domain, fact) in theirs.iter().rev() {
            self.assert(*domain, fact, true, out);
        }
        for (domain, fact) in &round.asserted {
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
            prefix: Id::from_labels(id.parent()),
            strategy: Strategy::INTER_DOMAIN,
            nodes: vec![self.config.node],
            ..Control::new(if is_gone { kind.withdrawal() } else { kind }, domain)
        };
        if let Some(target) = self.way(owner) {
            out.control(target, reserved::RENDEZVOUS, domain, message);
        }
    }

    /// Tells each border node the filters by which frames of other domains go on, where they are
    /// other than what it was told.
    fn tell_borders(&mut self, out: &mut Outbox) {
        let Some(federation) = &self.federation else { return };
        let (delivery, tags) = (federation.domains.delivery(), federation.domains.exit_tags());
        let borders = federation.borders();
        let served: Vec<(Vec<Id>, Vec<Label>)> =
            self.matches.values().filter_map(Match::served_by_others).collect();
        let mut told: BTreeMap<Label, BTreeMap<Way, Option<Filter>>> = BTreeMap::new();
        for border in borders {
            let ways = told.entry(border).or_default();
            for (neighbour, tag) in &tags {
                let way = self.way_out(border, *neighbour);
                let filter = way.and_then(|numbers| self.filter_of(numbers));
                ways.insert(Way::Exit(*tag), filter);
            }
            for (ids, receivers) in &served {
                let filter = self.receivers_from(border, receivers);
                ways.insert(Way::Item(ids.clone()), filter);
            }
        }
        for (border, ways) in &told {
            for (way, filter) in ways {
                let said = self.federation.as_ref().and_then(|f| f.said.borders.get(border));
                if said.and_then(|said| said.get(way)) == Some(filter) {
                    continue;
                }
                let mut message = self.message(Kind::BORDER);
                match way {
                    Way::Exit(tag) => (message.item, message.epoch) = (Some(*tag), Some(delivery)),
                    Way::Item(ids) => message.ids.clone_from(ids),
                }
                message.route = filter.map(|f| RouteBuf::flat(0, &f));
                self.publish_to_dispatcher(*border, message, out);
            }
        }
        if let Some(federation) = &mut self.federation {
            federation.said.borders = told;
        }
    }

    /// Items have no receivers here any more that other domains serve.
    pub(in crate::topology) fn tell_nobody(&mut self, ids: &[Id], out: &mut Outbox) {
        let Some(federation) = &mut self.federation else { return };
        federation.said.forget_item(ids);
        let borders = federation.borders();
        let message = Control { ids: ids.to_vec(), ..self.message(Kind::BORDER) };
        for border in borders {
            self.publish_to_dispatcher(border, message.clone(), out);
        }
    }

    fn receivers_from(&mut self, border: Label, receivers: &[Label]) -> Option<Filter> {
        let tree = self.map.tree(border, receivers).filter(|_| !receivers.is_empty())?;
        let insides = tree.insides.iter().map(|i| i.0);
        let numbers: Vec<u32> = tree.links.iter().map(|l| l.number).chain(insides).collect();
        self.filter_of(numbers)
    }
}
