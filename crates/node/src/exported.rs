//! What became of spans, counted by the thread that posts them and read by the control thread.

use crate::counts::ExportCounts;
use std::sync::atomic::{AtomicU64, Ordering};

/// What became of spans that ended, as it is counted.
#[derive(Debug, Default)]
pub(crate) struct Exported {
    pub(crate) taken: AtomicU64,
    pub(crate) refused: AtomicU64,
    pub(crate) lost: AtomicU64,
}

impl Exported {
    pub(crate) fn counts(&self) -> ExportCounts {
        let of = |count: &AtomicU64| count.load(Ordering::Relaxed);
        ExportCounts { exported: of(&self.taken), refused: of(&self.refused), lost: of(&self.lost) }
    }
}

/// Counts so many more.
pub(crate) fn add(count: &AtomicU64, spans: usize) {
    count.fetch_add(spans as u64, Ordering::Relaxed);
}
