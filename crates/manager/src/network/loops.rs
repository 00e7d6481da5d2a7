//! Loops of Interests, and the guards that break them.
//!
//! The Interest graph without what breaks loops (backward routers, forwarders) must have no cycle
//! (paper, section 3.3: linking name routers may create a loop and a storm).
//! The manager places a backward router on the links that close one.

use super::{Ends, Network};
use std::collections::{BTreeMap, BTreeSet};

/// A link that closes a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The link on which a backward router must stand.
    pub on: Ends,
    /// The functions of the loop, in order, the first one once.
    pub cycle: Vec<String>,
}

/// The edges along which Interests go: links of the producer side are turned round.
#[must_use]
pub fn interest_edges(network: &Network) -> BTreeSet<(&str, &str)> {
    network.links.keys().map(Ends::interests).collect()
}

/// The links that need a guard. Links are taken in order, so the answer is the same each time,
/// and each one that closes a loop with those before it is guarded: all loops are broken.
///
/// A link of the producer side cannot hold a guard (a backward router takes Interests on its
/// ingress only), so those are taken first and the guard comes to stand on another link.
#[must_use]
pub fn guards(network: &Network) -> Vec<Guard> {
    let mut graph: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    let mut found = Vec::new();
    let mut links: Vec<&Ends> = network.links.keys().collect();
    links.sort_by_key(|e| (std::cmp::Reverse(e.side), (*e).clone()));
    let breaks = |name: &str| network.kind(name).is_some_and(crate::kind::Kind::breaks_loops);
    for ends in links {
        let (source, target) = ends.interests();
        if breaks(source) || breaks(target) {
            continue;
        }
        if let Some(mut path) = path(&graph, target, source) {
            path.rotate_right(1);
            found.push(Guard { on: ends.clone(), cycle: path });
        } else {
            graph.entry(source).or_default().insert(target);
        }
    }
    found
}

/// The shortest path between two functions, both ends included.
fn path(graph: &BTreeMap<&str, BTreeSet<&str>>, from: &str, to: &str) -> Option<Vec<String>> {
    let mut before: BTreeMap<&str, &str> = BTreeMap::new();
    let mut wave = vec![from];
    while !wave.is_empty() && from != to && !before.contains_key(to) {
        let mut next = Vec::new();
        for at in wave {
            for &step in graph.get(at).into_iter().flatten() {
                if step != from && !before.contains_key(step) {
                    before.insert(step, at);
                    next.push(step);
                }
            }
        }
        wave = next;
    }
    if from != to && !before.contains_key(to) {
        return None;
    }
    let mut path = vec![to.to_owned()];
    let mut at = to;
    while let Some(&step) = before.get(at) {
        path.push(step.to_owned());
        at = step;
    }
    path.reverse();
    Some(path)
}
