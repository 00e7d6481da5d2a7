//! Failures of commands: a message (what happened, why, what to do next) and the exit code of
//! spec/registry.md.

use std::fmt;
use std::io;

/// Exit codes (spec/registry.md).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Exit {
    /// Done.
    Done = 0,
    /// Failed for a reason that no other code names.
    Failed = 1,
    /// The command line is wrong.
    Usage = 2,
    /// No node answers.
    NoNode = 3,
    /// The node, or the producer, refused.
    Refused = 4,
    /// Nothing by that name, or no answer in time.
    NotFound = 5,
    /// Ended by a signal of the user.
    Stopped = 130,
}

/// A failure in three sentences.
#[derive(Debug)]
pub(crate) struct Failure {
    exit: Exit,
    what: String,
    why: Option<String>,
    next: Option<String>,
}

impl Failure {
    /// A failure that ends with `exit`; `what` says what happened.
    pub(crate) fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), why: None, next: None }
    }

    /// Adds why it happened.
    pub(crate) fn why(mut self, why: impl fmt::Display) -> Self {
        self.why = Some(why.to_string());
        self
    }

    /// Adds what to do next.
    pub(crate) fn next(mut self, next: impl Into<String>) -> Self {
        self.next = Some(next.into());
        self
    }
}

/// What `error` says to a person who is told elsewhere than on standard error: its exit code, what and
/// why in a sentence, and what to do.
pub(crate) fn told(error: &anyhow::Error) -> (Exit, String, Option<String>) {
    match error.downcast_ref::<Failure>() {
        Some(failure) => (failure.exit, failure.to_string(), failure.next.clone()),
        None => (Exit::Failed, format!("{error:#}"), None),
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)?;
        if let Some(why) = &self.why {
            write!(f, ": {why}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Failure {}

/// Prints `error` on standard error and returns its exit code.
pub(crate) fn report(error: &anyhow::Error) -> Exit {
    // A reader that went away (`onym fib list | head -1`) has what it wanted.
    let is_unread = |e: &io::Error| e.kind() == io::ErrorKind::BrokenPipe;
    if error.chain().any(|e| e.downcast_ref::<io::Error>().is_some_and(is_unread)) {
        return Exit::Done;
    }
    if let Some(failure) = error.downcast_ref::<Failure>() {
        crate::output::tell(format_args!("onym: {}", failure.what));
        if let Some(why) = &failure.why {
            crate::output::tell(format_args!("  why:  {why}"));
        }
        if let Some(next) = &failure.next {
            crate::output::tell(format_args!("  next: {next}"));
        }
        return failure.exit;
    }
    crate::output::tell(format_args!("onym: {error}"));
    for cause in error.chain().skip(1) {
        crate::output::tell(format_args!("  why:  {cause}"));
    }
    Exit::Failed
}
