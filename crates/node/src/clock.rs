//! The node's clock: the only place where the data path's time comes from.

use onym_tables::Tick;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Time since the node started. All threads share the origin.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is one second ago, so that no moment of use is the zero tick.
    pub(crate) fn start() -> Self {
        let now = Instant::now();
        Self { origin: now.checked_sub(std::time::Duration::from_secs(1)).unwrap_or(now) }
    }

    /// Now.
    pub(crate) fn now(&self) -> Tick {
        Tick(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Unix time, in milliseconds.
pub(crate) fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
