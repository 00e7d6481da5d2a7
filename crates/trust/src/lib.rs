#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod chain;
pub mod conf;
pub mod invite;
pub mod lvs;
pub mod policy;
pub mod suggest;

pub use policy::{Cause, Denial, KeyForm, Kind, Policy, Subject, Verdict};
