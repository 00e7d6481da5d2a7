#![doc = include_str!("../README.md")]

mod bounds;
pub mod config;
mod control;
mod counts;
mod cross;
mod disk;
mod exported;
mod handle;
pub mod log;
mod metrics;
pub mod mgmt;
pub mod names;
mod node;
mod push;
mod remote;
pub mod rib;
mod self_name;
mod shard;
mod sides;
mod subnet;
mod telemetry;
mod throttle;

pub use control::open::{Bound, unix_places};
pub use counts::{ExportCounts, LinkSums, PushCounts, ShardState, Snapshot};
pub use node::{Node, NodeHandle};
pub use remote::{FoundLinks, NodeError};
pub use self_name::self_name;
pub use shard::{DiskCounts, PushDropped};
