//! What an impaired link does to frames.

use std::time::Duration;

/// What one direction of a link does to frames. The default does nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Impairment {
    /// Probability that a frame is lost, 0 to 1.
    pub loss: f64,
    /// How long each frame travels.
    pub delay: Duration,
    /// At most this much is added to the delay of each frame, evenly; more than the time between
    /// frames changes their order.
    pub jitter: Duration,
    /// Octets leave at this rate, in bits per second.
    pub rate_bps: Option<u64>,
    /// Octets that may wait for the rate; what comes then is lost.
    pub queue_octets_max: usize,
    /// Octets under way, waiting and travelling; what comes then is lost.
    pub held_octets_max: usize,
}

impl Default for Impairment {
    fn default() -> Self {
        Self {
            loss: 0.0,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            rate_bps: None,
            queue_octets_max: 1 << 20,
            held_octets_max: 256 << 20,
        }
    }
}

impl Impairment {
    pub(super) fn is_none(&self) -> bool {
        let none = Self {
            queue_octets_max: self.queue_octets_max,
            held_octets_max: self.held_octets_max,
            ..Self::default()
        };
        *self == none
    }
}
