#![doc = include_str!("../README.md")]

pub mod faces;
pub mod packet;
pub mod strategy;
