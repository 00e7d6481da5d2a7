#![doc = include_str!("../README.md")]

pub mod alo;
mod judged;
pub mod numbers;
pub mod psync;
pub mod svs;

pub use alo::{Alo, AloConfig, AloEvent};
pub use judged::Judged;
pub use svs::{Svs, SvsConfig, SvsEvent};
