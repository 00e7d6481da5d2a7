//! Captures and octets of others.

use onym_dissect::{Dissector, Reader, Record, octets};

/// Reads `input` as a capture and as octets.
///
/// # Panics
/// When pieces of another length give other records, or text has what a terminal obeys.
pub fn dissect(input: &[u8]) {
    let whole = records(input, input.len().max(1));
    assert_eq!(records(input, 13), whole, "law: the length of pieces makes no difference");
    for record in whole.iter().chain(&octets(input)) {
        let line = record.to_string();
        assert!(!line.chars().any(char::is_control), "{line:?}");
        let _ = (record.tree(), record.shown(), record.name());
    }
}

fn records(input: &[u8], step: usize) -> Vec<Record> {
    let (mut reader, mut dissector) = (Reader::default(), Dissector::default());
    let mut found = Vec::new();
    for piece in input.chunks(step) {
        reader.feed(piece);
        while let Ok(Some(frame)) = reader.next_frame() {
            found.extend(dissector.frame(&frame));
        }
    }
    let _ = reader.end();
    found
}
