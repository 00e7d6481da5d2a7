//! One file per command. Each has `Args` (what can be typed, and the help) and `run`.

pub(crate) mod completions;
pub(crate) mod man;
