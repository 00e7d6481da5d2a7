//! The publisher: writes the memory.

use crate::BoardError;
use crate::grant::{self, Message};
use crate::layout::{Config, Entry, FLOOR, GOAL, Layout, TAIL};
use crate::seat::{self, HEAD, PIN, SLEEPS};
use onym_sys::shm::SharedMemory;
use onym_sys::words::WordMemory;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::Errno;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::fence;
use std::time::{Duration, Instant};

/// Publications after which the sockets of subscribers are looked at for those that are gone.
const TEND_EVERY: u64 = 4096;

/// A subscriber, as its publisher sees it.
#[derive(Debug)]
struct Seat {
    page: SharedMemory,
    socket: OwnedFd,
    is_gone: bool,
}

impl Seat {
    #[inline]
    fn word(&self, word: usize) -> &std::sync::atomic::AtomicU64 {
        &self.page.words()[word]
    }

    /// Wakes it when it sleeps.
    #[inline]
    fn rouse(&mut self) {
        let sleeps = self.word(SLEEPS);
        if sleeps.load(Relaxed) != 0 && sleeps.swap(0, Relaxed) != 0 {
            self.is_gone |= !seat::wake(&self.socket);
        }
    }
}

/// The publisher of a blackboard. Publishing never waits, for nobody.
#[derive(Debug)]
pub struct Publisher {
    memory: WordMemory,
    fd: OwnedFd,
    layout: Layout,
    payload_max: usize,
    subscribers_max: usize,
    seats: Vec<Seat>,
    tail: u64,
    floor: u64,
    /// The slot of each entry; what the memory says of it is for others.
    slots: Box<[u32]>,
    /// Slots that nobody reads.
    free: Vec<u32>,
    /// Slots of old publications that a subscriber was reading when they left the ring.
    held: Vec<u32>,
    /// What each subscriber holds, looked at once.
    pins: Vec<u64>,
    /// No subscriber wants an older publication than this one, as far as is known.
    read_by_all: u64,
    liars: u64,
}

impl Publisher {
    /// A blackboard without subscribers and publications.
    ///
    /// # Errors
    /// [`BoardError::Config`] when it would be too large; [`BoardError::Io`] when the system does
    /// not give the memory.
    pub fn new(config: &Config) -> Result<Self, BoardError> {
        let layout = Layout::of(config)?;
        let words = layout.check().ok_or(BoardError::Config("more than 1 GiB of memory"))?;
        let (memory, fd) = WordMemory::create("onym-board", words)
            .map_err(|e| BoardError::io("making the memory of a blackboard", e))?;
        let slots = u32::try_from(layout.slots).expect("invariant: slots are bounded");
        Ok(Self {
            memory,
            fd,
            layout,
            payload_max: config.payload_max,
            subscribers_max: config.subscribers_max,
            seats: Vec::new(),
            tail: 0,
            floor: 0,
            slots: vec![0; layout.entries].into(),
            // The last one is taken first.
            free: (0..slots).rev().collect(),
            held: Vec::with_capacity(config.subscribers_max + 2),
            pins: Vec::with_capacity(config.subscribers_max),
            read_by_all: 0,
            liars: 0,
        })
    }

    /// Admits the subscriber at the other end of `socket`, a connected Unix stream socket: it gets
    /// every publication from now on.
    ///
    /// # Errors
    /// [`BoardError::Full`], which the subscriber is told; [`BoardError::Ended`] when it is gone;
    /// [`BoardError::Io`].
    pub fn admit(&mut self, socket: OwnedFd) -> Result<(), BoardError> {
        if self.seats.len() >= self.subscribers_max {
            self.tend();
        }
        if self.seats.len() >= self.subscribers_max {
            let full = BoardError::Full(self.subscribers_max);
            // That it cannot be told does not matter: it sees the end of the connection.
            let _ = grant::send(&socket, &Message::Refusal(full.to_string()), &[]);
            return Err(full);
        }
        let (page, page_fd) =
            SharedMemory::create("onym-seat", 0).map_err(|e| BoardError::io("making a seat", e))?;
        page.words()[HEAD].store(self.tail, Relaxed);
        let grant = Message::Grant { layout: self.layout, first: self.tail };
        grant::send(&socket, &grant, &[self.fd.as_fd(), page_fd.as_fd()])?;
        self.seats.push(Seat { page, socket, is_gone: false });
        Ok(())
    }

    /// How many subscribers there are; those that left are noticed by [`Publisher::tend`].
    #[must_use]
    pub fn subscribers(&self) -> usize {
        self.seats.len()
    }

    /// Number of the next publication: how many there were.
    #[must_use]
    pub const fn published(&self) -> u64 {
        self.tail
    }

