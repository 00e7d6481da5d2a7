#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod buf;
mod queue;
mod received;
mod row;

pub use buf::{Buf, BufPool, ChunkMut};
pub use queue::{COPY_LEN_MAX, Full, Gathered, Lane, TxPlace, TxQueue};
pub use received::RxFrame;
pub use row::FrameRow;
