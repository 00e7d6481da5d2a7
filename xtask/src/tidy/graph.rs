//! Cycles of a directed graph.

use std::collections::{BTreeMap, BTreeSet};

/// The nodes that lie on a cycle: those that lead to each other, in groups.
pub(super) fn cycles<N: Clone + Ord>(edges: &BTreeMap<N, BTreeSet<N>>) -> Vec<Vec<N>> {
    let reached: BTreeMap<&N, BTreeSet<N>> =
        edges.keys().map(|node| (node, reachable(edges, node))).collect();
    let mut groups: Vec<Vec<N>> = Vec::new();
    for (node, from) in &reached {
        let is_known = groups.iter().any(|group| group.contains(node));
        if is_known || !from.contains(*node) {
            continue;
        }
        let back = |other: &&N| reached.get(other).is_some_and(|to| to.contains(*node));
        groups.push(from.iter().filter(back).cloned().collect());
    }
    groups
}

fn reachable<N: Clone + Ord>(edges: &BTreeMap<N, BTreeSet<N>>, from: &N) -> BTreeSet<N> {
    let mut reached = BTreeSet::new();
    let mut waiting = vec![from];
    while let Some(node) = waiting.pop() {
        for next in edges.get(node).into_iter().flatten() {
            if reached.insert(next.clone()) {
                waiting.push(next);
            }
        }
    }
    reached
}
