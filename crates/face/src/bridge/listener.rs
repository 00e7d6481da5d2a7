//! The owner's end of a listener whose protocol runs on a control thread.

use super::Arrivals;
use crate::face::Ready;
use crate::listen::{Incoming, Listener};
use crate::{FaceError, FaceUri};
use onym_frame::BufPool;
use rustix::fd::{AsFd, BorrowedFd};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::Notify;

/// Accepts connections of such a protocol. Dropping it ends the listening, not the connections.
#[derive(Debug)]
pub struct BridgedListener {
    pub(crate) uri: FaceUri,
    pub(crate) address: SocketAddr,
    pub(crate) arrivals: Arc<Arrivals>,
    /// Ends the task that listens.
    pub(crate) stop: Arc<Notify>,
}

impl BridgedListener {
    /// Where it listens.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Listener for BridgedListener {
    fn local_uri(&self) -> &FaceUri {
        &self.uri
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.arrivals.as_fd()
    }

    fn accept(
        &mut self,
        _pool: &mut BufPool,
        budget: usize,
        out: &mut Vec<Incoming>,
    ) -> Result<Ready, FaceError> {
        Ok(self.arrivals.take(budget, out))
    }
}

impl Drop for BridgedListener {
    fn drop(&mut self) {
        self.stop.notify_one();
    }
}
