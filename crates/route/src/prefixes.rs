//! Prefixes: those that programs here announce, those of other routers, and which ways they take.

use crate::codec::{PrefixAdd, PrefixOps};
use onym_wire::Name;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Bounds of the prefix tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PrefixLimits {
    /// Prefixes that programs of this host announce.
    pub local_max: usize,
    /// Prefixes of one other router.
    pub router_max: usize,
    /// Prefixes of all other routers, counted for each router.
    pub total_max: usize,
}

impl Default for PrefixLimits {
    fn default() -> Self {
        Self { local_max: 100_000, router_max: 250_000, total_max: 1_000_000 }
    }
}

/// Cost of a prefix that nobody reaches.
pub const PREFIX_COST_MAX: u64 = u32::MAX as u64;

/// Networks that a prefix came through, the first one first; none for most.
type Through = Option<Arc<Vec<Name>>>;

/// A router that announces a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Exit {
    router: Arc<Name>,
    cost: u64,
    through: Through,
}

/// The routers that announce a prefix: mostly one, which costs no allocation of its own.
#[derive(Debug)]
enum Exits {
    One(Exit),
    Many(Vec<Exit>),
}

impl Exits {
    fn as_slice(&self) -> &[Exit] {
        match self {
            Self::One(exit) => std::slice::from_ref(exit),
            Self::Many(exits) => exits,
        }
    }

    fn as_mut_slice(&mut self) -> &mut [Exit] {
        match self {
            Self::One(exit) => std::slice::from_mut(exit),
            Self::Many(exits) => exits,
        }
    }

    fn push(&mut self, exit: Exit) {
        match self {
            Self::One(first) => *self = Self::Many(vec![first.clone(), exit]),
            Self::Many(exits) => exits.push(exit),
        }
    }

    /// Takes `router` out; whether nobody is left.
    fn remove(&mut self, router: &Name) -> bool {
        match self {
            Self::One(exit) => *exit.router == *router,
            Self::Many(exits) => {
                exits.retain(|exit| *exit.router != *router);
                exits.is_empty()
            }
        }
    }
}

/// What a router of another network on this host reaches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outside {
    /// Cost by it.
    pub cost: u64,
    /// What is announced of it here, if anything.
    pub told: Option<PrefixAdd>,
    /// It is a summary: names under it without a longer prefix end at this router.
    pub is_summary: bool,
}

/// The prefix tables of a router.
#[derive(Debug)]
pub struct Prefixes {
    own: Arc<Name>,
    limits: PrefixLimits,
    /// Prefix, then local face, then cost.
    local: BTreeMap<Arc<Name>, BTreeMap<u64, u64>>,
    outside: BTreeMap<Arc<Name>, Outside>,
    remote: BTreeMap<Arc<Name>, BTreeSet<Arc<Name>>>,
    exits: BTreeMap<Arc<Name>, Exits>,
    total: usize,
    refused: u64,
}

impl Prefixes {
    /// Empty tables of the router `own`.
    #[must_use]
    pub fn new(own: Arc<Name>, limits: PrefixLimits) -> Self {
        Self {
            own,
            limits,
            local: BTreeMap::new(),
            outside: BTreeMap::new(),
            remote: BTreeMap::new(),
            exits: BTreeMap::new(),
            total: 0,
            refused: 0,
        }
    }

    // --- local

    /// A program behind `face` announces `prefix`. What others have to hear, if anything; `Err` when
    /// the table is full.
    #[allow(clippy::result_unit_err)]
    pub fn announce(&mut self, prefix: &Name, face: u64, cost: u64) -> Result<Option<Told>, ()> {
        if !self.has_room_for(prefix) {
            return Err(());
        }
        let before = self.announced(prefix);
        self.local.entry(Arc::new(prefix.clone())).or_default().insert(face, cost);
        Ok(self.told(prefix, before.as_ref()))
    }

    /// A program does not announce `prefix` any more. What others have to hear, if anything.
    pub fn withdraw(&mut self, prefix: &Name, face: u64) -> Option<Told> {
        let before = self.announced(prefix);
        let faces = self.local.get_mut(prefix)?;
        faces.remove(&face);
        if faces.is_empty() {
            self.local.remove(prefix);
        }
        self.told(prefix, before.as_ref())
    }

