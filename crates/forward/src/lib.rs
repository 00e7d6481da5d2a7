#![doc = include_str!("../README.md")]

pub mod faces;
pub mod link;
pub mod packet;
pub mod rtt;
pub mod strategy;
