#![doc = include_str!("../README.md")]

pub mod app;
pub mod channel;
pub mod network;
pub mod node;
pub mod processor;
pub mod push;
pub mod record;
pub mod report;
pub mod routers;
pub mod routing;
pub mod topology;

pub use app::{
    Consumer, ConsumerConfig, Files, FilesConfig, Names, Producer, ProducerConfig, Transfer,
};
pub use channel::ChannelConfig;
pub use network::{Crossing, Ended, Network, NodeConfig};
pub use processor::{Load, Processor, ProcessorConfig};
pub use push::PushNetwork;
pub use report::Report;
pub use routing::Routing;
pub use topology::{PlacedApp, Scenario, ScenarioError, Shape, Topology, TopologyError, Workload};
