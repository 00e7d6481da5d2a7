#![doc = include_str!("../README.md")]

mod client;
mod seat;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

pub use client::{Compare, Entry, Etcd, EtcdError, Lease, Listing, Operation, Outcome};
pub use seat::{Seat, Standing};
