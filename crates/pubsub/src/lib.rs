#![doc = include_str!("../README.md")]

mod app;
pub mod control;
mod counters;
pub mod courier;
mod data;
pub mod dispatcher;
pub mod fib;
pub mod forwarder;
pub mod link_state;
mod missing;
mod names;
pub mod node;
pub mod publication;
pub mod rendezvous;
mod shrink;
pub mod signature;
pub mod topology;
pub mod verdict;

pub use control::ControlPlane;
pub use control::{Faces, Frames, Output};
pub use data::{
    Above, Data, Handout, Keep, Place, Published, Receivers, Refusal, Sent, Told, is_of_item,
};
pub use dispatcher::{Dispatcher, Origin, Request};
pub use fib::{Delta, Effects, Fib, LOOKS_MAX, Pass, Received};
pub use forwarder::{Copies, Forwarder, Source};
pub use link_state::LinkState;
pub use names::{Hashing, Key};
pub use node::Node;
pub use publication::{AppId, DomainKey, Event, Notice, Outbox, Publication, Target, To};
pub use rendezvous::{Kept, Rendezvous};
pub use signature::{Rules, Signing, Trusted};
pub use topology::TopologyManager;
pub use verdict::{Counters, Verdict};
