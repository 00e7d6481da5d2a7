#![doc = include_str!("../README.md")]

pub mod chain;
pub mod core;
pub mod daemon;
pub mod deviations;
pub mod env;
pub mod expect;
pub mod files;
pub mod foreign;
pub mod in_process;
pub mod index;
pub mod kernel;
pub mod mgmt;
pub mod peer;
pub mod push;
pub mod report;
pub mod run;
pub mod script;
pub mod show;
pub mod socket;
pub mod subject;
mod virtual_time;
pub mod wire;
