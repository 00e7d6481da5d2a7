//! A subscriber: reads the memory.

use crate::BoardError;
use crate::grant;
use crate::layout::{Entry, FLOOR, GOAL, Layout, TAIL};
use crate::seat::{self, HEAD, PIN, SLEEPS};
use onym_sys::shm::SharedMemory;
use onym_sys::words::{WordView, Words};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;
use std::time::{Duration, Instant};

/// How often a subscriber that finds nothing lets others run before it sleeps. A sleep costs its
/// publisher a system call, and where publications come in a row the next one is there after a
/// turn of the others.
const YIELDS: u32 = 16;

/// What comes next for a subscriber.
#[derive(Debug)]
pub enum Reception<'a> {
    /// A publication.
    Item(Item<'a>),
    /// So many publications are gone that were not read in time; what follows comes after them.
    Missed(u64),
}

/// A subscriber of a blackboard.
#[derive(Debug)]
pub struct Subscriber {
    view: WordView,
    page: SharedMemory,
    socket: OwnedFd,
    layout: Layout,
    /// The publication that comes next.
    next: u64,
    /// The publisher's position when it was last looked at.
    tail: u64,
    /// The goal of the publisher that was last answered.
    answered: u64,
    missed: u64,
    is_over: bool,
}

/// Where the next publication is.
enum Found {
    Nothing,
    Missed(u64),
    At(Entry),
}

impl Subscriber {
    /// Waits, for `patience` at most, until the publisher at the other end of `socket` admits us.
    ///
    /// # Errors
    /// [`BoardError::Refused`], [`BoardError::Silent`], [`BoardError::Ended`];
    /// [`BoardError::Grant`] and [`BoardError::Io`] when what it gives cannot be used.
    pub fn attach(socket: OwnedFd, patience: Duration) -> Result<Self, BoardError> {
        let end = Instant::now() + patience;
        let (layout, first, memory, seat) = loop {
            if let Some(granted) = grant::hear(&socket)? {
                break granted;
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(BoardError::Silent);
            }
            wait(&socket, left)?;
        };
        let words = layout.check().ok_or(BoardError::Lie("a memory of impossible size"))?;
        let view = WordView::map(&memory, words)
            .map_err(|e| BoardError::io("mapping the memory of a blackboard", e))?;
        let page = SharedMemory::map(&seat, 0).map_err(|e| BoardError::io("mapping a seat", e))?;
        let subscriber = Self {
            view,
            page,
            socket,
            layout,
            next: first,
            tail: first,
            answered: 0,
            missed: 0,
            is_over: false,
        };
        subscriber.page.words()[HEAD].store(first, Release);
        Ok(subscriber)
    }

