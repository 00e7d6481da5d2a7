#![doc = include_str!("../README.md")]
#![cfg_attr(not(test), deny(clippy::indexing_slicing))]

mod buf;
mod queue;
mod row;

pub use buf::{Buf, BufPool, ChunkMut};
pub use queue::{COPY_LEN_MAX, Full, Gathered, Lane, RxFrame, TxPlace, TxQueue};
pub use row::FrameRow;
