#![doc = include_str!("../README.md")]

pub mod app;
pub mod channel;
pub mod network;
pub mod node;
pub mod push;
pub mod report;
pub mod routing;
pub mod topology;

pub use app::{Consumer, ConsumerConfig, Names, Producer, ProducerConfig};
pub use channel::ChannelConfig;
pub use network::{Crossing, Ended, Network, NodeConfig};
pub use push::PushNetwork;
pub use report::Report;
pub use routing::Routing;
pub use topology::{Scenario, ScenarioError, Shape, Topology, TopologyError, Workload};
