//! Every execution of a thread that rests and one that rings, and of a sender that waits for room
//! in a ring, as the memory model allows them.

#![allow(clippy::unwrap_used)]

use loom::sync::atomic::{AtomicUsize, Ordering};
use loom::sync::{Arc, Condvar, Mutex};
use loom::thread;

/// What the sources find as `crate::sync` here.
pub mod sync {
    pub use crate::spsc;
    pub use loom::sync::{Arc, Mutex};
    /// Loom's atomics in place of the standard library's.
    pub mod atomic {
        pub use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering, fence};
    }
}

#[path = "../src/bell.rs"]
pub mod bell;
#[path = "../src/ring.rs"]
pub mod ring;
pub mod spsc;

use bell::{Bell, Wake};
use ring::ring;

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

/// A sender that was refused sleeps until its receiver has given something back.
#[test]
fn who_waits_for_room_in_a_ring_is_woken() {
    loom::model(|| {
        let bells = [(); 2].map(|()| Arc::new(Bell::of(EventFd::default())));
        let (mut to, mut from) = ring(1, &bells[0], &bells[1], || 0);
        let mut item = 1;
        assert!(to.send(&mut item) && item == 0);
        let receiver = thread::spawn(move || {
            let item = from.take();
            assert_eq!(item, Some(1));
            from.give_back(0);
            from
        });
        item = 2;
        while !to.send(&mut item) {
            let look = |to: &mut ring::Sender<i32, EventFd>| to.has_room();
            let sleep = |_: &mut _, has_room: bool| match has_room {
                true => bells[0].waker().is_set(),
                false => bells[0].waker().wait(),
            };
            bells[0].rest(&mut to, look, sleep);
        }
        let mut from = receiver.join().unwrap();
        assert_eq!((from.take(), from.take()), (Some(2), None));
    });
}

/// The same with one fence taken out, as above: what is given back is all that is modelled of a ring.
fn check_room_without_fence(is_missing_at_sender: bool) {
    use loom::sync::atomic::{AtomicBool, fence};
    loom::model(move || {
        let (waits, fd) = (Arc::new(AtomicBool::new(false)), Arc::new(EventFd::default()));
        let emptied = Arc::new(AtomicUsize::new(0));
        let (asked, given, rung) = (waits.clone(), emptied.clone(), fd.clone());
        thread::spawn(move || {
            given.store(1, Ordering::Release);
            if is_missing_at_sender {
                fence(Ordering::SeqCst);
            }
            if asked.load(Ordering::Relaxed) && asked.swap(false, Ordering::Relaxed) {
                rung.wake();
            }
        });
        waits.store(true, Ordering::Relaxed);
        if !is_missing_at_sender {
            fence(Ordering::SeqCst);
        }
        if emptied.load(Ordering::Acquire) == 0 {
            fd.wait();
        }
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_of_who_gives_back_a_sender_waits_in_vain() {
    check_room_without_fence(false);
}

#[test]
#[should_panic(expected = "deadlock")]
fn without_the_fence_of_who_waits_for_room_it_waits_in_vain() {
    check_room_without_fence(true);
}

/// A thread that tells a second one something, and a third one what announces it; the third has the
/// second do something because of that. How the second looks at what it is told, by then.
fn tells(is_announced_first: bool) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(2);
    model.check(move || {
        let bells = [(); 3].map(|()| Arc::new(Bell::of(EventFd::default())));
        let (mut change, mut changes) = ring(1, &bells[0], &bells[1], || 0);
        let (mut announce, mut announced) = ring(1, &bells[0], &bells[2], || 0);
        let (mut act, mut acts) = ring(1, &bells[2], &bells[1], || 0);
        thread::spawn(move || {
            if is_announced_first {
                announce.send(&mut 2);
            }
            change.send(&mut 1);
            if !is_announced_first {
                announce.send(&mut 2);
            }
        });
        thread::spawn(move || {
            if announced.take().is_some() {
                act.send(&mut 3);
            }
        });
        if acts.take().is_some() {
            assert_eq!(changes.take(), Some(1), "what it acts on is not there");
        }
    });
}

#[test]
fn a_change_that_is_told_before_its_announcement_is_found_by_who_acts_because_of_that() {
    tells(false);
}

#[test]
#[should_panic(expected = "what it acts on is not there")]
fn a_change_that_is_told_behind_its_announcement_is_missed() {
    tells(true);
}
