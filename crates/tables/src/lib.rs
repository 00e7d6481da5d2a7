#![doc = include_str!("../README.md")]

pub mod id;

pub use id::{FaceId, Tick};