    /// What comes next, without waiting; `None` when there is nothing yet.
    ///
    /// # Errors
    /// [`BoardError::Lie`] when the publisher broke the rules; the subscriber is of no use then.
    pub fn receive(&mut self) -> Result<Option<Reception<'_>>, BoardError> {
        Ok(match self.find()? {
            Found::Nothing => None,
            Found::Missed(count) => Some(Reception::Missed(count)),
            Found::At(entry) => Some(Reception::Item(Item { subscriber: self, entry })),
        })
    }

    /// What comes next, waiting for `patience` at most; `None` when nothing came.
    ///
    /// # Errors
    /// As [`Subscriber::receive`]; [`BoardError::Ended`] when the publisher is gone and everything
    /// was read; [`BoardError::Io`].
    pub fn receive_within(
        &mut self,
        patience: Duration,
    ) -> Result<Option<Reception<'_>>, BoardError> {
        let (mut end, mut yields) = (None, 0);
        let found = loop {
            match self.find()? {
                Found::Nothing => {}
                found => break found,
            }
            if self.is_over {
                return Err(BoardError::Ended);
            }
            if yields < YIELDS {
                yields += 1;
                std::thread::yield_now();
                continue;
            }
            if !self.sleep() {
                continue;
            }
            let now = Instant::now();
            let left = end.get_or_insert(now + patience).saturating_duration_since(now);
            if left.is_zero() {
                self.wake();
                return Ok(None);
            }
            wait(&self.socket, left)?;
            self.wake();
        };
        Ok(match found {
            Found::Missed(count) => Some(Reception::Missed(count)),
            Found::At(entry) => Some(Reception::Item(Item { subscriber: self, entry })),
            Found::Nothing => None,
        })
    }

    /// Asks to be woken by something to read on [`Subscriber::fd`]; false when there is something
    /// to receive already. For event loops: after the wake-up comes [`Subscriber::wake`].
    pub fn sleep(&mut self) -> bool {
        let sleeps = &self.page.words()[SLEEPS];
        sleeps.store(1, Relaxed);
        // Dekker: the publisher publishes and then looks whether we sleep.
        fence(SeqCst);
        if self.view.load(TAIL, Relaxed) == self.next {
            return true;
        }
        sleeps.store(0, Relaxed);
        false
    }

    /// Says that we do not sleep any more and takes wake-ups off the socket.
    pub fn wake(&mut self) {
        self.page.words()[SLEEPS].store(0, Relaxed);
        self.is_over |= !seat::hear(&self.socket);
    }

    /// Becomes readable by a wake-up or the end of the publisher.
    #[must_use]
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Whether the publisher was found to be gone; what it published before can still be received.
    #[must_use]
    pub const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Publications that were missed so far, all of them told by [`Reception::Missed`].
    #[must_use]
    pub const fn missed(&self) -> u64 {
        self.missed
    }

    fn find(&mut self) -> Result<Found, BoardError> {
        if self.next == self.tail {
            let tail = self.view.load(TAIL, Acquire);
            if tail < self.tail {
                return Err(BoardError::Lie("its publications became fewer"));
            }
            if tail == self.next {
                return Ok(Found::Nothing);
            }
            self.tail = tail;
        }
        let entry = Entry::of(self.view.load(self.layout.entry(self.next), Relaxed));
        let pin = &self.page.words()[PIN];
        pin.store(u64::from(entry.slot) + 1, Release);
        // Dekker: the publisher raises the floor and then looks for pins. Either it sees ours, or
        // we see that the publication is gone.
        fence(SeqCst);
        let floor = self.view.load(FLOOR, Acquire);
        if floor > self.next {
            pin.store(0, Release);
            return self.skip(floor);
        }
        let fits = (entry.slot as usize) < self.layout.slots
            && entry.octets as usize <= self.layout.slot_words * 8;
        if !fits {
            return Err(BoardError::Lie("a publication lies outside of the memory"));
        }
        Ok(Found::At(entry))
    }

    /// Goes on in the middle of what can still be read, so as not to be overtaken at once again.
    #[cold]
    fn skip(&mut self, floor: u64) -> Result<Found, BoardError> {
        let tail = self.view.load(TAIL, Acquire);
        if tail < floor || tail < self.tail {
            return Err(BoardError::Lie("it forgets more than it has published"));
        }
        self.tail = tail;
        // Both came from the publisher at different times.
        let newest = (tail - floor).min(self.layout.entries as u64);
        let next = tail - newest / 2;
        let count = next - self.next;
        self.next = next;
        self.missed += count;
        self.report();
        Ok(Found::Missed(count))
    }

    /// Tells the publisher how far we are, and wakes it when it waits for that.
    fn report(&mut self) {
        self.page.words()[HEAD].store(self.next, Release);
        fence(SeqCst);
        let goal = self.view.load(GOAL, Relaxed);
        if goal != 0 && goal != self.answered && self.next >= goal {
            self.answered = goal;
            self.is_over |= !seat::wake(&self.socket);
        }
    }
}

fn wait(socket: &OwnedFd, left: Duration) -> Result<(), BoardError> {
    let mut fds = [PollFd::new(socket, PollFlags::IN)];
    match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(e) => Err(BoardError::io("waiting for publications", e)),
    }
}

/// A publication, read where its publisher wrote it. While it is held, nobody writes there.
#[derive(Debug)]
pub struct Item<'a> {
    subscriber: &'a mut Subscriber,
    entry: Entry,
}

impl Item<'_> {
    /// Which publication of the blackboard it is, from 0.
    #[inline]
    #[must_use]
    pub const fn number(&self) -> u64 {
        self.subscriber.next
    }

    /// Octets.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entry.octets as usize
    }

    /// Whether it has no octets.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entry.octets == 0
    }

    /// The words that it fills wholly or in part, in place; what follows the last octet within the
    /// last word means nothing.
    #[inline]
    #[must_use]
    pub fn words(&self) -> Words<'_> {
        let Subscriber { layout, view, .. } = &*self.subscriber;
        view.words(layout.slot(self.entry.slot), self.len().div_ceil(8))
    }

    /// Copies octets out, from `offset` on.
    ///
    /// # Panics
    /// If they are not within the publication.
    pub fn read(&self, offset: usize, out: &mut [u8]) {
        assert!(offset + out.len() <= self.len(), "octets beyond the publication");
        self.words().read(offset, out);
    }

    /// A copy of all octets.
    #[must_use]
    pub fn to_vec(&self) -> Vec<u8> {
        let mut out = vec![0; self.len()];
        self.read(0, &mut out);
        out
    }
}

impl Drop for Item<'_> {
    fn drop(&mut self) {
        self.subscriber.page.words()[PIN].store(0, Release);
        self.subscriber.next += 1;
        self.subscriber.report();
    }
}
