#![doc = include_str!("../README.md")]

mod bucket;
mod carrier;
mod change;
mod disk;
mod entry;
mod errand;
mod far;
mod filter;
mod index;
mod job;
mod level;
mod log;
mod options;
mod overlay;
mod parts;
mod reader;
mod record;
mod scan;
mod segment;
mod shared;
mod shelf;
mod store;
mod tally;
mod writer;

pub use bucket::{Afar, AfarStats, Bucket};
pub use change::{Change, Done, OwnerId, Refused};
pub use disk::{Disk, DiskFile, Folder};
pub use entry::Entry;
pub use errand::{Ended, Errand};
pub use far::FarRange;
pub use filter::Filter;
pub use index::Note;
pub use level::{Level, LevelGauge};
pub use options::{Bounds, Options};
pub use reader::{Listed, Reader};
pub use shelf::{Found, Shelf, ShelfGauge, ShelfOptions, ShelfStats};
pub use store::Store;
pub use tally::{Stats, Usage};
pub use writer::{Gone, Recovery, Scrubbed, Writer};

/// Why a store cannot be opened or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The disk.
    #[error("the store's disk failed: {0}")]
    Disk(#[from] std::io::Error),
    /// The index.
    #[error("the store's index failed: {0}")]
    Index(String),
    /// Another process has it open.
    #[error("another process has the store open")]
    Locked,
    /// The bucket, in a sentence.
    #[error("{0}")]
    Bucket(String),
    /// What was asked for is in the bucket only, and who asked does not wait for it.
    #[error("it has to be read from the bucket")]
    Far(FarRange),
    /// The thread that writes has ended.
    #[error("the store is closed")]
    Closed,
}

macro_rules! of_redb {
    ($($kind:ident),*) => {$(
        impl From<redb::$kind> for Error {
            fn from(error: redb::$kind) -> Self {
                Self::Index(error.to_string())
            }
        }
    )*};
}
of_redb!(
    StorageError,
    TableError,
    TransactionError,
    CommitError,
    DatabaseError,
    SetDurabilityError
);
