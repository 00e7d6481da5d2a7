//! The routing table: a distance vector with a feasibility condition.
//!
//! Each destination has a number (`seq`) that its own router increments. A way through a neighbour
//! is *feasible* when what the neighbour advertises is newer than everything advertised here, or as
//! new and strictly nearer (the condition of DUAL's SNC and of Babel, RFC 8966, section 3.5.1).
//! Along feasible ways the pair (seq, metric) strictly improves, so no set of them, best and
//! backup, ever closes a loop, whatever was lost or late. A destination whose ways are all
//! unfeasible is *starved*: its router is asked to increment its number.
//!
//! Peers that send no number are handled as in plain ndn-dv: split horizon by OtherCost, infinity
//! 16.

mod select;
#[cfg(test)]
mod tests;
mod want;

use crate::codec::{AdvEntry, Advert, Delta, INFINITY};
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
pub use want::Asked;
use want::Want;

/// A neighbour, as the table knows it; never used again for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PeerId(pub u32);

/// Metric from which a destination is unreachable.
pub const METRIC_MAX: u64 = 1 << 24;
/// How long a destination without any way is remembered: longer than anything about it is under way.
const FORGET_AFTER_MS: u64 = 180_000;

/// What a neighbour advertises about a destination.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    /// The destination's number; `None` from a peer that does not tell.
    seq: Option<u64>,
    /// Cost from the neighbour on.
    metric: u64,
}

/// One neighbour by which packets may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// The neighbour.
    pub peer: PeerId,
    /// Cost by it, its link included.
    pub metric: u64,
}

/// The ways to a destination that are in use, best first.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Route {
    /// The number they are of; `None` when it comes by a peer that does not tell.
    pub seq: Option<u64>,
    /// Best, equal ones and feasible backups.
    pub hops: Vec<Hop>,
}

impl Route {
    /// Cost of the best way.
    #[must_use]
    pub fn metric(&self) -> u64 {
        self.hops.first().map_or(METRIC_MAX, |hop| hop.metric)
    }
}

/// (seq, metric) of the best that was ever advertised here; a pair is better when it is newer, or as
/// new and smaller.
type Feasible = (u64, u64);

#[derive(Debug, Default)]
struct Destination {
    entries: Vec<(PeerId, Entry)>,
    feasible: Option<Feasible>,
    route: Option<Route>,
    /// The entry of the last advertisement.
    told: Option<AdvEntry>,
    want: Option<Want>,
    /// The newest number that was asked for here and passed on, and when.
    passed: Option<(u64, Tick)>,
    idle_since: Option<Tick>,
}

/// What a router knows about its neighbours' links.
#[derive(Debug, Clone)]
struct Peer {
    name: Arc<Name>,
    cost: u64,
}

/// What the table counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TableCounters {
    /// Destinations that were not taken because the table is full.
    pub refused: u64,
    /// Times a destination was starved.
    pub starved: u64,
    /// Times this router's number was raised.
    pub raised: u64,
}

/// The table of one router.
#[derive(Debug)]
pub struct Table {
    own: Arc<Name>,
    own_seq: u64,
    /// The own number of the last advertisement.
    own_told: Option<u64>,
    /// Numbers from here on are not believed.
    seq_max: u64,
    peers: BTreeMap<PeerId, Peer>,
    destinations: BTreeMap<Arc<Name>, Destination>,
    dirty: BTreeSet<Arc<Name>>,
    /// Destinations whose entry differs from what was advertised, or that ask.
    unsaid: BTreeSet<Arc<Name>>,
    /// Destinations with a request that is open.
    asking: BTreeSet<Arc<Name>>,
    limits: Limits,
    counters: TableCounters,
}

/// Bounds of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Destinations; more are refused and counted.
    pub destinations_max: usize,
    /// Ways kept for each.
    pub ways_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { destinations_max: 4096, ways_max: 4 }
    }
}

