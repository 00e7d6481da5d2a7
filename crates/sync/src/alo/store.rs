//! Our own packets: publications, snapshots, their metadata.

use super::object::{write_history, write_index, write_metadata};
use super::{AloConfig, PublishError, names};
use onym_crypto::Error;
use onym_crypto::digest::implicit_digest;
use onym_tables::Tick;
use onym_wire::{Component, Data, DataBuilder, Interest, Name, SignatureInfo, tlv, types};
use std::collections::BTreeMap;
use std::time::Duration;

/// Octets of content in one segment.
const SEGMENT_OCTETS: usize = 8000;
/// FreshnessPeriod of an index of history: the next one follows soon.
const INDEX_FRESHNESS: Duration = Duration::from_millis(10);

#[derive(Debug, Default)]
pub(crate) struct Store {
    packets: BTreeMap<Name, Vec<u8>>,
    octets: usize,
    /// Names of the packets of each publication.
    publications: BTreeMap<u64, Vec<Name>>,
    /// Packets of the last two snapshots.
    snapshots: Vec<Vec<Name>>,
    /// Packets of the index of history.
    index: Option<Vec<Name>>,
    last_snapshot: u64,
    is_snapshot_due: bool,
    /// Packets of each bundle of history, by its last publication.
    bundles: BTreeMap<u64, Vec<Name>>,
    unix_ms_at_zero: u64,
}

impl Store {
    pub(crate) fn new(unix_ms_at_zero: u64) -> Self {
        Self { unix_ms_at_zero, ..Self::default() }
    }

    pub(crate) fn set_clock(&mut self, unix_ms_at_zero: u64) {
        self.unix_ms_at_zero = unix_ms_at_zero;
    }

    /// The Data that answers `interest`.
    pub(crate) fn find(&self, interest: &Interest<'_>) -> Option<&[u8]> {
        let name = interest.name;
        if let Some(data) = self.packets.get(name.value()) {
            return Some(data);
        }
        let from = if interest.implicit_digest().is_some() { name.drop_last(1) } else { name };
        let mut behind = self.packets.range(from.to_name()..);
        let (_, wire) = behind.next()?;
        let data = Data::parse(wire).ok()?;
        onym_wire::data::matches(interest, &data, || implicit_digest(wire)).then_some(wire)
    }

    pub(crate) fn keep(&mut self, name: Name, data: Vec<u8>) {
        self.octets += data.len();
        if let Some(before) = self.packets.insert(name, data) {
            self.octets -= before.len();
        }
    }

    fn drop_all(&mut self, names: &[Name]) {
        for name in names {
            self.octets -= self.packets.remove(name).map_or(0, |data| data.len());
        }
    }

    pub(crate) fn publication(
        &mut self,
        now: Tick,
        config: &AloConfig,
        seq: u64,
        content: &[u8],
    ) -> Result<(), PublishError> {
        let node = config.svs.node.as_ref().ok_or(PublishError::NoNode)?;
        let name = names::publication(config, node, config.svs.boot, seq);
        let limits = config.limits;
        let len_max = limits.object_octets_max.min(limits.store_octets_max / 2);
        let len_max = if config.layout.is_single() { SEGMENT_OCTETS } else { len_max };
        if content.len() > len_max {
            return Err(PublishError::TooLong(content.len()));
        }
        let names = if config.layout.is_single() {
            let data = DataBuilder::new(name.as_ref(), content);
            self.sign(now, config, data, config.freshness)?;
            vec![name]
        } else {
            self.object(now, config, &name, content, config.freshness)?
        };
        self.publications.insert(seq, names);
        self.evict(config, seq);
        Ok(())
    }

    /// Makes room: the oldest publications go, then the oldest bundles.
    fn evict(&mut self, config: &AloConfig, seq: u64) {
        while self.octets > config.limits.store_octets_max {
            let is_old = |first: &u64| *first != seq;
            let names = if self.publications.keys().next().is_some_and(is_old) {
                self.publications.pop_first().map(|(_, names)| names)
            } else {
                self.bundles.pop_first().map(|(_, names)| names)
            };
            let Some(names) = names else { return };
            self.drop_all(&names);
        }
    }

    /// Our number jumped: peers cannot fetch what lies between.
    pub(crate) fn snapshot_due(&mut self) {
        self.is_snapshot_due = true;
    }

    /// Writes the snapshots that are due with publication `seq`.
    pub(crate) fn snapshots(
        &mut self,
        now: Tick,
        config: &AloConfig,
        seq: u64,
        state: impl FnOnce() -> Vec<u8>,
    ) -> Result<(), PublishError> {
        let is_due = |threshold: Option<u64>, last: u64| {
            threshold.is_some_and(|most| {
                last == 0 || seq.saturating_sub(last) >= most || self.is_snapshot_due
            })
        };
        let last_bundle = self.bundles.keys().last().copied().unwrap_or(0);
        let latest = is_due(config.serves.latest, self.last_snapshot);
        if is_due(config.serves.history, last_bundle) {
            self.bundle(now, config, last_bundle + 1, seq)?;
        }
        if latest {
            let names = self.versioned(now, config, "SNAP", seq, &state(), config.freshness)?;
            self.replace_snapshot(names, 2);
            self.last_snapshot = seq;
        }
        self.is_snapshot_due = false;
        Ok(())
    }

