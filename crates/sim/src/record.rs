//! What is written down while a network runs: samples of its nodes at equal times.

use crate::network::{Ended, Network};
use onym_link::PacketKind;
use std::time::Duration;

/// A node at a moment. What is counted is counted since the run began.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// Virtual time.
    pub at: Duration,
    /// Number of the node.
    pub node: usize,
    /// Names with pending Interests.
    pub pending: usize,
    /// Pending Interests, each downstream that waits for a name counted.
    pub waiting: u64,
    /// Octets of the PIT.
    pub pit_octets: usize,
    /// Packets in the content store.
    pub cs_entries: usize,
    /// Octets of these packets.
    pub cs_octets: usize,
    /// Interests answered from the content store.
    pub cs_hits: u64,
    /// Interests that it did not answer.
    pub cs_misses: u64,
    /// Interests, Data and Nacks received.
    pub received: [u64; 3],
    /// Interests, Data and Nacks sent.
    pub sent: [u64; 3],
    /// Interests that ended in a drop, and frames that the processor shed.
    pub dropped: u64,
    /// Processor time used, in seconds of a whole processor.
    pub used_s: f64,
    /// Time during which the processor had work, in seconds.
    pub busy_s: f64,
}

/// Runs `network` until `until` or `events_max` events and hands `see` a sample of every node at
/// each multiple of `every` and at the end. Ends early when every application is done and
/// `stop_when_done` is set.
pub fn run(
    network: &mut Network,
    limits: Limits,
    every: Duration,
    mut see: impl FnMut(Sample),
) -> Ended {
    let mut events_left = limits.events_max;
    let mut next = Duration::ZERO;
    loop {
        let before = network.happened();
        let ended = network.run(next.min(limits.until), events_left);
        events_left = events_left.saturating_sub(network.happened() - before);
        let is_last = ended != Ended::Time
            || next >= limits.until
            || (limits.stop_when_done && network.is_done());
        // A quiet network's clock stands at its last event; the others' at the time asked for.
        for node in 0..network.nodes().len() {
            see(sample(network, node));
        }
        if is_last {
            return ended;
        }
        next += every.max(Duration::from_micros(1));
    }
}

/// When a recorded run ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Most virtual time.
    pub until: Duration,
    /// Most events.
    pub events_max: u64,
    /// End when every application is done.
    pub stop_when_done: bool,
}

fn sample(network: &Network, number: usize) -> Sample {
    let node = &network.nodes()[number];
    let forwarder = node.forwarder();
    let counters = forwarder.counters();
    let verdicts = onym_forward::Verdict::ALL.iter().filter(|verdict| verdict.is_drop());
    let dropped: u64 = verdicts.map(|v| counters.verdict(PacketKind::Interest, *v)).sum();
    let work = network.processor(number).map(crate::Processor::counters).unwrap_or_default();
    Sample {
        at: network.elapsed(),
        node: number,
        pending: forwarder.pit_len(),
        waiting: forwarder.faces().iter().map(|face| u64::from(face.load.pending)).sum(),
        pit_octets: forwarder.pit_octets(),
        cs_entries: forwarder.cs().len(),
        cs_octets: forwarder.cs().octets(),
        cs_hits: counters.cs_hits,
        cs_misses: counters.cs_misses,
        received: counters.received,
        sent: counters.sent,
        dropped: dropped + work.shed,
        used_s: work.used_s,
        busy_s: work.busy.as_secs_f64(),
    }
}
