#![doc = include_str!("../README.md")]

mod command;
pub mod endpoint;
pub mod fetch;
pub mod metadata;
pub mod producer;
pub mod registration;
pub mod request;
mod rng;
pub mod rtt;
pub mod serve;
pub mod transport;
pub mod verify;
pub mod window;

pub use command::Response;
pub use endpoint::{Endpoint, Event};
pub use fetch::{FetchError, FetchId, FetchOptions, Progress};
pub use producer::{Answer, Incoming, Respond};
pub use registration::{NotRegistered, RouteOptions};
pub use request::{Packet, Request, RequestId, Unanswered};
pub use transport::NodeUri;
pub use verify::{Verifier, Verify};
