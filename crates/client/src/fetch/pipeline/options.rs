//! How a pipeline behaves, and what it counts.

use crate::rtt::RttOptions;
use crate::window::WindowLaw;
use std::time::Duration;

/// How a pipeline behaves; the defaults are those of ndncatchunks.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PipelineOptions {
    /// The law of the window.
    pub law: WindowLaw,
    /// Constants of the round-trip estimator.
    pub rtt: RttOptions,
    /// Interest lifetime; the timeout of the fixed window.
    pub lifetime: Duration,
    /// Retransmissions of one segment before the fetch fails.
    pub retries_max: u32,
    /// Congestion marks do not cut the window.
    pub ignore_marks: bool,
    /// Every sign of congestion cuts, not one per round trip.
    pub cut_every_time: bool,
    /// Slow start also ends when the round trip grows (HyStart), before anything is lost.
    pub delay_aware: bool,
    /// Greatest distance between the next segment in order and the highest one asked for.
    pub reorder_max: usize,
}

impl Default for PipelineOptions {
    fn default() -> Self {
        Self {
            law: WindowLaw::default(),
            rtt: RttOptions::default(),
            lifetime: Duration::from_secs(4),
            retries_max: 15,
            ignore_marks: false,
            cut_every_time: false,
            delay_aware: true,
            reorder_max: 4096,
        }
    }
}

/// What happened so far, in numbers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct PipelineCounters {
    /// Interests sent, retransmissions included.
    pub sent: u64,
    /// Interests sent again.
    pub retransmitted: u64,
    /// Segments received, each once.
    pub received: u64,
    /// Segments received again.
    pub duplicates: u64,
    /// Interests whose timeout passed.
    pub timeouts: u64,
    /// Data with a congestion mark.
    pub marks: u64,
    /// Nacks.
    pub nacks: u64,
    /// Window cuts.
    pub cuts: u64,
}
