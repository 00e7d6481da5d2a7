#![doc = include_str!("../README.md")]

pub mod envelope;
pub mod error;
pub mod group;
pub mod nac;
pub mod names;
pub mod trusted;

pub use error::Error;
pub use group::Group;
pub use trusted::Trusted;
