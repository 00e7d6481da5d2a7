//! What a shard does of the push half itself: publications and frames of data that need no more
//! than a look at tables.
//!
//! The state of the push half is behind one lock. Its thread waits for the lock; a shard takes it
//! when it is free and nobody waits for it, and otherwise sends what it has to the thread, as all
//! that may take long: requests, control messages, long publications, signatures.
//!
//! Nothing is overtaken. A shard works in place for a face only when the thread has taken all that
//! the face sent before, and only when the shard itself has taken all that the thread sent it; what
//! is said to faces of other shards goes the way that the thread uses.

use super::PushThread;
use crate::cross::Batch;
use onym_forward::packet::Packet;
use onym_pubsub::node::Handed;
use onym_tables::Tick;
use onym_wire::types;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// The push half, for its thread and the shards.
#[derive(Debug)]
pub(crate) struct Shared {
    thread: Mutex<PushThread>,
    /// The thread waits for the lock: shards leave it alone.
    is_wanted: AtomicBool,
}

impl Shared {
    pub(crate) fn new(thread: PushThread) -> Self {
        Self { thread: Mutex::new(thread), is_wanted: AtomicBool::new(false) }
    }

    /// For who may wait.
    pub(crate) fn lock(&self) -> MutexGuard<'_, PushThread> {
        self.is_wanted.store(true, Ordering::Relaxed);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner);
        self.is_wanted.store(false, Ordering::Relaxed);
        thread
    }

    /// For who may not wait: a shard.
    pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, PushThread>> {
        if self.is_wanted.load(Ordering::Relaxed) {
            return None;
        }
        match self.thread.try_lock() {
            Ok(thread) => Some(thread),
            Err(TryLockError::Poisoned(thread)) => Some(thread.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl PushThread {
    /// Does what `packet` of a shard asks for, when the thread has taken the `sent` packets that
    /// the shard sent it before; whether that was done. What it brings for faces of the shard is
    /// there with [`PushThread::hand_over`].
    pub(crate) fn in_place(
        &mut self,
        now: Tick,
        (shard, sent): (usize, u64),
        packet: &Packet,
    ) -> bool {
        if self.taken[shard] < sent || !self.takes() {
            return false;
        }
        self.now = self.now.max(now);
        let is_app = packet.bytes.first().map(|o| u32::from(*o)) == Some(types::PUSH_APP);
        if is_app {
            let is_done = self.publish_in_place(packet.face, &packet.bytes);
            if is_done {
                self.carry_out();
            }
            return is_done;
        }
        let handed = self.node.deliver_ready(packet.face, &packet.bytes, &mut self.output);
        let Some(Handed { payload, to }) = handed else { return false };
        self.carry_out();
        if let Some((apps, id)) = to {
            self.tell_all(&apps, &id, payload);
        }
        true
    }

    /// What was done in place leaves: what is for faces of `shard` is returned, in exchange for an
    /// emptied batch, unless it has to wait behind other batches.
    pub(crate) fn hand_over(&mut self, shard: usize, emptied: Box<Batch>) -> Box<Batch> {
        let mut batch = emptied;
        for (other, to) in self.to.iter_mut().enumerate() {
            if other == shard && to.is_taken() {
                batch = to.exchange(batch);
            } else {
                to.flush();
            }
        }
        // Timers that are due before the thread would look.
        let due = self.node.dispatcher.next_timeout();
        if !self.late.is_empty() || due.is_some_and(|due| due < self.wakes_at) {
            self.bell.ring();
        }
        batch
    }
}
