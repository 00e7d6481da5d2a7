//! How other threads ask a running node.

use crate::control::request::Request;
use onym_engine::{Port, Reply, reply};
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
