//! docs/verdicts.md, written from the declarations.

use super::{Unsent, Verdict};
use onym_link::FrameVerdict;
use std::fmt::Write as _;

const HEAD: &str = "# Verdicts

Written by `cargo run -p onym-forward --example verdict_reference > docs/verdicts.md`; do not edit.

Each word is the label of a counter in `/metrics`, the text of a trace and a word of packet scripts.
Packets received are the sum of the verdicts of packets, for each kind.
Frames received are the sum of the verdicts of frames; a frame with verdict `packet` hands its packet on, which then gets a verdict of its own.
Copies asked for are the copies sent and those not sent for a reason.
";

/// The reference of all verdicts, in Markdown.
#[must_use]
pub fn reference() -> String {
    let mut out = HEAD.to_owned();
    let packets = Verdict::ALL.iter().map(|v| (v.label(), v.is_drop(), v.text()));
    section(&mut out, "Packets", packets);
    let frames = FrameVerdict::ALL.iter().map(|v| (v.label(), v.is_drop(), v.text()));
    section(&mut out, "Frames, in the link service", frames);
    let unsent = Unsent::ALL.iter().map(|u| (u.label(), u.is_drop(), u.text()));
    section(&mut out, "Copies that were not sent", unsent);
    out
}

fn section<'a>(
    out: &mut String,
    title: &str,
    rows: impl Iterator<Item = (&'a str, bool, &'a str)>,
) {
    let _ = write!(out, "\n## {title}\n\n| word | dropped | meaning |\n|---|---|---|\n");
    for (label, is_drop, text) in rows {
        let dropped = if is_drop { "yes" } else { "" };
        let text = text.trim_end_matches('.');
        let _ = writeln!(out, "| `{label}` | {dropped} | {text} |");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_in_docs_is_what_the_code_declares() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/verdicts.md");
        let committed = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            committed == reference(),
            "stale; run: cargo run -p onym-forward --example verdict_reference > docs/verdicts.md"
        );
    }

    #[test]
    fn every_word_is_in_the_registry() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../spec/registry.md");
        let registry = std::fs::read_to_string(path).unwrap();
        let words = Verdict::ALL.iter().map(|v| v.label());
        let words = words.chain(FrameVerdict::ALL.iter().map(|v| v.label()));
        for word in words.chain(Unsent::ALL.iter().map(|u| u.label())) {
            assert!(registry.contains(&format!("`{word}`")), "{word} is not in spec/registry.md");
        }
    }
}
