//! Topologies as text: nodes, links, applications.

mod parse;
#[cfg(test)]
mod tests;

use crate::app::{Consumer, ConsumerConfig, Producer, ProducerConfig};
use crate::channel::ChannelConfig;
use crate::network::{Network, NodeConfig};
use crate::routing::Routing;
use onym_wire::name::Name;
use std::str::FromStr;
use thiserror::Error;

/// Why a text is not a topology.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}: {what}")]
pub struct TopologyError {
    /// Line, from 1.
    pub line: usize,
    /// What is wrong and what is allowed.
    pub what: String,
}

/// A link between two nodes.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct LinkSpec {
    pub(crate) ends: (usize, usize),
    pub(crate) config: ChannelConfig,
}

/// An application, and the line that asked for it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AppSpec {
    Producer(ProducerConfig),
    Consumer(ConsumerConfig),
}

/// A network as a text describes it.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Topology {
    pub(crate) nodes: Vec<(String, NodeConfig)>,
    pub(crate) links: Vec<LinkSpec>,
    pub(crate) apps: Vec<(usize, AppSpec)>,
    pub(crate) strategies: Vec<(usize, Name, String)>,
    pub(crate) routing: Routing,
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
            network.link_add(link.ends.0, link.ends.1, link.config);
        }
        for (line, prefix, strategy) in &self.strategies {
            network.strategy_set(prefix.as_ref(), strategy).map_err(|error| TopologyError {
                line: *line,
                what: format!("strategy {strategy:?}: {error}"),
            })?;
        }
        for (number, (node, app)) in self.apps.iter().enumerate() {
            match app {
                AppSpec::Producer(config) => {
                    let producer = Box::new(Producer::new(config.clone()));
                    let app = network.app_add(*node, producer);
                    network.route_to(config.prefix.as_ref(), app, self.routing);
                }
                AppSpec::Consumer(config) => {
                    // Each consumer has randomness of its own.
                    let seed = seed.wrapping_mul(1_000_003).wrapping_add(number as u64);
                    let config = ConsumerConfig { seed, ..config.clone() };
                    network.app_add(*node, Box::new(Consumer::new(config)));
                }
            }
        }
        Ok(network)
    }
}
