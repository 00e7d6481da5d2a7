//! Orders to an engine: a bounded queue, and the bell of the thread.
//!
//! The queue is behind a lock that is held for a push or a swap. A round of the engine looks at a
//! counter first and takes the lock only when an order waits, then takes all of them at once.

use crate::bell::{Bell, Wake};
use crate::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::collections::VecDeque;
use std::fmt;
use std::time::{Duration, Instant};

/// A thread that takes no order for so long is broken.
pub const PATIENCE: Duration = Duration::from_secs(10);

/// An order that was not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused<O> {
    /// As many orders wait as may.
    Full(O),
    /// The thread has ended.
    Closed(O),
}

/// What a thread did so far; others may read it.
#[derive(Debug, Default)]
pub struct Load {
    rounds: AtomicU64,
    busy_ns: AtomicU64,
}

impl Load {
    /// Rounds made.
    pub fn rounds(&self) -> u64 {
        self.rounds.load(Ordering::Relaxed)
    }

    /// Time spent not waiting, in nanoseconds.
    pub fn busy_ns(&self) -> u64 {
        self.busy_ns.load(Ordering::Relaxed)
    }

    /// Counts a round; only the thread itself does so.
    pub(crate) fn add_round(&self, busy: Duration) {
        let spent = u64::try_from(busy.as_nanos()).unwrap_or(u64::MAX);
        self.rounds.store(self.rounds() + 1, Ordering::Relaxed);
        self.busy_ns.store(self.busy_ns().saturating_add(spent), Ordering::Relaxed);
    }
}

struct Queue<O> {
    orders: VecDeque<O>,
    is_open: bool,
}

struct Shared<O, W> {
    queue: Mutex<Queue<O>>,
    orders_max: usize,
    /// Orders in the queue, for a look without the lock.
    waiting: AtomicUsize,
    /// Orders were taken out of a full queue, or the thread ended.
    room: Condvar,
    bell: Arc<Bell<W>>,
    load: Arc<Load>,
}

impl<O, W> Shared<O, W> {
    /// Nothing panics while it holds the queue.
    fn queue(&self) -> MutexGuard<'_, Queue<O>> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<O, W> fmt::Debug for Shared<O, W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Mailbox").field("orders_max", &self.orders_max).finish_non_exhaustive()
    }
}

/// Both ends of a mailbox of at most `orders_max` orders, for the thread that owns `bell`.
pub fn mailbox<O, W: Wake>(bell: &Arc<Bell<W>>, orders_max: usize) -> (Port<O, W>, Mailbox<O, W>) {
    let shared = Arc::new(Shared {
        queue: Mutex::new(Queue { orders: VecDeque::new(), is_open: true }),
        orders_max: orders_max.max(1),
        waiting: AtomicUsize::new(0),
        room: Condvar::new(),
        bell: Arc::clone(bell),
        load: Arc::default(),
    });
    (Port { shared: Arc::clone(&shared) }, Mailbox { shared, taken: VecDeque::new() })
}

/// Puts orders into a mailbox.
#[derive(Debug)]
pub struct Port<O, W> {
    shared: Arc<Shared<O, W>>,
}

impl<O, W> Clone for Port<O, W> {
    fn clone(&self) -> Self {
        Self { shared: Arc::clone(&self.shared) }
    }
}

impl<O, W: Wake> Port<O, W> {
    /// Has `order` carried out, without waiting for anything.
    ///
    /// # Errors
    /// The mailbox is full, or its thread has ended.
    pub fn try_send(&self, order: O) -> Result<(), Refused<O>> {
        let queue = self.shared.queue();
        if queue.is_open && queue.orders.len() >= self.shared.orders_max {
            return Err(Refused::Full(order));
        }
        self.put(queue, order)
    }

    /// Has `order` carried out; waits for room in the mailbox, at most [`PATIENCE`]. Not for threads
    /// of engines.
    ///
    /// # Errors
    /// There was no room for so long, or the thread has ended.
    pub fn send(&self, order: O) -> Result<(), Refused<O>> {
        let begin = Instant::now();
        let mut queue = self.shared.queue();
        while queue.is_open && queue.orders.len() >= self.shared.orders_max {
            let left = PATIENCE.saturating_sub(begin.elapsed());
            if left.is_zero() {
                return Err(Refused::Full(order));
            }
            let waited = self.shared.room.wait_timeout(queue, left);
            queue = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        self.put(queue, order)
    }

    fn put(&self, mut queue: MutexGuard<'_, Queue<O>>, order: O) -> Result<(), Refused<O>> {
        if !queue.is_open {
            return Err(Refused::Closed(order));
        }
        queue.orders.push_back(order);
        self.shared.waiting.store(queue.orders.len(), Ordering::Relaxed);
        drop(queue);
        self.shared.bell.ring();
        Ok(())
    }

    /// The bell of the thread.
    pub fn bell(&self) -> &Arc<Bell<W>> {
        &self.shared.bell
    }

    /// What the thread did so far.
    pub fn load(&self) -> &Load {
        &self.shared.load
    }
}

/// The receiving end. Dropped, it closes the mailbox and drops the orders in it, with their means
/// to answer.
#[derive(Debug)]
pub struct Mailbox<O, W> {
    shared: Arc<Shared<O, W>>,
    /// Orders that were taken out of the queue together.
    taken: VecDeque<O>,
}

impl<O, W> Mailbox<O, W> {
    /// Whether an order waits.
    pub fn has_orders(&self) -> bool {
        !self.taken.is_empty() || self.shared.waiting.load(Ordering::Relaxed) > 0
    }

    /// Takes the orders that wait, all at once, for [`Mailbox::pop`].
    pub fn take(&mut self) {
        if self.taken.is_empty() && self.has_orders() {
            let mut queue = self.shared.queue();
            std::mem::swap(&mut queue.orders, &mut self.taken);
            self.shared.waiting.store(0, Ordering::Relaxed);
            drop(queue);
            self.shared.room.notify_all();
        }
    }

    /// The next order of those that were taken: what comes meanwhile waits for the next round.
    pub fn pop(&mut self) -> Option<O> {
        self.taken.pop_front()
    }

    /// The bell of the thread.
    pub fn bell(&self) -> &Arc<Bell<W>> {
        &self.shared.bell
    }

    /// What the thread did so far.
    pub fn load(&self) -> &Arc<Load> {
        &self.shared.load
    }
}

impl<O, W> Drop for Mailbox<O, W> {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_open = false;
        let orders = std::mem::take(&mut queue.orders);
        drop(queue);
        // An order may hold a port; it is dropped without the lock.
        drop(orders);
        self.shared.room.notify_all();
    }
}
