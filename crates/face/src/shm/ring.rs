//! One direction of shared memory: a ring of words with one writer and one reader that do not
//! trust each other (spec/shm.md, "The memory").
//!
//! Each side keeps its own position and never reads it back. Of the other side's words each is read
//! once, checked, and then used; frames are copied out before anybody looks at them.

use std::sync::atomic::Ordering::{Acquire, Relaxed, Release, SeqCst};
use std::sync::atomic::{AtomicU64, Ordering, fence};

/// Words of the control area before the two data areas: one page.
pub(crate) const CONTROL_WORDS: usize = 512;
/// Words of the control area that belong to one direction.
const DIRECTION_WORDS: usize = 64;
/// Each control word has 128 octets of its own: processors fetch cache lines in pairs.
const TAIL: usize = 0;
const HEAD: usize = 16;
const SLEEPS: usize = 32;
const WAITS: usize = 48;

/// What the other side must never write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Lie(pub(crate) &'static str);

const LIE_TAIL: Lie = Lie("its writer says that it holds more than fits");
const LIE_HEAD: Lie = Lie("its reader says that it took more than was written");

/// The memory that a ring lies in; a trait so that a model checker can stand in for it.
pub(crate) trait Memory {
    fn load(&self, at: usize, order: Ordering) -> u64;
    fn store(&self, at: usize, value: u64, order: Ordering);
    fn swap(&self, at: usize, value: u64, order: Ordering) -> u64;
    fn fence(&self);

    /// Copies whole words out, from `at` on.
    fn read(&self, at: usize, out: &mut [u8]) {
        for (i, octets) in out.chunks_exact_mut(8).enumerate() {
            octets.copy_from_slice(&self.load(at + i, Relaxed).to_ne_bytes());
        }
    }

    /// Copies whole words in, from `at` on.
    fn write(&self, at: usize, octets: &[u8]) {
        for (i, octets) in octets.chunks_exact(8).enumerate() {
            self.store(at + i, word(octets), Relaxed);
        }
    }
}

impl<T: std::ops::Deref<Target = S>, S: std::ops::Deref<Target = [AtomicU64]> + ?Sized> Memory
    for T
{
    #[inline]
    fn load(&self, at: usize, order: Ordering) -> u64 {
        self[at].load(order)
    }

    #[inline]
    fn store(&self, at: usize, value: u64, order: Ordering) {
        self[at].store(value, order);
    }

    #[inline]
    fn swap(&self, at: usize, value: u64, order: Ordering) -> u64 {
        self[at].swap(value, order)
    }

    #[inline]
    fn fence(&self) {
        fence(SeqCst);
    }

    // One bounds check for all words.
    fn read(&self, at: usize, out: &mut [u8]) {
        let words = &self[at..at + out.len() / 8];
        for (octets, word) in out.chunks_exact_mut(8).zip(words) {
            octets.copy_from_slice(&word.load(Relaxed).to_ne_bytes());
        }
    }

    fn write(&self, at: usize, octets: &[u8]) {
        let words = &self[at..at + octets.len() / 8];
        for (octets, place) in octets.chunks_exact(8).zip(words) {
            place.store(word(octets), Relaxed);
        }
    }
}

/// Up to eight octets as a word, zeroes behind them.
#[inline]
fn word(octets: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..octets.len()].copy_from_slice(octets);
    u64::from_ne_bytes(word)
}

/// Where a direction lies in the memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Place {
    control: usize,
    data: usize,
    /// Words of the data area, a power of two.
    words: usize,
}

impl Place {
    /// Direction 0 (towards the node) or 1 (towards the application) of a pair of rings of
    /// `words` words.
    pub(crate) fn new(direction: usize, words: usize) -> Self {
        debug_assert!(words.is_power_of_two() && direction < 2);
        Self {
            control: direction * DIRECTION_WORDS,
            data: CONTROL_WORDS + direction * words,
            words,
        }
    }

    /// Words of memory that both directions need together.
    pub(crate) fn memory_words(words: usize) -> usize {
        CONTROL_WORDS + 2 * words
    }

    /// The word of the data area at a position, and how many follow before the area ends.
    fn at(&self, position: u64) -> (usize, usize) {
        // No truncation: the mask is below the length of the area.
        #[allow(clippy::cast_possible_truncation)]
        let offset = position as usize & (self.words - 1);
        (self.data + offset, self.words - offset)
    }

    /// What lies between two positions, if it can.
    fn used(&self, head: u64, tail: u64) -> Option<usize> {
        usize::try_from(tail.checked_sub(head)?).ok().filter(|used| *used <= self.words)
    }
}

/// The side that writes.
#[derive(Debug)]
pub(crate) struct Writer<M> {
    memory: M,
    place: Place,
    /// Words written so far; published up to some earlier position.
    tail: u64,
    /// The reader's position when it was last looked at.
    head: u64,
}

impl<M: Memory> Writer<M> {
    /// The writer of an unused direction.
    pub(crate) fn new(memory: M, place: Place) -> Self {
        Self { memory, place, tail: 0, head: 0 }
    }

    /// Words that are free, as far as is known.
    fn room(&self) -> usize {
        // No truncation: at most the length of the area is in use.
        #[allow(clippy::cast_possible_truncation)]
        let used = (self.tail - self.head) as usize;
        self.place.words - used
    }

    fn look(&mut self) -> Result<(), Lie> {
        let head = self.memory.load(self.place.control + HEAD, Acquire);
        // A reader that goes back only takes room from itself.
        self.place.used(head, self.tail).ok_or(LIE_HEAD)?;
        self.head = head;
        Ok(())
    }

