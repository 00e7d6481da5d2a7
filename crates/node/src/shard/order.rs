//! What the control thread asks of a shard: a closure run between two rounds.

use super::Shard;
use crate::cross::Bell;
use onym_frame::RxFrame;
use onym_tables::FaceId;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{self, Sender};
use std::time::Duration;

/// Work for a shard, done by its thread between two rounds.
pub(crate) struct Order(pub(crate) Box<dyn FnOnce(&mut Shard) + Send>);

impl std::fmt::Debug for Order {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Order")
    }
}

/// A shard as the control thread sees it.
#[derive(Debug, Clone)]
pub(crate) struct ShardPort {
    pub(crate) orders: Sender<Order>,
    pub(crate) bell: Arc<Bell>,
    /// Frames under way to the shard by [`ShardPort::frame`].
    pub(crate) frames: Arc<AtomicUsize>,
}

/// Most frames under way to a shard that did not come by the face's own transport.
const FRAMES_MAX: usize = 1024;

/// A shard that does not answer for so long is broken.
const ANSWER_MAX: Duration = Duration::from_secs(10);

impl ShardPort {
    /// Has `work` done, without waiting for it.
    pub(crate) fn tell(&self, work: impl FnOnce(&mut Shard) + Send + 'static) {
        // A shard that ended takes no orders; nothing depends on it any more.
        let _ = self.orders.send(Order(Box::new(work)));
        self.bell.ring();
    }

    /// Hands over a frame of `id` that came another way than by its transport; whether it was
    /// taken. It is refused when the shard does not keep up.
    pub(crate) fn frame(&self, id: FaceId, frame: RxFrame) -> bool {
        if self.frames.fetch_add(1, Ordering::Relaxed) >= FRAMES_MAX {
            self.frames.fetch_sub(1, Ordering::Relaxed);
            return false;
        }
        let under_way = Arc::clone(&self.frames);
        self.tell(move |shard| {
            under_way.fetch_sub(1, Ordering::Relaxed);
            shard.frames(id, vec![frame]);
        });
        true
    }

    /// Has `work` done and returns its result; `None` when the shard ended.
    pub(crate) fn ask<R: Send + 'static>(
        &self,
        work: impl FnOnce(&mut Shard) -> R + Send + 'static,
    ) -> Option<R> {
        let (tx, rx) = mpsc::sync_channel(1);
        self.tell(move |shard| {
            let _ = tx.send(work(shard));
        });
        rx.recv_timeout(ANSWER_MAX).ok()
    }
}

/// Has `work` done by all shards, at the same time, and returns the results in order.
/// Shards that ended are missing.
pub(crate) fn ask_all<R: Send + 'static>(
    ports: &[ShardPort],
    work: impl Fn(&mut Shard) -> R + Clone + Send + 'static,
) -> Vec<R> {
    let asked: Vec<_> = ports
        .iter()
        .map(|port| {
            let (tx, rx) = mpsc::sync_channel(1);
            let work = work.clone();
            port.tell(move |shard| {
                let _ = tx.send(work(shard));
            });
            rx
        })
        .collect();
    asked.into_iter().filter_map(|rx| rx.recv_timeout(ANSWER_MAX).ok()).collect()
}
