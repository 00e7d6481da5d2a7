//! What one viewer is shown of packets: a bounded ring that is taken whole.

use crate::{Filter, Seen, record};
use onym_tables::Tick;
use onym_wire::name::Tail;
use std::time::Duration;

/// Viewers that are shown packets at the same time.
pub const CAPTURES_MAX: usize = 4;
/// Octets of records that a capture keeps in one thread.
pub const RING_OCTETS: usize = 4 << 20;
/// How long a viewer is waited for.
pub const LEASE: Duration = Duration::from_secs(5);
/// What a record has beside the packet, about.
const RECORD_OCTETS: usize = 128;

/// What was kept since the viewer asked last.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// Records as a batch has them, in the order in which they were told.
    pub records: Vec<u8>,
    /// How many found no room.
    pub missed: u64,
}

/// The packets that one viewer is shown by one thread.
#[derive(Debug)]
pub struct Capture {
    viewer: u64,
    filter: Filter,
    /// Of the prefix of the filter.
    tail: Tail,
    /// What is between the shell's clock and Unix time, in nanoseconds.
    unix_offset: u64,
    /// When it ends unless it is asked before.
    ends: Tick,
    /// How many fit since the last one that was kept.
    skipped: u32,
    taken: Taken,
}

impl Capture {
    pub(crate) fn new(now: Tick, viewer: u64, filter: Filter, unix_offset: u64) -> Self {
        let (taken, tail) = (Taken::default(), tail(&filter));
        Self { viewer, filter, tail, unix_offset, ends: now + LEASE, skipped: 0, taken }
    }

    /// By which most packets are told that it does not want.
    pub(crate) const fn tail(&self) -> Tail {
        self.tail
    }

    pub(crate) const fn viewer(&self) -> u64 {
        self.viewer
    }

    pub(crate) fn is_over(&self, now: Tick) -> bool {
        now > self.ends
    }

    pub(crate) fn note(&mut self, seen: &Seen<'_>) {
        if !self.filter.takes(seen) {
            return;
        }
        self.skipped += 1;
        if self.skipped < self.filter.sample {
            return;
        }
        self.skipped = 0;
        let len = RECORD_OCTETS + seen.octets.len().min(self.filter.snap);
        if self.taken.records.len() + len > RING_OCTETS {
            self.taken.missed += 1;
            return;
        }
        record::append(&mut self.taken.records, seen, self.filter.snap, self.unix_offset);
    }

    pub(crate) fn take(&mut self, now: Tick, filter: &Filter) -> Taken {
        self.ends = now + LEASE;
        if self.filter != *filter {
            self.filter = filter.clone();
            self.tail = tail(filter);
            self.skipped = 0;
        }
        // As much will come until the next question, about: to make room for more moves it all.
        let records = Vec::with_capacity(about(self.taken.records.len()).min(RING_OCTETS));
        std::mem::replace(&mut self.taken, Taken { records, missed: 0 })
    }
}

/// Room for about as much again.
const fn about(len: usize) -> usize {
    len + len / 4
}

fn tail(filter: &Filter) -> Tail {
    filter.prefix.as_ref().map_or(Tail::ANY, |prefix| Tail::of(prefix.as_ref()))
}