    /// What another network on this host reaches is another now. What others have to hear, if
    /// anything; `Err` when the table is full.
    #[allow(clippy::result_unit_err)]
    pub fn set_outside(
        &mut self,
        prefix: &Name,
        outside: Option<Outside>,
    ) -> Result<Option<Told>, ()> {
        if outside.is_some() && !self.has_room_for(prefix) {
            return Err(());
        }
        let before = self.announced(prefix);
        match outside {
            Some(outside) => self.outside.insert(Arc::new(prefix.clone()), outside),
            None => self.outside.remove(prefix),
        };
        Ok(self.told(prefix, before.as_ref()))
    }

    /// What another network on this host reaches of `prefix`.
    #[must_use]
    pub fn outside(&self, prefix: &Name) -> Option<&Outside> {
        self.outside.get(prefix)
    }

    /// What other networks on this host reach.
    pub fn outsides(&self) -> impl Iterator<Item = (&Arc<Name>, &Outside)> {
        self.outside.iter()
    }

    fn has_room_for(&mut self, prefix: &Name) -> bool {
        let known = self.local.contains_key(prefix) || self.outside.contains_key(prefix);
        let fits = known || self.local.len() + self.outside.len() < self.limits.local_max;
        self.refused += u64::from(!fits);
        fits
    }

    /// A face of programs is gone: what they announced.
    #[must_use]
    pub fn of_face(&self, face: u64) -> Vec<Arc<Name>> {
        let by = |(_, faces): &(&Arc<Name>, &BTreeMap<u64, u64>)| faces.contains_key(&face);
        self.local.iter().filter(by).map(|(prefix, _)| Arc::clone(prefix)).collect()
    }

    fn told(&self, prefix: &Name, before: Option<&PrefixAdd>) -> Option<Told> {
        let now = self.announced(prefix);
        (now.as_ref() != before).then_some(now)
    }

    /// The least cost at which programs here announce `prefix`.
    #[must_use]
    pub fn local_cost(&self, prefix: &Name) -> Option<u64> {
        self.local.get(prefix)?.values().min().copied()
    }

    /// The least cost at which this host reaches `prefix` without this network.
    #[must_use]
    pub fn host_cost(&self, prefix: &Name) -> Option<u64> {
        let outside = self.outside.get(prefix).map(|outside| outside.cost);
        self.local_cost(prefix).into_iter().chain(outside).min()
    }

    /// What this router announces about `prefix`: programs here before other networks.
    fn announced(&self, prefix: &Name) -> Option<PrefixAdd> {
        let local = self.local_cost(prefix).map(|cost| PrefixAdd {
            name: prefix.clone(),
            cost,
            through: Vec::new(),
        });
        let outside = self.outside.get(prefix).and_then(|outside| outside.told.clone());
        local.into_iter().chain(outside).min_by_key(|add| add.cost)
    }

    /// Everything announced here, in one operation that replaces what was before.
    #[must_use]
    pub fn snapshot(&self) -> PrefixOps {
        let outside = self.outside.keys().filter(|name| !self.local.contains_key(*name));
        let names = self.local.keys().chain(outside);
        let adds = names.filter_map(|name| self.announced(name)).collect();
        PrefixOps { exit_router: (*self.own).clone(), reset: true, adds, removes: Vec::new() }
    }

    // --- remote

    /// Takes what `router` published. Returns the prefixes that changed.
    pub fn apply(&mut self, router: &Arc<Name>, ops: &PrefixOps) -> BTreeSet<Arc<Name>> {
        let mut changed = BTreeSet::new();
        if ops.reset {
            changed.extend(self.forget(router));
        }
        for add in &ops.adds {
            changed.extend(self.add(router, add));
        }
        for name in &ops.removes {
            if let Some((key, _)) = self.exits.get_key_value(name) {
                let key = Arc::clone(key);
                self.remove(router, &key);
                changed.insert(key);
            }
        }
        changed
    }

