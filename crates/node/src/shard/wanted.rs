//! What Interests with CanBePrefix wait for in shard 0, as all shards see it.

use onym_tables::HashKey;
use onym_tables::pit::{ENDS, LONG, MARK_WORDS, Prefixes, has_end, mark_of};
use std::sync::atomic::{AtomicU64, Ordering};

/// Written by shard 0 before anything leaves that could be answered; read by all.
///
/// While prefixes come and go each word is of one moment and not all are of the same. What waits all
/// the time is marked in every moment, so that no Data is taken for one that nobody waits for.
#[derive(Debug)]
pub(crate) struct Wanted {
    key: HashKey,
    /// [`Prefixes::summary`].
    summary: AtomicU64,
    ends: [AtomicU64; ENDS],
    marks: [AtomicU64; MARK_WORDS],
}

impl Wanted {
    /// Nothing yet. The key is that of the tables.
    pub(crate) const fn new(key: HashKey) -> Self {
        let marks = [const { AtomicU64::new(0) }; MARK_WORDS];
        let ends = [const { AtomicU64::new(0) }; ENDS];
        Self { key, summary: AtomicU64::new(0), ends, marks }
    }

    /// Tells what is wanted from now on.
    pub(crate) fn tell(&self, prefixes: &Prefixes) {
        let shown = self.marks.iter().chain(&self.ends);
        for (shown, is) in shown.zip(prefixes.marks().iter().chain(prefixes.ends())) {
            if shown.load(Ordering::Relaxed) != *is {
                shown.store(*is, Ordering::Relaxed);
            }
        }
        self.summary.store(prefixes.summary(), Ordering::Release);
    }

    /// Whether nothing is.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.summary.load(Ordering::Acquire) == 0
    }

    /// Whether a Data of this name (its value) may be. While few prefixes wait, others that end alike
    /// are taken for them; then one among four thousand that are not, for each prefix that waits and
    /// each of their lengths.
    #[inline]
    pub(crate) fn may_be(&self, name: &[u8]) -> bool {
        let summary = self.summary.load(Ordering::Acquire);
        has_end(summary, name, |at| self.ends[at].load(Ordering::Relaxed))
            .unwrap_or_else(|| self.is_marked(name, summary))
    }

    #[inline(never)]
    fn is_marked(&self, name: &[u8], summary: u64) -> bool {
        let is_marked = |hash: u64| {
            let (word, bit) = mark_of(hash);
            self.marks[word].load(Ordering::Relaxed) & bit != 0
        };
        summary & LONG != 0 || self.key.any_prefix(name, summary, is_marked)
    }
}