    /// Subscribers that were sent away because they claimed what cannot be.
    #[must_use]
    pub const fn liars(&self) -> u64 {
        self.liars
    }

    /// Publishes `payload`; its number.
    ///
    /// # Errors
    /// [`BoardError::TooLong`].
    pub fn publish(&mut self, payload: &[u8]) -> Result<u64, BoardError> {
        let mut loan = self.loan(payload.len())?;
        loan.write(0, payload);
        Ok(loan.publish())
    }

    /// A slot for a publication of `octets` octets, to be written in place. What it holds before is
    /// an old publication.
    ///
    /// # Errors
    /// [`BoardError::TooLong`].
    pub fn loan(&mut self, octets: usize) -> Result<Loan<'_>, BoardError> {
        let most = self.payload_max;
        let octets = u32::try_from(octets)
            .ok()
            .filter(|octets| *octets as usize <= most)
            .ok_or(BoardError::TooLong { octets, most })?;
        let slot = self.free.pop().unwrap_or_else(|| self.reclaim());
        Ok(Loan { entry: Entry { slot, octets }, publisher: self, is_published: false })
    }

    /// A slot of those that subscribers held: there is one more than subscribers.
    #[cold]
    fn reclaim(&mut self) -> u32 {
        let Self { held, free, seats, pins, .. } = self;
        // Each pin is read once: one that changes meanwhile must not count for two slots.
        pins.clear();
        pins.extend(seats.iter().map(|seat| seat.word(PIN).load(Acquire)));
        held.retain(|slot| {
            let is_pinned = pins.contains(&pin_of(*slot));
            if !is_pinned {
                free.push(*slot);
            }
            is_pinned
        });
        free.pop().expect("invariant: a subscriber holds one slot at most")
    }

    fn commit(&mut self, entry: Entry) -> u64 {
        let number = self.tail;
        let words = self.memory.words();
        words[self.layout.entry(number)].store(entry.word(), Relaxed);
        self.slots[self.layout.index(number)] = entry.slot;
        self.tail += 1;
        words[TAIL].store(self.tail, Release);
        // The entry that comes next is taken out of the ring now, so that one fence does for all:
        // who still reads it has said so before, or sees the floor.
        let floor = (self.tail + 1).saturating_sub(self.layout.entries as u64);
        let leaving = (floor > self.floor).then(|| self.slots[self.layout.index(self.floor)]);
        self.floor = floor.max(self.floor);
        words[FLOOR].store(self.floor, Release);
        fence(SeqCst);
        let pin = leaving.map_or(0, pin_of);
        let (mut is_pinned, mut read_by_all) = (false, self.tail);
        for seat in &mut self.seats {
            seat.rouse();
            is_pinned |= seat.word(PIN).load(Acquire) == pin;
            read_by_all = read_by_all.min(seat.word(HEAD).load(Acquire));
        }
        match leaving {
            Some(slot) if is_pinned => self.held.push(slot),
            Some(slot) => self.free.push(slot),
            None => {}
        }
        self.release(read_by_all);
        if number % TEND_EVERY == TEND_EVERY - 1 {
            self.tend();
        }
        number
    }

    /// Gives back the slots of publications before `read_by_all`, which no subscriber wants any more:
    /// while subscribers keep up, the slots that were written last are written again, out of the
    /// caches that still have them.
    fn release(&mut self, read_by_all: u64) {
        while self.floor < read_by_all {
            self.free.push(self.slots[self.layout.index(self.floor)]);
            self.floor += 1;
        }
        self.read_by_all = read_by_all;
    }

    /// Notices subscribers that are gone and gives their seats and slots back.
    pub fn tend(&mut self) {
        for seat in &mut self.seats {
            seat.is_gone |= !seat::hear(&seat.socket);
        }
        self.seats.retain(|seat| !seat.is_gone);
    }

    /// Publishes `payload` after every subscriber has read what it would push out: nobody misses
    /// anything, and the slowest one sets the pace. After `patience` it is published all the same,
    /// and who is slow is told what it missed.
    ///
    /// # Errors
    /// [`BoardError::TooLong`]; [`BoardError::Io`] when waiting fails.
    pub fn publish_to_all(
        &mut self,
        payload: &[u8],
        patience: Duration,
    ) -> Result<u64, BoardError> {
        self.wait_for_room(patience)?;
        self.publish(payload)
    }

    /// Waits until a publication pushes out nothing that a subscriber has not read, for `patience`
    /// at most; whether that is so.
    ///
    /// # Errors
    /// [`BoardError::Io`].
    pub fn wait_for_room(&mut self, patience: Duration) -> Result<bool, BoardError> {
        let entries = self.layout.entries as u64;
        if self.read_by_all + entries >= self.tail + 2 || self.seats.is_empty() {
            return Ok(true);
        }
        (self.read_by_all, _) = self.slowest();
        if self.read_by_all + entries >= self.tail + 2 {
            return Ok(true);
        }
        // Half of it at once, so that there is one sleep for many publications; of two entries one is
        // taken out of the ring with each publication.
        self.wait_for_readers((entries / 2).min(entries - 2), patience)
    }

    /// Waits until every subscriber has read all but the last `behind` publications, for `patience`
    /// at most; whether that is so. Subscribers that are gone count no more.
    ///
    /// # Errors
    /// [`BoardError::Io`].
    pub fn wait_for_readers(
        &mut self,
        behind: u64,
        patience: Duration,
    ) -> Result<bool, BoardError> {
        let goal = self.tail.saturating_sub(behind);
        let end = Instant::now() + patience;
        let (mut slowest, _) = self.slowest();
        if slowest < goal {
            self.memory.words()[GOAL].store(goal, Relaxed);
            loop {
                // Dekker: the subscriber says how far it is and then looks at the goal.
                fence(SeqCst);
                let seat;
                (slowest, seat) = self.slowest();
                let left = end.saturating_duration_since(Instant::now());
                if slowest >= goal || left.is_zero() {
                    break;
                }
                self.sleep(seat, left)?;
            }
            self.memory.words()[GOAL].store(0, Relaxed);
        }
        self.read_by_all = slowest;
        Ok(slowest >= goal)
    }

    /// Waits for the subscriber that is furthest behind: the others have mostly arrived when it has,
    /// and need not wake us one by one. If it leaves, its seat is taken back.
    fn sleep(&mut self, seat: usize, left: Duration) -> Result<(), BoardError> {
        let Some(seat) = self.seats.get_mut(seat) else { return Ok(()) };
        let mut fds = [PollFd::new(&seat.socket, PollFlags::IN)];
        match poll(&mut fds, Timespec::try_from(left).ok().as_ref()) {
            Ok(0) | Err(Errno::INTR) => return Ok(()),
            Ok(_) => {}
            Err(e) => return Err(BoardError::io("waiting for subscribers", e)),
        }
        if !seat::hear(&seat.socket) {
            seat.is_gone = true;
            self.tend();
        }
        Ok(())
    }

    /// The oldest publication that a subscriber still wants, and the seat of that subscriber, if there
    /// is one; sends liars away.
    fn slowest(&mut self) -> (u64, usize) {
        let (tail, before) = (self.tail, self.seats.len());
        let (mut slowest, mut seat_of_it, mut kept) = (tail, usize::MAX, 0);
        self.seats.retain(|seat| {
            let head = seat.word(HEAD).load(Acquire);
            if head < slowest {
                (slowest, seat_of_it) = (head, kept);
            }
            kept += usize::from(head <= tail);
            head <= tail
        });
        self.liars += (before - self.seats.len()) as u64;
        (slowest, seat_of_it)
    }
}

