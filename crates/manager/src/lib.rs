#![doc = include_str!("../README.md")]

pub mod allow;
pub mod control;
pub mod describe;
pub mod driver;
pub mod engine;
pub mod expand;
pub mod keys;
pub mod kind;
mod near;
pub mod network;
pub mod operator;
pub mod plan;
pub mod policy;
pub mod presets;
pub mod rest;
pub mod routes;
pub mod settings;
pub mod store;
pub mod tosca;
