#![doc = include_str!("../README.md")]
// Sources of other crates, of which a model uses a part; they are checked where they belong.
#![allow(dead_code, unused_imports, unused_qualifications, missing_docs, unreachable_pub)]
#![allow(clippy::all, clippy::unwrap_used, clippy::too_many_lines, clippy::use_self)]

extern crate self as onym_engine;

// What the tests of these sources name, which are compiled and never run here.
#[cfg(test)]
use tempfile as _;
// What only the sources of the other crates name.
use {
    onym_crypto as _, onym_etcd as _, onym_frame as _, onym_guard as _, onym_http as _,
    onym_store as _, onym_sys as _, onym_trust as _, onym_watch as _, redb as _, rustix as _,
    serde_json as _, smallvec as _, tokio as _, tracing as _,
};

#[path = "../../engine/src/attempt.rs"]
pub mod attempt;
#[path = "../../engine/src/bell.rs"]
pub mod bell;
pub mod bounds;
pub mod clock;
#[path = "../../node/src/counts.rs"]
mod counts;
#[path = "../../node/src/cross.rs"]
mod cross;
#[path = "../../engine/src/driver.rs"]
pub mod driver;
#[path = "../../engine/src/engine.rs"]
mod engine;
#[path = "../../engine/src/event.rs"]
pub mod event;
#[path = "../../engine/src/face.rs"]
pub mod face;
#[path = "../../engine/src/io.rs"]
pub mod io;
#[path = "../../engine/src/jobs.rs"]
pub mod jobs;
#[path = "../../engine/src/mailbox.rs"]
pub mod mailbox;
#[path = "../../engine/tests/model/mod.rs"]
pub mod model;
mod node;
#[path = "../../engine/src/policy.rs"]
pub mod policy;
#[path = "../../engine/src/poller.rs"]
pub mod poller;
#[path = "../../node/src/push/mod.rs"]
mod push;
#[path = "../../engine/src/receive.rs"]
mod receive;
#[path = "../../engine/src/reply.rs"]
pub mod reply;
#[path = "../../engine/src/ring.rs"]
pub mod ring;
#[path = "../../node/src/shard/mod.rs"]
mod shard;
#[path = "../../node/src/sides.rs"]
mod sides;
#[path = "../../engine/tests/spsc/mod.rs"]
pub mod spsc;

pub use attempt::AttemptId;
pub use bell::Wake;
pub use clock::Clock;
pub use driver::{Driver, FaceEvent, Idle, Policy, Turn};
pub use engine::Engine;
pub use face::{FaceMap, Faces, LocalFace, OwnerCounters, Place, Slot, Traffic};
pub use io::{Counters, Io, ListenerId};
pub use jobs::Jobs;
pub use mailbox::{Load, Mailbox, Refused, mailbox};
pub use node::{App, Node, Said, start};
pub use poller::Poller;
pub use reply::{Answer, Reply, reply};
pub use shard::PushDropped;
pub use sync::Waker;

/// As in `onym-engine`, with the waker of the model.
pub type Bell = bell::Bell<Waker>;
/// As in `onym-engine`.
pub type Port<O> = mailbox::Port<O, Waker>;

impl Bell {
    pub fn new() -> std::io::Result<std::sync::Arc<Self>> {
        Ok(std::sync::Arc::new(Self::of(Waker::new()?)))
    }
}

/// What the sources of the engine find here in place of the system's.
pub mod sync {
    pub use crate::model::{ModelPoller as Epoll, ModelWaker as Waker};
    pub use crate::spsc;
    pub use shuttle::sync::{Arc, Condvar, Mutex, MutexGuard, atomic, mpsc};
    pub use shuttle::thread;
    pub use std::sync::PoisonError;
}

/// What the sources of the node find here of the rest of it.
mod config {
    pub use onym_node::config::*;
}

mod mgmt {
    pub use onym_node::mgmt::{Counters, host};
}
