#![doc = include_str!("../README.md")]

pub mod config;
pub mod mgmt;
pub mod names;
pub mod rib;
mod subnet;
