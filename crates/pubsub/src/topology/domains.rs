//! Routes between domains, exchanged as paths of domains (section 3.4).
//!
//! A domain tells each neighbour which domains it reaches, with the path and the tags of the exits
//! on it, and nothing about its inside. The shortest path wins, then the one over the neighbour
//! with the smallest label. A path that contains the own domain is refused, so there are no loops.

use onym_tables::SipKey;
use onym_tables::bloom::{StageBuilt, build_stage};
use onym_wire::push::{DomainHop, DomainRoute, Label, RouteBuf};
use std::collections::{BTreeMap, BTreeSet};

/// Most domains that a table knows.
pub const DOMAINS_MAX: usize = 4096;
/// Most domains on a path.
pub const PATH_MAX: usize = 32;
/// Tags of domains that nobody told of, which a stage is made not to match: about one false exit
/// in so many.
const STRANGERS: u64 = 256;

/// The route to some domains.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DomainTree {
    /// The stages; the filter of this domain is put in by [`RouteBuf::within`].
    pub stages: RouteBuf,
    /// Neighbours to which this domain is left.
    pub neighbours: Vec<Label>,
    /// Domains that are not reached.
    pub unreached: Vec<Label>,
}

/// What a domain knows of others.
#[derive(Debug, Clone)]
pub struct Domains {
    own: Label,
    delivery: u64,
    /// Own exits by neighbour.
    exits: BTreeMap<Label, u64>,
    /// What each neighbour told, by destination.
    told: BTreeMap<Label, BTreeMap<Label, DomainRoute>>,
    /// Destinations and neighbours for which a route is not passed on.
    kept_back: BTreeSet<(Label, Label)>,
    /// Routes refused: circles, too long, too many.
    pub refused: u64,
}

impl Domains {
    /// A domain without neighbours; `delivery` is the tag by which others name its receivers.
    #[must_use]
    pub fn new(own: Label, delivery: u64) -> Self {
        let (exits, told, kept_back) = Default::default();
        Self { own, delivery, exits, told, kept_back, refused: 0 }
    }

    /// A neighbour, with the tag of the exit to it.
    pub fn neighbour_set(&mut self, neighbour: Label, exit: u64) {
        self.exits.insert(neighbour, exit);
    }

    /// A neighbour is not reached any more; whether that changed a route.
    pub fn neighbour_gone(&mut self, neighbour: Label) -> bool {
        let before = self.best_routes();
        self.exits.remove(&neighbour);
        self.told.remove(&neighbour);
        self.best_routes() != before
    }

    /// Neighbours, with or without routes.
    #[must_use]
    pub fn neighbours(&self) -> Vec<Label> {
        self.exits.keys().copied().collect()
    }

    /// The tags of the exits by neighbour.
    #[must_use]
    pub fn exit_tags(&self) -> Vec<(Label, u64)> {
        self.exits.iter().map(|(neighbour, tag)| (*neighbour, *tag)).collect()
    }

    /// The tag by which others name receivers of this domain.
    #[must_use]
    pub const fn delivery(&self) -> u64 {
        self.delivery
    }

    /// A neighbour is silent: its routes are forgotten, and it may tell others.
    pub fn forget(&mut self, neighbour: Label) {
        self.told.remove(&neighbour);
    }

    /// The best route to each domain that is reached.
    #[must_use]
    pub fn routes(&self) -> BTreeMap<Label, DomainRoute> {
        self.best_routes()
    }

    /// Links between domains on the way to one.
    #[must_use]
    pub fn distance(&self, domain: Label) -> Option<usize> {
        let far = |(neighbour, routes): (&Label, &BTreeMap<Label, DomainRoute>)| {
            self.exits.get(neighbour)?;
            routes.get(&domain).map(|route| route.path.len() + 1)
        };
        self.told.iter().filter_map(far).min()
    }

