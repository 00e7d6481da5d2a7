//! The pending Interest table.

pub mod entry;

pub use entry::{Entry, FibMatch, InRecord, OutRecord, Token};
