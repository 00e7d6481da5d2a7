//! Routes over the graph: the next hops of each node for a prefix.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::str::FromStr;

/// Which next hops nodes get for a producer's prefix.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Routing {
    /// The neighbour on the shortest way (by delay), one for each node.
    #[default]
    Shortest,
    /// Every neighbour that is nearer to the producer, so that no way is a loop.
    Downhill,
    /// Every neighbour, the nearer ones cheaper: Interests can run in circles and must be stopped.
    Flood,
    /// None: only the producer's own node knows it. A strategy that discovers must find it.
    Local,
}

impl FromStr for Routing {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "shortest" => Ok(Self::Shortest),
            "downhill" => Ok(Self::Downhill),
            "flood" => Ok(Self::Flood),
            "local" => Ok(Self::Local),
            _ => Err("expected: routes shortest, downhill, flood or local".to_owned()),
        }
    }
}

/// A link of the graph as routing sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Edge {
    /// The node at the other end.
    pub to: usize,
    /// Port towards it.
    pub port: usize,
    /// Cost, at least 1.
    pub cost: u64,
}

/// One next hop of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hop {
    /// Node.
    pub node: usize,
    /// Port.
    pub port: usize,
    /// Cost of the way to the producer over it.
    pub cost: u64,
}

/// Distance of each node from `target`; `None` when there is no way.
#[must_use]
pub fn distances(graph: &[Vec<Edge>], target: usize) -> Vec<Option<u64>> {
    let mut best = vec![None; graph.len()];
    let mut open = BinaryHeap::from([Reverse((0u64, target))]);
    while let Some(Reverse((distance, node))) = open.pop() {
        if best[node].is_some() {
            continue;
        }
        best[node] = Some(distance);
        for edge in &graph[node] {
            if best[edge.to].is_none() {
                open.push(Reverse((distance.saturating_add(edge.cost), edge.to)));
            }
        }
    }
    best
}

/// The next hops of all nodes but `target` towards it.
#[must_use]
pub fn hops(graph: &[Vec<Edge>], target: usize, routing: Routing) -> Vec<Hop> {
    let distance = distances(graph, target);
    let mut all = Vec::new();
    if routing == Routing::Local {
        return all;
    }
    for (node, edges) in graph.iter().enumerate() {
        let Some(own) = distance[node].filter(|_| node != target) else { continue };
        let mut found: Vec<Hop> = edges
            .iter()
            .filter_map(|edge| {
                let rest = distance[edge.to]?;
                let is_nearer = rest < own;
                let is_wanted = is_nearer || routing == Routing::Flood;
                is_wanted.then(|| Hop { node, port: edge.port, cost: rest + edge.cost })
            })
            .collect();
        found.sort_by_key(|hop| (hop.cost, hop.port));
        if routing == Routing::Shortest {
            found.truncate(1);
        }
        all.append(&mut found);
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A square 0-1-2-3-0 with a heavy edge 0-3.
    fn square() -> Vec<Vec<Edge>> {
        let edge = |to, port, cost| Edge { to, port, cost };
        vec![
            vec![edge(1, 0, 1), edge(3, 1, 10)],
            vec![edge(0, 0, 1), edge(2, 1, 1)],
            vec![edge(1, 0, 1), edge(3, 1, 1)],
            vec![edge(2, 0, 1), edge(0, 1, 10)],
        ]
    }

    #[test]
    fn the_shortest_way_has_one_next_hop_a_node() {
        assert_eq!(distances(&square(), 0), [Some(0), Some(1), Some(2), Some(3)]);
        let hops = hops(&square(), 0, Routing::Shortest);
        let ports: Vec<_> = hops.iter().map(|h| (h.node, h.port, h.cost)).collect();
        assert_eq!(ports, [(1, 0, 1), (2, 0, 2), (3, 0, 3)]);
    }

    #[test]
    fn downhill_leaves_out_ways_that_lead_away() {
        let count = |routing| hops(&square(), 0, routing).len();
        assert_eq!((count(Routing::Downhill), count(Routing::Flood)), (4, 6));
    }

    #[test]
    fn an_unconnected_node_has_no_route() {
        let mut graph = square();
        graph.push(Vec::new());
        assert_eq!(distances(&graph, 0)[4], None);
        assert!(hops(&graph, 4, Routing::Flood).is_empty());
    }
}
