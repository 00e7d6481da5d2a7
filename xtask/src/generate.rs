//! Writes the generated documents again, each by the command that its own third line names.

use crate::tidy;
use anyhow::{Context, Result, bail, ensure};
use std::fs;
use std::process::Command;

const DOCUMENTS: [&str; 6] = [
    "docs/cli.md",
    "docs/config.md",
    "docs/verdicts.md",
    "docs/metrics.md",
    "docs/push-verdicts.md",
    "spec/conformance/README.md",
];

pub(crate) fn run(arguments: &[String]) -> Result<()> {
    if let Some(word) = arguments.first() {
        bail!("{word}: gen takes nothing");
    }
    let root = tidy::root()?;
    for document in DOCUMENTS {
        let path = root.join(document);
        let old = fs::read_to_string(&path).with_context(|| document.to_owned())?;
        let words = command(&old, document).with_context(|| {
            format!(
                "{document}: no line \"Written by `cargo … > {document}`\" tells how to write it"
            )
        })?;
        let out = Command::new("cargo").args(words).current_dir(&root).output().context("cargo")?;
        ensure!(
            out.status.success(),
            "{document}: the command failed:\n{}",
            String::from_utf8_lossy(&out.stderr)
        );
        // Only what is whole replaces what was there.
        let what = if out.stdout == old.as_bytes() { "unchanged" } else { "written" };
        fs::write(&path, out.stdout).with_context(|| document.to_owned())?;
        println!("{document}: {what}");
    }
    Ok(())
}

/// The words after `cargo` in the line of `text` that says how `document` is written.
fn command<'a>(text: &'a str, document: &str) -> Option<Vec<&'a str>> {
    let line = text.lines().find_map(|line| line.strip_prefix("Written by `cargo "))?;
    let (words, target) = line.split_once('`')?.0.split_once(" > ")?;
    (target == document).then(|| words.split_whitespace().collect())
}
