#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod chain;
pub mod conf;
mod hierarchy;
pub mod invite;
pub mod lvs;
pub mod policy;
pub mod suggest;

pub use hierarchy::Hierarchy;
pub use policy::{Cause, Denial, KeyForm, Kind, Policy, Subject, Verdict};
