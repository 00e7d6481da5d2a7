//! Where the frames of a face's peer arrive.

use onym_tables::Tick;
use std::time::Duration;

/// How often it is looked at.
const LOOK_INTERVAL: Duration = Duration::from_secs(1);

/// Where the frames of a face's peer arrive.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Frames that came by a listener and were handed over.
    by_listener: u64,
    /// Frames that had come to the face itself when it was looked at last.
    by_itself: u64,
    /// When it is looked at again.
    look_at: Tick,
    /// It was said that frames in its peer's name arrive elsewhere.
    is_told: bool,
}

impl Heard {
    /// Counts a frame that came by a listener and was handed over.
    pub(in crate::control) fn note(&mut self) {
        self.by_listener += 1;
    }

    /// Whether it is to be said that frames in its peer's name arrive elsewhere, which is said once.
    pub(in crate::control) fn is_to_be_told(&mut self) -> bool {
        !std::mem::replace(&mut self.is_told, true)
    }

    /// Whether it may be looked at: once in [`LOOK_INTERVAL`].
    pub(in crate::control) fn may_look(&mut self, now: Tick) -> bool {
        let is_due = now >= self.look_at;
        if is_due {
            self.look_at = now + LOOK_INTERVAL;
        }
        is_due
    }

    /// Whether frames came to the face itself since this was asked last, of which `all` came.
    pub(in crate::control) fn came_to_itself(&mut self, all: u64) -> bool {
        let by_itself = all.saturating_sub(self.by_listener);
        by_itself > std::mem::replace(&mut self.by_itself, by_itself)
    }
}
