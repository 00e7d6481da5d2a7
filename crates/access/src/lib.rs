#![doc = include_str!("../README.md")]

pub mod card;
pub mod content;
pub mod envelope;
pub mod error;
pub mod group;
pub mod nac;
pub mod names;
pub mod reader;
pub mod trusted;

pub use card::Card;
pub use content::{ContentKey, Form};
pub use error::Error;
pub use group::{Group, Member};
pub use reader::Reader;
pub use trusted::Trusted;
