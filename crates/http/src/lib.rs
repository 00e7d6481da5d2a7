#![doc = include_str!("../README.md")]

pub mod access;
pub mod client;
pub mod folders;
mod places;
pub mod server;
pub mod tls;
