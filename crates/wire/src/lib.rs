#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

pub mod cert;
pub mod data;
pub mod dump;
pub mod faceuri;
pub mod interest;
pub mod lp;
pub mod mgmt;
pub mod name;
pub mod push;
pub mod signature;
pub mod tlv;
pub mod trace;
pub mod types;
mod validity;

pub use data::{Data, DataBuilder};
pub use faceuri::FaceUri;
pub use interest::{Interest, InterestBuilder};
pub use lp::{LpHeader, LpPacket, NackReason};
pub use name::{Component, Name, NameRef};
pub use signature::{KeyLocator, SignatureInfo};
pub use tlv::Malformed;

/// Largest network-layer packet, in octets: a convention of the field (NFD's `MAX_NDN_PACKET_SIZE`).
pub const PACKET_LEN_MAX: usize = 8800;

/// Most components of a prefix that a table keeps; longer Interest names are legal on the wire.
pub const NAME_COMPONENTS_MAX: usize = 32;
