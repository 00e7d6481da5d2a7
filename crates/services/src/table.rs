//! Export of tables in parts, and base64.

use crate::control::{Answer, CHUNK_MAX, Entries, Page, Table};
use crate::refusal::Refusal;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A part of `all`, whose order does not change between requests: the cursor is a position.
pub(crate) fn export<T, E>(
    page: Page,
    all: &[T],
    entry: impl Fn(&T) -> E,
    entries: impl FnOnce(Vec<E>) -> Entries,
) -> Answer {
    let from = usize::try_from(page.after).unwrap_or(usize::MAX).min(all.len());
    let limit = usize::try_from(page.limit).unwrap_or(CHUNK_MAX).clamp(1, CHUNK_MAX);
    let to = all.len().min(from + limit);
    let part = all[from..to].iter().map(entry).collect();
    Answer::Table(Table { entries: entries(part), cursor: to as u64, last: to == all.len() })
}

/// Base64.
pub(crate) fn encode(bytes: &[u8]) -> String {
    STANDARD.encode(bytes)
}

/// The octets that base64 `text` writes.
pub(crate) fn decode(field: &str, text: &str) -> Result<Vec<u8>, Refusal> {
    STANDARD.decode(text).map_err(|e| Refusal::field(field, format!("not base64: {e}")))
}