    /// Keeps the newest `count` snapshots: somebody may be fetching the one before.
    fn replace_snapshot(&mut self, names: Vec<Name>, count: usize) {
        self.snapshots.push(names);
        while self.snapshots.len() > count {
            let old = self.snapshots.remove(0);
            self.drop_all(&old);
        }
    }

    fn bundle(
        &mut self,
        now: Tick,
        config: &AloConfig,
        from: u64,
        seq: u64,
    ) -> Result<(), PublishError> {
        let range = from..=seq;
        let contents: Vec<(u64, Vec<u8>)> =
            range.filter_map(|n| Some((n, self.content(self.publications.get(&n)?)))).collect();
        let content = write_history(contents.iter().map(|(n, c)| (*n, c.as_slice())));
        let node = config.svs.node.as_ref().ok_or(PublishError::NoNode)?;
        let mut name = names::special(config, node, config.svs.boot, "HIST");
        name.append_version(seq);
        let names = self.object(now, config, &name, &content, config.freshness)?;
        self.bundles.insert(seq, names);
        let index = write_index(self.bundles.keys().copied());
        let names = self.versioned(now, config, "HIDX", seq, &index, INDEX_FRESHNESS)?;
        if let Some(old) = self.index.replace(names) {
            self.drop_all(&old);
        }
        Ok(())
    }

    /// The content of an object of ours.
    fn content(&self, names: &[Name]) -> Vec<u8> {
        let packets = names.iter().filter_map(|name| self.packets.get(name));
        packets.filter_map(|data| Data::parse(data).ok()).fold(Vec::new(), |mut all, data| {
            all.extend_from_slice(data.content);
            all
        })
    }

    /// An object with a version, and metadata that names it. The names of its segments.
    fn versioned(
        &mut self,
        now: Tick,
        config: &AloConfig,
        keyword: &str,
        version: u64,
        content: &[u8],
        freshness: Duration,
    ) -> Result<Vec<Name>, PublishError> {
        let node = config.svs.node.as_ref().ok_or(PublishError::NoNode)?;
        let base = names::special(config, node, config.svs.boot, keyword);
        let mut name = base.clone();
        name.append_version(version);
        let mut names = self.object(now, config, &name, content, freshness)?;
        let last_segment = names.len() as u64 - 1;
        let mut metadata = base;
        metadata.append_keyword("metadata");
        let content = write_metadata(name.as_ref(), last_segment);
        // The newest version is found first by being the only one.
        let old: Vec<Name> = self.under(&metadata);
        self.drop_all(&old);
        metadata.append_version(version);
        names.extend(self.object(now, config, &metadata, &content, freshness)?);
        Ok(names)
    }

    fn under(&self, prefix: &Name) -> Vec<Name> {
        let behind = self.packets.range(prefix.clone()..).map(|(name, _)| name);
        behind.take_while(|name| prefix.as_ref().is_prefix_of(name.as_ref())).cloned().collect()
    }

    /// Signs `content` in segments. Their names; after an error none of them is kept.
    fn object(
        &mut self,
        now: Tick,
        config: &AloConfig,
        name: &Name,
        content: &[u8],
        freshness: Duration,
    ) -> Result<Vec<Name>, PublishError> {
        let pieces = content.len().div_ceil(SEGMENT_OCTETS).max(1);
        let mut last = Vec::new();
        tlv::put_nni(&mut last, pieces as u64 - 1);
        let segment_type = u16::try_from(types::SEGMENT_COMPONENT).unwrap_or(u16::MAX);
        let last = Component { typ: segment_type, value: &last };
        let mut names: Vec<Name> = Vec::with_capacity(pieces);
        for piece in 0..pieces {
            let (from, to) = (piece * SEGMENT_OCTETS, (piece + 1) * SEGMENT_OCTETS);
            let octets = content.get(from..to.min(content.len())).unwrap_or_default();
            let mut segment = name.clone();
            segment.append_segment(piece as u64);
            let data = DataBuilder {
                final_block_id: Some(last),
                ..DataBuilder::new(segment.as_ref(), octets)
            };
            let signed = self.sign(now, config, data, freshness);
            names.push(segment);
            if let Err(error) = signed {
                self.drop_all(&names);
                return Err(error.into());
            }
        }
        Ok(names)
    }

    fn sign(
        &mut self,
        now: Tick,
        config: &AloConfig,
        data: DataBuilder<'_>,
        freshness: Duration,
    ) -> Result<(), Error> {
        let freshness_ms = u64::try_from(freshness.as_millis()).unwrap_or(u64::MAX);
        let data = DataBuilder { freshness_ms, ..data };
        let info = config.signer.info();
        let is_key =
            info.kind != types::SIGNATURE_DIGEST_SHA256 && info.kind != types::SIGNATURE_NULL;
        let time = is_key.then(|| self.unix_ms_at_zero.saturating_add(now.0 / 1_000_000));
        let info = SignatureInfo { time, ..info };
        let mut wire = Vec::new();
        data.write(&mut wire, &info, |signed| config.signer.sign(&[signed]))?;
        self.keep(data.name.to_name(), wire);
        Ok(())
    }
}

#[cfg(test)]
impl Store {
    pub(crate) fn octets(&self) -> usize {
        self.octets
    }
}
