#![doc = include_str!("../README.md")]

pub mod board;
pub mod distribute;
pub mod file;
pub mod flood;
pub mod index;
pub mod link;
pub mod load;
pub mod memory;
pub mod packets;
pub mod proc;
pub mod relay;
pub mod report;
pub mod run;
pub mod services;
pub mod signed;
pub mod subject;
