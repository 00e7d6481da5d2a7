#![doc = include_str!("../README.md")]

pub mod broker;
mod door;
mod error;
mod grant;
mod layout;
mod publisher;
mod seat;
mod subscriber;
#[cfg(test)]
mod tests;

pub use door::{Door, connect};
pub use error::BoardError;
pub use layout::{Config, PAYLOAD_MAX, SUBSCRIBERS_MAX};
pub use onym_sys::words::Words;
pub use publisher::{Loan, Publisher};
pub use subscriber::{Item, Reception, Subscriber};
