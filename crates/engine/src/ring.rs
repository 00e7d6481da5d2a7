//! A bounded ring from one thread to another, whose room is the credit of the sender.
//!
//! A fixed number of items go round: full ones to the receiver, emptied ones back, so that sending
//! allocates nothing. A sender without an emptied one says that it waits for room; the receiver
//! rings its bell when it gives one back. It is the protocol of [`Bell`] once more: the sender says
//! so and looks again, the receiver gives back and looks whether somebody waits, with a sequentially
//! consistent fence between the two steps on both sides. `tests/loom.rs` shows it for every
//! execution of two threads.
//!
//! A receiver must take from its rings whether or not it has room itself: then threads that are full
//! toward each other go on (`tests/full` shows that, and that they do not otherwise).

use crate::bell::{Bell, Wake};
use crate::sync::Arc;
use crate::sync::atomic::{AtomicBool, Ordering, fence};
use crate::sync::spsc::{Consumer, Producer, RingBuffer};

/// The sending end.
#[derive(Debug)]
pub struct Sender<T, W> {
    full: Producer<T>,
    emptied: Consumer<T>,
    /// Whether the sender waits for room.
    waits: Arc<AtomicBool>,
    /// The receiver's.
    bell: Arc<Bell<W>>,
}

/// The receiving end.
#[derive(Debug)]
pub struct Receiver<T, W> {
    full: Consumer<T>,
    emptied: Producer<T>,
    waits: Arc<AtomicBool>,
    /// The sender's.
    bell: Arc<Bell<W>>,
}

/// A ring of `depth` items, which `make` makes, from the thread of the first bell to that of the
/// second one.
pub fn ring<T, W: Wake>(
    depth: usize,
    from: &Arc<Bell<W>>,
    to: &Arc<Bell<W>>,
    mut make: impl FnMut() -> T,
) -> (Sender<T, W>, Receiver<T, W>) {
    let (full, taken) = RingBuffer::new(depth);
    // The item that the sender fills is one more: giving back never fails.
    let (mut back, emptied) = RingBuffer::new(depth + 1);
    for _ in 0..depth {
        let _ = back.push(make());
    }
    let waits = Arc::new(AtomicBool::new(false));
    (
        Sender { full, emptied, waits: Arc::clone(&waits), bell: Arc::clone(to) },
        Receiver { full: taken, emptied: back, waits, bell: Arc::clone(from) },
    )
}

impl<T, W: Wake> Sender<T, W> {
    /// Sends `item`, which is an emptied one afterwards, and wakes the receiver. `false`: there is no
    /// room, and the bell of the sender is rung when there is.
    pub fn send(&mut self, item: &mut T) -> bool {
        let Some(emptied) = self.emptied() else { return false };
        let item = std::mem::replace(item, emptied);
        let sent = self.full.push(item);
        debug_assert!(sent.is_ok(), "there is room");
        self.bell.ring();
        true
    }

    /// An emptied item; without one the receiver knows from now on that somebody waits.
    fn emptied(&mut self) -> Option<T> {
        if let Some(emptied) = self.emptied_now() {
            return Some(emptied);
        }
        self.waits.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.emptied_now()
    }

    fn emptied_now(&mut self) -> Option<T> {
        if self.has_room() { self.emptied.pop().ok() } else { None }
    }

    /// Whether there is room. Who was refused looks at this before it sleeps.
    pub fn has_room(&self) -> bool {
        !self.full.is_full() && !self.emptied.is_empty()
    }
}

impl<T, W: Wake> Receiver<T, W> {
    /// Whether something waits.
    pub fn has_next(&self) -> bool {
        !self.full.is_empty()
    }

    /// What is next; it is given back with [`Receiver::give_back`].
    pub fn take(&mut self) -> Option<T> {
        self.full.pop().ok()
    }

    /// Gives an emptied item back, and wakes the sender if that waits for room. One more than went
    /// round is dropped.
    pub fn give_back(&mut self, emptied: T) {
        let _ = self.emptied.push(emptied);
        fence(Ordering::SeqCst);
        // The load spares the cache line of a sender that has room.
        if self.waits.load(Ordering::Relaxed) && self.waits.swap(false, Ordering::Relaxed) {
            self.bell.ring();
        }
    }
}