impl Table {
    /// The table of `own`, whose number begins at `seq`.
    #[must_use]
    pub fn new(own: Arc<Name>, seq: u64, limits: Limits) -> Self {
        Self {
            own,
            own_seq: seq,
            own_told: None,
            seq_max: u64::MAX,
            peers: BTreeMap::new(),
            destinations: BTreeMap::new(),
            dirty: BTreeSet::new(),
            unsaid: BTreeSet::new(),
            asking: BTreeSet::new(),
            limits,
            counters: TableCounters::default(),
        }
    }

    // --- neighbours

    /// A neighbour is usable, at `cost`, or its cost is another one.
    pub fn set_peer(&mut self, peer: PeerId, name: &Arc<Name>, cost: u64) {
        let before = self.peers.insert(peer, Peer { name: Arc::clone(name), cost: cost.max(1) });
        if before.is_none_or(|before| before.cost != cost.max(1)) {
            self.touch_ways_of(peer);
        }
    }

    /// A neighbour is gone, with all that it advertised.
    pub fn drop_peer(&mut self, peer: PeerId) {
        self.touch_ways_of(peer);
        self.peers.remove(&peer);
        for destination in self.destinations.values_mut() {
            destination.entries.retain(|(id, _)| *id != peer);
        }
    }

    fn touch_ways_of(&mut self, peer: PeerId) {
        let named = self.destinations.iter().filter(|(_, d)| d.entry(peer).is_some());
        self.dirty.extend(named.map(|(name, _)| Arc::clone(name)));
    }

    /// Takes the whole advertisement of `peer` in place of what it said before.
    pub fn replace(&mut self, peer: PeerId, advert: &Advert) {
        let mut gone: BTreeSet<Arc<Name>> = self
            .destinations
            .iter()
            .filter(|(_, d)| d.entry(peer).is_some())
            .map(|(name, _)| Arc::clone(name))
            .collect();
        for entry in &advert.entries {
            gone.remove(&entry.destination);
            self.set(peer, entry);
        }
        gone.iter().for_each(|name| self.unset(peer, name));
    }

    /// Takes what changed in the advertisement of `peer`.
    pub fn change(&mut self, peer: PeerId, delta: &Delta) {
        delta.entries.iter().for_each(|entry| self.set(peer, entry));
        delta.removed.iter().for_each(|name| self.unset(peer, name));
    }

    fn set(&mut self, peer: PeerId, entry: &AdvEntry) {
        if entry.destination == *self.own {
            // Somebody holds a number of ours that we never gave: it is from an earlier run.
            if let Some(seq) =
                entry.seq.filter(|seq| (self.own_seq + 1..self.seq_max).contains(seq))
            {
                self.raise(seq);
            }
            return;
        }
        let Some(entry_taken) = self.usable(entry) else {
            return self.unset(peer, &entry.destination);
        };
        let name = match self.destinations.get_key_value(&entry.destination) {
            Some((name, _)) => Arc::clone(name),
            None if self.destinations.len() >= self.limits.destinations_max => {
                self.counters.refused += 1;
                return;
            }
            None => Arc::new(entry.destination.clone()),
        };
        let destination = self.destinations.entry(Arc::clone(&name)).or_default();
        match destination.entries.iter_mut().find(|(id, _)| *id == peer) {
            Some((_, old)) if *old == entry_taken => return,
            Some((_, old)) => *old = entry_taken,
            None => destination.entries.push((peer, entry_taken)),
        }
        self.dirty.insert(name);
    }

    fn unset(&mut self, peer: PeerId, name: &Name) {
        if let Some((key, _)) = self.destinations.get_key_value(name) {
            let key = Arc::clone(key);
            if let Some(destination) = self.destinations.get_mut(&key) {
                let before = destination.entries.len();
                destination.entries.retain(|(id, _)| *id != peer);
                if destination.entries.len() != before {
                    self.dirty.insert(key);
                }
            }
        }
    }

