//! The last lines of the daemon's log, kept for `onym log`.

use onym_node::log::LogLine;
use std::borrow::Cow;
use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};
use tracing_subscriber::fmt::MakeWriter;

/// An event as one line, whatever its texts hold.
fn one_line(event: &str) -> Cow<'_, str> {
    let event = event.strip_suffix('\n').unwrap_or(event);
    if event.contains('\n') { event.replace('\n', "\\n").into() } else { event.into() }
}

/// The log on standard error: one line an event.
pub(crate) struct LogLines;

impl Write for LogLines {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        let line = one_line(&String::from_utf8_lossy(octets)).into_owned() + "\n";
        io::stderr().lock().write_all(line.as_bytes())?;
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Lines kept; the oldest goes.
const LINES_MAX: usize = 1000;
/// Longest line kept, in octets; the rest is cut off.
const LINE_MAX: usize = 2000;

#[derive(Debug, Default)]
struct Lines {
    kept: VecDeque<LogLine>,
    next: u64,
}

/// The lines; clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ring(Arc<Mutex<Lines>>);

impl Ring {
    pub(crate) fn lines(&self) -> Vec<LogLine> {
        let lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.kept.iter().cloned().collect()
    }

    fn keep(&self, text: &str) {
        let mut lines = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let end = (0..=text.len().min(LINE_MAX)).rev().find(|at| text.is_char_boundary(*at));
        let text = text[..end.unwrap_or(0)].to_owned();
        if lines.kept.len() >= LINES_MAX {
            lines.kept.pop_front();
        }
        let seq = lines.next;
        lines.next += 1;
        lines.kept.push_back(LogLine { seq, text });
    }
}

/// One event is written in one call.
impl Write for Ring {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.keep(&one_line(&String::from_utf8_lossy(octets)));
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl MakeWriter<'_> for Ring {
    type Writer = Self;

    fn make_writer(&self) -> Self {
        self.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_lines_stay_and_long_ones_are_cut() {
        let mut ring = Ring::default();
        for n in 0..LINES_MAX + 5 {
            ring.write_all(format!("line {n}\n").as_bytes()).unwrap();
        }
        let lines = ring.lines();
        assert_eq!((lines.len(), lines[0].seq), (LINES_MAX, 5));
        assert_eq!(lines[0].text, "line 5");
        ring.write_all(b"cannot read\nthe file\n").unwrap();
        assert_eq!(
            ring.lines().pop().unwrap().text,
            "cannot read\\nthe file",
            "one event, one line"
        );
        ring.write_all("ö".repeat(LINE_MAX).as_bytes()).unwrap();
        let last = ring.lines().pop().unwrap();
        assert_eq!((last.seq, last.text.len()), (LINES_MAX as u64 + 6, LINE_MAX));
    }
}
