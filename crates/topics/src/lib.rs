#![doc = include_str!("../README.md")]

mod names;
mod own;

pub use names::{Items, LEVELS_MAX, directory, items};
pub use own::Topics;
