//! One file per command. Each has `Args` (what can be typed, and the help) and `run`.

pub(crate) mod cert;
pub(crate) mod completions;
pub(crate) mod get;
pub(crate) mod key;
pub(crate) mod man;
pub(crate) mod put;
