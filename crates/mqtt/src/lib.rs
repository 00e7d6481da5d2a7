#![doc = include_str!("../README.md")]

mod broker;
mod packet;
mod run;
mod topic;

pub use broker::Limits;
pub use run::{Bridge, Stopped};
