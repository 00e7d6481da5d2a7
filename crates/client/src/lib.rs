#![doc = include_str!("../README.md")]

pub mod aio;
pub mod blocking;
mod command;
mod driver;
pub mod endpoint;
pub mod error;
pub mod fetch;
pub mod metadata;
pub mod mgmt;
pub mod open;
pub mod producer;
pub mod push;
pub mod registration;
pub mod request;
mod rng;
pub mod rtt;
pub mod schema;
pub mod serve;
pub mod transport;
pub mod verify;
pub mod window;

pub use driver::{ClientOptions, Notice};
pub use endpoint::{Endpoint, Event};
pub use error::Error;
pub use fetch::{FetchError, FetchId, FetchOptions, Find, Progress};
pub use open::{NotOpened, Opener, Seal};
pub use producer::{Answer, Incoming, Respond};
pub use registration::{NotRegistered, RouteOptions};
pub use request::{Packet, Request, RequestId, Unanswered};
pub use schema::{Schema, Trust};
pub use transport::NodeUri;
pub use verify::{Verifier, Verify};
