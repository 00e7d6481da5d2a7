//! Content stores that differ in their index, and a forwarder with one of them in front.

use super::bloom::Bloom;
use super::names::Names;
use super::skip_list::{Decoded, Encoded, SkipList};
use anyhow::{Result, ensure};
use onym_forward::{Config, FaceInfo, Forwarder, Verdict};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet};
use onym_tables::cs::CsConfig;
use onym_tables::fib::NextHop;
use onym_tables::index::HashIndex;
use onym_tables::{FaceId, HashKey, Tick};
use onym_wire::name::Name;
use onym_wire::{Data, Interest};
use std::time::Instant;

/// Which index, and whether a Bloom filter is asked first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoreKind {
    /// Skip list of packets, decoded at each comparison.
    Encoded,
    /// The same behind a Bloom filter.
    EncodedBloom,
    /// Skip list with decoded names.
    Decoded,
    /// The same behind a Bloom filter.
    DecodedBloom,
    /// Keyed hash, as Onym's.
    Hash,
    /// The same behind a Bloom filter.
    HashBloom,
}

impl StoreKind {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Encoded,
        Self::EncodedBloom,
        Self::Decoded,
        Self::DecodedBloom,
        Self::Hash,
        Self::HashBloom,
    ];

    /// As in cases of rows.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Encoded => "skiplist-encoded",
            Self::EncodedBloom => "skiplist-encoded+bloom",
            Self::Decoded => "skiplist-decoded",
            Self::DecodedBloom => "skiplist-decoded+bloom",
            Self::Hash => "hash",
            Self::HashBloom => "hash+bloom",
        }
    }

    const fn has_bloom(self) -> bool {
        matches!(self, Self::EncodedBloom | Self::DecodedBloom | Self::HashBloom)
    }
}

#[derive(Debug)]
enum Index {
    Encoded(SkipList<Encoded>),
    Decoded(SkipList<Decoded>),
    Hash { index: HashIndex, packets: Vec<(Box<[u8]>, Buf)> },
}

/// A content store that never evicts.
#[derive(Debug)]
pub struct Store {
    key: HashKey,
    bloom: Option<Bloom>,
    index: Index,
}

const SEED: u64 = 1;

impl Store {
    /// An empty store; a filter is made for `entries`.
    #[must_use]
    pub fn new(kind: StoreKind, entries: usize) -> Self {
        let index = match kind {
            StoreKind::Encoded | StoreKind::EncodedBloom => Index::Encoded(SkipList::new(SEED)),
            StoreKind::Decoded | StoreKind::DecodedBloom => Index::Decoded(SkipList::new(SEED)),
            StoreKind::Hash | StoreKind::HashBloom => {
                Index::Hash { index: HashIndex::new(), packets: Vec::new() }
            }
        };
        let bloom = kind.has_bloom().then(|| Bloom::new(entries));
        Self { key: HashKey::new(0x6f6e_796d, SEED), bloom, index }
    }

    /// Whether a packet of this name (its value) is there.
    #[must_use]
    pub fn find(&self, name: &[u8]) -> bool {
        let hash = match (&self.bloom, &self.index) {
            (None, Index::Encoded(_) | Index::Decoded(_)) => 0,
            _ => self.key.name(name),
        };
        if self.bloom.as_ref().is_some_and(|bloom| !bloom.may_hold(hash)) {
            return false;
        }
        match &self.index {
            Index::Encoded(list) => list.holds(name),
            Index::Decoded(list) => list.holds(name),
            Index::Hash { index, packets } => {
                index.find(hash, |slot| *packets[slot as usize].0 == *name).is_some()
            }
        }
    }

