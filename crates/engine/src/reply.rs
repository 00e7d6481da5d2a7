//! The answer to an order.

use crate::bell::Wake;
use crate::mailbox::{Port, Refused};
use crate::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::fmt;
use std::time::Duration;

/// Goes with an order and takes its answer. Dropped without one, it tells that there is none.
pub struct Reply<T>(SyncSender<T>);

impl<T> fmt::Debug for Reply<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Reply")
    }
}

impl<T> Reply<T> {
    /// Answers. Who asked may have given up by then.
    pub fn send(self, answer: T) {
        let _ = self.0.send(answer);
    }
}

/// An answer that is on its way.
#[derive(Debug)]
pub struct Answer<T>(Receiver<T>);

impl<T> Answer<T> {
    /// Waits for the answer, however long; none when the thread ended.
    pub fn wait(self) -> Option<T> {
        self.0.recv().ok()
    }

    /// As [`Answer::wait`], for at most `patience`: [`PATIENCE`](crate::mailbox::PATIENCE) where an
    /// answer that does not come means that the thread is broken.
    pub fn wait_for(self, patience: Duration) -> Option<T> {
        self.0.recv_timeout(patience).ok()
    }
}

/// Both ends of an answer.
pub fn reply<T>() -> (Reply<T>, Answer<T>) {
    let (tx, rx) = sync_channel(1);
    (Reply(tx), Answer(rx))
}

impl<O, W: Wake> Port<O, W> {
    /// Sends an order that is answered.
    ///
    /// # Errors
    /// As [`Port::send`].
    pub fn ask<T>(&self, order: impl FnOnce(Reply<T>) -> O) -> Result<Answer<T>, Refused<O>> {
        let (reply, answer) = reply();
        self.send(order(reply)).map(|()| answer)
    }
}
