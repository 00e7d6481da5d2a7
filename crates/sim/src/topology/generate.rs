//! Generated networks.

use super::values::{Fault, at_least, at_most, number};
use super::{AppSpec, LinkSpec, Topology};
use crate::app::{ConsumerConfig, ProducerConfig};
use crate::channel::ChannelConfig;
use crate::network::NodeConfig;
use onym_tables::Rng;
use std::str::FromStr;

/// Most nodes of a generated network.
const NODES_MAX: usize = 10_000;
/// Most nodes of a full mesh, whose links are their square.
const MESH_MAX: usize = 200;

/// The shape of a generated network. Nodes are called n1, n2, …
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// One after the other.
    Line(usize),
    /// A line whose ends are linked.
    Ring(usize),
    /// All linked to the first.
    Star(usize),
    /// Every node linked to every other.
    Mesh(usize),
    /// Columns and rows.
    Grid(usize, usize),
    /// Every node but the leaves has so many below it, so many levels.
    Tree(usize, usize),
    /// Connected, with half as many links more as a tree has, by the seed.
    Random(usize),
}

const SHAPES: &str =
    "expected: line:N, ring:N, star:N, mesh:N, grid:COLUMNSxROWS, tree:BRANCHESxLEVELS or random:N";

impl FromStr for Shape {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Fault> {
        let (word, rest) = text.split_once(':').ok_or(SHAPES)?;
        let one = |least: usize, most: usize| {
            at_most(most, at_least(least, number::<usize>(rest)?)?)
                .map_err(|e| format!("{word}: {e}"))
        };
        let two = || {
            let (a, b) = rest.split_once('x').ok_or(SHAPES)?;
            let (a, b) = (at_least(1, number::<usize>(a)?)?, at_least(1, number::<usize>(b)?)?);
            Ok::<_, Fault>((a, b))
        };
        let shape = match word {
            "line" => Self::Line(one(1, NODES_MAX)?),
            "ring" => Self::Ring(one(3, NODES_MAX)?),
            "star" => Self::Star(one(2, NODES_MAX)?),
            "mesh" => Self::Mesh(one(2, MESH_MAX)?),
            "random" => Self::Random(one(2, NODES_MAX)?),
            "grid" => two().map(|(columns, rows)| Self::Grid(columns, rows))?,
            "tree" => two().map(|(branches, levels)| Self::Tree(branches, levels))?,
            _ => return Err(SHAPES.to_owned()),
        };
        if shape.nodes() > NODES_MAX {
            return Err(format!("{text}: more than {NODES_MAX} nodes"));
        }
        Ok(shape)
    }
}

impl Shape {
    /// How many nodes it has.
    #[must_use]
    pub fn nodes(self) -> usize {
        match self {
            Self::Line(n) | Self::Ring(n) | Self::Star(n) | Self::Mesh(n) | Self::Random(n) => n,
            Self::Grid(columns, rows) => columns.saturating_mul(rows),
            Self::Tree(branches, levels) => {
                let mut level = 1usize;
                (0..levels.min(64)).fold(0, |sum: usize, _| {
                    let sum = sum.saturating_add(level);
                    level = level.saturating_mul(branches);
                    sum
                })
            }
        }
    }

    /// Pairs of nodes that are linked, by number from 0.
    fn pairs(self, seed: u64) -> Vec<(usize, usize)> {
        let nodes = self.nodes();
        match self {
            Self::Line(_) => (1..nodes).map(|n| (n - 1, n)).collect(),
            Self::Ring(_) => (0..nodes).map(|n| (n, (n + 1) % nodes)).collect(),
            Self::Star(_) => (1..nodes).map(|n| (0, n)).collect(),
            Self::Mesh(_) => (0..nodes).flat_map(|a| (a + 1..nodes).map(move |b| (a, b))).collect(),
            Self::Grid(columns, _) => (0..nodes)
                .flat_map(|n| {
                    let right = (n % columns + 1 < columns).then_some((n, n + 1));
                    let below = (n + columns < nodes).then_some((n, n + columns));
                    right.into_iter().chain(below)
                })
                .collect(),
            Self::Tree(branches, _) => (1..nodes).map(|n| ((n - 1) / branches, n)).collect(),
            Self::Random(_) => random(nodes, seed),
        }
    }

    /// The network, all links alike, without applications. `seed` decides random shapes.
    #[must_use]
    pub fn topology(self, config: ChannelConfig, seed: u64) -> Topology {
        let name = |n: usize| (format!("n{}", n + 1), NodeConfig::default());
        let link = |ends| LinkSpec { ends, config, downs: Vec::new() };
        Topology {
            nodes: (0..self.nodes()).map(name).collect(),
            links: self.pairs(seed).into_iter().map(link).collect(),
            ..Topology::default()
        }
    }
}

fn random(nodes: usize, seed: u64) -> Vec<(usize, usize)> {
    let mut rng = Rng::new(seed);
    let mut below = |n: usize| usize::try_from(rng.below(n as u64)).unwrap_or_default();
    let mut pairs: Vec<(usize, usize)> = (1..nodes).map(|n| (below(n), n)).collect();
    for _ in 0..nodes / 2 {
        let (a, b) = (below(nodes), below(nodes));
        let pair = (a.min(b), a.max(b));
        if a != b && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs
}

/// What goes on in a generated network: one producer at the last node, consumers at the others.
#[derive(Debug, Clone, PartialEq)]
pub struct Workload {
    /// The producer.
    pub producer: ProducerConfig,
    /// Each consumer.
    pub consumer: ConsumerConfig,
    /// How many consumers, spread evenly, the first at the first node.
    pub consumers: usize,
    /// Limits of every node.
    pub node: NodeConfig,
}

impl Workload {
    /// Puts the applications on the nodes of `topology`.
    pub fn put_on(&self, topology: &mut Topology) {
        let nodes = topology.nodes.len();
        for (_, config) in &mut topology.nodes {
            *config = self.node;
        }
        topology.apps.push((nodes - 1, AppSpec::Producer(self.producer.clone())));
        let places = (nodes - 1).max(1);
        for number in 0..self.consumers {
            let at = number * places / self.consumers.max(1);
            topology.apps.push((at, AppSpec::Consumer(self.consumer.clone())));
        }
    }
}
