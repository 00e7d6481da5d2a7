#![doc = include_str!("../README.md")]

mod capture;
mod carrier;
mod dissector;
mod fragments;
mod record;
mod stream;
#[cfg(test)]
mod tests;

pub use capture::{CaptureError, Captured, Reader, is_capture};
pub use carrier::Ports;
pub use dissector::{Dissector, Passed, octets};
pub use record::{Carrier, Direction, Kind, Record, Shown};
