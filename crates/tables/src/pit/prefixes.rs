//! Which prefixes CanBePrefix entries wait for, in few enough octets to be shown to other threads.

use onym_wire::NAME_COMPONENTS_MAX;

/// Marks: as few as are copied at once, and enough that hundreds of entries leave most of them free.
const MARKS: usize = 4096;
/// Words of marks.
pub const MARK_WORDS: usize = MARKS / 64;
/// Among the lengths: names of more components than tables count.
pub const LONG: u64 = 1 << 63;
/// Prefixes whose ends are kept; when more wait, marks alone tell.
pub const ENDS: usize = 8;
/// In [`Prefixes::summary`]: which ends are there, from this bit on.
const ENDS_AT: u32 = 40;
/// In [`Prefixes::summary`]: more wait than have their ends kept.
const MORE: u64 = 1 << 62;
const ENDS_BITS: u64 = ((1 << ENDS) - 1) << ENDS_AT;

/// Where the mark of a hash is: word and bit.
#[inline]
#[must_use]
pub const fn mark_of(hash: u64) -> (usize, u64) {
    // No truncation: twelve bits.
    #[allow(clippy::cast_possible_truncation)]
    let at = (hash >> (64 - MARKS.trailing_zeros())) as usize;
    (at / 64, 1 << (at % 64))
}

/// What tells the prefix of `len` octets of `name` (its value) from most others without hashing: how
/// long it is, and its last six octets.
#[inline(always)]
fn end_of(name: &[u8], len: usize) -> Option<u64> {
    let prefix = name.get(..len)?;
    let last = match prefix.last_chunk() {
        Some(last) => u64::from_be_bytes(*last) & 0xffff_ffff_ffff,
        None => {
            prefix.iter().rev().take(6).rev().fold(0, |sum, &octet| sum << 8 | u64::from(octet))
        }
    };
    // An Interest is no longer than a packet; the empty name has an end, too.
    Some((len as u64 + 1) << 48 | last)
}

/// Whether one of the prefixes that `summary` tells of, whose ends `end` reads, may be one of this
/// name (its value). `None` where ends do not say it.
#[inline(always)]
pub fn has_end(summary: u64, name: &[u8], mut end: impl FnMut(usize) -> u64) -> Option<bool> {
    if summary & MORE != 0 {
        return None;
    }
    let mut at = summary & ENDS_BITS;
    while at != 0 {
        let end = end((at.trailing_zeros() - ENDS_AT) as usize);
        // No truncation: sixteen bits.
        #[allow(clippy::cast_possible_truncation)]
        let len = ((end >> 48) as usize).wrapping_sub(1);
        if end_of(name, len) == Some(end) {
            return Some(true);
        }
        at &= at - 1;
    }
    Some(false)
}

/// CanBePrefix entries by number of components, and a mark where the hash of the name of one falls. A
/// name that one of them is a prefix of has a prefix of such a length whose hash is marked; some other
/// names have, too. Of the first few also the ends of their names, which cost less to compare: an end
/// stays where it is as long as its prefix waits.
#[derive(Debug)]
pub struct Prefixes {
    /// Entries by number of components; the last count is of names beyond the table's 32.
    counts: [u32; NAME_COMPONENTS_MAX + 2],
    lengths: u64,
    ends: [u64; ENDS],
    /// Entries by end.
    by_end: [u32; ENDS],
    /// Entries without an end here.
    more: u32,
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
            ends: [0; ENDS],
            by_end: [0; ENDS],
            more: 0,
            by_mark: Vec::new(),
            marks: [0; MARK_WORDS],
            has_changed: false,
        }
    }

    /// Their numbers of components, as bits; [`LONG`] for those beyond 32.
    #[inline]
    #[must_use]
    pub const fn lengths(&self) -> u64 {
        self.lengths & !(MORE | ENDS_BITS)
    }

    /// The same with what [`has_end`] needs. 0: no entry.
    #[inline]
    #[must_use]
    pub const fn summary(&self) -> u64 {
        self.lengths
    }

    /// The ends, which [`has_end`] compares.
    #[must_use]
    pub const fn ends(&self) -> &[u64; ENDS] {
        &self.ends
    }

    /// Whether an entry may wait for a name (its value).
    #[inline]
    #[must_use]
    pub fn may_be(&self, name: &[u8]) -> bool {
        self.lengths != 0 && has_end(self.lengths, name, |at| self.ends[at]) != Some(false)
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

    /// One entry more or less, of a name (its value) with so many components and this hash.
    pub(super) fn count(&mut self, name: &[u8], components: usize, hash: u64, by: i32) {
        self.count_end(name, by);
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

    /// Entries of one name are counted at its end or among the others, wherever there is room: where
    /// no others are left, every end has all of its entries.
    fn count_end(&mut self, name: &[u8], by: i32) {
        let end = end_of(name, name.len()).unwrap_or_default();
        let is_here = |at: &usize| self.by_end[*at] != 0 && self.ends[*at] == end;
        let is_free = |at: &usize| by > 0 && self.by_end[*at] == 0;
        let at = (0..ENDS).find(is_here).or_else(|| (0..ENDS).find(is_free));
        let Some(at) = at else {
            self.more = self.more.wrapping_add_signed(by);
            return set(&mut self.lengths, MORE, self.more != 0);
        };
        self.ends[at] = end;
        self.by_end[at] = self.by_end[at].wrapping_add_signed(by);
        set(&mut self.lengths, 1 << (ENDS_AT as usize + at), self.by_end[at] != 0);
    }
}

const fn set(bits: &mut u64, bit: u64, is_set: bool) {
    *bits = if is_set { *bits | bit } else { *bits & !bit };
}
