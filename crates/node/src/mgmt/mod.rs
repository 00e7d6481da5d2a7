//! The management protocol of NFD as a state machine without I/O.
//!
//! [`Host`] is what it asks of the node; the rest of the module turns Interests into calls of the
//! host and its answers into Data.

pub mod host;

pub use host::Host;
