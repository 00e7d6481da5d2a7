//! Requests to etcd and its answers, as types.

use thiserror::Error;

/// Why etcd did not do it.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum EtcdError {
    /// The members are not named rightly.
    #[error("etcd: {0}")]
    Config(String),
    /// No member answers. A write may have been done.
    #[error("etcd does not answer: {0}; is it running, and is this its address?")]
    Away(String),
    /// It says no.
    #[error("etcd refused: {0}")]
    Refused(String),
    /// The lease is no more.
    #[error("the lease has ended")]
    LeaseEnded,
    /// The answer is none of etcd's.
    #[error("etcd's answer cannot be parsed: {0}")]
    Broken(&'static str),
}

/// A lease: keys that were written with it go when it ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Lease(pub(crate) i64);

/// A key with its value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// The value.
    pub value: Vec<u8>,
    /// The revision at which it was written first.
    pub created: i64,
    /// The revision at which it was written last.
    pub modified: i64,
}

/// Keys under a prefix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listing {
    /// The revision of the whole store that this is from.
    pub revision: i64,
    /// The keys, in order.
    pub entries: Vec<Entry>,
    /// There are more than were asked for.
    pub is_more: bool,
}

/// What a transaction depends on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Compare {
    /// The key was written first at this revision; 0: there is none.
    Created(String, i64),
    /// The key was written last at this revision; 0: there is none.
    Modified(String, i64),
}

impl Compare {
    /// There is no such key.
    #[must_use]
    pub fn absent(key: impl Into<String>) -> Self {
        Self::Created(key.into(), 0)
    }
}

/// What a transaction does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Operation {
    /// Writes a key.
    Put {
        /// The key.
        key: String,
        /// The value.
        value: Vec<u8>,
        /// With this lease.
        lease: Option<Lease>,
    },
    /// Reads a key.
    Get {
        /// The key.
        key: String,
    },
    /// Removes a key.
    Delete {
        /// The key.
        key: String,
    },
}

/// What came of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outcome {
    /// Whether all comparisons held.
    pub is_done: bool,
    /// The revision after it.
    pub revision: i64,
    /// What each `Get` of the branch that was taken found.
    pub found: Vec<Vec<Entry>>,
}