    fn add(&mut self, router: &Arc<Name>, add: &PrefixAdd) -> Option<Arc<Name>> {
        let cost = add.cost.min(PREFIX_COST_MAX);
        let through: Through = (!add.through.is_empty()).then(|| Arc::new(add.through.clone()));
        let prefix = match self.exits.get_key_value(&add.name) {
            Some((prefix, _)) => Arc::clone(prefix),
            None => Arc::new(add.name.clone()),
        };
        let exit = Exit { router: Arc::clone(router), cost, through };
        let exits = self.exits.get_mut(&prefix).map(Exits::as_mut_slice);
        if let Some(known) =
            exits.and_then(|exits| exits.iter_mut().find(|known| known.router == *router))
        {
            let changed = *known != exit;
            *known = exit;
            return changed.then_some(prefix);
        }
        let announced = self.remote.entry(Arc::clone(router)).or_default();
        if announced.len() >= self.limits.router_max || self.total >= self.limits.total_max {
            self.refused += 1;
            return None;
        }
        self.total += 1;
        announced.insert(Arc::clone(&prefix));
        match self.exits.entry(Arc::clone(&prefix)) {
            Entry::Vacant(place) => _ = place.insert(Exits::One(exit)),
            Entry::Occupied(mut exits) => exits.get_mut().push(exit),
        }
        Some(prefix)
    }

    fn remove(&mut self, router: &Arc<Name>, prefix: &Arc<Name>) {
        let announced = self.remote.get_mut(router);
        if announced.is_some_and(|announced| announced.remove(prefix)) {
            self.total -= 1;
        }
        self.remove_exit(router, prefix);
    }

    fn remove_exit(&mut self, router: &Arc<Name>, prefix: &Arc<Name>) {
        if self.exits.get_mut(prefix).is_some_and(|exits| exits.remove(router)) {
            self.exits.remove(prefix);
        }
    }

    /// Forgets all prefixes of `router`, and returns them.
    pub fn forget(&mut self, router: &Arc<Name>) -> BTreeSet<Arc<Name>> {
        let announced = self.remote.remove(router).unwrap_or_default();
        self.total -= announced.len();
        announced.iter().for_each(|prefix| self.remove_exit(router, prefix));
        announced
    }

    /// The prefixes of `router`.
    pub fn of(&self, router: &Name) -> impl Iterator<Item = &Arc<Name>> {
        self.remote.get(router).into_iter().flatten()
    }

    /// Who announces `prefix`, at what cost; this host not counted.
    pub fn exits(&self, prefix: &Name) -> impl Iterator<Item = (&Arc<Name>, u64)> {
        let exits = self.exits.get(prefix).map_or(&[][..], Exits::as_slice);
        exits.iter().map(|exit| (&exit.router, exit.cost))
    }

    /// As [`Prefixes::exits`], with the networks that the prefix came through.
    pub fn exits_through(&self, prefix: &Name) -> impl Iterator<Item = (&Arc<Name>, u64, &[Name])> {
        let exits = self.exits.get(prefix).map_or(&[][..], Exits::as_slice);
        exits.iter().map(|exit| {
            let through = exit.through.as_deref().map_or(&[][..], Vec::as_slice);
            (&exit.router, exit.cost, through)
        })
    }

    /// Prefixes announced here by programs, with their cost.
    pub fn local(&self) -> impl Iterator<Item = (&Arc<Name>, u64)> {
        self.local.iter().filter_map(|(name, faces)| Some((name, *faces.values().min()?)))
    }

    /// Prefixes of other routers.
    pub fn remote(&self) -> impl Iterator<Item = &Arc<Name>> {
        self.exits.keys()
    }

    /// Prefixes that were not taken because a table is full.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }
}

/// What others have to hear about one prefix: that it is announced, or that it is not any more.
pub type Told = Option<PrefixAdd>;

/// A way towards an exit router: the neighbour's face, the cost by it, the cost from it on.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Candidate {
    pub(crate) face: u64,
    pub(crate) total: u64,
    pub(crate) beyond: u64,
}

