//! What Interests with CanBePrefix wait for in shard 0, as all shards see it.

use onym_tables::HashKey;
use onym_tables::pit::{LONG, MARK_WORDS, Prefixes, mark_of};
use std::sync::atomic::{AtomicU64, Ordering};

/// Written by shard 0 before anything leaves that could be answered; read by all.
///
/// While prefixes come and go each word is of one moment and not all are of the same. What waits all
/// the time is marked in every moment, so that no Data is taken for one that nobody waits for.
#[derive(Debug)]
pub(crate) struct Wanted {
    key: HashKey,
    lengths: AtomicU64,
    marks: [AtomicU64; MARK_WORDS],
}

impl Wanted {
    /// Nothing yet. The key is that of the tables.
    pub(crate) const fn new(key: HashKey) -> Self {
        let marks = [const { AtomicU64::new(0) }; MARK_WORDS];
        Self { key, lengths: AtomicU64::new(0), marks }
    }

    /// Tells what is wanted from now on.
    pub(crate) fn tell(&self, prefixes: &Prefixes) {
        for (shown, marks) in self.marks.iter().zip(prefixes.marks()) {
            if shown.load(Ordering::Relaxed) != *marks {
                shown.store(*marks, Ordering::Relaxed);
            }
        }
        self.lengths.store(prefixes.lengths(), Ordering::Release);
    }

    /// Whether nothing is.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.lengths.load(Ordering::Acquire) == 0
    }

    /// Whether a Data of this name (its value) may be. One among four thousand that are not, for each
    /// prefix that waits and each of their lengths, is taken for one.
    pub(crate) fn may_be(&self, name: &[u8]) -> bool {
        let lengths = self.lengths.load(Ordering::Acquire);
        let is_marked = |hash: u64| {
            let (word, bit) = mark_of(hash);
            self.marks[word].load(Ordering::Relaxed) & bit != 0
        };
        lengths & LONG != 0 || self.key.any_prefix(name, lengths, is_marked)
    }
}
