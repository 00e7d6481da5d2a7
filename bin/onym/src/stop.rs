//! Orderly end on SIGINT and SIGTERM.

use anyhow::Context as _;
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Set once the user wants the program to end.
#[derive(Debug, Clone)]
pub(crate) struct Stop(Arc<AtomicBool>);

impl Stop {
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The flag itself, for what looks at it by itself.
    pub(crate) fn flag(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.0)
    }
}

/// From now on the first SIGINT or SIGTERM sets the flag; the second one kills, in case that
/// something does not look at it.
pub(crate) fn on_signal() -> anyhow::Result<Stop> {
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        // In this order: the second signal finds the flag set.
        signal_hook::flag::register_conditional_shutdown(signal, 130, Arc::clone(&flag))
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&flag)))
            .context("cannot handle signals")?;
    }
    Ok(Stop(flag))
}
