//! TLV types of State Vector Sync and PSync (spec/registry.md, "Sync").
//!
//! Peers use some numbers twice: what one means depends on what holds it.

/// State vector.
pub const STATE_VECTOR: u32 = 201;
/// Entry of a state vector: a node and how far it is.
pub const STATE_VECTOR_ENTRY: u32 = 202;
/// Sequence number of an entry (version 2) or of an entry of a mapping.
pub const SEQ_NO_V2: u32 = 204;
/// Names of publications, in front of their Data.
pub const MAPPING_DATA: u32 = 205;
/// One of them.
pub const MAPPING_ENTRY: u32 = 206;
/// Bootstrap time with sequence number (version 3).
pub const SEQ_NO_ENTRY: u32 = 210;
/// Bootstrap time, seconds since the Unix epoch.
pub const BOOTSTRAP_TIME: u32 = 212;
/// Sequence number (version 3).
pub const SEQ_NO: u32 = 214;
/// Publication in a snapshot of history.
pub const HISTORY_ENTRY: u32 = 130;
/// Its content.
pub const HISTORY_CONTENT: u32 = 131;
/// Number of a snapshot in the index of history.
pub const HISTORY_SEQ_NO: u32 = 132;
/// Content of PSync Data: names.
pub const PSYNC_CONTENT: u32 = 128;
