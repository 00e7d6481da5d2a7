//! Access of management to the program's log and its filter.

use serde::Serialize;

/// What a program that runs a node lets management see and change of its log. Set with
/// [`NodeHandle::serve_log`](crate::NodeHandle::serve_log).
pub trait LogControl: Send + Sync {
    /// The filter that is in force.
    fn filter(&self) -> String;
    /// Sets another one.
    ///
    /// # Errors
    /// What is wrong with it and what is allowed.
    fn set_filter(&self, filter: &str) -> Result<(), String>;
    /// The last lines, oldest first.
    fn lines(&self) -> Vec<LogLine>;
}

impl std::fmt::Debug for dyn LogControl {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LogControl")
    }
}

/// One line of the log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogLine {
    /// Its number, counted from the start of the program.
    pub seq: u64,
    /// Its text.
    pub text: String,
}

/// `/localhost/onym/log/lines`.
#[derive(Serialize)]
struct Shown {
    filter: String,
    lines: Vec<LogLine>,
}

/// The log as JSON.
pub(crate) fn json(log: &dyn LogControl) -> String {
    let shown = Shown { filter: log.filter(), lines: log.lines() };
    serde_json::to_string(&shown).expect("invariant: strings and numbers can be written as JSON")
}
