#![doc = include_str!("../README.md")]

pub mod board;
pub mod distribute;
pub mod file;
pub mod flood;
pub mod index;
pub mod instructions;
pub mod link;
pub mod load;
pub mod memory;
pub mod packets;
pub mod part;
pub mod proc;
pub mod push;
pub mod relay;
pub mod rendezvous;
pub mod report;
pub mod run;
pub mod services;
pub mod signed;
pub mod store;
pub mod subject;
pub mod tables;
mod veth;
