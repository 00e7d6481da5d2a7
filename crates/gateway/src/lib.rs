#![doc = include_str!("../README.md")]

mod items;
mod map;
mod offer;
mod run;
mod state;
mod want;

pub use map::{Map, label_component};
pub use run::{Handle, Settings, start};
pub use state::{Action, Ask, Counters, Gateway, Limits};
