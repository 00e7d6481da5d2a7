//! The descriptor of a face whose frames come from another thread.

use crate::FaceError;
use onym_sys::epoll::{Epoll, Interest, Waker};
use rustix::fd::{AsFd, BorrowedFd};

/// A descriptor that is readable after [`WakeFd::wake`] and never writable.
///
/// An eventfd alone is always writable, so that a blocked face would be tried again all the time.
#[derive(Debug)]
pub(crate) struct WakeFd {
    waker: Waker,
    epoll: Epoll,
}

impl WakeFd {
    pub(crate) fn new() -> Result<Self, FaceError> {
        let waker = Waker::new().map_err(|e| FaceError::io("making an eventfd", e))?;
        let epoll = Epoll::new()
            .and_then(|epoll| epoll.add(&waker, 0, Interest::Read).map(|()| epoll))
            .map_err(|e| FaceError::io("watching an eventfd", e))?;
        Ok(Self { waker, epoll })
    }

    pub(crate) fn wake(&self) {
        self.waker.wake();
    }

    pub(crate) fn clear(&self) {
        self.waker.clear();
    }
}

impl AsFd for WakeFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
