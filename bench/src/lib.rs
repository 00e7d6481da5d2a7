#![doc = include_str!("../README.md")]

pub mod link;
pub mod load;
pub mod packets;
pub mod proc;
pub mod relay;
