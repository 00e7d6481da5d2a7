//! What the store asks of an object store far away. Production has `onym-bucket`, over S3; tests have
//! one that fails.

use std::fmt::Debug;
use std::io::{self, Read};
use std::sync::Arc;

/// Objects by name. Calls wait for the network; the store makes them in threads that serve nobody.
///
/// An error is one sentence that says which bucket it is and what it did.
pub trait Bucket: Debug + Send + Sync {
    /// The objects there are, with their lengths.
    ///
    /// # Errors
    /// Those of the network and of the service.
    fn list(&self) -> io::Result<Vec<(String, u64)>>;

    /// Puts `len` octets, whole or not at all, over what had this name.
    ///
    /// # Errors
    /// As above, and those of `octets`. The object is then as before, or not.
    fn put(&self, name: &str, octets: &mut dyn Read, len: u64) -> io::Result<()>;

    /// Length of an object; none when it is not there.
    ///
    /// # Errors
    /// As above.
    fn len(&self, name: &str) -> io::Result<Option<u64>>;

    /// At most `len` octets of an object from `at` on; fewer only where it ends. `NotFound` when it is
    /// not there.
    ///
    /// # Errors
    /// As above.
    fn read(&self, name: &str, at: u64, len: usize) -> io::Result<Vec<u8>>;

    /// Removes an object, if it is there.
    ///
    /// # Errors
    /// As above.
    fn remove(&self, name: &str) -> io::Result<()>;
}

/// A bucket for full segments, and how much of them stays on the disk.
#[derive(Debug, Clone)]
pub struct Afar {
    /// The bucket.
    pub bucket: Arc<dyn Bucket>,
    /// Segments that are in the bucket leave the disk while the log takes more than this there, what
    /// was used longest ago first.
    pub near_octets_max: u64,
    /// Memory for what is read from the bucket by ranges.
    pub memory_octets: usize,
}

impl Afar {
    /// `bucket` with 10 GiB on the disk and 64 MiB of memory.
    #[must_use]
    pub fn new(bucket: Arc<dyn Bucket>) -> Self {
        Self { bucket, near_octets_max: 10 << 30, memory_octets: 64 << 20 }
    }
}

/// What a store tells about its bucket.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AfarStats {
    /// Segments that are there, verified.
    pub segments: u64,
    /// Their octets.
    pub octets: u64,
    /// Segments that are there only.
    pub far_only: u64,
    /// Full segments that are not there yet.
    pub waiting: u64,
    /// Octets of the log on the disk.
    pub near_octets: u64,
    /// Octets that were read by ranges since the start.
    pub fetched_octets: u64,
    /// Times that what it gave was not what was put there.
    pub wrong: u64,
    /// What it did last, in a sentence, while it does not do what it is asked.
    pub trouble: Option<String>,
}
