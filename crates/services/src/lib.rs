#![doc = include_str!("../README.md")]

mod backward_router;
pub mod chain;
pub mod config;
mod content_store;
pub mod control;
mod cx;
mod dispatcher;
pub mod effect;
pub mod element;
pub mod events;
mod forwarder;
pub mod freeze;
pub mod function;
mod histogram;
pub mod keys;
pub mod kind;
mod make;
mod name_filter;
mod name_router;
mod names;
mod origin;
pub mod ports;
mod refusal;
pub mod registration;
pub mod rendezvous;
mod rule;
pub mod settings;
pub mod stats;
mod strategy_forwarder;
mod table;
mod transparent;
pub mod verdict;
mod verifier;
pub mod verify;

pub use control::{Answer, Request};
pub use cx::Cx;
pub use dispatcher::{Path, Session};
pub use element::Element;
pub use events::Event;
pub use function::{Function, Now};
pub use kind::Kind;
pub use ports::{FarEnd, Port, Ports, Side};
pub use refusal::{Reason, Refusal};
pub use rule::{Applies, Match, Rule};
pub use verdict::Verdict;

#[cfg(test)]
mod tests;

/// SHA-256.
#[must_use]
pub fn digest(bytes: &[u8]) -> [u8; 32] {
    onym_crypto::sha256(&[bytes])
}
