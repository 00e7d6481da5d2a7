//! Prefixes by traffic and round trips of faces, by samples.

use crate::LEASE;
use crate::sampler::Sampler;
use onym_tables::{FaceId, Tick};
use onym_wire::name::{Name, NameRef};
use onym_wire::tlv::Element;
use std::collections::HashMap;
use std::time::Duration;

/// Of so many packets that come one is looked at, at the least.
const SAMPLE_MAX: u64 = 256;
/// With more samples a second than these fewer packets are looked at, with fewer than those more.
const SAMPLES: [u64; 2] = [64, 16];
/// Prefixes that are counted.
const PREFIXES_MAX: usize = 256;
/// Components of a prefix.
const DEPTH_MAX: usize = 8;
/// Octets of a prefix; a longer one is counted as the part of it that fits.
const PREFIX_OCTETS: usize = 256;
/// Faces that have a round trip.
const FACES_MAX: usize = 4096;

/// What was counted of a prefix since it has a row, scaled up from samples.
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
    /// Data for downstreams, packets and octets.
    pub data: u64,
    /// Octets of these.
    pub octets: u64,
    /// Of the number of packets, as chance has it in a sample: its variance, at most.
    pub variance: u64,
    /// Packets that there may have been more, before it had this row.
    pub missing: u64,
}

impl PrefixRow {
    /// Interests and Data together, by which places are given.
    #[must_use]
    pub const fn packets(&self) -> u64 {
        self.interests + self.data
    }

    /// The most packets that there may have been.
    const fn rank(&self) -> u64 {
        self.packets() + self.missing
    }

    /// What was counted since `past`, where the row was there; `unseen_max` is what the prefix may have
    /// had then without one ([`Traffic::unseen_max`]).
    #[must_use]
    pub fn since(&self, past: Option<&Self>, unseen_max: u64) -> Self {
        // Who lost its row and has one again is missing more.
        let missing = self.missing.saturating_sub(past.map_or(unseen_max, |past| past.missing));
        let same = past.filter(|p| p.missing == self.missing && p.packets() <= self.packets());
        let grown = |of: fn(&Self) -> u64| of(self).saturating_sub(same.map_or(0, of));
        Self {
            name: self.name.clone(),
            interests: grown(|row| row.interests),
            hits: grown(|row| row.hits),
            drops: grown(|row| row.drops),
            data: grown(|row| row.data),
            octets: grown(|row| row.octets),
            variance: grown(|row| row.variance),
            missing,
        }
    }

    /// Adds what another thread counted of the same prefix.
    pub fn add(&mut self, other: &Self) {
        self.interests += other.interests;
        self.hits += other.hits;
        self.drops += other.drops;
        self.data += other.data;
        self.octets += other.octets;
        self.variance = self.variance.saturating_add(other.variance);
        self.missing += other.missing;
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

/// A packet that came and was chosen, with what became of it.
#[derive(Debug, Clone, Copy)]
pub struct Sample<'a> {
    /// When.
    pub at: Tick,
    /// For how many packets it stands.
    pub stands_for: u64,
    /// VALUE of its name.
    pub name: &'a [u8],
    /// Whether it is an Interest; Data else.
    pub is_interest: bool,
    /// Whether the content store answered it.
    pub is_hit: bool,
    /// Whether it was dropped.
    pub is_drop: bool,
    /// Data that left for it: packets and octets.
    pub data: [u64; 2],
    /// From the Interest to this Data of that face, where it is known.
    pub round_trip: Option<(FaceId, Duration)>,
}

/// What one thread counts of prefixes and faces.
#[derive(Debug)]
pub struct Traffic {
    depth: usize,
    /// When it ends unless it is asked before.
    ends: Tick,
    sampler: Sampler,
    /// Since when samples are counted for their rate, and how many there were.
    pace: (Tick, u64),
    rows: Vec<PrefixRow>,
    /// Where the row of a prefix is.
    places: HashMap<Vec<u8>, usize>,
    /// The one that was asked for last: packets of a prefix come together.
    last: usize,
    /// Some rows that had the lowest rank, which was this.
    lowest: (Vec<usize>, u64),
    /// By face.
    round_trips: Vec<RoundTrip>,
}

impl Traffic {
    /// One that begins after the packet with the number `came`; `seed` draws the samples.
    pub(crate) fn new(now: Tick, seed: u64, depth: usize, came: u64) -> Self {
        Self {
            depth: depth.clamp(1, DEPTH_MAX),
            ends: now + LEASE,
            sampler: Sampler::new(seed, 1, came),
            pace: (now, 0),
            rows: Vec::new(),
            places: HashMap::new(),
            last: 0,
            lowest: (Vec::new(), 0),
            round_trips: Vec::new(),
        }
    }

    pub(crate) const fn depth(&self) -> usize {
        self.depth
    }

    pub(crate) fn renew(&mut self, now: Tick) {
        self.ends = now + LEASE;
    }

    pub(crate) fn is_over(&self, now: Tick) -> bool {
        now > self.ends
    }

    /// What was counted of prefixes, in no order. It goes on from there.
    #[must_use]
    pub fn prefixes(&self) -> Vec<PrefixRow> {
        self.rows.clone()
    }

