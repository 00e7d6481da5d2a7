//! Frames on their way from and to a face: opaque bytes, received in bursts and sent from a queue.

use crate::Buf;
use std::collections::VecDeque;
use std::ops::Range;

/// One frame as a face received it.
#[derive(Debug, Clone)]
pub struct RxFrame {
    /// Which neighbour sent it, on a face with several (a hash of its address); 0 on point-to-point faces.
    pub endpoint: u64,
    /// The frame: one TLV, whole.
    pub bytes: Buf,
}

/// Bodies up to this length are copied behind their header, so that many small frames leave as one
/// contiguous piece; longer ones are sent from where they are (scatter-gather).
pub const COPY_LEN_MAX: usize = 1024;

/// One frame to send: `head` in the queue's arena, then `body`.
#[derive(Debug)]
struct TxFrame {
    head: Range<u64>,
    body: Option<Buf>,
}

/// The queue is at its limit; the frame was not taken (counted `queue_full` by the caller).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// The send queue of one face, bounded in octets.
#[derive(Debug)]
pub struct TxQueue {
    /// Headers and small frames. Position `base` of the stream of head bytes is `arena[0]`.
    arena: Vec<u8>,
    base: u64,
    frames: VecDeque<TxFrame>,
    bytes: usize,
    bytes_max: usize,
}

impl TxQueue {
    /// An empty queue that holds at most `bytes_max` octets of frames.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self { arena: Vec::new(), base: 0, frames: VecDeque::new(), bytes: 0, bytes_max }
    }

    /// Appends the frame `head` followed by `body`.
    ///
    /// # Errors
    /// [`Full`] when the frame would pass the bound; an empty queue takes any frame.
    pub fn push(&mut self, head: &[u8], body: Option<&Buf>) -> Result<(), Full> {
        let len = head.len() + body.map_or(0, |b| b.len());
        if self.bytes + len > self.bytes_max && !self.frames.is_empty() {
            return Err(Full);
        }
        let start = self.base + self.arena.len() as u64;
        self.arena.extend_from_slice(head);
        let body = match body {
            Some(b) if b.len() <= COPY_LEN_MAX => {
                self.arena.extend_from_slice(b);
                None
            }
            other => other.cloned(),
        };
        let end = self.base + self.arena.len() as u64;
        self.frames.push_back(TxFrame { head: start..end, body });
        self.bytes += len;
        Ok(())
    }

    /// Frames waiting.
    #[must_use]
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// Octets waiting.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The waiting frames in order, each as its two parts (the second is empty for small frames).
    /// The first parts of neighbouring small frames are contiguous in memory.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.frames.iter().map(|f| (self.head(f), f.body.as_deref().unwrap_or(&[])))
    }

    /// Drops the first `count` frames, which were sent or given up.
    pub fn pop(&mut self, count: usize) {
        for frame in self.frames.drain(..count.min(self.frames.len())) {
            let head = usize::try_from(frame.head.end - frame.head.start).unwrap_or(0);
            self.bytes -= head + frame.body.map_or(0, |b| b.len());
        }
        self.reclaim();
    }

    fn head(&self, frame: &TxFrame) -> &[u8] {
        let at = |position: u64| usize::try_from(position - self.base).unwrap_or(usize::MAX);
        let range = at(frame.head.start)..at(frame.head.end);
        self.arena.get(range).expect("invariant: the head of a waiting frame is in the arena")
    }

    /// Gives back arena space once more than half of it was sent, so its cost is amortised.
    fn reclaim(&mut self) {
        let Some(first) = self.frames.front() else {
            self.base += self.arena.len() as u64;
            self.arena.clear();
            return;
        };
        let sent = usize::try_from(first.head.start - self.base).unwrap_or(0);
        if sent > self.arena.len() / 2 {
            self.arena.drain(..sent);
            self.base = first.head.start;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_queue_refuses_what_passes_its_bound_and_keeps_order() {
        let mut queue = TxQueue::new(10);
        assert_eq!(queue.push(b"abcd", None), Ok(()));
        assert_eq!(queue.push(b"ef", Some(&Buf::copy_from(b"gh"))), Ok(()));
        assert_eq!(queue.push(b"xyz", None), Err(Full));
        let frames: Vec<_> = queue.iter().map(|(a, b)| [a, b].concat()).collect();
        assert_eq!(frames, [b"abcd".to_vec(), b"efgh".to_vec()]);
        queue.pop(1);
        assert_eq!((queue.len(), queue.bytes()), (1, 4));
        assert_eq!(queue.push(b"xyz", None), Ok(()));
        queue.pop(9);
        assert!(queue.is_empty() && queue.bytes() == 0);
    }
}
