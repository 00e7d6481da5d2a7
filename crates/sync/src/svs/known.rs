//! State of a group: the vector with its bounds, and forgotten entries.

use super::vector::{StateVector, Update, entry_len};
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::BTreeMap;
use std::time::Duration;

/// Which node names are taken from vectors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Members {
    /// All.
    Any,
    /// Those with this prefix, and so many components behind it.
    Under {
        /// The prefix.
        prefix: Name,
        /// Components behind it; `None` for any number.
        components: Option<usize>,
    },
}

impl Members {
    fn has(&self, node: &Name) -> bool {
        match self {
            Self::Any => true,
            Self::Under { prefix, components } => {
                let more = node.len().checked_sub(prefix.len());
                prefix.as_ref().is_prefix_of(node.as_ref())
                    && components.is_none_or(|count| more == Some(count))
            }
        }
    }
}

/// Bounds of a vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Octets of the encoded vector: one packet must hold it, its signature and names.
    pub octets_max: usize,
    /// Bootstrap times of one node; the oldest give way.
    pub boots_max: usize,
    /// Nodes that are remembered as forgotten; the one forgotten longest ago gives way.
    pub forgotten_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self { octets_max: 7800, boots_max: 16, forgotten_max: 1024 }
    }
}

/// When entries are forgotten.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Forgetting {
    /// A bootstrap time is forgotten when a later one of its node is known, and it did not change,
    /// for so long.
    pub superseded_after: Duration,
    /// A node that did not change for so long makes room when the vector is full.
    pub dead_after: Duration,
}

impl Default for Forgetting {
    fn default() -> Self {
        Self {
            superseded_after: Duration::from_secs(3600),
            dead_after: Duration::from_secs(86_400),
        }
    }
}

/// What happened to entries.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct KnownCounters {
    /// Entries of names that are no members.
    pub strangers: u64,
    /// Entries for which there was no room.
    pub full: u64,
    /// Bootstrap times forgotten.
    pub boots_forgotten: u64,
    /// Nodes forgotten.
    pub nodes_forgotten: u64,
}

/// What a vector that was heard lacks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Lacking {
    pub(crate) is_outdated: bool,
    /// All of it was news here a moment ago and may be on its way.
    pub(crate) is_only_recent: bool,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    seq: u64,
    changed: Tick,
}

#[derive(Debug, Default)]
struct Node {
    /// Bootstrap times below are forgotten.
    floor: u64,
    boots: BTreeMap<u64, Entry>,
}

impl Node {
    fn changed(&self) -> Tick {
        self.boots.values().map(|e| e.changed).max().unwrap_or(Tick(0))
    }

    fn octets(&self, name: &Name) -> usize {
        entry_len(name.as_ref(), self.boots.iter().map(|(boot, e)| (*boot, e.seq)))
    }
}

/// How far a node was that made room.
#[derive(Debug, Clone, Copy)]
struct Tomb {
    boot: u64,
    seq: u64,
    since: Tick,
}

#[derive(Debug)]
pub(crate) struct Known {
    members: Members,
    limits: Limits,
    forgetting: Forgetting,
    nodes: BTreeMap<Name, Node>,
    tombs: BTreeMap<Name, Tomb>,
    /// Of the entries, encoded.
    octets: usize,
    counters: KnownCounters,
}

impl Known {
    pub(crate) fn new(members: Members, limits: Limits, forgetting: Forgetting) -> Self {
        Self {
            members,
            limits,
            forgetting,
            nodes: BTreeMap::new(),
            tombs: BTreeMap::new(),
            octets: 0,
            counters: KnownCounters::default(),
        }
    }

    pub(crate) const fn counters(&self) -> KnownCounters {
        self.counters
    }

    pub(crate) fn seq(&self, node: &Name, boot: u64) -> u64 {
        self.nodes.get(node).and_then(|n| n.boots.get(&boot)).map_or(0, |e| e.seq)
    }

    /// Whether `node` is known, at `boot` or, without one, at any bootstrap time.
    pub(crate) fn has(&self, node: &Name, boot: Option<u64>) -> bool {
        let node = self.nodes.get(node);
        node.is_some_and(|n| boot.is_none_or(|boot| n.boots.contains_key(&boot)))
    }

    pub(crate) fn vector(&self) -> StateVector {
        let mut vector = StateVector::default();
        for (name, node) in &self.nodes {
            node.boots.iter().for_each(|(boot, e)| vector.raise(name, *boot, e.seq));
        }
        vector
    }

    /// Takes what is new; newest bootstrap time first within a node.
    pub(crate) fn merge(&mut self, now: Tick, heard: &StateVector) -> Vec<Update> {
        let mut updates = Vec::new();
        for node in heard.nodes() {
            if !self.members.has(node) {
                self.counters.strangers += 1;
                continue;
            }
            for (boot, high) in heard.boots(node).rev() {
                let low = self.seq(node, boot) + 1;
                if high >= low && self.has_room(now, node, boot, high) {
                    self.set(now, node, boot, high);
                    updates.push(Update { node: node.clone(), boot, low, high });
                }
            }
        }
        updates
    }

