//! Where a command's results go: text for people, or JSON for programs.

use crate::plain;
use serde::Serialize;
use std::fmt;
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
        if self.json {
            write_json(&serde_json::to_string_pretty(value)?)
        } else {
            write_line(&text(value))
        }
    }

    /// Prints one event of a stream: one line of JSON when `--json` was given, else `text`.
    pub(crate) fn event<T: Serialize>(
        &self,
        value: &T,
        text: impl FnOnce(&T) -> String,
    ) -> anyhow::Result<()> {
        if self.json {
            write_json(&serde_json::to_string(value)?)
        } else {
            write_line(&text(value))
        }
    }
}

/// Writes `text` and a line end to standard output at once, so that a pipe sees whole lines.
/// Empty text writes nothing. What a terminal would obey is escaped: [`plain`].
pub(crate) fn write_line(text: &str) -> anyhow::Result<()> {
    write_plain(&plain::text(text))
}

/// As [`write_line`], for JSON.
pub(crate) fn write_json(json: &str) -> anyhow::Result<()> {
    write_plain(&plain::json(json))
}

/// Writes `octets` to standard output as they are: content that was asked for.
pub(crate) fn write_raw(octets: &[u8]) -> anyhow::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(octets)?;
    Ok(out.flush()?)
}

fn write_plain(text: &str) -> anyhow::Result<()> {
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

/// Tells `text` on standard error, with a line end; nobody there is no reason to fail.
pub(crate) fn tell(text: impl fmt::Display) {
    let text = text.to_string();
    let text = plain::text(&text);
    let end = if text.ends_with('\n') { "" } else { "\n" };
    let _ = write!(io::stderr().lock(), "{text}{end}");
}

/// Asks `question` on standard error; the answer stands in the same line.
pub(crate) fn ask(question: &str) -> io::Result<()> {
    let mut err = io::stderr().lock();
    err.write_all(plain::line(question).as_bytes())?;
    err.flush()
}
