//! How other threads ask a running node.

use crate::control::request::Request;
use onym_engine::{Port, Reply, reply};
use onym_tables::FaceId;
use thiserror::Error;

/// Why a node did not start or did not do what was asked.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum NodeError {
    /// Something that the configuration asks for cannot be had; the text names key and remedy.
    #[error("{0}")]
    Setup(String),
    /// The operating system refused threads or descriptors.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: &'static str,
        /// Its answer.
        source: std::io::Error,
    },
    /// The node has ended.
    #[error("the node has stopped")]
    Stopped,
}

/// Where a routing program tells which neighbours it has: they are links of the push half, too.
#[derive(Debug, Clone)]
pub struct FoundLinks(pub(crate) Remote);

impl FoundLinks {
    /// A neighbour is behind this face, at this cost.
    pub fn up(&self, face: u64, cost: u64) {
        self.tell(face, Some(u16::try_from(cost).unwrap_or(u16::MAX).max(1)));
    }

    /// And is not any more.
    pub fn down(&self, face: u64) {
        self.tell(face, None);
    }

    fn tell(&self, face: u64, cost: Option<u16>) {
        let Ok(face) = u32::try_from(face).map(FaceId) else { return };
        // A node that has stopped has no links.
        let _ = self.0.tell(Request::PushLinkFound { face, cost });
    }
}

/// A way to ask a running node from another thread.
#[derive(Debug, Clone)]
pub(crate) struct Remote {
    requests: Port<Request>,
}

impl Remote {
    /// Asks through `requests`.
    pub(crate) fn new(requests: Port<Request>) -> Self {
        Self { requests }
    }

    /// Has the control thread carry a request out, without waiting for it.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub(crate) fn tell(&self, request: Request) -> Result<(), NodeError> {
        self.requests.send(request).map_err(|_| NodeError::Stopped)
    }

    /// Has the control thread carry a request out and returns its answer.
    ///
    /// # Errors
    /// [`NodeError::Stopped`].
    pub(crate) fn ask<R>(&self, request: impl FnOnce(Reply<R>) -> Request) -> Result<R, NodeError> {
        let (reply, answer) = reply();
        self.tell(request(reply))?;
        answer.wait().ok_or(NodeError::Stopped)
    }
}