    /// The domains that are reached.
    #[must_use]
    pub fn reached(&self) -> BTreeSet<Label> {
        let is_neighbour = |neighbour: &Label| self.exits.contains_key(neighbour);
        let told = self.told.iter().filter(|(neighbour, _)| is_neighbour(neighbour));
        told.flat_map(|(_, routes)| routes.keys().copied()).collect()
    }

    /// Whether a domain is reached.
    #[must_use]
    pub fn reaches(&self, domain: Label) -> bool {
        self.distance(domain).is_some()
    }

    /// The neighbour to which what `from` has for `destination` goes on; `None`: nowhere, or `from`
    /// is not told the way.
    #[must_use]
    pub fn onward(&self, destination: Label, from: Option<Label>) -> Option<Label> {
        let far = |(neighbour, routes): (&Label, &BTreeMap<Label, DomainRoute>)| {
            self.exits.get(neighbour)?;
            routes.get(&destination).map(|route| (route.path.len(), *neighbour))
        };
        let (_, next) = self.told.iter().filter_map(far).min()?;
        let is_told = |from: Label| {
            let leads_there = |r: &DomainRoute| r.path.iter().any(|h| h.domain == from);
            let route = self.told.get(&next).and_then(|routes| routes.get(&destination));
            let is_back = next == from || destination == from || route.is_some_and(leads_there);
            !is_back && !self.kept_back.contains(&(destination, from))
        };
        from.is_none_or(is_told).then_some(next)
    }

    /// Whether `domain` is this neighbour, or is reached over it as the neighbour says.
    #[must_use]
    pub fn is_beyond(&self, neighbour: Label, domain: Label) -> bool {
        let is_told = |routes: &BTreeMap<Label, DomainRoute>| routes.contains_key(&domain);
        neighbour == domain || self.told.get(&neighbour).is_some_and(is_told)
    }

    /// Policy: routes to `destination` are not told to `neighbour`.
    pub fn keep_back(&mut self, destination: Label, neighbour: Label) {
        self.kept_back.insert((destination, neighbour));
    }

    /// All routes of a neighbour, in place of what it told before; whether that changed a route.
    pub fn receive(&mut self, neighbour: Label, routes: Vec<DomainRoute>) -> bool {
        if !self.exits.contains_key(&neighbour) {
            self.refused += 1;
            return false;
        }
        let before = self.best_routes();
        let mut sound = BTreeMap::new();
        for route in routes {
            let is_circle =
                route.destination == self.own || route.path.iter().any(|h| h.domain == self.own);
            // Every route but the one to the neighbour itself leaves the neighbour first.
            let is_theirs = match route.path.first() {
                Some(hop) => hop.domain == neighbour,
                None => route.destination == neighbour,
            };
            let is_full = sound.len() >= DOMAINS_MAX;
            if is_circle || !is_theirs || is_full || route.path.len() >= PATH_MAX {
                self.refused += 1;
            } else {
                sound.insert(route.destination, route);
            }
        }
        self.told.insert(neighbour, sound);
        self.best_routes() != before
    }

    /// The best route to each domain, beginning with the own exit.
    fn best_routes(&self) -> BTreeMap<Label, DomainRoute> {
        let mut best: BTreeMap<Label, DomainRoute> = BTreeMap::new();
        for (neighbour, routes) in &self.told {
            let Some(exit) = self.exits.get(neighbour) else { continue };
            for (destination, route) in routes {
                let is_better =
                    best.get(destination).is_none_or(|b| route.path.len() + 1 < b.path.len());
                if is_better {
                    let first = DomainHop { domain: self.own, exit: *exit };
                    let path = std::iter::once(first).chain(route.path.iter().copied()).collect();
                    best.insert(*destination, DomainRoute { path, ..route.clone() });
                }
            }
        }
        best
    }

