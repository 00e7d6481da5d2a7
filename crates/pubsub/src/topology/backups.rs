//! Ways round each link that trees use, told to the node at its beginning before it fails (P-91).

use super::map::{Around, LinkId};
use super::matched::Match;
use super::{Map, TopologyManager};
use crate::dispatcher::WAY_MAX;
use crate::publication::Outbox;
use onym_tables::Tick;
use onym_wire::push::{Control, Kind, Label};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// Time from a change of the map or of trees to new backups: frames that were sent before a tree
/// moved still go round the link that failed.
const PAUSE: Duration = Duration::from_secs(1);

/// What nodes were told.
#[derive(Debug, Default)]
pub(super) struct Backups {
    due: Option<Tick>,
    told: BTreeMap<LinkId, Vec<u32>>,
}

impl Backups {
    pub(super) const fn next_timeout(&self) -> Option<Tick> {
        self.due
    }

    /// The map or trees changed.
    pub(super) fn wake(&mut self, now: Tick) {
        self.due.get_or_insert(now + PAUSE);
    }

    /// The node knows nothing of what it was told.
    pub(super) fn forget(&mut self, node: Label) {
        self.told.retain(|(from, _), _| *from != node);
    }
}

impl Map {
    /// Of these links those that a way leads round, with the numbers of its links.
    fn ways_round(&mut self, numbers: &BTreeSet<u32>) -> BTreeMap<LinkId, Vec<u32>> {
        let ends: Vec<(LinkId, Label)> = self.links_with(numbers);
        let mut ways = BTreeMap::new();
        for ((from, number), to) in ends {
            let around = Around::from([((from, number), u32::MAX)]);
            let tree = self.tree_around(from, &[to], &around).unwrap_or_default();
            let way: Vec<u32> = tree.links.iter().map(|link| link.number).collect();
            if (1..=WAY_MAX).contains(&way.len()) && !way.contains(&number) {
                ways.insert((from, number), way);
            }
        }
        ways
    }
}

impl TopologyManager {
    /// Tells nodes the ways round their links that trees use, where that changed.
    pub(super) fn tell_backups(&mut self, now: Tick, out: &mut Outbox) {
        if !self.config.backups || self.backups.due.is_none_or(|due| due > now) {
            return;
        }
        self.backups.due = None;
        let used: BTreeSet<u32> = self.matches.values().flat_map(Match::links).collect();
        let ways = self.map.ways_round(&used);
        let told = std::mem::take(&mut self.backups.told);
        let ended = told.keys().filter(|link| !ways.contains_key(link));
        let ended: Vec<(LinkId, Vec<u32>)> = ended.map(|link| (*link, Vec::new())).collect();
        let news = ways.iter().filter(|(link, way)| told.get(link) != Some(way));
        let news = news.map(|(link, way)| (*link, way.clone()));
        for ((node, number), way) in ended.into_iter().chain(news) {
            let item = Some(u64::from(number));
            let message = Control { item, way, ..self.message(Kind::BACKUP) };
            self.send(now, node, message, out);
        }
        self.backups.told = ways;
    }
}
