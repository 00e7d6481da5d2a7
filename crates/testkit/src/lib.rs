#![doc = include_str!("../README.md")]

pub mod core;
pub mod deviations;
pub mod env;
pub mod expect;
pub mod files;
pub mod foreign;
pub mod index;
pub mod mgmt;
pub mod peer;
pub mod report;
pub mod run;
pub mod script;
pub mod show;
pub mod socket;
pub mod subject;
pub mod wire;