    /// What a neighbour is told.
    #[must_use]
    pub fn routes_for(&self, neighbour: Label) -> Vec<DomainRoute> {
        let own = DomainRoute { destination: self.own, delivery: self.delivery, path: Vec::new() };
        let others = self.best_routes().into_values().filter(|route| {
            // Not back to where the path leads, nor against the policy.
            let leads_there =
                route.destination == neighbour || route.path.iter().any(|h| h.domain == neighbour);
            !leads_there && !self.kept_back.contains(&(route.destination, neighbour))
        });
        std::iter::once(own).chain(others).collect()
    }

    /// Stages for a tree to several domains; `None` when none of them is reached, or the stages do
    /// not fit.
    #[must_use]
    pub fn tree(&self, destinations: &[Label]) -> Option<DomainTree> {
        let best = self.best_routes();
        let mut members: BTreeMap<usize, BTreeSet<u64>> = BTreeMap::new();
        let (mut neighbours, mut unreached) = (BTreeSet::new(), Vec::new());
        for destination in destinations {
            let Some(route) = best.get(destination) else {
                unreached.push(*destination);
                continue;
            };
            for (depth, hop) in route.path.iter().enumerate() {
                members.entry(depth).or_default().insert(hop.exit);
            }
            members.entry(route.path.len()).or_default().insert(route.delivery);
            neighbours.insert(route.path.get(1).map_or(*destination, |hop| hop.domain));
        }
        let known: BTreeSet<u64> =
            best.values().flat_map(|r| r.path.iter().map(|h| h.exit).chain([r.delivery])).collect();
        let built = members.iter().map(|(depth, ours)| {
            let index = u8::try_from(*depth).ok()?;
            let key = SipKey::new(STRANGERS, u64::from(index));
            let strangers = (0..STRANGERS).map(|n| key.words([n, 0]));
            let theirs: Vec<u64> = known.difference(ours).copied().chain(strangers).collect();
            build_stage(index, &ours.iter().copied().collect::<Vec<_>>(), &theirs)
        });
        let built: Vec<StageBuilt> = built.collect::<Option<_>>()?;
        let stages: Vec<_> = built.iter().map(StageBuilt::as_stage).collect();
        let stages = RouteBuf::stages(&stages).filter(|_| !built.is_empty())?;
        Some(DomainTree { stages, neighbours: neighbours.into_iter().collect(), unreached })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forwarder::{Config, Copies, Exit, Forwarder, LinkEntry, Source};
    use onym_tables::bloom::Scheme;
    use onym_tables::{FaceId, Rng};
    use onym_wire::push::{Filter, FrameBuilder, Id, Strategy};

    fn domain(n: usize) -> Label {
        Label::from_u64(n as u64 + 1)
    }

    /// Domains with these links, all routes exchanged until nothing changes.
    fn exchanged(count: usize, links: &[(usize, usize)]) -> Vec<Domains> {
        let tag = |a: usize, b: usize| SipKey::new(9, a as u64).words([b as u64, 1]);
        let mut all: Vec<Domains> =
            (0..count).map(|n| Domains::new(domain(n), tag(n, 10_000))).collect();
        for (a, b) in links {
            all[*a].neighbour_set(domain(*b), tag(*a, *b));
            all[*b].neighbour_set(domain(*a), tag(*b, *a));
        }
        exchange(&mut all, links);
        all
    }

    fn exchange(all: &mut [Domains], links: &[(usize, usize)]) {
        for round in 0.. {
            assert!(round < 3 * all.len(), "no end of the exchange");
            let mut is_changed = false;
            for (a, b) in links {
                for (from, to) in [(*a, *b), (*b, *a)] {
                    let routes = all[from].routes_for(domain(to));
                    is_changed |= all[to].receive(domain(from), routes);
                }
            }
            if !is_changed {
                return;
            }
        }
    }

    fn distances(count: usize, links: &[(usize, usize)], from: usize) -> Vec<Option<usize>> {
        let mut far = vec![None; count];
        far[from] = Some(0);
        for step in 0..count {
            for (a, b) in links {
                for (a, b) in [(*a, *b), (*b, *a)] {
                    if far[a] == Some(step) && far[b].is_none() {
                        far[b] = Some(step + 1);
                    }
                }
            }
        }
        far
    }

    #[test]
    fn the_exchange_ends_with_shortest_paths_without_circles() {
        for seed in 0..10 {
            let mut rng = Rng::new(seed);
            let count = 5 + rng.below(20) as usize;
            let mut links: Vec<(usize, usize)> =
                (1..count).map(|n| (n, rng.below(n as u64) as usize)).collect();
            for _ in 0..count / 2 {
                let (a, b) = (rng.below(count as u64) as usize, rng.below(count as u64) as usize);
                if a != b && !links.contains(&(a, b)) && !links.contains(&(b, a)) {
                    links.push((a, b));
                }
            }
            let all = exchanged(count, &links);
            for (n, domains) in all.iter().enumerate() {
                let far = distances(count, &links, n);
                let best = domains.best_routes();
                for to in (0..count).filter(|to| *to != n) {
                    let path = &best[&domain(to)].path;
                    assert_eq!(Some(path.len()), far[to], "seed {seed}, {n} to {to}");
                    let on_way: BTreeSet<Label> = path.iter().map(|h| h.domain).collect();
                    assert_eq!(on_way.len(), path.len(), "seed {seed}: a circle");
                }
            }
        }
    }

    #[test]
    fn a_lost_neighbour_is_gone_around() {
        let links = [(0, 1), (1, 2), (0, 3), (3, 4), (4, 2)];
        let mut all = exchanged(5, &links);
        assert_eq!(all[0].best_routes()[&domain(2)].path.len(), 2);
        all[0].neighbour_gone(domain(1));
        all[1].neighbour_gone(domain(0));
        exchange(&mut all, &links[1..]);
        assert_eq!(all[0].best_routes()[&domain(2)].path.len(), 3);
        assert_eq!(all[0].best_routes()[&domain(1)].path.len(), 4);
    }

    #[test]
    fn forged_routes_are_refused() {
        let mut all = exchanged(3, &[(0, 1), (1, 2)]);
        let route = |to: usize, path: &[usize]| DomainRoute {
            destination: domain(to),
            delivery: 1,
            path: path.iter().map(|n| DomainHop { domain: domain(*n), exit: 2 }).collect(),
        };
        let before = all[0].best_routes();
        let forged = vec![
            route(0, &[1]),
            route(2, &[1, 0]),
            route(2, &[2]),
            route(2, &[]),
            route(2, &[1; PATH_MAX]),
        ];
        let refused = forged.len() as u64;
        let mut domains = all[0].clone();
        domains.receive(domain(1), forged);
        assert_eq!(domains.refused, refused);
        assert!(!all[0].receive(domain(2), vec![route(2, &[])]), "no neighbour");
        assert_eq!(all[0].best_routes(), before);
    }

    #[test]
    fn what_policy_keeps_back_is_not_passed_on() {
        let links = [(0, 1), (1, 2)];
        let mut all = exchanged(3, &links);
        all[1].keep_back(domain(2), domain(0));
        exchange(&mut all, &links);
        let tree = all[0].tree(&[domain(2)]);
        assert!(tree.is_none());
        let tree = all[0].tree(&[domain(1), domain(2)]).unwrap();
        assert_eq!(tree.unreached, [domain(2)]);
    }

    #[test]
    fn a_request_goes_on_where_the_asker_is_told_a_route_and_never_back() {
        let mut all = exchanged(4, &[(0, 1), (1, 2), (1, 3)]);
        assert_eq!(all[2].onward(domain(0), None), Some(domain(1)));
        assert_eq!(all[1].onward(domain(0), Some(domain(2))), Some(domain(0)));
        // Back, and to where no way is.
        assert_eq!(all[1].onward(domain(0), Some(domain(0))), None);
        assert_eq!(all[0].onward(domain(2), Some(domain(1))), None);
        assert_eq!(all[1].onward(domain(9), Some(domain(2))), None);
        all[1].keep_back(domain(0), domain(2));
        assert_eq!(all[1].onward(domain(0), Some(domain(2))), None);
        assert_eq!(all[1].onward(domain(0), Some(domain(3))), Some(domain(0)));
        assert!(all[0].is_beyond(domain(1), domain(2)) && all[0].is_beyond(domain(1), domain(1)));
        assert!(!all[1].is_beyond(domain(2), domain(3)) && !all[1].is_beyond(domain(9), domain(0)));
    }

    /// A forwarder with links of these numbers over faces of the same numbers.
    fn node(inside: u32, links: &[u32], external: &[u32]) -> Forwarder {
        let mut fw = Forwarder::new(Config::default(), inside);
        for number in links.iter().chain(external) {
            let is_external = external.contains(number);
            let link = LinkEntry { face: FaceId(256 + number), number: *number, is_external };
            fw.link_add(link).unwrap();
        }
        fw
    }

    fn flat(numbers: &[u32]) -> Filter {
        let mut filter = Filter::EMPTY;
        numbers.iter().for_each(|n| filter.add(&Scheme::default().tag(*n, 0)));
        filter
    }

    /// One step: the faces by which the frame leaves and whether it is delivered.
    fn step(fw: &mut Forwarder, from: Option<u32>, frame: &mut [u8]) -> (Vec<u32>, bool) {
        let mut copies = Copies::default();
        let source = from.map_or(Source::Own, |n| Source::Face(FaceId(256 + n)));
        fw.receive(source, frame, &mut copies);
        (copies.faces.iter().map(|f| f.0 - 256).collect(), copies.is_delivered)
    }

    #[test]
    fn a_publication_crosses_three_domains_each_by_its_own_filter() {
        let all = exchanged(3, &[(0, 1), (1, 2)]);
        let item: Id = "/1/2".parse().unwrap();
        let tree = all[0].tree(&[domain(1), domain(2)]).unwrap();
        assert_eq!(tree.neighbours, [domain(1)]);
        // First domain: a source with link 1 to its border, whose exit is link 2.
        let mut border_a = node(10, &[1], &[2]);
        let route = tree.stages.within(0, &flat(&[2])).unwrap();
        let mut frame = Vec::new();
        let ids = [item.clone()];
        let (strategy, payload) = (Strategy::INTER_DOMAIN, &b"x"[..]);
        FrameBuilder { hop_limit: 9, strategy, route: &route, ids: &ids, options: &[], payload }
            .write(&mut frame);
        assert_eq!(step(&mut border_a, None, &mut frame), (vec![2], false));
        // Second domain: enters over link 3, a receiver at node 21 behind link 4, exit 5.
        let mut border_b = node(20, &[4], &[3, 5]);
        border_b.border.delivery = all[1].delivery;
        let exit = all[1].exits[&domain(2)];
        border_b.border.exits.push(Exit { tag: exit, filter: flat(&[5]) });
        border_b.border.receivers_set(item.clone(), Some(flat(&[4, 21])));
        assert_eq!(step(&mut border_b, Some(3), &mut frame), (vec![4, 5], false));
        let mut receiver = node(21, &[6], &[]);
        assert_eq!(step(&mut receiver, Some(6), &mut frame.clone()), (vec![], true));
        // Third domain: the border itself has the receiver.
        let mut border_c = node(30, &[8], &[7]);
        border_c.border.delivery = all[2].delivery;
        border_c.border.receivers_set(item, Some(flat(&[30])));
        assert_eq!(step(&mut border_c, Some(7), &mut frame), (vec![], true));
        assert_eq!(step(&mut border_c, Some(7), &mut frame), (vec![], false), "no further stage");
    }
}
