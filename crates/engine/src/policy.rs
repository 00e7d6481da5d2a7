//! What an instance is set to.

/// Numbers of an instance.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    /// Frames of one round; faces that had no turn come first in the next one.
    pub round_frames: usize,
    /// Frames in a send queue that leave at once, so that who waits for them starts while the
    /// round goes on; a lone packet waits for the end of the round.
    pub flush_frames: usize,
    /// Octets in a send queue that leave at once.
    pub flush_octets: usize,
    /// Receive chunks kept for use again.
    pub chunks: usize,
    /// Whether somebody rings the bell when faces may have turns again after
    /// [`Driver::may_receive`](crate::Driver::may_receive) said no: the thread sleeps meanwhile. Otherwise it looks again at once
    /// while a face has something.
    pub is_rung_to_receive: bool,
}
