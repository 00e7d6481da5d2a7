#![doc = include_str!("../README.md")]

pub mod describe;
pub mod expand;
pub mod keys;
pub mod kind;
pub mod network;
pub mod policy;
pub mod presets;
pub mod routes;
pub mod settings;
pub mod tosca;
