#![doc = include_str!("../README.md")]

mod access;
mod change;
mod lab;
mod live;
mod node;
mod pool;
mod refused;
mod router;
mod tail;

pub use access::Door;
pub use change::{
    CacheErase, CacheSettings, Change, FaceCreate, FaceDestroy, RouteAdd, RouteRemove, StrategySet,
    StrategyUnset,
};
pub use node::{Node, Nodes, Question, Tail, Tailed};
pub use pool::ASKING_MAX;
pub use refused::{Kind, Refused};
pub use router::Console;
pub use tail::{TAIL_RATE, TAILS_MAX};
