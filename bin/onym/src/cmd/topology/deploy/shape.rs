//! Networks that are generated: those that the paper measures.

use super::{LinkSpec, NodeSpec};
use onym_tables::HashKey;
use serde::Deserialize;

/// A generated network; its nodes are n1, n2, ….
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Shape {
    kind: Kind,
    nodes: usize,
    /// Nodes with one link.
    #[serde(default)]
    edge: Option<usize>,
    #[serde(default)]
    seed: u64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Kind {
    /// Each node has a link to the next one.
    Chain,
    /// The first node has a link to every other.
    Star,
    /// A tree that grows by links to nodes that have many.
    Random,
}

/// Most nodes that are generated.
const NODES_MAX: usize = 4096;

impl Shape {
    /// Its nodes and links.
    pub(super) fn network(&self) -> Result<(Vec<NodeSpec>, Vec<LinkSpec>), String> {
        if !(1..=NODES_MAX).contains(&self.nodes) {
            return Err(format!("nodes: allowed are 1 to {NODES_MAX}"));
        }
        let name = |i: usize| format!("n{}", i + 1);
        let nodes = (0..self.nodes).map(|i| NodeSpec::named(name(i))).collect();
        let parents: Vec<usize> = match self.kind {
            Kind::Chain => (0..self.nodes - 1).collect(),
            Kind::Star => vec![0; self.nodes - 1],
            Kind::Random => self.grow()?,
        };
        // Node i + 1 has its link to the i-th parent.
        let links = parents.iter().enumerate();
        Ok((nodes, links.map(|(i, f)| LinkSpec::between(&name(*f), &name(i + 1))).collect()))
    }

    /// The parent of each node but the first: drawn with the weight of its links.
    fn grow(&self) -> Result<Vec<usize>, String> {
        let core = match self.edge {
            None => self.nodes,
            // Two nodes at least are inside, and each of the core's own ends gets an edge node.
            Some(edge) if edge >= 2 && edge + 1 < self.nodes => self.nodes - edge,
            Some(edge) => return Err(format!("edge: {edge} of {} nodes cannot be", self.nodes)),
        };
        let key = HashKey::new(self.seed, 0);
        let draw = |i: usize, below: usize| {
            let below = below.max(1) as u64;
            usize::try_from(key.words([i as u64, 0]) % below).unwrap_or(0)
        };
        let mut parents = Vec::new();
        // Every end of a link once: drawing from it weighs nodes by their links.
        let mut ends = Vec::new();
        for i in 1..core {
            let parent = ends.get(draw(i, ends.len())).copied().unwrap_or(0);
            parents.push(parent);
            ends.extend([parent, i]);
        }
        if self.edge.is_none() {
            return Ok(parents);
        }
        let links_of = |ends: &[usize], node| ends.iter().filter(|e| **e == node).count();
        let mut bare: Vec<usize> = (0..core).filter(|n| links_of(&ends, *n) < 2).collect();
        if bare.len() > self.nodes - core {
            return Err("edge: fewer than the inner nodes that have one link".into());
        }
        let inner = ends.clone();
        for i in core..self.nodes {
            let parent = bare.pop().or_else(|| inner.get(draw(i, inner.len())).copied());
            parents.push(parent.unwrap_or(0));
        }
        Ok(parents)
    }
}
