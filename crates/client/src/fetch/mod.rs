//! Segmented fetch.
pub(crate) mod pipeline;
