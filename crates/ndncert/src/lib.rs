#![doc = include_str!("../README.md")]

pub mod authority;
pub mod client;
pub mod dns;
pub mod error;
pub mod id;
pub mod message;
pub mod names;
pub mod number;
pub mod renew;
pub mod secret;
pub mod session;

pub use authority::{Authority, Invitation, Order, Reply, Settings};
pub use client::{Enrolment, Progress};
pub use error::{Error, ErrorCode};
pub use id::RequestId;
pub use secret::Secret;
pub use session::{KeyExchange, Session};

/// The present moment, twice.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Now {
    /// Milliseconds since the Unix epoch: for dates in certificates.
    pub unix_ms: u64,
    /// Milliseconds of a clock that never jumps: for everything that runs out.
    pub tick_ms: u64,
}
