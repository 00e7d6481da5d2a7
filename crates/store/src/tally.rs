//! How much there is, of whom and where.

use crate::bucket::AfarStats;
use crate::change::OwnerId;
use crate::entry::Entry;
use crate::record::padded;
use std::collections::BTreeMap;

/// How much somebody has.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Usage {
    /// Octets of records.
    pub octets: u64,
    /// Packets.
    pub packets: u64,
}

impl Usage {
    fn add(&mut self, octets: u64) {
        self.octets = self.octets.saturating_add(octets);
        self.packets += 1;
    }

    fn take(&mut self, octets: u64) {
        self.octets = self.octets.saturating_sub(octets);
        self.packets = self.packets.saturating_sub(1);
    }

    pub(crate) fn encode(self) -> [u8; 16] {
        let mut out = [0; 16];
        out[..8].copy_from_slice(&self.octets.to_le_bytes());
        out[8..].copy_from_slice(&self.packets.to_le_bytes());
        out
    }

    pub(crate) fn decode(octets: &[u8; 16]) -> Self {
        let (a, b) = octets.split_at(8);
        let number = |part: &[u8]| part.try_into().map(u64::from_le_bytes).unwrap_or(0);
        Self { octets: number(a), packets: number(b) }
    }
}

/// What counts in a segment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct InSegment {
    /// Octets of packets and notes that are alive.
    pub(crate) octets: u64,
    /// Packets that are alive.
    pub(crate) packets: u64,
    /// Octets of deletions, which are copied as long as an older segment exists.
    pub(crate) deletions: u64,
}

impl InSegment {
    pub(crate) fn encode(self) -> [u8; 24] {
        let mut out = [0; 24];
        for (at, number) in [self.octets, self.packets, self.deletions].into_iter().enumerate() {
            out[at * 8..at * 8 + 8].copy_from_slice(&number.to_le_bytes());
        }
        out
    }

    pub(crate) fn decode(row: &[u8; 24]) -> Self {
        let number = |at: usize| {
            row.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b))
        };
        Self { octets: number(0), packets: number(8), deletions: number(16) }
    }
}

/// What the bucket has of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct InBucket {
    pub(crate) len: u64,
    pub(crate) state: There,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum There {
    /// Perhaps something: it is being put there.
    Begun,
    /// All of it; its checksum, unless it was found there.
    Verified(Option<u32>),
    /// It is to be removed once all segments up to this one are there.
    Condemned(u32),
}

impl InBucket {
    pub(crate) fn is_verified(&self) -> bool {
        matches!(self.state, There::Verified(_))
    }

    pub(crate) fn encode(&self) -> [u8; 24] {
        let (kind, number) = match self.state {
            There::Begun => (0u32, 0),
            There::Verified(Some(crc)) => (1, crc),
            There::Verified(None) => (2, 0),
            There::Condemned(behind) => (3, behind),
        };
        let mut out = [0; 24];
        out[..8].copy_from_slice(&self.len.to_le_bytes());
        out[8..12].copy_from_slice(&kind.to_le_bytes());
        out[12..16].copy_from_slice(&number.to_le_bytes());
        out
    }

    pub(crate) fn decode(row: &[u8; 24]) -> Self {
        let u32_at = |at: usize| {
            row.get(at..).and_then(<[u8]>::first_chunk).map_or(0, |b| u32::from_le_bytes(*b))
        };
        let len = row.first_chunk().map_or(0, |b| u64::from_le_bytes(*b));
        let state = match u32_at(8) {
            1 => There::Verified(Some(u32_at(12))),
            2 => There::Verified(None),
            3 => There::Condemned(u32_at(12)),
            _ => There::Begun,
        };
        Self { len, state }
    }
}

/// What a group did, to be taken back when it fails.
#[derive(Debug, Clone)]
enum Step {
    Packet(Entry, bool),
    Note(u32, u64, bool),
    Deletion(u32, u64),
}

