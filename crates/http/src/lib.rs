#![doc = include_str!("../README.md")]

pub mod client;
pub mod server;
pub mod tls;
