//! Which prefixes CanBePrefix entries wait for, in few enough octets to be shown to other threads.

use onym_wire::NAME_COMPONENTS_MAX;

/// Marks: as few as are copied at once, and enough that hundreds of entries leave most of them free.
const MARKS: usize = 4096;
/// Words of marks.
pub const MARK_WORDS: usize = MARKS / 64;
/// Among the lengths: names of more components than tables count.
pub const LONG: u64 = 1 << 63;

/// Where the mark of a hash is: word and bit.
#[inline]
#[must_use]
pub const fn mark_of(hash: u64) -> (usize, u64) {
    // No truncation: twelve bits.
    #[allow(clippy::cast_possible_truncation)]
    let at = (hash >> (64 - MARKS.trailing_zeros())) as usize;
    (at / 64, 1 << (at % 64))
}

/// CanBePrefix entries by number of components, and a mark where the hash of the name of one falls. A
/// name that one of them is a prefix of has a prefix of such a length whose hash is marked; some other
/// names have, too.
#[derive(Debug)]
pub struct Prefixes {
    /// Entries by number of components; the last count is of names beyond the table's 32.
    counts: [u32; NAME_COMPONENTS_MAX + 2],
    lengths: u64,
    /// Entries by mark; empty before the first one.
    by_mark: Vec<u32>,
    marks: [u64; MARK_WORDS],
    has_changed: bool,
}

impl Prefixes {
    pub(super) const fn new() -> Self {
        Self {
            counts: [0; NAME_COMPONENTS_MAX + 2],
            lengths: 0,
            by_mark: Vec::new(),
            marks: [0; MARK_WORDS],
            has_changed: false,
        }
    }

    /// Their numbers of components, as bits; [`LONG`] for those beyond 32.
    #[inline]
    #[must_use]
    pub const fn lengths(&self) -> u64 {
        self.lengths
    }

    /// The marks, which [`mark_of`] finds.
    #[must_use]
    pub const fn marks(&self) -> &[u64; MARK_WORDS] {
        &self.marks
    }

    /// Whether anything is different than when this was asked last.
    #[inline]
    pub const fn take_changed(&mut self) -> bool {
        std::mem::replace(&mut self.has_changed, false)
    }

    /// One entry more or less, of a name with so many components and this hash.
    pub(super) fn count(&mut self, components: usize, hash: u64, by: i32) {
        let len = components.min(NAME_COMPONENTS_MAX + 1);
        let bit = if len > NAME_COMPONENTS_MAX { LONG } else { 1 << len };
        self.counts[len] = self.counts[len].wrapping_add_signed(by);
        set(&mut self.lengths, bit, self.counts[len] != 0);
        if self.by_mark.is_empty() {
            self.by_mark.resize(MARKS, 0);
        }
        let (word, bit) = mark_of(hash);
        let at = word * 64 + bit.trailing_zeros() as usize;
        self.by_mark[at] = self.by_mark[at].wrapping_add_signed(by);
        set(&mut self.marks[word], bit, self.by_mark[at] != 0);
        self.has_changed = true;
    }
}

const fn set(bits: &mut u64, bit: u64, is_set: bool) {
    *bits = if is_set { *bits | bit } else { *bits & !bit };
}