/// Which candidates a prefix takes, best first. `local` is its cost here.
///
/// With several exit routers the ways to each are free of loops, but two of them together may not be: a
/// backup is taken only when its neighbour is nearer to the prefix than this router is.
pub(crate) fn ways(
    mut candidates: Vec<Candidate>,
    local: Option<u64>,
    max: usize,
) -> Vec<(u64, u64)> {
    candidates.sort_by_key(|c| (c.total, c.face));
    let nearest = candidates.first().map(|c| c.total);
    let Some(distance) = nearest.into_iter().chain(local).min() else { return Vec::new() };
    let mut ways: Vec<(u64, u64)> = Vec::new();
    for candidate in candidates {
        let fits = candidate.total == distance || candidate.beyond < distance;
        if fits && ways.len() < max && !ways.iter().any(|(face, _)| *face == candidate.face) {
            ways.push((candidate.face, candidate.total));
        }
    }
    ways
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(uri: &str) -> Name {
        uri.parse().unwrap()
    }

    fn tables(limits: PrefixLimits) -> Prefixes {
        Prefixes::new(Arc::new(name("/net/x")), limits)
    }

    fn add(prefix: &str, cost: u64) -> PrefixAdd {
        PrefixAdd { name: name(prefix), cost, through: Vec::new() }
    }

    fn adds(router: &str, prefixes: &[&str]) -> PrefixOps {
        let adds = prefixes.iter().map(|p| add(p, 0)).collect();
        PrefixOps { exit_router: name(router), adds, ..PrefixOps::default() }
    }

    #[test]
    fn only_a_change_of_the_least_cost_is_told() {
        let mut tables = tables(PrefixLimits::default());
        assert_eq!(tables.announce(&name("/a"), 300, 5), Ok(Some(Some(add("/a", 5)))));
        assert_eq!(tables.announce(&name("/a"), 301, 9), Ok(None));
        assert_eq!(tables.withdraw(&name("/a"), 300), Some(Some(add("/a", 9))));
        assert_eq!(tables.withdraw(&name("/a"), 300), None);
        assert_eq!(tables.withdraw(&name("/a"), 301), Some(None));
    }

    #[test]
    fn programs_here_are_told_before_another_network_that_is_as_near() {
        let mut tables = tables(PrefixLimits::default());
        let far = PrefixAdd { through: vec![name("/far")], ..add("/a", 5) };
        let by = Outside { cost: 5, told: Some(far.clone()), is_summary: false };
        assert_eq!(tables.set_outside(&name("/a"), Some(by.clone())), Ok(Some(Some(far.clone()))));
        assert_eq!(tables.announce(&name("/a"), 300, 7), Ok(None));
        assert_eq!(tables.announce(&name("/a"), 301, 5), Ok(Some(Some(add("/a", 5)))));
        assert_eq!(tables.snapshot().adds, [add("/a", 5)]);
        assert_eq!(tables.withdraw(&name("/a"), 301), Some(Some(far)));
        let untold = Outside { told: None, cost: 1, ..by };
        assert_eq!(tables.set_outside(&name("/a"), Some(untold)), Ok(Some(Some(add("/a", 7)))));
        assert_eq!(
            (tables.host_cost(&name("/a")), tables.local_cost(&name("/a"))),
            (Some(1), Some(7))
        );
    }

    #[test]
    fn a_reset_leaves_nothing_of_before_and_bounds_hold() {
        let limits = PrefixLimits { router_max: 2, total_max: 3, local_max: 1 };
        let mut tables = tables(limits);
        let (a, b) = (Arc::new(name("/net/a")), Arc::new(name("/net/b")));
        tables.apply(&a, &adds("/net/a", &["/1", "/2", "/3"]));
        assert_eq!((tables.of(&a).count(), tables.refused()), (2, 1));
        tables.apply(&b, &adds("/net/b", &["/1", "/4"]));
        assert_eq!((tables.of(&b).count(), tables.refused()), (1, 2));
        let reset = PrefixOps { reset: true, ..adds("/net/a", &["/5"]) };
        let changed = tables.apply(&a, &reset);
        assert_eq!(changed.len(), 3);
        assert_eq!(tables.exits(&name("/1")).count(), 1);
        assert!(tables.announce(&name("/l"), 1, 0).is_ok());
        assert!(tables.announce(&name("/m"), 1, 0).is_err());
    }

    #[test]
    fn two_exits_back_each_other_only_where_that_leads_nearer() {
        let by = |face, total, beyond| Candidate { face, total, beyond };
        // Both exits are equally near: both faces.
        assert_eq!(ways(vec![by(1, 1, 0), by(2, 1, 0)], None, 4), [(1, 1), (2, 1)]);
        // The other exit is behind a neighbour that is as near to the first one as this router is.
        assert_eq!(ways(vec![by(1, 1, 0), by(2, 2, 1)], None, 4), [(1, 1)]);
        // Announced here, too: others only where they are nearer.
        assert_eq!(ways(vec![by(1, 3, 2)], Some(0), 4), []);
        assert_eq!(ways(vec![by(1, 3, 2)], Some(10), 4), [(1, 3)]);
    }
}
