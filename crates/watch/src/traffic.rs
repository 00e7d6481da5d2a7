//! Prefixes by traffic and round trips of faces, by samples.

use crate::{Direction, Kind, LEASE, Seen};
use onym_tables::pit::TOKEN_LEN;
use onym_tables::{FaceId, Tick};
use onym_wire::name::{Name, NameRef};
use siphasher::sip::SipHasher13;
use std::collections::HashMap;
use std::hash::Hasher as _;
use std::time::Duration;

/// One Interest, one Data of so many is put under its prefix.
const SAMPLE: u64 = 16;
/// Prefixes that are counted.
const PREFIXES_MAX: usize = 256;
/// Components of a prefix.
const DEPTH_MAX: usize = 8;
/// Octets of a prefix; a longer one is counted as the part of it that fits.
const PREFIX_OCTETS: usize = 256;
/// Packets whose round trip is measured at the same time; a power of two.
const PROBES: usize = 1024;
/// Faces that have a round trip.
const FACES_MAX: usize = 4096;
/// What waits longer has no answer.
const PROBE_AGE_MAX: Duration = Duration::from_secs(10);

/// What was counted of a prefix, scaled up from samples.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrefixRow {
    /// The prefix.
    pub name: Name,
    /// Interests that came.
    pub interests: u64,
    /// Of these, answered by the content store.
    pub hits: u64,
    /// Of these, dropped.
    pub drops: u64,
    /// Data sent, packets and octets.
    pub data: u64,
    /// Octets of these.
    pub octets: u64,
    /// How much too high the count of packets may be.
    pub error: u64,
}

impl PrefixRow {
    /// Interests and Data together, by which places are given.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.interests + self.data
    }

    /// Adds what another thread counted of the same prefix.
    pub fn add(&mut self, other: &Self) {
        self.interests += other.interests;
        self.hits += other.hits;
        self.drops += other.drops;
        self.data += other.data;
        self.octets += other.octets;
        self.error += other.error;
    }
}

/// How long a face takes from Interest to Data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RoundTrip {
    /// The face.
    pub face: FaceId,
    /// Smoothed, an eighth of each new one.
    pub smoothed: Duration,
    /// Measured since this began.
    pub samples: u64,
}

#[derive(Debug, Clone, Copy)]
struct Probe {
    hash: u64,
    face: FaceId,
    sent: Tick,
}

/// What one thread counts of prefixes and faces.
#[derive(Debug)]
pub struct Traffic {
    key: u64,
    depth: usize,
    asked: Tick,
    /// Interests received and Data sent since the last one that was put under its prefix.
    skipped: [u64; 2],
    prefixes: HashMap<Vec<u8>, PrefixRow>,
    probes: Vec<Option<Probe>>,
    round_trips: HashMap<FaceId, RoundTrip>,
    /// Data come without tokens of ours: round trips are sampled by names then, which costs a look
    /// at each.
    is_by_name: bool,
}

impl Traffic {
    pub(crate) fn new(now: Tick, key: u64, depth: usize) -> Self {
        Self {
            key,
            depth: depth.clamp(1, DEPTH_MAX),
            asked: now,
            skipped: [0; 2],
            prefixes: HashMap::new(),
            probes: vec![None; PROBES],
            round_trips: HashMap::new(),
            is_by_name: false,
        }
    }

    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn renew(&mut self, now: Tick) {
        self.asked = now;
    }

    pub(crate) fn is_over(&self, now: Tick) -> bool {
        now.since(self.asked) > LEASE
    }

    /// What was counted of prefixes, in no order. It goes on from there.
    #[must_use]
    pub fn prefixes(&self) -> Vec<PrefixRow> {
        self.prefixes.values().cloned().collect()
    }

    /// Round trips of faces, in no order.
    #[must_use]
    pub fn round_trips(&self) -> Vec<RoundTrip> {
        self.round_trips.values().copied().collect()
    }

    /// Counts a packet; whether it is one of those that are looked at ([`Self::look`]).
    #[inline]
    pub(crate) fn counts(&mut self, kind: Kind, direction: Direction, token: &[u8]) -> bool {
        match (kind, direction) {
            (Kind::Interest, Direction::In) => self.skips(0),
            (Kind::Data, Direction::Out) => self.skips(1),
            (Kind::Interest, Direction::Out) => self.is_by_name || is_probe(token),
            (Kind::Data, Direction::In) => {
                token.len() != TOKEN_LEN || self.is_by_name || is_probe(token)
            }
            _ => false,
        }
    }

    #[inline]
    fn skips(&mut self, which: usize) -> bool {
        self.skipped[which] += 1;
        if self.skipped[which] < SAMPLE {
            return false;
        }
        self.skipped[which] = 0;
        true
    }

