//! Networks as text or by a rule: nodes, links, applications.

mod generate;
mod parse;
mod scenario;
mod values;

pub use generate::{Shape, Workload};
pub use scenario::{Scenario, ScenarioError};
pub use values::{duration, rate, share};

#[cfg(test)]
mod tests;

use crate::app::{App, Consumer, ConsumerConfig, Files, FilesConfig, Producer, ProducerConfig};
use crate::channel::ChannelConfig;
use crate::network::{Network, NodeConfig};
use crate::routing::Routing;
use onym_wire::name::Name;
use std::str::FromStr;
use std::time::Duration;
use thiserror::Error;

/// Why a text is not a topology.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{}{what}", place(*line))]
pub struct TopologyError {
    /// Line, from 1; 0 where the topology has no lines.
    pub line: usize,
    /// What is wrong and what is allowed.
    pub what: String,
}

fn place(line: usize) -> String {
    if line == 0 { String::new() } else { format!("line {line}: ") }
}

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LinkSpec {
    pub(crate) ends: (usize, usize),
    pub(crate) config: ChannelConfig,
    /// When it is down: from, until.
    pub(crate) downs: Vec<(Duration, Duration)>,
}

/// An application, and the line that asked for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AppSpec {
    Producer(ProducerConfig),
    Consumer(ConsumerConfig),
    Files(FilesConfig),
}

impl AppSpec {
    /// The application; each consumer has randomness of its own.
    fn make(&self, seed: u64, number: usize) -> Box<dyn App + Send> {
        let seed = seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
        match self.clone() {
            Self::Producer(config) => Box::new(Producer::new(config)),
            Self::Consumer(config) => Box::new(Consumer::new(ConsumerConfig { seed, ..config })),
            Self::Files(config) => {
                // Far from the seeds of the other applications: each file adds its number.
                let seed = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
                let each = ConsumerConfig { seed, ..config.each };
                Box::new(Files::new(FilesConfig { each, ..config }))
            }
        }
    }
}

/// An application of a topology, ready to run.
#[derive(Debug)]
pub struct PlacedApp {
    /// Its number among all applications of the topology.
    pub index: usize,
    /// The prefix that it answers, when it is a producer.
    pub answers: Option<Name>,
    /// Itself.
    pub app: Box<dyn App + Send>,
}

/// A network as a text describes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    pub(crate) nodes: Vec<(String, NodeConfig)>,
    pub(crate) links: Vec<LinkSpec>,
    pub(crate) apps: Vec<(usize, AppSpec)>,
    pub(crate) strategies: Vec<(usize, Name, String)>,
    pub(crate) routing: Routing,
    /// Routes by hand: node, prefix, neighbour.
    pub(crate) routes: Vec<(usize, Name, usize)>,
}

impl FromStr for Topology {
    type Err = TopologyError;

    fn from_str(text: &str) -> Result<Self, TopologyError> {
        parse::parse(text)
    }
}

impl Topology {
    /// Names of the nodes.
    pub fn nodes(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().map(|(name, _)| name.as_str())
    }

    /// How many links there are.
    #[must_use]
    pub fn links_len(&self) -> usize {
        self.links.len()
    }

    /// Routes of every producer.
    pub fn set_routing(&mut self, routing: Routing) {
        self.routing = routing;
    }

    /// Chooses a strategy for `prefix` at every node; [`Topology::build`] says when there is none.
    pub fn add_strategy(&mut self, prefix: Name, strategy: &str) {
        self.strategies.push((0, prefix, strategy.to_owned()));
    }

    /// Builds the network: links, applications, routes to every producer.
    ///
    /// # Errors
    /// A strategy that does not exist or has wrong parameters, with its line.
    pub fn build(&self, seed: u64) -> Result<Network, TopologyError> {
        let mut network = Network::new(seed);
        for (name, config) in &self.nodes {
            network.node_add(name, *config);
        }
        for link in &self.links {
            let number = network.link_add(link.ends.0, link.ends.1, link.config);
            for (from, until) in &link.downs {
                network.link_down(number, *from, *until);
            }
        }
        for (line, prefix, strategy) in &self.strategies {
            network.strategy_set(prefix.as_ref(), strategy).map_err(|error| TopologyError {
                line: *line,
                what: format!("strategy {strategy:?}: {error}"),
            })?;
        }
        for (number, (node, app)) in self.apps.iter().enumerate() {
            let attached = network.app_add(*node, app.make(seed, number));
            if let AppSpec::Producer(config) = app {
                network.route_to(config.prefix.as_ref(), attached, self.routing);
            }
        }
        for (node, prefix, via) in &self.routes {
            let name = |number: usize| &self.nodes[number].0;
            let port = network.port_to(*node, *via).ok_or_else(|| TopologyError {
                line: 0,
                what: format!("route {prefix}: {} has no link to {}", name(*node), name(*via)),
            })?;
            network.route_add(prefix.as_ref(), *node, port, 0);
        }
        Ok(network)
    }

    /// The applications of a node: each a number, its prefix when it answers, and itself.
    ///
    /// # Errors
    /// There is no such node.
    pub fn apps_of(&self, node: &str, seed: u64) -> Result<Vec<PlacedApp>, TopologyError> {
        let number = self.nodes.iter().position(|(name, _)| name == node).ok_or_else(|| {
            TopologyError { line: 0, what: format!("{node:?} is no node of this network") }
        })?;
        let placed = self.apps.iter().enumerate().filter(|(_, (at, _))| *at == number);
        Ok(placed
            .map(|(index, (_, spec))| PlacedApp {
                index,
                answers: match spec {
                    AppSpec::Producer(config) => Some(config.prefix.clone()),
                    _ => None,
                },
                app: spec.make(seed, index),
            })
            .collect())
    }
}
