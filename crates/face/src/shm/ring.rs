//! One direction of shared memory: a ring of octets with one writer and one reader that do not
//! trust each other (spec/shm.md, "The memory").
//!
//! Each side keeps its own position and never reads it back. Of the other side's words each is read
//! once, checked, and then used; packets are copied out before anybody looks at them.

use onym_sys::shm::SharedMemory;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{Ordering, fence};

/// Words that belong to one direction.
const DIRECTION_WORDS: usize = 64;
/// Each word has 128 octets of its own: processors fetch cache lines in pairs.
const TAIL: usize = 0;
const HEAD: usize = 16;
const SLEEPS: usize = 32;
const WAITS: usize = 48;

/// What the other side must never write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lie(pub(crate) &'static str);

const LIE_TAIL: Lie = Lie("its writer says that it holds more than fits");
const LIE_HEAD: Lie = Lie("its reader says that it took more than was written");

/// The memory that a ring lies in; a trait so that another can stand in for it in tests.
pub(crate) trait Memory {
    fn load(&self, word: usize, order: Ordering) -> u64;
    fn store(&self, word: usize, value: u64, order: Ordering);
    fn swap(&self, word: usize, value: u64, order: Ordering) -> u64;
    /// Copies octets out, from `at` on.
    fn read(&self, at: usize, out: &mut [u8]);
    /// Copies octets in, from `at` on.
    fn write(&self, at: usize, octets: &[u8]);
    /// A sequentially consistent fence.
    fn fence(&self) {
        fence(SeqCst);
    }
}

impl Memory for Arc<SharedMemory> {
    #[inline]
    fn load(&self, word: usize, order: Ordering) -> u64 {
        self.words()[word].load(order)
    }

    #[inline]
    fn store(&self, word: usize, value: u64, order: Ordering) {
        self.words()[word].store(value, order);
    }

    #[inline]
    fn swap(&self, word: usize, value: u64, order: Ordering) -> u64 {
        self.words()[word].swap(value, order)
    }

    #[inline]
    fn read(&self, at: usize, out: &mut [u8]) {
        SharedMemory::read(self, at, out);
    }

    #[inline]
    fn write(&self, at: usize, octets: &[u8]) {
        SharedMemory::write(self, at, octets);
    }
}

/// Where a direction lies in the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    /// Its first word.
    words: usize,
    /// Its first octet.
    start: usize,
    /// Octets that it holds, a power of two.
    len: usize,
}

impl Place {
    /// Direction 0 (towards the node) or 1 (towards the application) of a pair of rings that hold
    /// `len` octets each.
    pub(crate) fn new(direction: usize, len: usize) -> Self {
        debug_assert!(len.is_power_of_two() && direction < 2);
        Self { words: direction * DIRECTION_WORDS, start: direction * len, len }
    }

    /// Octets of memory that both directions need together, beside the words.
    pub(crate) fn memory(len: usize) -> usize {
        2 * len
    }

    /// The octet at a position, and how many follow before the area ends.
    fn at(&self, position: u64) -> (usize, usize) {
        // No truncation: the mask is below the length of the area.
        #[allow(clippy::cast_possible_truncation)]
        let offset = position as usize & (self.len - 1);
        (self.start + offset, self.len - offset)
    }

    /// What lies between two positions, if it can.
    fn used(&self, head: u64, tail: u64) -> Option<usize> {
        usize::try_from(tail.checked_sub(head)?).ok().filter(|used| *used <= self.len)
    }
}

/// The side that writes.
#[derive(Debug)]
pub(crate) struct Writer<M> {
    memory: M,
    place: Place,
    /// Octets written so far; published up to some earlier position.
    tail: u64,
    /// Octets that are free, by the reader's position when it was last looked at.
    room: usize,
}

impl<M: Memory> Writer<M> {
    /// The writer of an unused direction.
    pub(crate) fn new(memory: M, place: Place) -> Self {
        Self { memory, place, tail: 0, room: place.len }
    }

    /// Octets that can be written; the reader is only asked when fewer than `wanted` are known of.
    ///
    /// # Errors
    /// [`Lie`] when the reader's position cannot be.
    pub(crate) fn room(&mut self, wanted: usize) -> Result<usize, Lie> {
        if self.room < wanted {
            let head = self.memory.load(self.place.words + HEAD, Acquire);
            // A reader that goes back only takes room from itself.
            self.room = self.place.len - self.place.used(head, self.tail).ok_or(LIE_HEAD)?;
        }
        Ok(self.room)
    }

