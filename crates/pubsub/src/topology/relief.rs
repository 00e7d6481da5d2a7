//! Trees go round loaded links: new ones at once, those that are there a few at a time (P-90).

use super::loads::Loads;
use super::map::{Around, LinkId, Tree};
use super::matched::Match;
use super::{SETTLE, TopologyManager};
use crate::publication::Outbox;
use onym_tables::{KeyedMap, Tick};
use onym_wire::push::Label;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Links that the trees of an item go round at most.
pub const AROUND_MAX: usize = 64;
/// Times that trees are made to find them.
const ROUNDS_MAX: usize = 16;
/// Items that are looked at in one step; the next step goes on behind them.
const LOOKS_MAX: usize = 1024;
/// Least time between two steps, and after one that moved trees: what they carry is measured and
/// said again by then.
const PAUSE: Duration = Duration::from_secs(1);
const HOLD: Duration = Duration::from_secs(10);
/// When trees are looked at for loads, and where that goes on.
#[derive(Debug, Default)]
pub(super) struct Relief {
    due: Option<Tick>,
    not_before: Tick,
    /// The item that was looked at last.
    last: (Label, u64),
    /// Items whose trees go round something.
    pub(super) bent: BTreeSet<(Label, u64)>,
}

impl Relief {
    pub(super) const fn next_timeout(&self) -> Option<Tick> {
        self.due
    }

    /// A load is another one.
    pub(super) fn wake(&mut self, now: Tick) {
        let at = (now + SETTLE).max(self.not_before);
        self.due = Some(self.due.map_or(at, |due| due.min(at)));
    }

    /// Of these items those that are looked at now.
    fn pick(&mut self, mut items: BTreeSet<(Label, u64)>) -> Vec<(Label, u64)> {
        let later = items.split_off(&self.last);
        let picked: Vec<_> = later.into_iter().chain(items).take(LOOKS_MAX).collect();
        if let Some((node, item)) = picked.last() {
            self.last = (*node, item.wrapping_add(1));
        }
        picked
    }
}

/// Links of trees, with what they cost.
type Links = BTreeMap<LinkId, u32>;

impl TopologyManager {
    /// A match gets further links: those go round what is loaded. The links that it has stay.
    pub(super) fn widen(&mut self, m: &mut Match) {
        if self.loads.are_low() {
            return;
        }
        let has = m.links();
        let around = std::mem::take(&mut m.around);
        let weigh = |loads: &Loads, link: LinkId| {
            if has.contains(&link.1) { 1 } else { loads.times(link, 0) }
        };
        m.around = self.round(around, |manager, around| manager.links_of(m, around), weigh);
    }

    /// What a node that holds something sends to another one goes round these links, and counts so
    /// much with the loads that there are. None when there is no way.
    pub(super) fn loaded_way(&mut self, from: Label, to: Label) -> Option<(u64, Around)> {
        let links = |manager: &mut Self, around: &Around| {
            let tree = manager.map.tree_around(from, &[to], around).unwrap_or_default();
            tree.links.iter().map(|link| (manager.map.id_of(link), link.cost)).collect()
        };
        let weigh = |loads: &Loads, link: LinkId| loads.times(link, 0);
        let around = self.round(Around::new(), links, weigh);
        let count = self.map.distance_around(from, to, &around)?;
        Some((count, around))
    }

    /// What the shortest trees go round where a link counts what `weigh` says: only the links that they
    /// would use are asked for, until none is left that counts more.
    fn round(
        &mut self,
        mut around: Around,
        links_of: impl Fn(&mut Self, &Around) -> Links,
        weigh: impl Fn(&Loads, LinkId) -> u32,
    ) -> Around {
        for _ in 0..ROUNDS_MAX {
            let links = links_of(self, &around);
            let met = links.keys().filter(|link| !around.contains_key(link));
            let met = met.map(|link| (*link, weigh(&self.loads, *link)));
            let heavy: Vec<_> = met.filter(|(_, times)| *times > 1).collect();
            let room = AROUND_MAX - around.len().min(AROUND_MAX);
            around.extend(heavy.iter().copied().take(room));
            if heavy.is_empty() || room <= heavy.len() {
                break;
            }
        }
        around
    }