    /// What `entry` is worth here; `None` when nothing.
    fn usable(&self, entry: &AdvEntry) -> Option<Entry> {
        let by_us = entry.next_hop == *self.own;
        let found = match (entry.seq, by_us) {
            // Its way leads here; it cannot be nearer than we are.
            (Some(_), true) => return None,
            (Some(seq), false) => {
                Entry { seq: Some(seq), metric: entry.metric.unwrap_or(entry.cost) }
            }
            (None, true) => Entry { seq: None, metric: entry.other_cost },
            (None, false) => Entry { seq: None, metric: entry.cost },
        };
        // A number from the far future would outlive everything that its router can say.
        if found.seq.is_some_and(|seq| seq >= self.seq_max) {
            return None;
        }
        let bound = if found.seq.is_some() { METRIC_MAX } else { INFINITY };
        (found.metric < bound).then_some(found)
    }

    // --- this router

    /// Numbers from `seq` on are not believed: they can only come from a wrong clock or a liar.
    pub fn believe_below(&mut self, seq: u64) {
        self.seq_max = seq;
    }

    /// This router's number becomes more than `seq`.
    pub fn raise(&mut self, seq: u64) {
        if seq >= self.own_seq {
            self.own_seq = seq.saturating_add(1);
            self.counters.raised += 1;
        }
    }

    /// This router's number becomes the next one: what held of its links does not hold any more.
    pub fn raise_once(&mut self) {
        self.raise(self.own_seq);
    }

    // --- what follows

    /// Chooses again where something changed. Returns the destinations whose ways are others now.
    pub fn settle(&mut self, now: Tick) -> Vec<Arc<Name>> {
        let mut changed = Vec::new();
        for name in std::mem::take(&mut self.dirty) {
            let Some(destination) = self.destinations.get_mut(&name) else { continue };
            let choice = select::choose(destination, &self.peers, self.limits.ways_max);
            let was = destination.route.is_some();
            if destination.route != choice.route {
                destination.route = choice.route;
                changed.push(Arc::clone(&name));
            }
            let starved_now = was && destination.route.is_none() && choice.ask.is_some();
            self.counters.starved += u64::from(starved_now);
            destination.ask(now, choice.ask, &name, &mut self.asking);
            let idle = destination.entries.is_empty();
            destination.idle_since = if idle { destination.idle_since.or(Some(now)) } else { None };
            self.unsaid.insert(name);
        }
        changed
    }

    /// Whether an advertisement now would say something new.
    #[must_use]
    pub fn has_news(&self, now: Tick) -> bool {
        self.own_told != Some(self.own_seq)
            || self.asking_due(now)
            || self.unsaid.iter().any(|name| {
                self.destinations.get(name).is_some_and(|d| self.entry_of(name, d) != d.told)
            })
    }

    /// Takes what changed since the last advertisement as the difference to it. From now on ways must
    /// be better than what this says.
    pub fn publish(&mut self, now: Tick, base: u64) -> Delta {
        let mut delta = Delta { base, ..Delta::default() };
        if self.own_told != Some(self.own_seq) {
            self.own_told = Some(self.own_seq);
            delta.entries.push(self.own_entry());
        }
        for name in std::mem::take(&mut self.unsaid) {
            let Some(destination) = self.destinations.get(&name) else { continue };
            let entry = self.entry_of(&name, destination);
            let Some(destination) = self.destinations.get_mut(&name) else { continue };
            if entry == destination.told {
                continue;
            }
            match &entry {
                Some(entry) => {
                    destination.narrow(entry);
                    delta.entries.push(entry.clone());
                }
                None => delta.removed.push((*name).clone()),
            }
            destination.told = entry;
            // Ways that are as near as the neighbour's own are none any more.
            self.dirty.insert(name);
        }
        delta.requests = self.requests(now);
        delta
    }

