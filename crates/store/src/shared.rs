//! What the writer of a store and its readers share.

use crate::log::Files;
use redb::Database;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

/// What writer and readers share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) db: RwLock<Option<Arc<Database>>>,
    pub(crate) files: Arc<Files>,
    /// Commits so far: a reader whose view is older looks again.
    pub(crate) commits: AtomicU64,
    /// Times that something known was removed or moved: what a reader remembers is then void.
    pub(crate) moves: AtomicU64,
    /// Packets found damaged.
    pub(crate) damaged: AtomicU64,
}

impl Shared {
    pub(crate) fn db(&self) -> Option<Arc<Database>> {
        self.db.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub(crate) fn set_db(&self, db: Option<Arc<Database>>) {
        *self.db.write().unwrap_or_else(PoisonError::into_inner) = db;
        self.moves.fetch_add(1, Ordering::SeqCst);
        self.commits.fetch_add(1, Ordering::SeqCst);
    }
}
