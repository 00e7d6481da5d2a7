//! Where a command's results go: text for people, or JSON for programs.

use serde::Serialize;
use std::io::{self, Write as _};

/// What every command is given beside its own arguments.
#[derive(Debug, Clone)]
pub(crate) struct Context {
    /// `--node URI`, when given.
    pub(crate) node: Option<String>,
    /// `--json`: results as JSON on standard output, one document, or one a line where they stream.
    pub(crate) json: bool,
}

impl Context {
    /// Prints `value` as JSON when `--json` was given, else the text that `text` makes of it.
    pub(crate) fn print<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let line = if self.json { serde_json::to_string_pretty(value)? } else { text(value) };
        write_line(&line)
    }

    /// Prints one event of a stream: one line of JSON when `--json` was given, else `text`.
    pub(crate) fn event<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        let line = if self.json { serde_json::to_string(value)? } else { text(value) };
        write_line(&line)
    }
}

/// Writes `text` and a line end to standard output at once, so that a pipe sees whole lines.
/// Empty text writes nothing.
pub(crate) fn write_line(text: &str) -> anyhow::Result<()> {
    if text.is_empty() {
        return Ok(());
    }
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    out.flush()?;
    Ok(())
}
