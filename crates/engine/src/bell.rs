//! Wakes a thread that sleeps in its poller, without a system call while it is awake.
//!
//! The sleeper announces sleep, then looks at its queues; who puts something into one of them rings
//! afterwards. A sequentially consistent fence stands between the two steps on both sides, so one
//! of the two sees the other: no wake-up is lost. `tests/loom.rs` compiles this file with loom's
//! atomics and shows it for every execution of two threads.

use crate::sync::atomic::{AtomicBool, Ordering, fence};

/// What a thread waits on, beside its descriptors: an eventfd.
pub trait Wake {
    /// Ends the wait, or the next one.
    fn wake(&self);

    /// Takes wake-ups back, so that the next wait waits.
    fn clear(&self);
}

/// Wakes one thread.
#[derive(Debug)]
pub struct Bell<W> {
    waker: W,
    asleep: AtomicBool,
}

impl<W: Wake> Bell<W> {
    /// A bell that wakes whoever waits on `waker`.
    pub fn of(waker: W) -> Self {
        Self { waker, asleep: AtomicBool::new(false) }
    }

    /// What the thread waits on.
    pub fn waker(&self) -> &W {
        &self.waker
    }

    /// Called after something was put into a queue of the thread.
    pub fn ring(&self) {
        fence(Ordering::SeqCst);
        // The load spares the cache line of a thread that is awake.
        if self.asleep.load(Ordering::Relaxed) && self.claim() {
            self.waker.wake();
        }
    }

    /// Whether the thread slept and this caller is the one that wakes it.
    fn claim(&self) -> bool {
        let claimed =
            self.asleep.compare_exchange(true, false, Ordering::Relaxed, Ordering::Relaxed);
        claimed.is_ok()
    }

    /// Lets the thread that owns the bell sleep: `look` looks at its queues for the last time,
    /// `sleep` waits if nothing was found, and says whether the waker ended the wait.
    pub fn rest<C, T>(
        &self,
        context: &mut C,
        look: impl FnOnce(&mut C) -> T,
        sleep: impl FnOnce(&mut C, T) -> bool,
    ) {
        self.asleep.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        let found = look(context);
        let is_woken = sleep(context, found);
        let is_rung = !self.claim();
        // One who rang wakes a moment later and may come only after we went on. That wake-up ends
        // the next wait, and is taken back then, or every wait after it would end at once.
        if is_woken || is_rung {
            self.waker.clear();
        }
    }
}
