//! Content of objects beside the publications: metadata, index and bundles of history.

use crate::numbers;
use crate::svs::skip;
use onym_wire::tlv::{self, Malformed, Reader};
use onym_wire::{Name, NameRef, types};

/// A publication in a bundle of history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryEntry {
    /// Its number.
    pub seq: u64,
    /// What was published.
    pub content: Vec<u8>,
}

/// Content of metadata: the versioned name of an object and its last segment.
pub(crate) fn write_metadata(name: NameRef<'_>, last_segment: u64) -> Vec<u8> {
    let mut content = Vec::new();
    name.write_tlv(&mut content);
    tlv::put_nested(&mut content, types::FINAL_BLOCK_ID, |out| {
        tlv::put_nni_tlv(out, types::SEGMENT_COMPONENT, last_segment);
    });
    content
}

/// The versioned name in metadata of `base`, with its version.
pub(crate) fn read_metadata(content: &[u8], base: &Name) -> Result<(Name, u64), Malformed> {
    let element = Reader::new(content).expect(types::NAME)?;
    let name = NameRef::parse_value(element.value)?;
    let rest = name.strip_prefix(base.as_ref()).filter(|rest| rest.len() == 1);
    let version = rest.and_then(|rest| rest.last()).and_then(|c| c.as_version());
    Ok((name.to_name(), version.ok_or(Malformed::Value(types::NAME))?))
}

/// Content of an index of history: the last publication of each bundle.
pub(crate) fn write_index(bundles: impl Iterator<Item = u64>) -> Vec<u8> {
    let mut content = Vec::new();
    bundles.for_each(|seq| tlv::put_nni_tlv(&mut content, numbers::HISTORY_SEQ_NO, seq));
    content
}

/// Reads an index of history.
///
/// # Errors
/// [`Malformed`].
pub fn read_index(content: &[u8]) -> Result<Vec<u64>, Malformed> {
    let mut bundles = Vec::new();
    for element in Reader::new(content) {
        let element = element?;
        match element.typ {
            numbers::HISTORY_SEQ_NO => bundles.push(element.nni()?),
            other => skip(other)?,
        }
    }
    Ok(bundles)
}

/// Content of a bundle of history.
pub(crate) fn write_history<'a>(entries: impl Iterator<Item = (u64, &'a [u8])>) -> Vec<u8> {
    let mut content = Vec::new();
    for (seq, octets) in entries {
        tlv::put_nested(&mut content, numbers::HISTORY_ENTRY, |out| {
            tlv::put_nni_tlv(out, numbers::SEQ_NO, seq);
            tlv::put_tlv(out, numbers::HISTORY_CONTENT, octets);
        });
    }
    content
}

/// Reads a bundle of history; numbers rise.
///
/// # Errors
/// [`Malformed`].
pub fn read_history(content: &[u8]) -> Result<Vec<HistoryEntry>, Malformed> {
    let mut entries: Vec<HistoryEntry> = Vec::new();
    for element in Reader::new(content) {
        let element = element?;
        if element.typ != numbers::HISTORY_ENTRY {
            skip(element.typ)?;
            continue;
        }
        let mut reader = Reader::new(element.value);
        let seq = reader.expect(numbers::SEQ_NO)?.nni()?;
        let content = reader.optional(numbers::HISTORY_CONTENT)?;
        if entries.last().is_some_and(|last| last.seq >= seq) {
            return Err(Malformed::OutOfOrder(numbers::SEQ_NO));
        }
        let content = content.map(|c| c.value.to_vec()).unwrap_or_default();
        entries.push(HistoryEntry { seq, content });
    }
    Ok(entries)
}
