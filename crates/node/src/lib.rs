#![doc = include_str!("../README.md")]

pub mod config;
mod control;
mod cross;
mod handle;
pub mod log;
mod metrics;
pub mod mgmt;
pub mod names;
mod node;
mod push;
mod reply;
pub mod rib;
mod shard;
mod subnet;
mod throttle;

pub use control::Bound;
pub use control::listen::unix_places;
pub use control::status::{LinkSums, PushCounts, ShardState, Snapshot};
pub use node::{Node, NodeError, NodeHandle};
pub use shard::PushDropped;
