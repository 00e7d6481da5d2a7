//! What the service manager that started the node is told: that it is ready, reads its configuration
//! again, ends, and that it still answers.

use crate::supervised::{NotifyState, tell, tell_ready};
use onym_node::NodeHandle;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

/// Does `work` between the words for "reading the configuration" and "ready".
pub(super) fn tell_reload(work: impl FnOnce()) {
    match NotifyState::monotonic_usec_now() {
        Ok(now) => tell(&[NotifyState::Reloading, now]),
        Err(_) => tell(&[NotifyState::Reloading]),
    }
    work();
    tell_ready();
}

/// Whether the node is asked to end; [`keep_alive`] waits for it.
#[derive(Debug, Default)]
pub(super) struct Ended {
    is_set: Mutex<bool>,
    changed: Condvar,
    flag: Arc<AtomicBool>,
}

impl Ended {
    pub(super) fn set(&self) {
        self.flag.store(true, Ordering::Relaxed);
        *self.is_set.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Set when the end came: for what waits elsewhere.
    pub(super) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.flag)
    }

    /// Whether the end came within `time`.
    pub(super) fn within(&self, time: Duration) -> bool {
        let held = self.is_set.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = self.changed.wait_timeout_while(held, time, |is_set| !*is_set);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Feeds the watchdog while all threads of the node answer; else it bites after `limit`, and the
/// service manager starts the node anew.
pub(super) fn keep_alive(node: &NodeHandle, ended: &Ended, limit: Duration) {
    // Twice in the time that is allowed, as sd_watchdog_enabled(3) advises.
    while !ended.within(limit / 2) {
        match node.snapshot() {
            Ok(_) => tell(&[NotifyState::Watchdog]),
            Err(error) => tracing::error!(%error, "the node does not answer"),
        }
    }
}
