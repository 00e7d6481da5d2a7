//! Answers in segments: those that are given, and those that are fetched.

use onym_crypto::{Error, Signer};
use onym_wire::{Data, DataBuilder, Malformed, Name, NameRef, types};
use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

/// Octets of an answer, unpacked and packed.
pub(super) const CONTENT_OCTETS_MAX: usize = 1 << 20;
const SEGMENT_OCTETS: usize = 4400;
/// Segments of ours that are kept, at most; the oldest go.
const SEGMENTS_MAX: usize = 512;

/// Our answers.
#[derive(Debug)]
pub(super) struct Segments {
    kept: BTreeMap<Name, Vec<u8>>,
    order: VecDeque<Name>,
    version: u64,
}

impl Segments {
    /// Versions begin behind `version`.
    pub(super) fn new(version: u64) -> Self {
        Self { kept: BTreeMap::new(), order: VecDeque::new(), version }
    }

    /// A segment that was asked for by its name.
    pub(super) fn get(&self, name: NameRef<'_>) -> Option<Vec<u8>> {
        self.kept.get(name.value()).cloned()
    }

    /// Signs and keeps `content` as the next version under `base`; the first segment.
    pub(super) fn publish(
        &mut self,
        mut base: Name,
        content: &[u8],
        freshness: Duration,
        signer: &Signer,
    ) -> Result<Vec<u8>, Error> {
        self.version += 1;
        base.append_version(self.version);
        let mut end = Name::new();
        end.append_segment(content.len().div_ceil(SEGMENT_OCTETS).max(1) as u64 - 1);
        let mut first = Vec::new();
        for (n, piece) in content.chunks(SEGMENT_OCTETS).enumerate() {
            let mut name = base.clone();
            name.append_segment(n as u64);
            let data = DataBuilder {
                freshness_ms: u64::try_from(freshness.as_millis()).unwrap_or(u64::MAX),
                final_block_id: end.as_ref().last(),
                ..DataBuilder::new(name.as_ref(), piece)
            };
            let mut wire = Vec::new();
            signer.sign_data(&data, &mut wire)?;
            if n == 0 {
                first.clone_from(&wire);
            }
            self.order.push_back(name.clone());
            self.kept.insert(name, wire);
        }
        while self.order.len() > SEGMENTS_MAX {
            self.order.pop_front().map(|name| self.kept.remove(&name));
        }
        Ok(first)
    }
}

/// What a segment led to.
#[derive(Debug)]
pub(super) enum Joined {
    /// This one is asked for next.
    More(Name),
    /// The whole, and its name without segment and version.
    Whole(Name, Vec<u8>),
}

/// An answer of somebody else, of which segments are still to come.
#[derive(Debug, Default)]
pub(super) struct Joining {
    base: Name,
    content: Vec<u8>,
    next: u64,
}

impl Joining {
    /// Takes the next segment; another answer begins with its first one.
    pub(super) fn join(&mut self, data: &Data<'_>) -> Result<Joined, Malformed> {
        let missing = Malformed::Missing(types::SEGMENT_COMPONENT);
        let segment = data.name.last().and_then(|c| c.as_segment()).ok_or(missing)?;
        let base = data.name.drop_last(1);
        if segment == 0 {
            *self = Self { base: base.to_name(), ..Self::default() };
        } else if self.base != base || self.next != segment {
            return Err(missing);
        }
        let last = data.final_block_id.and_then(|c| c.as_segment()).unwrap_or(0);
        self.content.extend_from_slice(data.content);
        self.next += 1;
        if self.content.len() > CONTENT_OCTETS_MAX {
            return Err(Malformed::TooLong);
        }
        if self.next > last {
            let whole = std::mem::take(self);
            return Ok(Joined::Whole(whole.base.as_ref().drop_last(1).to_name(), whole.content));
        }
        let mut name = self.base.clone();
        name.append_segment(self.next);
        Ok(Joined::More(name))
    }
}