    /// The links of all trees of a match that go round these.
    fn links_of(&mut self, m: &Match, around: &Around) -> Links {
        let shares = self.shares(m, around);
        let trees: Vec<Tree> = shares
            .served
            .iter()
            .filter_map(|(publisher, to)| self.map.tree_around(*publisher, to, around))
            .collect();
        let links = trees.iter().flat_map(|tree| &tree.links);
        links.map(|link| (self.map.id_of(link), link.cost)).collect()
    }

    /// Moves trees away from loaded links, and back when those are so no more.
    pub(super) fn relieve(&mut self, now: Tick, out: &mut Outbox) {
        if self.relief.due.is_none_or(|due| due > now) {
            return;
        }
        self.relief.due = None;
        let hot = self.loads.hot();
        let mut items = self.relief.bent.clone();
        if !hot.is_empty() {
            let hit = self.matches.iter().filter(|(_, m)| m.uses_any(&hot));
            items.extend(hit.map(|(key, _)| *key));
        }
        if items.is_empty() {
            return;
        }
        let carried = self.carried();
        let (mut is_moved, mut later) = (false, None);
        for key in self.relief.pick(items) {
            let Some(mut m) = self.matches.remove(&key) else { continue };
            let rest = m.moves.rest();
            let has_moved = rest <= now && self.is_eased(&mut m, &carried);
            if has_moved {
                m.moves.note(now);
            }
            self.matches.insert(key, m);
            if has_moved {
                is_moved = true;
                self.renew(now, key, out);
            } else if rest > now {
                later = Some(later.map_or(rest, |at: Tick| at.min(rest)));
            }
        }
        self.relief.not_before = now + if is_moved { HOLD } else { PAUSE };
        let again = is_moved.then_some(self.relief.not_before);
        self.relief.due = [again, later].into_iter().flatten().min();
    }

    /// How many items cross each link.
    fn carried(&self) -> KeyedMap<u32, u64> {
        let mut carried = KeyedMap::default();
        for link in self.matches.values().flat_map(Match::links) {
            *carried.entry(link).or_default() += 1;
        }
        carried
    }

    /// Whether the trees of an item are much shorter elsewhere, counting loads: then they go there,
    /// and what they carry is counted there until the nodes say what is so. How much that is nobody
    /// says: an even share of what crosses their most loaded link.
    fn is_eased(&mut self, m: &mut Match, carried: &KeyedMap<u32, u64>) -> bool {
        let old = self.links_of(m, &m.around);
        let most = old.keys().max_by_key(|link| self.loads.percent(**link));
        let share = most.map(|link| {
            let items = carried.get(&link.1).copied().unwrap_or(1);
            self.loads.rate(*link) / items
        });
        let own = share.unwrap_or(0);
        let has = old.clone();
        let weigh = move |loads: &Loads, link: LinkId| {
            loads.times(link, if has.contains_key(&link) { 0 } else { own })
        };
        let links_of = |manager: &mut Self, around: &Around| manager.links_of(m, around);
        let around = self.round(Around::new(), links_of, &weigh);
        let new = self.links_of(m, &around);
        let count = |links: &Links| -> u64 {
            let each = links.iter();
            each.map(|(link, cost)| u64::from(*cost) * u64::from(weigh(&self.loads, *link))).sum()
        };
        if count(&new) * 5 >= count(&old) * 4 {
            return false;
        }
        m.around = around;
        for link in old.keys().filter(|link| !new.contains_key(link)) {
            self.loads.take(*link, own);
        }
        for link in new.keys().filter(|link| !old.contains_key(link)) {
            self.loads.add(*link, own);
        }
        true
    }
}
