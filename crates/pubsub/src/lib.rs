#![doc = include_str!("../README.md")]

pub mod courier;
pub mod dispatcher;
pub mod forwarder;
pub mod link_state;
mod missing;
pub mod node;
pub mod publication;
pub mod rendezvous;
pub mod signature;
pub mod topology;
pub mod verdict;

pub use dispatcher::{Data, Dispatcher, Refusal, Request, Row, Sent};
pub use forwarder::{Copies, Forwarder, Source};
pub use link_state::LinkState;
pub use node::{Faces, Frames, Node, Output};
pub use publication::{AppId, DomainKey, Event, Outbox, Publication, Target, To};
pub use rendezvous::{Kept, Rendezvous};
pub use signature::{Signing, Trusted};
pub use topology::TopologyManager;
pub use verdict::{Counters, Verdict};
