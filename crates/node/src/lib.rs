#![doc = include_str!("../README.md")]

pub mod config;
pub mod mgmt;
pub mod names;
mod subnet;
