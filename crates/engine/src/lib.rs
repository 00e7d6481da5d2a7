#![doc = include_str!("../README.md")]

pub mod attempt;
pub mod bell;
pub mod clock;
pub mod driver;
mod engine;
pub mod event;
pub mod face;
pub mod io;
pub mod jobs;
pub mod mailbox;
pub mod policy;
pub mod poller;
mod receive;
pub mod reply;
pub mod ring;

pub use attempt::AttemptId;
pub use bell::Wake;
pub use clock::Clock;
pub use driver::{Driver, FaceEvent, Idle, Policy, Turn};
pub use engine::Engine;
pub use face::{FaceMap, Faces, LocalFace, OwnerCounters, Place, Slot, Traffic};
pub use io::{Counters, Io, ListenerId};
pub use jobs::Jobs;
pub use mailbox::{Load, Mailbox, Refused, mailbox};
pub use onym_sys::epoll::Waker;
pub use poller::Poller;
pub use reply::{Answer, Reply, reply};

/// A bell whose waker is an eventfd.
pub type Bell = bell::Bell<Waker>;
/// Puts orders into the mailbox of an engine.
pub type Port<O> = mailbox::Port<O, Waker>;

impl Bell {
    /// A bell that nobody has rung.
    ///
    /// # Errors
    /// Out of descriptors.
    pub fn new() -> std::io::Result<std::sync::Arc<Self>> {
        Ok(std::sync::Arc::new(Self::of(Waker::new()?)))
    }
}

/// What the checkers of schedules put their own in place of.
mod sync {
    pub(crate) use onym_sys::epoll::Epoll;
    pub(crate) use rtrb as spsc;
    pub(crate) use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError, atomic, mpsc};
    pub(crate) use std::thread;
}
