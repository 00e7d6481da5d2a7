//! Export and import of tables in chunks, for another instance.

use crate::element::{Refusal, Request};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Most entries of a chunk.
pub(crate) const CHUNK_MAX: usize = 1000;

/// A chunk as it is posted.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Chunk {
    pub(crate) format: String,
    pub(crate) kind: String,
    pub(crate) entries: Vec<Value>,
    #[serde(default, rename = "cursor")]
    _cursor: Option<Value>,
    #[serde(default, rename = "last")]
    _last: bool,
    #[serde(default)]
    pub(crate) faces: BTreeMap<String, String>,
}

/// The posted chunk, when it is for this kind.
pub(crate) fn chunk(request: &Request<'_>, kind: &str) -> Result<Chunk, Refusal> {
    let chunk: Chunk = crate::element::read(request.body.clone())?;
    if chunk.format != "onym-table/1" {
        return Err(Refusal::field("format", "only onym-table/1 is known"));
    }
    if chunk.kind != kind {
        let text = format!("the table belongs to a {}, this is a {kind}", chunk.kind);
        return Err(Refusal::field("kind", text));
    }
    Ok(chunk)
}

/// One chunk of `all`, whose order does not change between requests: the cursor is a position.
pub(crate) fn export<T>(
    request: &Request<'_>,
    kind: &str,
    all: &[T],
    write: impl Fn(&T) -> Option<Value>,
) -> Value {
    let from = usize::try_from(request.number("after").unwrap_or(0)).unwrap_or(usize::MAX);
    let limit = request.number("limit").unwrap_or(CHUNK_MAX as u64).clamp(1, CHUNK_MAX as u64);
    let part = all.get(from.min(all.len())..).unwrap_or_default();
    let count = part.len().min(usize::try_from(limit).unwrap_or(CHUNK_MAX));
    let entries: Vec<Value> = part[..count].iter().filter_map(write).collect();
    let to = from.min(all.len()) + count;
    json!({
        "format": "onym-table/1", "kind": kind, "entries": entries,
        "cursor": to.to_string(), "last": to >= all.len(),
    })
}

/// What became of a posted chunk.
#[derive(Debug, Default)]
pub(crate) struct Merged {
    pub(crate) merged: u64,
    pub(crate) new: u64,
    pub(crate) refused: u64,
}

impl Merged {
    pub(crate) fn to_json(&self) -> Value {
        let (merged, new, refused) = (self.merged, self.new, self.refused);
        json!({ "changed": new > 0, "merged": merged, "new": new, "refused": refused })
    }
}

/// Base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The octets that base64 `text` writes.
pub(crate) fn decode(field: &str, text: &str) -> Result<Vec<u8>, Refusal> {
    STANDARD.decode(text).map_err(|e| Refusal::field(field, format!("not base64: {e}")))
}
