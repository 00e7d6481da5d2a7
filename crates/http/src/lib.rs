#![doc = include_str!("../README.md")]

pub mod access;
pub mod client;
pub mod entries;
pub mod folders;
pub mod page;
mod places;
pub mod server;
pub mod tls;
