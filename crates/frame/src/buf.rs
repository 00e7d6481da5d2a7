//! Shared immutable bytes, and the pool of chunks that receive them.
//!
//! A chunk is filled by one reader while it is exclusive ([`ChunkMut`]), frozen, and then cut into
//! [`Buf`]s that share it. The pool keeps a reference to each frozen chunk and takes it back when
//! no [`Buf`] refers to it any more, so that steady state allocates nothing.

use std::collections::VecDeque;
use std::fmt;
use std::ops::{Deref, DerefMut, Range};
use std::sync::Arc;

/// Immutable bytes within a shared chunk. A clone costs one atomic increment.
#[derive(Clone)]
pub struct Buf {
    chunk: Arc<[u8]>,
    start: u32,
    len: u32,
}

impl Buf {
    /// A buffer of its own that holds a copy of `bytes`.
    ///
    /// # Panics
    /// If `bytes` is longer than 4 GiB.
    #[must_use]
    pub fn copy_from(bytes: &[u8]) -> Self {
        let len = u32::try_from(bytes.len()).expect("invariant: a buffer is shorter than 4 GiB");
        Self { chunk: Arc::from(bytes), start: 0, len }
    }

    /// The same of two parts, one behind the other.
    ///
    /// # Panics
    /// If they are together longer than 4 GiB.
    #[must_use]
    pub fn joined(head: &[u8], body: &[u8]) -> Self {
        let total = head.len() + body.len();
        let len = u32::try_from(total).expect("invariant: a buffer is shorter than 4 GiB");
        let mut chunk: Arc<[u8]> = std::iter::repeat_n(0, total).collect();
        let bytes = Arc::get_mut(&mut chunk).expect("invariant: nobody else has it yet");
        let (front, back) = bytes.split_at_mut(head.len());
        front.copy_from_slice(head);
        back.copy_from_slice(body);
        Self { chunk, start: 0, len }
    }

    /// The part `range` of these bytes, sharing the chunk.
    ///
    /// # Panics
    /// If `range` is not within the buffer.
    #[must_use]
    pub fn slice(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len as usize);
        // No truncation: both ends are at most `self.len`, a u32.
        #[allow(clippy::cast_possible_truncation)]
        Self {
            chunk: Arc::clone(&self.chunk),
            start: self.start + range.start as u32,
            len: (range.end - range.start) as u32,
        }
    }

    /// The buffer that holds exactly `part`, which must lie within these bytes.
    ///
    /// Lets a view parsed from this buffer be kept without a copy.
    ///
    /// # Panics
    /// If `part` is not a part of this buffer.
    #[must_use]
    pub fn slice_of(&self, part: &[u8]) -> Self {
        let base = self.as_ref().as_ptr().addr();
        let start = part.as_ptr().addr().checked_sub(base).expect("invariant: part of this buffer");
        self.slice(start..start + part.len())
    }

    /// As [`Buf::slice`], for who needs the whole no more: no reference is counted.
    ///
    /// # Panics
    /// If the part is not within the buffer.
    #[inline]
    #[must_use]
    pub fn into_slice(mut self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.len as usize);
        // No truncation: both ends are at most `self.len`, a u32.
        #[allow(clippy::cast_possible_truncation)]
        {
            self.start += range.start as u32;
            self.len = (range.end - range.start) as u32;
        }
        self
    }

    /// Octets.
    #[inline]
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    #[inline]
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// How many buffers keep the chunk alive, its pool counted: this one's part in pinning it.
    #[inline]
    #[must_use]
    pub fn sharers(&self) -> usize {
        Arc::strong_count(&self.chunk)
    }

    /// Whether both are parts of one chunk.
    #[inline]
    #[must_use]
    pub fn shares_chunk(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.chunk, &other.chunk)
    }

    /// How far behind the start of this buffer another one of its chunk starts.
    #[inline]
    pub(crate) fn distance(&self, later: &Self) -> Option<usize> {
        let distance = later.start.checked_sub(self.start)?;
        self.shares_chunk(later).then_some(distance as usize)
    }

    /// As many octets of the chunk, `by` further on.
    ///
    /// # Panics
    /// If the chunk has not so many.
    #[inline]
    pub(crate) fn later(&self, by: usize) -> &[u8] {
        let start = self.start as usize + by;
        let octets = self.chunk.get(start..start + self.len as usize);
        octets.expect("invariant: a later part lies within its chunk")
    }

    /// This buffer holds as many octets of the chunk, `by` further on, from now on.
    ///
    /// # Panics
    /// If the chunk has not so many.
    pub(crate) fn move_on(&mut self, by: usize) {
        let start = self.start as usize + by;
        assert!(start + self.len as usize <= self.chunk.len());
        // No truncation: a chunk is shorter than 4 GiB.
        #[allow(clippy::cast_possible_truncation)]
        let start = start as u32;
        self.start = start;
    }

    /// Length of the whole chunk that this buffer keeps alive, in octets.
    #[inline]
    #[must_use]
    pub fn chunk_len(&self) -> usize {
        self.chunk.len()
    }
}

impl Deref for Buf {
    type Target = [u8];
    #[inline]
    fn deref(&self) -> &[u8] {
        let range = self.start as usize..(self.start + self.len) as usize;
        self.chunk.get(range).expect("invariant: a Buf lies within its chunk")
    }
}

