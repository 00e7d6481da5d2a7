//! The only place where the time of a data path comes from.

use onym_tables::Tick;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Time since a program started. All its threads share the origin.
#[derive(Debug, Clone, Copy)]
pub struct Clock {
    origin: Instant,
}

impl Clock {
    /// A clock whose origin is one second ago, so that no moment of use is the zero tick.
    #[must_use]
    pub fn start() -> Self {
        let now = Instant::now();
        Self { origin: now.checked_sub(Duration::from_secs(1)).unwrap_or(now) }
    }

    /// Now.
    #[must_use]
    pub fn now(&self) -> Tick {
        Tick(u64::try_from(self.origin.elapsed().as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Unix time, in milliseconds.
#[must_use]
pub fn unix_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
