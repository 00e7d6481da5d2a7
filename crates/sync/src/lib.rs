#![doc = include_str!("../README.md")]

pub mod alo;
mod judged;
pub mod numbers;
pub mod ps;
pub mod psync;
mod rate;
pub mod svs;

pub use alo::{Alo, AloConfig, AloEvent};
pub use judged::Judged;
pub use rate::Rate;
pub use svs::{Svs, SvsConfig, SvsEvent};
