//! What routes lead to, seen from outside.

use super::{Border, RouterNetwork, link_of, router_names};
use onym_wire::Name;
use std::collections::VecDeque;

impl RouterNetwork {
    /// The way to the prefixes of a router, in its first network.
    ///
    /// # Panics
    /// Never: names are made here.
    #[must_use]
    pub fn group(&self, node: usize) -> Name {
        let names = router_names(self.networks[node][0], node).expect("invariant: made here");
        names.prefixes_of(names.router.as_ref())
    }

    /// Next hops of `node` for exactly `prefix` as its forwarder has them, best first.
    #[must_use]
    pub fn hops(&self, node: usize, prefix: &Name) -> Vec<(usize, u64)> {
        self.ends(node, self.nodes[node].forwarder.hops(prefix))
    }

    fn ends(&self, node: usize, hops: &[(u64, u64)]) -> Vec<(usize, u64)> {
        let end = |(face, cost): &(u64, u64)| Some((self.other_end(node, link_of(*face)?), *cost));
        hops.iter().filter_map(end).collect()
    }

    /// Where best next hops for `name`, by the longest prefix, lead from `node`: the last node, or
    /// nothing when they close a loop.
    #[must_use]
    pub fn end_of(&self, node: usize, name: &Name) -> Option<usize> {
        let mut at = node;
        for _ in 0..=self.len() {
            if self.is_announced(at, name) {
                return Some(at);
            }
            let next = self.nodes[at].forwarder.lookup(name.as_ref()).first();
            let Some(link) = next.and_then(|(face, _)| link_of(*face)) else { return Some(at) };
            at = self.other_end(at, link);
        }
        None
    }

    /// Whether a program at `node` announces `name`, and the forwarder knows no longer prefix of it.
    fn is_announced(&self, node: usize, name: &Name) -> bool {
        let router = self.border(node).and_then(|border| border.routers().first());
        let local = |len: usize| {
            let prefix = name.as_ref().prefix(len).to_name();
            router.is_some_and(|router| router.prefixes().local_cost(&prefix).is_some())
        };
        let longest = (0..=name.len()).rev().find(|len| local(*len));
        longest.is_some_and(|len| self.nodes[node].forwarder.longest(name.as_ref()) <= len)
    }

    /// Whether best next hops lead from `node` towards `name` to `exit`.
    #[must_use]
    pub fn leads(&self, node: usize, name: &Name, exit: usize) -> bool {
        self.end_of(node, name) == Some(exit)
    }

    /// Nodes from which best next hops for `name` close a loop.
    #[must_use]
    pub fn looping(&self, name: &Name) -> usize {
        (0..self.len()).filter(|node| self.end_of(*node, name).is_none()).count()
    }

    /// Prefixes of others that `node` knows.
    #[must_use]
    pub fn remote(&self, node: usize) -> usize {
        let routers = self.border(node).map_or(&[][..], Border::routers);
        routers.iter().map(|router| router.prefixes().remote().count()).sum()
    }

    /// Prefixes for which the forwarder of `node` has routes.
    #[must_use]
    pub fn routes(&self, node: usize) -> usize {
        self.nodes[node].forwarder.len()
    }

    /// Distance of every living node to `destination` by links that are up.
    #[must_use]
    pub fn distances(&self, destination: usize) -> Vec<Option<u64>> {
        let mut distance = vec![None; self.len()];
        if !self.alive(destination) {
            return distance;
        }
        distance[destination] = Some(0);
        let mut queue = VecDeque::from([destination]);
        while let Some(at) = queue.pop_front() {
            for link in self.links_of[at].iter().filter(|link| self.links[**link].up) {
                let next = self.other_end(at, *link);
                if self.alive(next) && distance[next].is_none() {
                    distance[next] = distance[at].map(|d| d + 1);
                    queue.push_back(next);
                }
            }
        }
        distance
    }

    /// The longest distance.
    #[must_use]
    pub fn diameter(&self) -> u64 {
        let far = |d| self.distances(d).into_iter().flatten().max().unwrap_or(0);
        (0..self.len()).map(far).max().unwrap_or(0)
    }

    /// Living nodes whose best way to some router is not the shortest, or leads nowhere; in a network
    /// of one area.
    #[must_use]
    pub fn wrong(&self) -> usize {
        (0..self.len()).map(|destination| self.wrong_to(destination).len()).sum()
    }

    /// As [`RouterNetwork::wrong`], to one router.
    #[must_use]
    pub fn wrong_to(&self, destination: usize) -> Vec<usize> {
        let group = self.group(destination);
        let distance = self.distances(destination);
        let wrong = |node: &usize| {
            if *node == destination || !self.alive(*node) {
                return false;
            }
            let best = self.hops(*node, &group).first().copied();
            match (best, distance[*node]) {
                (None, None) => false,
                (Some((next, cost)), Some(d)) => cost != d || distance[next] != Some(d - 1),
                _ => true,
            }
        };
        (0..self.len()).filter(wrong).collect()
    }

    /// A router whose ways changed and, backups included, close a loop.
    #[must_use]
    pub fn looped(&self) -> Option<(usize, Vec<usize>)> {
        self.changed.iter().copied().find_map(|destination| {
            let group = self.group(destination);
            let next: Vec<Vec<usize>> = (0..self.len())
                .map(|node| self.hops(node, &group).iter().map(|(next, _)| *next).collect())
                .collect();
            cycle(&next, destination).map(|cycle| (destination, cycle))
        })
    }

    /// Whether best next hops towards the router `destination` close a loop anywhere.
    #[must_use]
    pub fn best_loop(&self, destination: usize) -> bool {
        let group = self.group(destination);
        let best = |node| self.hops(node, &group).first().map(|(next, _)| *next);
        let next: Vec<Vec<usize>> =
            (0..self.len()).map(|node| best(node).into_iter().collect()).collect();
        cycle(&next, destination).is_some()
    }
}

/// A cycle in the graph `next` that does not pass `end`.
fn cycle(next: &[Vec<usize>], end: usize) -> Option<Vec<usize>> {
    let mut state = vec![0_u8; next.len()];
    state[end] = 2;
    for start in 0..next.len() {
        let mut path: Vec<(usize, usize)> = Vec::new();
        if state[start] == 0 {
            state[start] = 1;
            path.push((start, 0));
        }
        while let Some((node, at)) = path.pop() {
            let Some(to) = next[node].get(at).copied() else {
                state[node] = 2;
                continue;
            };
            path.push((node, at + 1));
            match state[to] {
                0 => {
                    state[to] = 1;
                    path.push((to, 0));
                }
                1 => return Some(path.iter().map(|(node, _)| *node).collect()),
                _ => {}
            }
        }
    }
    None
}
