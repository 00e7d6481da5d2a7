//! The answer to an order or a request of another thread.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Goes with a question and takes its answer. Dropped without one, it tells that there is none.
pub(crate) struct Reply<T>(SyncSender<T>);

impl<T> std::fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Reply")
    }
}

impl<T> Reply<T> {
    /// Answers. Who asked may have given up by then.
    pub(crate) fn send(self, answer: T) {
        let _ = self.0.send(answer);
    }
}

/// An answer that is on its way.
#[derive(Debug)]
pub(crate) struct Answer<T>(Receiver<T>);

impl<T> Answer<T> {
    /// Waits for the answer, however long; none when the thread ended.
    pub(crate) fn wait(self) -> Option<T> {
        self.0.recv().ok()
    }

    /// As [`Answer::wait`], for at most `patience`.
    pub(crate) fn wait_for(self, patience: Duration) -> Option<T> {
        self.0.recv_timeout(patience).ok()
    }
}

/// Both ends of an answer.
pub(crate) fn reply<T>() -> (Reply<T>, Answer<T>) {
    let (tx, rx) = sync_channel(1);
    (Reply(tx), Answer(rx))
}
