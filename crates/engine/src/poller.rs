//! What an engine waits on: epoll, or a model of it.

use crate::bell::Wake;
use onym_sys::epoll::{Epoll, Interest, Ready, Waker};
use rustix::fd::BorrowedFd;
use std::io;
use std::time::Duration;

/// Readiness of many descriptors, level-triggered.
pub trait Poller: Sized {
    /// What ends a wait from another thread.
    type Waker: Wake;

    /// A poller that watches nothing.
    ///
    /// # Errors
    /// Out of descriptors.
    fn new() -> io::Result<Self>;

    /// Watches the waker of the thread and reports it as `token`.
    ///
    /// # Errors
    /// As the system says.
    fn add_waker(&self, waker: &Self::Waker, token: u64) -> io::Result<()>;

    /// Watches a descriptor and reports it as `token`.
    ///
    /// # Errors
    /// As the system says.
    fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;

    /// Changes what is told about a descriptor.
    ///
    /// # Errors
    /// As the system says.
    fn modify(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()>;

    /// Stops watching a descriptor.
    ///
    /// # Errors
    /// As the system says.
    fn delete(&self, fd: BorrowedFd<'_>) -> io::Result<()>;

    /// Waits at most `timeout` (`None`: for ever) and appends what is ready to `out`.
    ///
    /// # Errors
    /// As the system says.
    fn wait(&self, timeout: Option<Duration>, out: &mut Vec<Ready>) -> io::Result<()>;
}

impl Wake for Waker {
    fn wake(&self) {
        Self::wake(self);
    }

    fn clear(&self) {
        Self::clear(self);
    }
}

impl Poller for Epoll {
    type Waker = Waker;

    fn new() -> io::Result<Self> {
        Self::new()
    }

    fn add_waker(&self, waker: &Waker, token: u64) -> io::Result<()> {
        Self::add(self, waker, token, Interest::Read)
    }

    fn add(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        Self::add(self, fd, token, interest)
    }

    fn modify(&self, fd: BorrowedFd<'_>, token: u64, interest: Interest) -> io::Result<()> {
        Self::modify(self, fd, token, interest)
    }

    fn delete(&self, fd: BorrowedFd<'_>) -> io::Result<()> {
        Self::delete(self, fd)
    }

    fn wait(&self, timeout: Option<Duration>, out: &mut Vec<Ready>) -> io::Result<()> {
        Self::wait(self, timeout, out).map(drop)
    }
}