    /// The whole of what was advertised last.
    #[must_use]
    pub fn advert(&self) -> Advert {
        let told = self.destinations.values().filter_map(|d| d.told.clone());
        Advert {
            entries: std::iter::once(self.own_entry()).chain(told).collect(),
            requests: self.open_requests(),
        }
    }

    fn own_entry(&self) -> AdvEntry {
        AdvEntry {
            destination: (*self.own).clone(),
            next_hop: (*self.own).clone(),
            cost: 0,
            other_cost: INFINITY,
            seq: Some(self.own_seq),
            metric: None,
        }
    }

    fn entry_of(&self, name: &Arc<Name>, destination: &Destination) -> Option<AdvEntry> {
        let route = destination.route.as_ref()?;
        let best = route.hops.first()?;
        let next_hop = (*self.peers.get(&best.peer)?.name).clone();
        let other = route.hops.get(1).map_or(INFINITY, |hop| hop.metric.min(INFINITY));
        Some(AdvEntry {
            destination: (**name).clone(),
            next_hop,
            cost: best.metric.min(INFINITY),
            other_cost: other,
            seq: route.seq,
            metric: (best.metric >= INFINITY).then_some(best.metric),
        })
    }

    /// Forgets destinations that had no way for long.
    pub fn sweep(&mut self, now: Tick) {
        let asking = &mut self.asking;
        self.destinations.retain(|name, d| {
            let idle = d.idle_since.is_some_and(|since| now >= since.plus_ms(FORGET_AFTER_MS));
            let forget = idle && d.told.is_none();
            if forget {
                asking.remove(name);
            }
            !forget
        });
    }

    // --- views

    /// The ways to `destination`.
    #[must_use]
    pub fn route(&self, destination: &Name) -> Option<&Route> {
        self.destinations.get(destination)?.route.as_ref()
    }

    /// Destinations with their ways, in order of their names.
    pub fn routes(&self) -> impl Iterator<Item = (&Arc<Name>, &Route)> {
        self.destinations.iter().filter_map(|(name, d)| Some((name, d.route.as_ref()?)))
    }

    /// What each neighbour says about `destination`: cost by it, and whether the way is feasible.
    #[must_use]
    pub fn offers(&self, destination: &Name) -> Vec<(PeerId, u64, bool)> {
        let Some(d) = self.destinations.get(destination) else { return Vec::new() };
        let offer = |(peer, entry): &(PeerId, Entry)| {
            let cost = self.peers.get(peer)?.cost;
            Some((*peer, entry.metric + cost, select::is_feasible(d.feasible, *entry)))
        };
        d.entries.iter().filter_map(offer).collect()
    }

    /// Cost of the link to `peer`.
    #[must_use]
    pub fn link_cost(&self, peer: PeerId) -> Option<u64> {
        self.peers.get(&peer).map(|peer| peer.cost)
    }

    /// This router's number.
    #[must_use]
    pub fn own_seq(&self) -> u64 {
        self.own_seq
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> TableCounters {
        self.counters
    }

    /// Destinations that are known, reachable or not.
    #[must_use]
    pub fn len(&self) -> usize {
        self.destinations.len()
    }

    /// Whether no destination is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.destinations.is_empty()
    }
}

impl Destination {
    fn entry(&self, peer: PeerId) -> Option<Entry> {
        self.entries.iter().find(|(id, _)| *id == peer).map(|(_, entry)| *entry)
    }

    /// What is advertised bounds what is feasible.
    fn narrow(&mut self, entry: &AdvEntry) {
        let Some(seq) = entry.seq else { return };
        let metric = entry.metric.unwrap_or(entry.cost);
        self.feasible = match self.feasible {
            Some((old, _)) if seq < old => self.feasible,
            Some((old, best)) if seq == old => Some((old, best.min(metric))),
            _ => Some((seq, metric)),
        };
    }
}
