//! The testkit's own codec: what a script says becomes octets, and octets become fields.
//!
//! It shares no code with `onym-wire` on purpose: a packet that the forwarder's own builder
//! got wrong must not look right to the test.

pub mod build;
pub mod name;
pub mod tlv;
pub mod types;
pub mod view;
