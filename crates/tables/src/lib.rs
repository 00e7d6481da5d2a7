#![doc = include_str!("../README.md")]

pub mod bloom;
pub mod cs;
pub mod dead_nonces;
pub mod doubt;
pub mod fib;
pub mod fold;
pub mod hash;
pub mod id;
pub mod index;
mod keyed;
pub mod measurements;
mod mix;
mod nh;
mod outcomes;
pub mod pit;
pub mod prefix_map;
pub mod rng;
mod room;
pub mod rtt;
pub mod shares;
mod sip;
pub mod wheel;

pub use fold::FoldKey;
pub use hash::{HashKey, NameHashes, Prefix};
pub use id::{FaceId, Tick};
pub use keyed::{KeyedHasher, KeyedMap, KeyedState};
pub use rng::Rng;
pub use sip::{FirstWord, SipKey};
