//! Signatures that are being checked, and how many at most.

use super::measure::Echo;
use super::neighbour::Segment;
use crate::codec::Hello;
use onym_endpoint::Packet;
use onym_sync::Rate;
use onym_tables::Tick;
use std::collections::BTreeMap;

/// Checks that wait for a verdict, at most; what comes then is dropped and counted.
const WAITING_MAX: usize = 512;
/// Checks of hellos from one face: this many at once, and this many in a second after them. Two routers
/// that both change every 10 ms stay below. Vectors of the prefix group likewise.
const BURST: u64 = 400;
const PER_SECOND: u64 = 200;
/// Destinations in a hello that weigh as much as a check.
const ENTRIES_PER_CHECK: u64 = 16;
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
    hellos: BTreeMap<u64, Rate>,
    vectors: BTreeMap<u64, Rate>,
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

    /// Whether a hello of `entries` destinations from `face` may cost a check now.
    pub(super) fn allow(&mut self, now: Tick, face: u64, entries: usize) -> bool {
        let weight = 1 + entries as u64 / ENTRIES_PER_CHECK;
        rate(&mut self.hellos, now, face).allow(now, weight)
    }

    /// Whether a vector of the prefix group that came by `face` may cost a check now.
    pub(super) fn allow_vector(&mut self, now: Tick, face: u64) -> bool {
        rate(&mut self.vectors, now, face).allow(now, 1)
    }
}

fn rate(rates: &mut BTreeMap<u64, Rate>, now: Tick, face: u64) -> &mut Rate {
    if rates.len() >= FACES_MAX && !rates.contains_key(&face) {
        let oldest = rates.iter().min_by_key(|(_, rate)| rate.seen()).map(|(face, _)| *face);
        oldest.map(|face| rates.remove(&face));
    }
    rates.entry(face).or_insert_with(|| Rate::new(now, BURST, PER_SECOND))
}
