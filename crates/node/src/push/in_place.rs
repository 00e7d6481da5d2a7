//! What a shard does of the push half itself: publications and frames of data that need no more
//! than a look at tables.
//!
//! The state of the push half is behind one lock. Its thread waits for the lock; a shard takes it
//! when it is free and nobody waits for it, and otherwise sends what it has to the thread, as all
//! that may take long: requests, control messages, long publications, signatures.
//!
//! Nothing is overtaken. A shard works in place for a face only when all that the face sent before
//! is done, and only when the shard itself has taken all that the thread sent it; what is said to
//! faces of other shards goes the way that the thread uses. What it sent the thread and that is not
//! done yet, the shard does itself where that is data and nothing else: on a busy machine the thread
//! may have its turn late, and again and again all that comes meanwhile would go the long way.

use super::PushThread;
use super::apps::data_message;
use crate::cross::Batch;
use onym_frame::{Buf, COPY_LEN_MAX, FrameRow};
use onym_pubsub::node::Handed;
use onym_pubsub::{Faces, Row};
use onym_tables::{FaceId, Tick};
use onym_wire::push::app::{Message, kind};
use onym_wire::push::{Head, Strategy};
use onym_wire::types::PacketType;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

/// Packets after which a shard does no more of what the thread has not done.
const CAUGHT_UP_MAX: usize = 256;

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

/// What a packet that was done in place still needs: its payload behind a head of its own, in the
/// queues of faces of the shard. Short payloads are copied with all else instead.
#[derive(Debug)]
pub(crate) enum Rest {
    /// Nothing but [`PushThread::hand_over`].
    Nothing,
    /// A frame for links.
    Links(Faces, Buf),
    /// Messages for applications: what stands in each packet from there on.
    Apps(Arc<[FaceId]>, usize),
}

/// Whether this is a publication, or a frame of one: nothing that may take long.
pub(crate) fn is_data(packet: &[u8]) -> bool {
    let is_publication = || {
        let message = Message::parse(packet);
        message.is_ok_and(|message| message.kind == kind::PUBLISH && message.length.is_none())
    };
    match PacketType::of(packet) {
        Some(PacketType::PushFrame) => {
            Head::parse(packet).is_ok_and(|head| head.strategy == Strategy::DOMAIN_LOCAL)
        }
        Some(PacketType::PushApp) => is_publication(),
        _ => false,
    }
}

impl PushThread {
    /// Whether not all of the `sent` packets that `shard` sent first are done.
    pub(crate) fn is_behind(&self, shard: usize, sent: u64) -> bool {
        self.taken[shard] < sent
    }

    /// Does what the first of the packets of a face of a shard asks for, when the `sent` packets
    /// that the shard sent the thread before are done, or are such that they can be done now; and
    /// what those behind it do, as far as they continue it. How many packets that were; `None`: it
    /// is nothing to be done in place, and nothing was done. What it brings for faces of the shard
    /// is there with [`PushThread::hand_over`], but for long payloads: those are returned, and the
    /// head that belongs before each is in `head`.
    pub(crate) fn in_place(
        &mut self,
        now: Tick,
        (shard, sent): (usize, u64),
        (face, packets): (FaceId, &FrameRow),
        head: &mut Vec<u8>,
    ) -> Option<(usize, Rest)> {
        self.now = self.now.max(now);
        let settings = &self.settings.node;
        let is_signed = settings.signing.is_some();
        let is_quick = !is_signed && settings.trusted.is_none();
        let mut done = 0;
        while is_quick && done < CAUGHT_UP_MAX && self.is_behind(shard, sent) && self.takes() {
            let batch = self.from[shard].next_short()?;
            done += batch.packets.len();
            self.obey_all(shard, batch);
        }
        if self.is_behind(shard, sent) || !self.takes() {
            return None;
        }
        let packet = packets.first();
        let is_app = PacketType::of(packet) == Some(PacketType::PushApp);
        if is_app {
            // A signature takes long.
            if is_signed {
                return None;
            }
            // Not before what waits for the shard.
            let apart = self.to[shard].is_empty().then_some(head);
            let rest = self.publish_in_place(shard, (face, packet), apart)?;
            self.carry_out();
            return Some((1, rest));
        }
        let handed = self.node.deliver_ready(face, packets.iter(), &mut self.output)?;
        self.carry_out();
        let Handed::To(Row { frames, payload_at, to: (apps, id) }) = handed else {
            return Some((1, Rest::Nothing));
        };
        let len = packet.len() - payload_at;
        let is_long = len > COPY_LEN_MAX && self.to[shard].is_empty();
        if let Some(faces) = is_long.then(|| self.all_at(shard, &apps)).flatten() {
            data_message(&id, &[]).write_head(len, head);
            return Some((frames, Rest::Apps(faces, payload_at)));
        }
        for octets in packets.iter().take(frames) {
            self.tell_all(&apps, &id, &octets[payload_at..]);
        }
        Some((frames, Rest::Nothing))
    }

    /// The frame of a publication leaves: returned, when all its links are faces of `shard`.
    pub(super) fn leave_apart(
        &mut self,
        shard: usize,
        faces: Faces,
        (head, payload): (&[u8], Buf),
    ) -> Rest {
        if faces.is_empty() {
            return Rest::Nothing;
        }
        if faces.iter().all(|face| self.shard_of(*face) == Some(shard)) {
            return Rest::Links(faces, payload);
        }
        self.output.join(faces, head, &payload);
        Rest::Nothing
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
        let due = self.node.data_timeout();
        if !self.late.is_empty() || due.is_some_and(|due| due < self.wakes_at) {
            self.bell.ring();
        }
        batch
    }
}
