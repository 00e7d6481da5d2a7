#![doc = include_str!("../README.md")]

mod client;
mod model;
mod seat;
#[cfg(feature = "testing")]
pub mod testing;
mod wire;

pub use client::Etcd;
pub use model::{Compare, Entry, EtcdError, Lease, Listing, Operation, Outcome};
pub use seat::{Seat, Standing};
