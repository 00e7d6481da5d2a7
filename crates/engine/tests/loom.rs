//! Every execution of a thread that rests and one that rings, as the memory model allows them.

#![allow(clippy::unwrap_used)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// What `src/bell.rs` finds as `crate::sync` here.
pub mod sync {
    /// Loom's atomics in place of the standard library's.
    pub mod atomic {
        pub use loom::sync::atomic::{AtomicBool, Ordering, fence};
    }
}

#[path = "../src/bell.rs"]
pub mod bell;

use bell::{Bell, Wake};

/// An eventfd and the wait for it. A wait without a wake-up is a deadlock, which loom reports.
#[derive(Debug, Default)]
struct EventFd {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl Wake for EventFd {
    fn wake(&self) {
        *self.is_set.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn clear(&self) {
        *self.is_set.lock().unwrap() = false;
    }
}

impl EventFd {
    fn wait(&self) -> bool {
        let mut is_set = self.is_set.lock().unwrap();
        while !*is_set {
            is_set = self.changed.wait(is_set).unwrap();
        }
        true
    }

    fn is_set(&self) -> bool {
        *self.is_set.lock().unwrap()
    }
}

/// Rests until `wanted` items are in the queue, whose length is all that is modelled of it.
fn take(bell: &Bell<EventFd>, queue: &AtomicUsize, wanted: usize) {
    let mut taken = 0;
    while taken < wanted {
        let look = |taken: &mut usize| queue.load(Ordering::Relaxed) > *taken;
        let sleep = |_: &mut usize, has_work: bool| match has_work {
            true => bell.waker().is_set(),
            false => bell.waker().wait(),
        };
        bell.rest(&mut taken, look, sleep);
        taken = queue.load(Ordering::Relaxed);
    }
}

fn check(puts: usize) {
    loom::model(move || {
        let bell = Arc::new(Bell::of(EventFd::default()));
        let queue = Arc::new(AtomicUsize::new(0));
        let (rung, filled) = (Arc::clone(&bell), Arc::clone(&queue));
        let sender = thread::spawn(move || {
            for _ in 0..puts {
                filled.fetch_add(1, Ordering::Relaxed);
                rung.ring();
            }
        });
        take(&bell, &queue, puts);
        sender.join().unwrap();
        // A wake-up that came late ends one wait and no more.
        let poll = |_: &mut (), ()| bell.waker().is_set();
        bell.rest(&mut (), |()| (), poll);
        assert!(!bell.waker().is_set(), "the thread would never sleep again");
    });
}

#[test]
fn no_wake_up_is_lost_and_none_stays() {
    check(1);
}

#[test]
fn two_wake_ups_in_a_row_are_not_lost() {
    check(2);
}

/// The protocol with one fence taken out, so that the tests above are known to be able to fail.
fn check_without_fence(is_missing_at_ring: bool) {
    use loom::sync::atomic::{AtomicBool, fence};
    loom::model(move || {
        let asleep = Arc::new(AtomicBool::new(false));
        let (queue, fd) = (Arc::new(AtomicUsize::new(0)), Arc::new(EventFd::default()));
        let (sleeper, filled, rung) = (asleep.clone(), queue.clone(), fd.clone());
        thread::spawn(move || {
            filled.fetch_add(1, Ordering::Relaxed);
            if !is_missing_at_ring {
                fence(Ordering::SeqCst);
            }
            if sleeper.load(Ordering::Relaxed) && sleeper.swap(false, Ordering::Relaxed) {
                rung.wake();
            }
        });
        asleep.store(true, Ordering::Relaxed);
        if is_missing_at_ring {
            fence(Ordering::SeqCst);
        }
        if queue.load(Ordering::Relaxed) == 0 {
            fd.wait();
        }
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_of_who_rings_a_wake_up_is_lost() {
    check_without_fence(true);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_of_who_rests_a_wake_up_is_lost() {
    check_without_fence(false);
}