    /// Looks at a packet that [`Self::counts`] chose.
    pub(crate) fn look(&mut self, seen: &Seen<'_>) {
        match (seen.kind, seen.direction) {
            (Kind::Interest, Direction::In) | (Kind::Data, Direction::Out) => self.put(seen),
            (Kind::Interest, Direction::Out) => self.probe(seen),
            (Kind::Data, Direction::In) => {
                self.is_by_name |= seen.fields.token().len() != TOKEN_LEN;
                self.answer(seen);
            }
            _ => {}
        }
    }

    /// Counts a packet under its prefix, as [`SAMPLE`] of them.
    pub(crate) fn put(&mut self, seen: &Seen<'_>) {
        let Some(prefix) = seen.name.map(|name| cut(name, self.depth)) else { return };
        if !self.prefixes.contains_key(prefix) {
            let Some(row) = self.place_for(prefix) else { return };
            self.prefixes.insert(prefix.to_vec(), row);
        }
        let Some(row) = self.prefixes.get_mut(prefix) else { return };
        if seen.kind == Kind::Interest {
            row.interests += SAMPLE;
            row.hits += if seen.outcome.word == "cs_hit" { SAMPLE } else { 0 };
            row.drops += if seen.outcome.is_drop { SAMPLE } else { 0 };
        } else {
            row.data += SAMPLE;
            row.octets += SAMPLE * seen.octets.len() as u64;
        }
    }

    /// An empty row for `prefix`. Where there is no room the smallest one gives way, and what it
    /// had is what the newcomer may have had.
    fn place_for(&mut self, prefix: &[u8]) -> Option<PrefixRow> {
        let name = NameRef::parse_value(prefix).ok()?.to_name();
        let mut row =
            PrefixRow { name, interests: 0, hits: 0, drops: 0, data: 0, octets: 0, error: 0 };
        if self.prefixes.len() >= PREFIXES_MAX {
            let smallest = self.prefixes.iter().min_by_key(|(_, row)| row.packets());
            let key = smallest.map(|(key, _)| key.clone())?;
            let gone = self.prefixes.remove(&key)?;
            (row.interests, row.data, row.error) = (gone.interests, gone.data, gone.packets());
        }
        Some(row)
    }

    /// The slot of a packet that is measured, and its hash.
    #[inline]
    fn slot(&self, seen: &Seen<'_>) -> Option<(usize, u64)> {
        let name = seen.name?;
        if self.is_by_name && name.last().is_none_or(|octet| octet & 0x0f != 0) {
            return None;
        }
        let mut hasher = SipHasher13::new_with_keys(self.key, seen.face.0.into());
        hasher.write(name);
        let hash = hasher.finish();
        Some((usize::try_from(hash).unwrap_or_default() % PROBES, hash))
    }

    #[inline]
    fn probe(&mut self, seen: &Seen<'_>) {
        let Some((slot, hash)) = self.slot(seen) else { return };
        let probe = &mut self.probes[slot];
        // A repetition says nothing about which of the two was answered.
        let is_again =
            probe.is_some_and(|p| p.hash == hash && seen.at.since(p.sent) < PROBE_AGE_MAX);
        *probe = (!is_again).then_some(Probe { hash, face: seen.face, sent: seen.at });
    }

    #[inline]
    fn answer(&mut self, seen: &Seen<'_>) {
        let Some((slot, hash)) = self.slot(seen) else { return };
        let Some(probe) = self.probes[slot].take_if(|probe| probe.hash == hash) else { return };
        let took = seen.at.since(probe.sent);
        if took > PROBE_AGE_MAX {
            return;
        }
        let is_full = self.round_trips.len() >= FACES_MAX;
        if is_full && !self.round_trips.contains_key(&probe.face) {
            return;
        }
        let first = RoundTrip { face: probe.face, smoothed: took, samples: 0 };
        let round_trip = self.round_trips.entry(probe.face).or_insert(first);
        round_trip.samples += 1;
        round_trip.smoothed = round_trip.smoothed * 7 / 8 + took / 8;
    }
}

/// Whether the round trip of a packet with this token is measured: of one in 16, by its generation,
/// which is as good as random.
#[inline]
fn is_probe(token: &[u8]) -> bool {
    matches!(token, [_, _, _, _, _, low] if low & 0x0f == 0)
}

/// The first `depth` components of a name, fewer where they are long.
fn cut(name: &[u8], depth: usize) -> &[u8] {
    let Ok(whole) = NameRef::parse_value(name) else { return &[] };
    let mut prefix = whole.prefix(depth.min(whole.len()));
    while prefix.value().len() > PREFIX_OCTETS {
        prefix = prefix.drop_last(1);
    }
    prefix.value()
}
