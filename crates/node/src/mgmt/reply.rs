//! Data that management answers with: DigestSha256, fresh for one second.

use onym_crypto::signer::write_digest_data;
use onym_wire::data::DataBuilder;
use onym_wire::mgmt::{Block as _, ControlResponse};
use onym_wire::name::NameRef;
use onym_wire::{PACKET_LEN_MAX, trace, types};

/// How long answers are fresh, in milliseconds.
pub(super) const FRESHNESS_MS: u64 = 1000;

/// Octets of a Data beside name and content: types, lengths, MetaInfo with FinalBlockId,
/// signature.
const OVERHEAD: usize = 120;

/// Most content of one Data under `name`, in octets; `None` when the name leaves too little.
pub(super) fn content_len_max(name: NameRef<'_>) -> Option<usize> {
    let room = PACKET_LEN_MAX.checked_sub(name.wire_len() + OVERHEAD)?;
    (room >= 512).then_some(room.min(8000))
}

fn write(data: &DataBuilder<'_>) -> Vec<u8> {
    let mut wire = Vec::new();
    write_digest_data(data, &mut wire);
    wire
}

/// The answer to a command: named exactly as its Interest.
pub(super) fn response(name: NameRef<'_>, response: &ControlResponse) -> Vec<u8> {
    let content = response.to_wire();
    write(&DataBuilder { freshness_ms: FRESHNESS_MS, ..DataBuilder::new(name, &content) })
}

/// The refusal of a dataset.
pub(super) fn rejection(name: NameRef<'_>, response: &ControlResponse) -> Vec<u8> {
    let content = response.to_wire();
    write(&DataBuilder {
        content_type: types::CONTENT_NACK,
        freshness_ms: FRESHNESS_MS,
        ..DataBuilder::new(name, &content)
    })
}

/// Content in one Data of exactly this name; `None` when it does not fit.
pub(super) fn single(name: NameRef<'_>, content: &[u8]) -> Option<Vec<u8>> {
    if content.len() > content_len_max(name)? {
        return None;
    }
    Some(write(&DataBuilder { freshness_ms: FRESHNESS_MS, ..DataBuilder::new(name, content) }))
}

/// The reply to a trace or echo request.
pub(super) fn traced(name: NameRef<'_>, content: &[u8]) -> Vec<u8> {
    let freshness_ms = trace::FRESHNESS_MS;
    write(&DataBuilder { freshness_ms, ..DataBuilder::new(name, content) })
}
