//! Signatures that are being checked, and how many at most.

use super::measure::Echo;
use super::neighbour::Segment;
use crate::codec::Hello;
use onym_endpoint::Packet;
use onym_tables::Tick;
use std::collections::BTreeMap;

/// Checks that wait for a verdict, at most; what comes then is dropped and counted.
const WAITING_MAX: usize = 512;
/// Checks of hellos from one face: this many at once, and this many in a second after them. Two routers
/// that both change every 10 ms stay below.
const BURST: u64 = 400;
const PER_SECOND: u64 = 200;
/// Faces whose rate is known, at most; the longest unused is forgotten.
const FACES_MAX: usize = 1024;

/// What waits for its verdict.
#[derive(Debug)]
pub(super) enum Subject {
    Hello { face: u64, hello: Box<Hello>, signed: Option<u64>, packet: Packet },
    Segment(Segment),
    Echo(Echo),
    Group(onym_sync::alo::VerifyId),
}

#[derive(Debug, Default)]
pub(super) struct Checks {
    waiting: BTreeMap<u64, Subject>,
    next: u64,
    rates: BTreeMap<u64, (u64, Tick)>,
}

impl Checks {
    /// Notes a check; `None` when too many wait.
    pub(super) fn add(&mut self, subject: Subject) -> Option<u64> {
        if self.waiting.len() >= WAITING_MAX {
            return None;
        }
        self.next += 1;
        self.waiting.insert(self.next, subject);
        Some(self.next)
    }

    pub(super) fn take(&mut self, id: u64) -> Option<Subject> {
        self.waiting.remove(&id)
    }

    /// Whether a hello from `face` may cost a check now.
    pub(super) fn allow(&mut self, now: Tick, face: u64) -> bool {
        if self.rates.len() >= FACES_MAX && !self.rates.contains_key(&face) {
            let oldest = self.rates.iter().min_by_key(|(_, (_, at))| *at).map(|(face, _)| *face);
            oldest.map(|face| self.rates.remove(&face));
        }
        let (used, at) = self.rates.entry(face).or_insert((0, now));
        let step = 1_000_000_000 / PER_SECOND;
        let back = (now.0 - at.0) / step;
        *used = used.saturating_sub(back);
        at.0 += back * step;
        let allowed = *used < BURST;
        *used += u64::from(allowed);
        allowed
    }
}
