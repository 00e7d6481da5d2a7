//! What the service manager that started a program is told (`sd_notify(3)`). Without one nothing is
//! told.

pub(crate) use sd_notify::NotifyState;
use std::time::{Duration, Instant};

pub(crate) fn tell(states: &[NotifyState<'_>]) {
    if let Err(error) = sd_notify::notify(states) {
        tracing::debug!(%error, "the service manager was not told");
    }
}

pub(crate) fn tell_ready() {
    tell(&[NotifyState::Ready]);
}

pub(crate) fn tell_stop() {
    tell(&[NotifyState::Stopping]);
}

/// How long the service manager waits for a sign of life (`WatchdogSec=`), `None` when it does not.
pub(crate) fn watchdog() -> Option<Duration> {
    sd_notify::watchdog_enabled()
}

/// The sign of life of a program that comes by here again and again while it works.
#[derive(Debug)]
pub(crate) struct Alive {
    every: Option<Duration>,
    last: Option<Instant>,
}

impl Alive {
    /// Twice in the time that is allowed, as `sd_watchdog_enabled(3)` advises.
    pub(crate) fn new() -> Self {
        Self { every: watchdog().map(|limit| limit / 2), last: None }
    }

    /// The work goes on; the service manager is told when it is time.
    pub(crate) fn beat(&mut self) {
        let Some(every) = self.every else { return };
        if self.last.is_none_or(|last| last.elapsed() >= every) {
            tell(&[NotifyState::Watchdog]);
            self.last = Some(Instant::now());
        }
    }
}
