#![doc = include_str!("../README.md")]
pub mod fetch;
pub mod rtt;
pub mod window;
