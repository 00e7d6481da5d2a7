//! Routes of the forwarder: what applications have announced, and what an earlier run left.

use super::Shell;
use crate::command::{Order, Whose};
use crate::{LinkChange, LinkWatch};
use onym_route::{Command, Router};
use onym_tables::Tick;
use std::collections::{BTreeMap, BTreeSet};

impl Shell {
    /// Tells who wants to know which links are in use, when that changed.
    pub(super) fn tell_links(&mut self) {
        let Some(LinkWatch(tell)) = &self.link_watch else { return };
        let mut links: BTreeMap<u64, u64> = BTreeMap::new();
        for (face, cost) in self.router.routers().iter().flat_map(Router::links_in_use) {
            let least = links.entry(face).or_insert(cost);
            *least = cost.min(*least);
        }
        for face in self.links.keys() {
            if !links.contains_key(face) {
                tell(LinkChange::Down { face: *face });
            }
        }
        for (face, cost) in &links {
            if self.links.get(face) != Some(cost) {
                tell(LinkChange::Up { face: *face, cost: *cost });
            }
        }
        self.links = links;
    }

    pub(super) fn look(&mut self) {
        let Ok(seen) = self.watched.try_recv() else { return };
        let now = self.now();
        if !std::mem::replace(&mut self.looked, true) {
            for (prefix, face) in seen.routed {
                if !self.installed.contains(&(prefix.clone(), face)) {
                    let stale = Order::Routing(Command::Unregister { prefix, face });
                    self.order(now, Whose::Nobody, stale);
                }
            }
            self.installed.clear();
        }
        self.meetings_see(now, seen.lans);
        self.announced_there = seen.announced;
        self.learned_there = seen.learned;
        self.announce(now);
    }

    /// Announces what the forwarder has, and withdraws what it has not any more.
    pub(super) fn announce(&mut self, now: Tick) {
        let heard = self.router.routers().iter().flat_map(Router::heard_by);
        let routers: BTreeSet<u64> = heard.map(|(_, face)| face).collect();
        let mut wanted = self.announced_there.clone();
        for ((prefix, face), cost) in &self.learned_there {
            // What another router leads to it announces itself.
            if !routers.contains(face) {
                wanted.entry((prefix.clone(), *face)).or_insert(*cost);
            }
        }
        self.router.with(now, 0, |router| {
            for ((prefix, face), cost) in &wanted {
                if self.announced.get(&(prefix.clone(), *face)) != Some(cost) {
                    router.announce(now, prefix, *face, *cost);
                }
            }
            for (prefix, face) in self.announced.keys() {
                if !wanted.contains_key(&(prefix.clone(), *face)) {
                    router.withdraw(now, prefix, *face);
                }
            }
        });
        self.announced = wanted;
    }
}
