//! Loads of links, as their nodes say, and what a link counts because of them.

use super::map::LinkId;
use crate::link_state::HOT;
use onym_wire::push::{Label, Load};
use std::collections::{BTreeMap, BTreeSet};

/// Percent of a link from which on it counts more than it costs.
const BUSY: u64 = 50;
/// From this percent on each percent counts the same once more.
const FULL: u64 = 100;

/// One link: kilobits per second that it carries, and that are sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Used {
    capacity: u64,
    rate: u64,
}

impl Used {
    const fn percent(self, more: u64) -> u64 {
        self.rate.saturating_add(more).saturating_mul(100) / self.capacity
    }
}

/// The loads of a domain, of links with a capacity.
#[derive(Debug, Default)]
pub(super) struct Loads {
    of: BTreeMap<LinkId, Used>,
}

impl Loads {
    /// A node says the loads of its links; whether they are others than before.
    pub(super) fn set(&mut self, node: Label, loads: &[Load]) -> bool {
        let before: Vec<(LinkId, Used)> = self.of_node(node).collect();
        let said = loads.iter().filter(|load| load.capacity > 0).map(|load| {
            let capacity = u64::from(load.capacity);
            let rate = capacity * u64::from(load.percent) / 100;
            ((node, load.link), Used { capacity, rate })
        });
        let said: BTreeMap<LinkId, Used> = said.collect();
        if said.iter().map(|(id, used)| (*id, *used)).eq(before.iter().copied()) {
            return false;
        }
        for (id, _) in before {
            self.of.remove(&id);
        }
        self.of.extend(said);
        true
    }

    fn of_node(&self, node: Label) -> impl Iterator<Item = (LinkId, Used)> {
        self.of.range((node, 0)..=(node, u32::MAX)).map(|(id, used)| (*id, *used))
    }

    /// What a link carries, in kilobits per second, and how much of it is used, in percent.
    pub(super) fn used(&self, link: LinkId) -> Option<(u64, u64)> {
        self.of.get(&link).map(|used| (used.capacity, used.percent(0)))
    }

    /// Whether no link counts more than it costs.
    pub(super) fn are_low(&self) -> bool {
        self.of.values().all(|used| used.percent(0) < BUSY)
    }

    /// Numbers of links that trees leave.
    pub(super) fn hot(&self) -> BTreeSet<u32> {
        let hot = self.of.iter().filter(|(_, used)| used.percent(0) >= u64::from(HOT));
        hot.map(|((_, number), _)| *number).collect()
    }

    /// Kilobits per second that are sent over a link, as far as that is known.
    pub(super) fn rate(&self, link: LinkId) -> u64 {
        self.of.get(&link).map_or(0, |used| used.rate)
    }

    /// The same, in percent of what it carries.
    pub(super) fn percent(&self, link: LinkId) -> u64 {
        self.of.get(&link).map_or(0, |used| used.percent(0))
    }

    /// How many times its cost a link counts when `more` kilobits per second are sent over it: more
    /// and more steeply, so that a loaded link is worth a long way round.
    pub(super) fn times(&self, link: LinkId, more: u64) -> u32 {
        let percent = self.of.get(&link).map_or(0, |used| used.percent(more));
        let times = match percent {
            0..BUSY => 1,
            BUSY..67 => 2,
            67..80 => 4,
            80..90 => 10,
            90..FULL => 30,
            over => 100 + 4 * over.saturating_sub(FULL).min(255),
        };
        u32::try_from(times).unwrap_or(u32::MAX)
    }

    /// So much more, or less, is sent over a link, until its node says what is so.
    pub(super) fn add(&mut self, link: LinkId, more: u64) {
        if let Some(used) = self.of.get_mut(&link) {
            used.rate = used.rate.saturating_add(more);
        }
    }

    /// See [`Loads::add`].
    pub(super) fn take(&mut self, link: LinkId, less: u64) {
        if let Some(used) = self.of.get_mut(&link) {
            used.rate = used.rate.saturating_sub(less);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n: u64) -> Label {
        Label::from_u64(n)
    }

    fn load(link: u32, capacity: u32, percent: u8) -> Load {
        Load { link, capacity, percent }
    }

    #[test]
    fn a_load_is_of_a_link_of_its_node_alone() {
        let mut loads = Loads::default();
        assert!(loads.set(node(1), &[load(7, 1000, 40), load(8, 1000, 85)]));
        assert!(loads.set(node(2), &[load(7, 1000, 255)]));
        assert_eq!(loads.rate((node(1), 7)), 400);
        assert_eq!(loads.hot(), BTreeSet::from([7, 8]));
        assert!(!loads.set(node(2), &[load(7, 1000, 255)]), "the same again");
        assert!(loads.set(node(2), &[]), "none any more");
        assert_eq!(loads.hot(), BTreeSet::from([8]));
        assert!(!loads.set(node(3), &[load(9, 0, 255)]), "without a capacity there is no load");
    }

    #[test]
    fn a_link_counts_more_the_more_is_sent() {
        let mut loads = Loads::default();
        loads.set(node(1), &[load(7, 1000, 0), load(8, u32::MAX, 255)]);
        let times = |more| loads.times((node(1), 7), more);
        let steps: Vec<u32> = [0, 499, 500, 670, 800, 900, 999, 1000, 1100].map(times).into();
        assert_eq!(steps, [1, 1, 2, 4, 10, 30, 30, 100, 140]);
        assert_eq!(times(u64::MAX), 100 + 4 * 255);
        assert_eq!(loads.times((node(1), 9), 1 << 40), 1, "nobody said what it carries");
        loads.take((node(1), 7), 5);
        loads.add((node(1), 7), u64::MAX);
        assert_eq!(loads.rate((node(1), 7)), u64::MAX);
    }
}