    /// Writes `octets`, of which [`Writer::room`] said that there is room.
    pub(crate) fn write(&mut self, octets: &[u8]) {
        assert!(octets.len() <= self.room, "more than there is room for");
        let (at, before_end) = self.place.at(self.tail);
        let (first, second) = octets.split_at(octets.len().min(before_end));
        self.memory.write(at, first);
        if !second.is_empty() {
            self.memory.write(self.place.start, second);
        }
        self.tail += octets.len() as u64;
        self.room -= octets.len();
    }

    /// Shows the reader what was written; whether it sleeps and must be woken, which is told once.
    pub(crate) fn publish(&self) -> bool {
        self.memory.store(self.place.words + TAIL, self.tail, Release);
        // Dekker: the reader says that it sleeps and then looks at the tail, we publish the tail
        // and then look whether it sleeps. At least one of us sees the other.
        self.memory.fence();
        take(&self.memory, self.place.words + SLEEPS)
    }

    /// Asks to be woken when there is room; false when `octets` have room already.
    ///
    /// # Errors
    /// [`Lie`] when the reader's position cannot be.
    pub(crate) fn wait_for_room(&mut self, octets: usize) -> Result<bool, Lie> {
        let waits = self.place.words + WAITS;
        self.memory.store(waits, 1, Relaxed);
        self.memory.fence();
        if self.room(octets)? < octets {
            return Ok(true);
        }
        self.memory.store(waits, 0, Relaxed);
        Ok(false)
    }

    /// Octets that the reader has not taken yet.
    pub(crate) fn octets(&self) -> usize {
        let head = self.memory.load(self.place.words + HEAD, Relaxed);
        self.place.used(head, self.tail).unwrap_or(0)
    }
}

/// The side that reads.
#[derive(Debug)]
pub(crate) struct Reader<M> {
    memory: M,
    place: Place,
    /// Octets taken so far.
    head: u64,
}

impl<M: Memory> Reader<M> {
    /// The reader of an unused direction.
    pub(crate) fn new(memory: M, place: Place) -> Self {
        Self { memory, place, head: 0 }
    }

    /// Octets that can be taken.
    ///
    /// # Errors
    /// [`Lie`] when the writer's position cannot be.
    pub(crate) fn available(&self) -> Result<usize, Lie> {
        let tail = self.memory.load(self.place.words + TAIL, Acquire);
        self.place.used(self.head, tail).ok_or(LIE_TAIL)
    }

    /// Copies out the first octets of those of which [`Reader::available`] told, as many as `out`
    /// holds.
    pub(crate) fn copy(&self, out: &mut [u8]) {
        let (at, before_end) = self.place.at(self.head);
        let (first, second) = out.split_at_mut(out.len().min(before_end));
        self.memory.read(at, first);
        if !second.is_empty() {
            self.memory.read(self.place.start, second);
        }
    }

    /// Gives the room of the first `octets` back to the writer; whether the writer waits for it and
    /// must be woken.
    pub(crate) fn take(&mut self, octets: usize) -> bool {
        let words = self.place.words;
        self.head += octets as u64;
        self.memory.store(words + HEAD, self.head, Release);
        // As in `publish`, with the roles exchanged.
        self.memory.fence();
        if self.memory.load(words + WAITS, Relaxed) == 0 {
            return false;
        }
        // Woken when half is free, so that it does not wake up for every packet; at the latest when
        // everything was taken, which always comes.
        let used = self.available().unwrap_or(0);
        used <= self.place.len / 2 && take(&self.memory, words + WAITS)
    }

    /// Says that we sleep until woken; false when there is something to take after all.
    pub(crate) fn sleep(&self) -> bool {
        let words = self.place.words;
        self.memory.store(words + SLEEPS, 1, Relaxed);
        self.memory.fence();
        if self.memory.load(words + TAIL, Relaxed) == self.head {
            return true;
        }
        self.awake();
        false
    }

    /// Says that we do not sleep any more.
    pub(crate) fn awake(&self) {
        self.memory.store(self.place.words + SLEEPS, 0, Relaxed);
    }
}

/// Takes a flag back; whether it was set.
fn take(memory: &impl Memory, word: usize) -> bool {
    memory.load(word, Relaxed) != 0 && memory.swap(word, 0, Relaxed) != 0
}

#[cfg(test)]
mod tests;
