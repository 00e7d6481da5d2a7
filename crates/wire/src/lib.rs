#![doc = include_str!("../README.md")]

pub mod buf;
pub mod frame;

pub use buf::{Buf, BufPool, ChunkMut};
pub use frame::{RxFrame, TxQueue};

/// Largest network-layer packet, in octets: a convention of the field (NFD's `MAX_NDN_PACKET_SIZE`).
pub const PACKET_LEN_MAX: usize = 8800;

/// Most components of a prefix that a table keeps; longer Interest names are legal on the wire.
pub const NAME_COMPONENTS_MAX: usize = 32;