    /// Writes the frame `head` followed by `body`; false when it does not fit now.
    ///
    /// # Errors
    /// [`Lie`] when the reader's position cannot be.
    pub(crate) fn push(&mut self, head: &[u8], body: &[u8]) -> Result<bool, Lie> {
        let words = (head.len() + body.len()).div_ceil(8);
        if self.room() < words {
            self.look()?;
            if self.room() < words {
                return Ok(false);
            }
        }
        // The head in whole words, one word of what is left of it and the start of the body, and
        // the rest of the body.
        let (whole, rest) = head.split_at(head.len() & !7);
        let mut at = self.write(self.tail, whole);
        let (start, body) = body.split_at(body.len().min((8 - rest.len()) % 8));
        if !rest.is_empty() {
            let mut joint = [0; 8];
            joint[..rest.len()].copy_from_slice(rest);
            joint[rest.len()..rest.len() + start.len()].copy_from_slice(start);
            at = self.write(at, &joint);
        }
        let (whole, rest) = body.split_at(body.len() & !7);
        at = self.write(at, whole);
        if !rest.is_empty() {
            at = self.write(at, &word(rest).to_ne_bytes());
        }
        debug_assert_eq!(at, self.tail + words as u64);
        self.tail = at;
        Ok(true)
    }

    /// Writes whole words at `position`; the position behind them.
    fn write(&self, position: u64, octets: &[u8]) -> u64 {
        let (at, before_end) = self.place.at(position);
        let (first, second) = octets.split_at(octets.len().min(before_end * 8));
        self.memory.write(at, first);
        self.memory.write(self.place.data, second);
        position + octets.len() as u64 / 8
    }

    /// Shows the reader what was written.
    pub(crate) fn publish(&self) {
        self.memory.store(self.place.control + TAIL, self.tail, Release);
    }

    /// Whether the reader sleeps and must be woken for what was published; told once.
    pub(crate) fn must_wake(&self) -> bool {
        // Dekker: the reader says that it sleeps and then looks at the tail, we publish the tail
        // and then look whether it sleeps. At least one of us sees the other.
        self.memory.fence();
        take(&self.memory, self.place.control + SLEEPS)
    }

    /// Asks to be woken when there is room; false when `octets` have room already.
    ///
    /// # Errors
    /// [`Lie`] when the reader's position cannot be.
    pub(crate) fn wait_for_room(&mut self, octets: usize) -> Result<bool, Lie> {
        let waits = self.place.control + WAITS;
        self.memory.store(waits, 1, Relaxed);
        self.memory.fence();
        self.look()?;
        if self.room() < octets.div_ceil(8) {
            return Ok(true);
        }
        self.memory.store(waits, 0, Relaxed);
        Ok(false)
    }

    /// Octets that the reader has not taken yet, padding included.
    pub(crate) fn octets(&self) -> usize {
        let head = self.memory.load(self.place.control + HEAD, Relaxed);
        self.place.used(head, self.tail).unwrap_or(0) * 8
    }
}

/// The side that reads.
#[derive(Debug)]
pub(crate) struct Reader<M> {
    memory: M,
    place: Place,
    /// Words taken so far.
    head: u64,
}

impl<M: Memory> Reader<M> {
    /// The reader of an unused direction.
    pub(crate) fn new(memory: M, place: Place) -> Self {
        Self { memory, place, head: 0 }
    }

    /// Octets that can be taken, padding included.
    ///
    /// # Errors
    /// [`Lie`] when the writer's position cannot be.
    pub(crate) fn available(&self) -> Result<usize, Lie> {
        let tail = self.memory.load(self.place.control + TAIL, Acquire);
        Ok(self.place.used(self.head, tail).ok_or(LIE_TAIL)? * 8)
    }

    /// Copies out the first octets that are available, as many as `out` holds: a multiple of eight
    /// of which [`Reader::available`] told.
    pub(crate) fn copy(&self, out: &mut [u8]) {
        let (at, before_end) = self.place.at(self.head);
        let (first, second) = out.split_at_mut(out.len().min(before_end * 8));
        self.memory.read(at, first);
        self.memory.read(self.place.data, second);
    }

    /// Gives the room of the first `octets`, a multiple of eight, back to the writer; whether the
    /// writer waits for it and must be woken.
    pub(crate) fn take(&mut self, octets: usize) -> bool {
        let control = self.place.control;
        self.head += octets as u64 / 8;
        self.memory.store(control + HEAD, self.head, Release);
        // As in `must_wake`, with the roles exchanged.
        self.memory.fence();
        if self.memory.load(control + WAITS, Relaxed) == 0 {
            return false;
        }
        // Woken when half is free, so that it does not wake up for every frame; at the latest when
        // everything was taken, which always comes.
        let used = self.available().unwrap_or(0) / 8;
        used <= self.place.words / 2 && take(&self.memory, control + WAITS)
    }

    /// Says that we sleep until woken; false when there is something to take after all.
    pub(crate) fn sleep(&self) -> bool {
        let control = self.place.control;
        self.memory.store(control + SLEEPS, 1, Relaxed);
        self.memory.fence();
        if self.memory.load(control + TAIL, Relaxed) == self.head {
            return true;
        }
        self.awake();
        false
    }

    /// Says that we do not sleep any more.
    pub(crate) fn awake(&self) {
        self.memory.store(self.place.control + SLEEPS, 0, Relaxed);
    }
}

/// Takes a flag back; whether it was set.
fn take(memory: &impl Memory, at: usize) -> bool {
    memory.load(at, Relaxed) != 0 && memory.swap(at, 0, Relaxed) != 0
}

#[cfg(test)]
mod tests;