    /// At most so many packets a prefix may have had without a row.
    #[must_use]
    pub fn unseen_max(&self) -> u64 {
        match self.rows.len() < PREFIXES_MAX {
            true => 0,
            false => self.rows.iter().map(PrefixRow::rank).min().unwrap_or_default(),
        }
    }

    /// Round trips of faces, in no order.
    #[must_use]
    pub fn round_trips(&self) -> Vec<RoundTrip> {
        self.round_trips.clone()
    }

    /// The number of the next one that is chosen.
    pub(crate) const fn next(&self) -> u64 {
        self.sampler.next()
    }

    /// For how many packets the one with the number `came` stands; 0: it is not looked at.
    pub(crate) fn samples(&mut self, came: u64) -> u64 {
        self.sampler.takes(came)
    }

    /// Where packets are few most are looked at, where they are many one in [`SAMPLE_MAX`].
    fn keep_pace(&mut self, now: Tick) {
        let [many, few] = SAMPLES;
        let (since, samples) = &mut self.pace;
        if now.since(*since) >= Duration::from_secs(1) {
            if *samples < few {
                self.sampler.each = (self.sampler.each / 2).max(1);
            }
            (*since, *samples) = (now, 0);
        }
        *samples += 1;
        if *samples >= many && self.sampler.each < SAMPLE_MAX {
            self.sampler.each *= 2;
            *samples = 0;
        }
    }

    /// Counts a sample.
    pub(crate) fn count(&mut self, sample: &Sample<'_>) {
        self.keep_pace(sample.at);
        if let Some((face, took)) = sample.round_trip {
            self.time(face, took);
        }
        let [data, octets] = sample.data;
        let packets = u64::from(sample.is_interest) + data;
        if packets == 0 {
            return;
        }
        let each = sample.stands_for;
        let scaled = |count: u64| each * count;
        let Some(row) = self.row(cut(sample.name, self.depth)) else { return };
        row.interests += scaled(sample.is_interest.into());
        row.hits += scaled((sample.is_interest && sample.is_hit).into());
        row.drops += scaled((sample.is_interest && sample.is_drop).into());
        row.data += scaled(data);
        row.octets += scaled(octets);
        row.variance = row.variance.saturating_add(scaled(each - 1) * packets * packets);
    }

    /// The row of `prefix`, a new one where it has none.
    fn row(&mut self, prefix: &[u8]) -> Option<&mut PrefixRow> {
        let is_same = |row: &PrefixRow| row.name.as_ref().value() == prefix;
        if !self.rows.get(self.last).is_some_and(is_same) {
            let known = self.places.get(prefix).copied();
            self.last = known.or_else(|| self.begin(prefix))?;
        }
        self.rows.get_mut(self.last)
    }

    /// A new row, in the place of another one where there is no room.
    fn begin(&mut self, prefix: &[u8]) -> Option<usize> {
        let name = NameRef::parse_value(prefix).ok()?.to_name();
        let (at, missing) = match self.rows.len() < PREFIXES_MAX {
            true => (self.rows.len(), 0),
            false => self.make_room()?,
        };
        let (interests, hits, drops) = (0, 0, 0);
        let (data, octets, variance) = (0, 0, 0);
        let row = PrefixRow { name, interests, hits, drops, data, octets, variance, missing };
        match self.rows.get_mut(at) {
            Some(place) => *place = row,
            None => self.rows.push(row),
        }
        self.places.insert(prefix.to_vec(), at);
        Some(at)
    }

    /// A row of the lowest rank gives way: its rank is what the newcomer may have had before.
    fn make_room(&mut self) -> Option<(usize, u64)> {
        loop {
            let (lowest, rank) = &mut self.lowest;
            while let Some(at) = lowest.pop() {
                // Ranks only rise, so one that has this still is one of the lowest.
                if let Some(row) = self.rows.get(at).filter(|row| row.rank() == *rank) {
                    self.places.remove(row.name.as_ref().value());
                    return Some((at, *rank));
                }
            }
            *rank = self.rows.iter().map(PrefixRow::rank).min()?;
            let of_rank = self.rows.iter().enumerate().filter(|(_, row)| row.rank() == *rank);
            lowest.extend(of_rank.map(|(at, _)| at));
        }
    }

    fn time(&mut self, face: FaceId, took: Duration) {
        let at = match self.round_trips.binary_search_by_key(&face, |trip| trip.face) {
            Ok(at) => at,
            Err(_) if self.round_trips.len() >= FACES_MAX => return,
            Err(at) => {
                self.round_trips.insert(at, RoundTrip { face, smoothed: took, samples: 0 });
                at
            }
        };
        let round_trip = &mut self.round_trips[at];
        round_trip.samples += 1;
        round_trip.smoothed = round_trip.smoothed * 7 / 8 + took / 8;
    }
}

/// The first `depth` components of a name, fewer where they are long.
fn cut(name: &[u8], depth: usize) -> &[u8] {
    let mut len = 0;
    for _ in 0..depth {
        match Element::split(&name[len..]) {
            Ok((component, _)) if len + component.wire.len() <= PREFIX_OCTETS => {
                len += component.wire.len();
            }
            _ => break,
        }
    }
    &name[..len]
}
