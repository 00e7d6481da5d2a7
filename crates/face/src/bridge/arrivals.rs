//! Connections whose handshake is done, on their way to the owner of the listener.

use super::{BridgedFace, Link};
use crate::FaceError;
use crate::face::Ready;
use crate::listen::Incoming;
use onym_sys::epoll::Waker;
use rustix::fd::{AsFd, BorrowedFd};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Connections that wait to be taken by the listener's owner; more are closed.
const ARRIVALS_MAX: usize = 128;

/// Connections that nobody has taken yet.
#[derive(Debug)]
pub(crate) struct Arrivals {
    faces: Mutex<VecDeque<BridgedFace>>,
    waker: Waker,
}

impl Arrivals {
    pub(crate) fn new() -> Result<Arc<Self>, FaceError> {
        let waker = Waker::new().map_err(|e| FaceError::io("making an eventfd", e))?;
        Ok(Arc::new(Self { faces: Mutex::default(), waker }))
    }

    fn faces(&self) -> MutexGuard<'_, VecDeque<BridgedFace>> {
        self.faces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a face wait for the listener's owner. `None`: too many wait.
    pub(crate) fn put(&self, face: BridgedFace) -> Option<Arc<Link>> {
        let mut faces = self.faces();
        if faces.len() >= ARRIVALS_MAX {
            return None;
        }
        let link = Arc::clone(&face.link);
        faces.push_back(face);
        self.waker.wake();
        Some(link)
    }

    /// Takes about `budget` of them.
    pub(crate) fn take(&self, budget: usize, out: &mut Vec<Incoming>) -> Ready {
        let mut faces = self.faces();
        let n = faces.len().min(budget);
        out.extend(faces.drain(..n).map(|face| Incoming::Face(Box::new(face))));
        if !faces.is_empty() {
            return Ready::More;
        }
        self.waker.clear();
        Ready::Idle
    }
}

impl AsFd for Arrivals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.waker.as_fd()
    }
}
