//! Subjects in memory: time passes only while a script waits.

use crate::subject::Received;
use onym_tables::Tick;
use std::time::Duration;

pub(crate) trait InVirtualTime {
    fn now(&self) -> Tick;

    /// Goes to the next moment at which something is due, if it is not after `end`; else to `end`.
    fn advance(&mut self, end: Tick) -> bool;

    /// The next frame that the far end of a face has not taken.
    fn take(&mut self, face: usize) -> Option<Vec<u8>>;

    fn is_open(&self, face: usize) -> bool;
}

/// Waits at the far end of a face for as long as `patience`.
pub(crate) fn receive(
    subject: &mut impl InVirtualTime,
    face: usize,
    patience: Duration,
) -> Received {
    let end = subject.now() + patience;
    loop {
        if let Some(frame) = subject.take(face) {
            return Received::Frame(frame);
        }
        if !subject.is_open(face) {
            return Received::Closed;
        }
        if !subject.advance(end) {
            return Received::Nothing;
        }
    }
}

/// Lets `time` pass.
pub(crate) fn wait(subject: &mut impl InVirtualTime, time: Duration) {
    let end = subject.now() + time;
    while subject.advance(end) {}
}