#[inline]
const fn pin_of(slot: u32) -> u64 {
    slot as u64 + 1
}

/// A slot that is being written. Dropped without [`Loan::publish`], nothing was published.
#[derive(Debug)]
pub struct Loan<'a> {
    publisher: &'a mut Publisher,
    entry: Entry,
    is_published: bool,
}

impl Loan<'_> {
    /// Octets of the publication.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.entry.octets as usize
    }

    /// Whether it has no octets.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.entry.octets == 0
    }

    /// Writes octets at `offset`.
    ///
    /// # Panics
    /// If they are not within the publication.
    pub fn write(&mut self, offset: usize, octets: &[u8]) {
        assert!(offset + octets.len() <= self.len(), "octets beyond the publication");
        let at = self.publisher.layout.slot(self.entry.slot);
        self.publisher.memory.write(at, offset, octets);
    }

    /// Writes word `index`, in the machine's order.
    ///
    /// # Panics
    /// If it is not within the publication.
    pub fn write_word(&mut self, index: usize, word: u64) {
        assert!(index * 8 + 8 <= self.len(), "a word beyond the publication");
        let at = self.publisher.layout.slot(self.entry.slot);
        self.publisher.memory.words()[at + index].store(word, Relaxed);
    }

    /// Shows it to the subscribers; its number.
    pub fn publish(mut self) -> u64 {
        self.is_published = true;
        self.publisher.commit(self.entry)
    }
}

impl Drop for Loan<'_> {
    fn drop(&mut self) {
        if !self.is_published {
            self.publisher.free.push(self.entry.slot);
        }
    }
}
