//! The layout of the shared memory (spec/blackboard.md, "The memory").

use crate::BoardError;

/// Words of the head of the memory; the data of each side has a cache line of its own.
const HEAD_WORDS: usize = 64;
/// Number of the next publication.
pub(crate) const TAIL: usize = 0;
/// Number of the oldest publication that can still be read.
pub(crate) const FLOOR: usize = 1;
/// The publisher sleeps until subscribers have read so far; 0 when it does not.
pub(crate) const GOAL: usize = 2;

/// Longest publication, in octets.
pub const PAYLOAD_MAX: usize = 64 << 20;
/// Most subscribers of a blackboard.
pub const SUBSCRIBERS_MAX: usize = 1024;
/// Fewest and most entries.
const ENTRIES_MIN: usize = 2;
const ENTRIES_MAX: usize = 1 << 16;
/// Most words of a memory: 1 GiB.
const WORDS_MAX: usize = 1 << 27;
/// Slots begin at cache lines.
const LINE_WORDS: usize = 8;

/// How large a blackboard is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Config {
    /// Longest publication, in octets; at most [`PAYLOAD_MAX`].
    pub payload_max: usize,
    /// How many publications a subscriber may be behind before it misses some; rounded up to one
    /// less than a power of two, at most 65,535.
    pub depth: usize,
    /// Most subscribers at a time, at most [`SUBSCRIBERS_MAX`].
    pub subscribers_max: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self { payload_max: 8800, depth: 255, subscribers_max: 64 }
    }
}

/// Sizes of the parts of a memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Layout {
    /// Entries of the ring, a power of two.
    pub(crate) entries: usize,
    pub(crate) slots: usize,
    pub(crate) slot_words: usize,
}

impl Layout {
    pub(crate) fn of(config: &Config) -> Result<Self, BoardError> {
        if config.subscribers_max > SUBSCRIBERS_MAX || config.payload_max > PAYLOAD_MAX {
            return Err(BoardError::Config("more subscribers or longer publications than can be"));
        }
        if config.depth >= ENTRIES_MAX {
            return Err(BoardError::Config("deeper than 65,535 publications"));
        }
        let entries = (config.depth + 1).next_power_of_two().max(ENTRIES_MIN);
        // One being written, and one for each subscriber that holds an old one.
        let slots = entries + config.subscribers_max + 1;
        let slot_words = config.payload_max.max(1).div_ceil(8).next_multiple_of(LINE_WORDS);
        let layout = Self { entries, slots, slot_words };
        layout.check().ok_or(BoardError::Config("more than 1 GiB of memory"))?;
        Ok(layout)
    }

    /// Words of the whole memory, if these sizes can be; they may come from a stranger.
    pub(crate) fn check(&self) -> Option<usize> {
        let fits = self.entries.is_power_of_two()
            && (ENTRIES_MIN..=ENTRIES_MAX).contains(&self.entries)
            && self.slots >= 1
            && self.slots <= ENTRIES_MAX + SUBSCRIBERS_MAX + 1
            && self.slot_words.is_multiple_of(LINE_WORDS)
            && (LINE_WORDS..=PAYLOAD_MAX / 8).contains(&self.slot_words);
        let slots = self.slots.checked_mul(self.slot_words)?;
        let words = self.first_slot().checked_add(slots)?;
        (fits && words <= WORDS_MAX).then_some(words)
    }

    /// The word of the entry of publication `number`.
    #[inline]
    pub(crate) fn entry(&self, number: u64) -> usize {
        HEAD_WORDS + self.index(number)
    }

    /// Which entry of the ring publication `number` has.
    #[inline]
    pub(crate) fn index(&self, number: u64) -> usize {
        // No truncation: the mask is below the number of entries.
        #[allow(clippy::cast_possible_truncation)]
        let index = number as usize & (self.entries - 1);
        index
    }

    /// The first word of a slot.
    #[inline]
    pub(crate) fn slot(&self, slot: u32) -> usize {
        self.first_slot() + slot as usize * self.slot_words
    }

    fn first_slot(&self) -> usize {
        HEAD_WORDS + self.entries.next_multiple_of(LINE_WORDS)
    }
}

/// An entry of the ring: which slot, and octets in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) slot: u32,
    pub(crate) octets: u32,
}

impl Entry {
    #[inline]
    pub(crate) const fn word(self) -> u64 {
        ((self.slot as u64) << 32) | self.octets as u64
    }

    /// No truncation: each half as it is.
    #[inline]
    #[allow(clippy::cast_possible_truncation)]
    pub(crate) const fn of(word: u64) -> Self {
        Self { slot: (word >> 32) as u32, octets: word as u32 }
    }
}