    /// Puts a packet in, which must be new.
    pub fn insert(&mut self, packet: Buf, name: &[u8]) {
        let hash = self.key.name(name);
        if let Some(bloom) = &mut self.bloom {
            bloom.insert(hash);
        }
        match &mut self.index {
            Index::Encoded(list) => list.insert(packet, name),
            Index::Decoded(list) => list.insert(packet, name),
            Index::Hash { index, packets } => {
                let slot =
                    u32::try_from(packets.len()).expect("invariant: fewer than 2^32 packets");
                packets.push((name.into(), packet));
                index.insert(hash, slot);
            }
        }
    }

    fn len(&self) -> usize {
        match &self.index {
            Index::Encoded(list) => list.len(),
            Index::Decoded(list) => list.len(),
            Index::Hash { packets, .. } => packets.len(),
        }
    }

    /// Octets of index and filter for each packet.
    // No loss that matters: below 2^53.
    #[allow(clippy::cast_precision_loss)]
    #[must_use]
    pub fn octets_per_entry(&self) -> f64 {
        let index = match &self.index {
            Index::Encoded(list) => list.octets(),
            Index::Decoded(list) => list.octets(),
            // Tag and slot, at most five eighths full.
            Index::Hash { packets, .. } => {
                let names: usize = packets.iter().map(|(name, _)| name.len()).sum();
                names + (packets.len() * 8 / 5).next_power_of_two() * 8
            }
        };
        let bloom = self.bloom.as_ref().map_or(0, Bloom::octets);
        (index + bloom) as f64 / self.len().max(1) as f64
    }
}

/// A store with the first `entries` packets, each of which is found.
///
/// # Errors
/// When a packet cannot be built or is not found.
pub(super) fn filled(kind: StoreKind, names: &Names, entries: u32) -> Result<Store> {
    let mut store = Store::new(kind, entries as usize);
    for n in 0..entries {
        store.insert(names.data(n)?, names.name(n).value());
    }
    for n in (0..entries).step_by(97) {
        ensure!(store.find(names.name(n).value()), "{} lost packet {n}", kind.name());
    }
    Ok(store)
}

const DOWN: FaceId = FaceId(256);
const UP: FaceId = FaceId(257);

/// Interest in, Interest out, Data in, Data out, with one lookup for each packet, as ccnd did: an
/// Interest looks for content, a Data for a duplicate. Nothing is stored: the store keeps its size.
///
/// # Errors
/// When the forwarder does not forward.
pub(super) fn exchanges(
    kind: StoreKind,
    store: &Store,
    names: &Names,
    entries: u32,
    count: u32,
    round: usize,
) -> Result<f64> {
    let off = CsConfig { packets_max: 0, ..CsConfig::default() };
    let mut fw = Forwarder::new(Config { cs: off, ..Config::default() });
    let mut out = Outbox::default();
    fw.face_add(DOWN, FaceInfo::point_to_point());
    fw.face_add(UP, FaceInfo::point_to_point());
    let hop = NextHop { face: UP, cost: 0 };
    fw.fib_add(Tick(0), Name::new().as_ref(), hop, &mut out)?;
    let first = entries + u32::try_from(round)? * count;
    let mut packets = Vec::new();
    for n in first..first + count {
        packets.push((names.interest(n), names.data(n)?));
    }
    let now = Tick::from_ms(1);
    let start = Instant::now();
    for (interest, data) in packets {
        ensure!(!store.find(Interest::parse(&interest)?.name.value()), "{}", kind.name());
        let lp = LpIn::default();
        let sent = fw.receive(now, Packet { face: DOWN, bytes: interest, lp }, &mut out);
        out.clear();
        ensure!(!store.find(Data::parse(&data)?.name.value()), "{}", kind.name());
        let lp = LpIn::default();
        let back = fw.receive(now, Packet { face: UP, bytes: data, lp }, &mut out);
        out.clear();
        ensure!((sent, back) == (Verdict::Forwarded, Verdict::Satisfied), "{sent:?} {back:?}");
    }
    Ok(f64::from(count) / start.elapsed().as_secs_f64().max(1e-9))
}