impl AsRef<[u8]> for Buf {
    #[inline]
    fn as_ref(&self) -> &[u8] {
        self
    }
}

impl fmt::Debug for Buf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Buf({} octets of {})", self.len, self.chunk.len())
    }
}

impl PartialEq for Buf {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Buf {}

/// A chunk that nobody else refers to: it may be written.
pub struct ChunkMut {
    chunk: Arc<[u8]>,
}

impl Deref for ChunkMut {
    type Target = [u8];
    fn deref(&self) -> &[u8] {
        &self.chunk
    }
}

impl DerefMut for ChunkMut {
    fn deref_mut(&mut self) -> &mut [u8] {
        Arc::get_mut(&mut self.chunk).expect("invariant: a ChunkMut is the only reference")
    }
}

impl fmt::Debug for ChunkMut {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ChunkMut({} octets)", self.chunk.len())
    }
}

/// Chunks of one size, used again when no packet refers to them.
///
/// Bound: the pool keeps at most `kept_max` chunks; further ones are freed with their last packet.
#[derive(Debug)]
pub struct BufPool {
    chunk_len: usize,
    kept_max: usize,
    /// Frozen chunks, oldest first; those with no other reference can be written again.
    kept: VecDeque<Arc<[u8]>>,
    free: Vec<Arc<[u8]>>,
}

/// How many of the oldest chunks are examined before a new one is allocated.
const PROBES: usize = 4;
/// How many chunks that were used last are written again before older ones: more than a face fills
/// at once, and few enough to be in the cache still.
const RECENT: usize = 8;

impl BufPool {
    /// A pool of chunks of `chunk_len` octets that keeps at most `kept_max` of them.
    #[must_use]
    pub fn new(chunk_len: usize, kept_max: usize) -> Self {
        Self { chunk_len, kept_max, kept: VecDeque::new(), free: Vec::new() }
    }

    /// Length of a chunk, in octets.
    #[must_use]
    pub fn chunk_len(&self) -> usize {
        self.chunk_len
    }

    /// A chunk to write: one given back, one that no packet refers to any more, or a new one.
    pub fn take(&mut self) -> ChunkMut {
        self.sweep();
        if let Some(chunk) = self.free.pop() {
            return ChunkMut { chunk };
        }
        for _ in 0..PROBES.min(self.kept.len()) {
            let Some(mut chunk) = self.kept.pop_front() else { break };
            if Arc::get_mut(&mut chunk).is_some() {
                return ChunkMut { chunk };
            }
            self.kept.push_back(chunk);
        }
        // Written once, where it stays: a vector would be filled and then copied.
        ChunkMut { chunk: std::iter::repeat_n(0, self.chunk_len).collect() }
    }

    /// Takes out what was used last, as far as no packet refers to it any more.
    fn sweep(&mut self) {
        while self.free.len() < RECENT
            && let Some(mut chunk) = self.kept.pop_back()
        {
            if Arc::get_mut(&mut chunk).is_none() {
                self.kept.push_back(chunk);
                return;
            }
            self.free.push(chunk);
        }
    }

    /// Ends the writing of `chunk`: its bytes can be shared from now on.
    pub fn freeze(&mut self, chunk: ChunkMut) -> Buf {
        let len = u32::try_from(chunk.chunk.len()).expect("invariant: chunks are below 4 GiB");
        if self.kept.len() < self.kept_max {
            self.kept.push_back(Arc::clone(&chunk.chunk));
        }
        Buf { chunk: chunk.chunk, start: 0, len }
    }

    /// Gives an unused chunk back.
    pub fn put_back(&mut self, chunk: ChunkMut) {
        if self.free.len() < self.kept_max {
            self.free.push(chunk.chunk);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_chunk_is_used_again_once_no_packet_refers_to_it() {
        let mut pool = BufPool::new(64, 8);
        let mut chunk = pool.take();
        chunk[..3].copy_from_slice(b"abc");
        let whole = pool.freeze(chunk);
        let part = whole.slice(0..4).into_slice(1..3);
        let address = whole.as_ptr();
        drop(whole);
        assert_ne!(pool.take().as_ptr(), address, "still referred to by the part");
        assert_eq!(&*part, b"bc");
        drop(part);
        assert_eq!(pool.take().as_ptr(), address);
    }

    #[test]
    fn chunks_that_were_used_last_are_used_again_first() {
        let mut pool = BufPool::new(64, 64);
        // A burst of twenty, then bursts of three: these stay among few chunks.
        let burst = |pool: &mut BufPool, count: usize| -> Vec<usize> {
            let held: Vec<Buf> = (0..count)
                .map(|_| {
                    let chunk = pool.take();
                    pool.freeze(chunk)
                })
                .collect();
            held.iter().map(|buf| buf.as_ptr().addr()).collect()
        };
        burst(&mut pool, 20);
        let used: std::collections::BTreeSet<usize> =
            (0..50).flat_map(|_| burst(&mut pool, 3)).collect();
        assert!(used.len() <= RECENT, "{} chunks", used.len());
    }

    #[test]
    fn slice_of_finds_a_view_again() {
        let buf = Buf::copy_from(b"hello world").slice(2..11);
        assert_eq!(&*buf.slice_of(&buf[4..7]), &buf[4..7]);
    }
}
