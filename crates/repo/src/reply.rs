//! Packets that are made when they are asked for: metadata and segments of what is in memory.

use crate::file::FileMetadata;
use onym_client::producer::Answer;
use onym_crypto::signer::Signer;
use onym_wire::data::DataBuilder;
use onym_wire::name::{Component, Name, NameRef};
use onym_wire::{NackReason, types};

/// Octets in a segment of what is in memory.
pub const SEGMENT: usize = 6144;

/// When metadata are made, and how long caches take them as fresh.
#[derive(Debug, Clone, Copy)]
pub struct Made {
    /// Milliseconds since the Unix epoch.
    pub now_ms: u64,
    /// Milliseconds.
    pub freshness_ms: u64,
}

impl Made {
    /// For the one who asks.
    #[must_use]
    pub fn at(now_ms: u64) -> Self {
        Self { now_ms, freshness_ms: 1 }
    }
}

/// `data`, signed.
pub fn signed(signer: &Signer, data: &DataBuilder<'_>, out: &mut Vec<u8>) -> Answer {
    match signer.sign_data(data, out) {
        Ok(()) => Answer::Written,
        Err(error) => {
            tracing::warn!(%error, "cannot-sign");
            Answer::Nack(NackReason::NONE)
        }
    }
}

/// `metadata` as the answer to `asked`, which ends with `32=metadata`.
pub fn metadata(
    signer: &Signer,
    asked: NameRef<'_>,
    made: Made,
    metadata: &FileMetadata,
    out: &mut Vec<u8>,
) -> Answer {
    let mut content = Vec::new();
    metadata.write(&mut content);
    let mut name = asked.to_name();
    name.append_version(made.now_ms).append_segment(0);
    let data = DataBuilder {
        freshness_ms: made.freshness_ms,
        final_block_id: Some(Component { typ: 50, value: &[0] }),
        ..DataBuilder::new(name.as_ref(), &content)
    };
    signed(signer, &data, out)
}

/// That there is nothing called `asked`.
pub fn nothing(
    signer: &Signer,
    asked: NameRef<'_>,
    freshness_ms: u64,
    out: &mut Vec<u8>,
) -> Answer {
    let content_type = types::CONTENT_NACK;
    let data = DataBuilder { content_type, freshness_ms, ..DataBuilder::new(asked, &[]) };
    signed(signer, &data, out)
}

/// Segment `segment` of `content`, called `name`.
pub fn segment_of(
    name: NameRef<'_>,
    segment: u64,
    content: &[u8],
    signer: &Signer,
    out: &mut Vec<u8>,
) -> Answer {
    let last = content.len().div_ceil(SEGMENT).saturating_sub(1);
    let Some(at) = usize::try_from(segment).ok().filter(|at| *at <= last) else {
        return Answer::Nack(NackReason::NO_ROUTE);
    };
    let part = &content[at * SEGMENT..((at + 1) * SEGMENT).min(content.len())];
    let mut end = Name::new();
    end.append_segment(last as u64);
    let data = DataBuilder { final_block_id: end.as_ref().last(), ..DataBuilder::new(name, part) };
    signed(signer, &data, out)
}