/// What is alive, of each owner and in each segment.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub(crate) total: Usage,
    pub(crate) owners: BTreeMap<u16, Usage>,
    pub(crate) segments: BTreeMap<u32, InSegment>,
    /// Changed since the index was told.
    pub(crate) touched_owners: Vec<u16>,
    pub(crate) touched_segments: Vec<u32>,
    undo: Vec<Step>,
}

impl Tally {
    pub(crate) fn owner(&self, owner: OwnerId) -> Usage {
        self.owners.get(&owner.0).copied().unwrap_or_default()
    }

    /// The index gets a row for `segment`, also when nothing alive is in it.
    pub(crate) fn touch(&mut self, segment: u32) -> &mut InSegment {
        if !self.touched_segments.contains(&segment) {
            self.touched_segments.push(segment);
        }
        self.segments.entry(segment).or_default()
    }

    fn packet(&mut self, entry: &Entry, adds: bool) {
        let octets = padded(entry.len as usize) as u64;
        let segment = self.touch(entry.place.segment);
        if adds {
            segment.octets += octets;
            segment.packets += 1;
        } else {
            segment.octets = segment.octets.saturating_sub(octets);
            segment.packets = segment.packets.saturating_sub(1);
        }
        let owner = self.owners.entry(entry.owner.0).or_default();
        for usage in [&mut self.total, owner] {
            if adds { usage.add(octets) } else { usage.take(octets) }
        }
        if !self.touched_owners.contains(&entry.owner.0) {
            self.touched_owners.push(entry.owner.0);
        }
    }

    fn note(&mut self, segment: u32, octets: u64, adds: bool) {
        let segment = self.touch(segment);
        segment.octets =
            if adds { segment.octets + octets } else { segment.octets.saturating_sub(octets) };
    }

    pub(crate) fn add(&mut self, entry: &Entry) {
        self.packet(entry, true);
        self.undo.push(Step::Packet(*entry, true));
    }

    pub(crate) fn take(&mut self, entry: &Entry) {
        self.packet(entry, false);
        self.undo.push(Step::Packet(*entry, false));
    }

    /// A note of `octets` is in `segment`.
    pub(crate) fn add_note(&mut self, segment: u32, octets: usize) {
        self.note(segment, octets as u64, true);
        self.undo.push(Step::Note(segment, octets as u64, true));
    }

    /// A note of `octets` is in `segment` no more.
    pub(crate) fn take_note(&mut self, segment: u32, octets: usize) {
        self.note(segment, octets as u64, false);
        self.undo.push(Step::Note(segment, octets as u64, false));
    }

    /// A deletion of `octets` is in `segment`.
    pub(crate) fn deletion_is(&mut self, segment: u32, octets: usize) {
        self.touch(segment).deletions += octets as u64;
        self.undo.push(Step::Deletion(segment, octets as u64));
    }

    /// The group is kept.
    pub(crate) fn keep(&mut self) {
        self.undo.clear();
        self.touched_owners.clear();
        self.touched_segments.clear();
    }

    /// The group failed.
    pub(crate) fn revert(&mut self) {
        for step in std::mem::take(&mut self.undo).into_iter().rev() {
            match step {
                Step::Packet(entry, added) => self.packet(&entry, !added),
                Step::Note(segment, octets, added) => self.note(segment, octets, !added),
                Step::Deletion(segment, octets) => {
                    let segment = self.touch(segment);
                    segment.deletions = segment.deletions.saturating_sub(octets);
                }
            }
        }
        self.keep();
    }
}

/// What a store tells about itself.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stats {
    /// What is alive.
    pub total: Usage,
    /// Of each owner.
    pub owners: Vec<(OwnerId, Usage)>,
    /// Segments, the open one included.
    pub segments: u64,
    /// Octets of all segments, dead records included.
    pub log_octets: u64,
    /// Packets that were found damaged since the start.
    pub damaged: u64,
    /// Whether nothing can be written.
    pub read_only: bool,
    /// What the disk said last, while insertions fail.
    pub trouble: Option<String>,
    /// The bucket, where there is one.
    pub afar: Option<AfarStats>,
}