    /// Sets an entry, whatever the bounds: our own always has its place.
    pub(crate) fn set(&mut self, now: Tick, name: &Name, boot: u64, seq: u64) {
        self.tombs.remove(name);
        let node = self.nodes.entry(name.clone()).or_default();
        let before = if node.boots.is_empty() { 0 } else { node.octets(name) };
        node.boots.insert(boot, Entry { seq, changed: now });
        while node.boots.len() > self.limits.boots_max {
            node.boots.pop_first();
            node.floor = node.boots.keys().next().copied().unwrap_or(0);
            self.counters.boots_forgotten += 1;
        }
        self.octets = self.octets + node.octets(name) - before;
    }

    /// Whether an entry is wanted and fits, after others made room for it.
    fn has_room(&mut self, now: Tick, name: &Name, boot: u64, seq: u64) -> bool {
        if self.is_forgotten(name, boot, seq) {
            return false;
        }
        let more = match self.nodes.get(name) {
            Some(node) if node.boots.contains_key(&boot) => 8,
            Some(_) => entry_len(name.as_ref(), std::iter::once((boot, seq))) - name.value().len(),
            None => entry_len(name.as_ref(), std::iter::once((boot, seq))),
        };
        while self.octets + more > self.limits.octets_max {
            if !self.make_room(now, name) {
                self.counters.full += 1;
                return false;
            }
        }
        true
    }

    fn is_forgotten(&self, name: &Name, boot: u64, seq: u64) -> bool {
        let floor = self.nodes.get(name).map_or(0, |node| node.floor);
        let tomb = self.tombs.get(name).map_or((0, 0), |tomb| (tomb.boot, tomb.seq));
        boot < floor || (boot, seq) <= tomb
    }

    /// Forgets the superseded bootstrap time that changed longest ago, else the node that is dead
    /// for longest, never `keep`.
    fn make_room(&mut self, now: Tick, keep: &Name) -> bool {
        let superseded = |node: &Node| node.boots.len() > 1;
        let oldest = self.nodes.iter().filter(|(_, node)| superseded(node));
        let oldest = oldest.min_by_key(|(_, node)| node.boots.values().next().map(|e| e.changed));
        if let Some(name) = oldest.map(|(name, _)| name.clone()) {
            self.forget_boot(&name);
            return true;
        }
        let dead = self.nodes.iter().filter(|(name, node)| {
            *name != keep && now.since(node.changed()) >= self.forgetting.dead_after
        });
        let Some(name) = dead.min_by_key(|(_, node)| node.changed()).map(|(name, _)| name.clone())
        else {
            return false;
        };
        self.bury(now, &name);
        true
    }

    fn forget_boot(&mut self, name: &Name) {
        let Some(node) = self.nodes.get_mut(name) else { return };
        let before = node.octets(name);
        node.boots.pop_first();
        node.floor = node.boots.keys().next().copied().unwrap_or(node.floor);
        self.octets = self.octets + node.octets(name) - before;
        self.counters.boots_forgotten += 1;
    }

    fn bury(&mut self, now: Tick, name: &Name) {
        let Some(node) = self.nodes.remove(name) else { return };
        self.octets -= node.octets(name);
        self.counters.nodes_forgotten += 1;
        if let Some((boot, entry)) = node.boots.last_key_value() {
            let tomb = Tomb { boot: *boot, seq: entry.seq, since: now };
            self.tombs.insert(name.clone(), tomb);
        }
        if self.tombs.len() > self.limits.forgotten_max {
            let oldest = self.tombs.iter().min_by_key(|(_, tomb)| tomb.since);
            if let Some(name) = oldest.map(|(name, _)| name.clone()) {
                self.tombs.remove(&name);
            }
        }
    }

    /// Forgets bootstrap times that are superseded for long. Those of `own` stay with it: the node
    /// knows which of its publications still exist.
    pub(crate) fn forget(&mut self, now: Tick, own: Option<&Name>) {
        let after = self.forgetting.superseded_after;
        let mut gone = Vec::new();
        for (name, node) in self.nodes.iter().filter(|(name, _)| Some(*name) != own) {
            let mut boots = node.boots.values().peekable();
            while let (Some(entry), Some(next)) = (boots.next(), boots.peek().copied()) {
                if now.since(entry.changed) < after || now.since(next.changed) < after {
                    break;
                }
                gone.push(name.clone());
            }
        }
        gone.iter().for_each(|name| self.forget_boot(name));
    }

    /// What `heard` lacks of what is known here. What is forgotten here is lacked by nobody.
    pub(crate) fn lacking(&self, now: Tick, heard: &StateVector, recent: Duration) -> Lacking {
        let mut lacking = Lacking { is_outdated: false, is_only_recent: true };
        for (name, node) in &self.nodes {
            for (boot, entry) in &node.boots {
                if heard.seq(name, *boot) < entry.seq {
                    lacking.is_outdated = true;
                    lacking.is_only_recent &= now.since(entry.changed) < recent;
                }
            }
        }
        lacking
    }
}
