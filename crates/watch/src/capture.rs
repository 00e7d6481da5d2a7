//! What one viewer is shown of packets: a bounded ring that is taken whole.

use crate::filter::Tail;
use crate::{Filter, Record, Seen};
use onym_tables::Tick;
use std::collections::VecDeque;
use std::time::Duration;

/// Viewers that are shown packets at the same time.
pub const CAPTURES_MAX: usize = 4;
/// Octets that a capture keeps in one thread, with `RECORD_OCTETS` for each record.
pub const RING_OCTETS: usize = 4 << 20;
/// How long a viewer is waited for.
pub const LEASE: Duration = Duration::from_secs(5);
/// What a record costs beside its frame.
const RECORD_OCTETS: usize = 128;

/// What was kept since the viewer asked last.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Taken {
    /// In the order in which they were told.
    pub records: VecDeque<Record>,
    /// How many found no room.
    pub missed: u64,
}

/// The packets that one viewer is shown by one thread.
#[derive(Debug)]
pub struct Capture {
    viewer: u64,
    filter: Filter,
    /// Of the prefix of the filter.
    tail: Option<Tail>,
    asked: Tick,
    /// How many fit since the last one that was kept.
    skipped: u32,
    octets: usize,
    taken: Taken,
}

impl Capture {
    pub(crate) fn new(now: Tick, viewer: u64, filter: Filter) -> Self {
        let (taken, tail) = (Taken::default(), tail(&filter));
        Self { viewer, filter, tail, asked: now, skipped: 0, octets: 0, taken }
    }

    /// Whether a packet may be wanted; it errs to yes.
    #[inline]
    pub(crate) fn may_want(&self, packet: &[u8]) -> bool {
        self.tail.is_none_or(|tail| tail.may_begin(packet))
    }

    pub(crate) const fn viewer(&self) -> u64 {
        self.viewer
    }

    pub(crate) fn is_over(&self, now: Tick) -> bool {
        now.since(self.asked) > LEASE
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
        if self.octets + len > RING_OCTETS {
            self.taken.missed += 1;
            return;
        }
        self.octets += len;
        self.taken.records.push_back(Record::of(seen, self.filter.snap));
    }

    pub(crate) fn take(&mut self, now: Tick, filter: &Filter) -> Taken {
        self.asked = now;
        self.octets = 0;
        if self.filter != *filter {
            self.filter = filter.clone();
            self.tail = tail(filter);
            self.skipped = 0;
        }
        std::mem::take(&mut self.taken)
    }
}

fn tail(filter: &Filter) -> Option<Tail> {
    filter.prefix.as_ref().map(|prefix| Tail::of(prefix.as_ref()))
}
