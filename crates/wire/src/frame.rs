//! Frames on their way from and to a face: opaque bytes, received in bursts and sent from a queue.

use crate::Buf;
use std::collections::VecDeque;
use std::io::IoSlice;
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
    lane: Lane,
    /// Octets that its body keeps alive and the frame before does not.
    pins: u32,
}

/// Whose frames are put into a queue: what one half leaves waiting must not keep out the other.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Lane {
    /// The pull half's.
    #[default]
    Pull,
    /// The push half's.
    Push,
    /// The push half's, where who sends is held back and the share of a queue needs no bound.
    PushHeldBack,
}

impl TxFrame {
    fn len(&self) -> usize {
        let head = usize::try_from(self.head.end - self.head.start).unwrap_or(0);
        head + self.body.as_ref().map_or(0, |b| b.len())
    }
}

/// The queue is at its limit; the frame was not taken (counted `queue_full` by the caller).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Full;

/// What [`TxQueue::gather`] put into its output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Gathered {
    /// Pieces used.
    pub slices: usize,
    /// Whole frames that they hold.
    pub frames: usize,
    /// Octets that they hold.
    pub octets: usize,
}

/// How many times the octets that are free a half may have waiting.
const SHARE: usize = 2;

/// The send queue of one face, bounded in octets.
///
/// Once frames of the push half were put into it, each half may have twice the octets waiting
/// that are free: two thirds of the bound alone, two fifths when both have more than leaves.
/// Frames leave in order, so both get as much of the link then.
#[derive(Debug)]
pub struct TxQueue {
    /// Headers and small frames. Position `base` of the stream of head bytes is `arena[0]`.
    arena: Vec<u8>,
    base: u64,
    frames: VecDeque<TxFrame>,
    bytes: usize,
    bytes_max: usize,
    /// Octets of `bytes` that are the push half's.
    push_bytes: usize,
    /// Octets of chunks that bodies keep alive.
    pinned: usize,
    lane: Lane,
    is_shared: bool,
}

impl TxQueue {
    /// An empty queue that holds at most `bytes_max` octets of frames.
    #[must_use]
    pub fn new(bytes_max: usize) -> Self {
        Self {
            arena: Vec::new(),
            base: 0,
            frames: VecDeque::new(),
            bytes: 0,
            bytes_max,
            push_bytes: 0,
            pinned: 0,
            lane: Lane::Pull,
            is_shared: false,
        }
    }

    /// Says whose frames are put into the queue from now on.
    #[inline]
    pub fn set_lane(&mut self, lane: Lane) {
        self.lane = lane;
        self.is_shared |= lane != Lane::Pull;
    }

    /// Octets of the push half that wait.
    #[must_use]
    pub fn push_bytes(&self) -> usize {
        self.push_bytes
    }

    /// Octets in memory that what waits keeps alive, beside what the queue copied: whole chunks,
    /// each once where frames of one chunk stand together.
    #[must_use]
    pub fn pinned(&self) -> usize {
        self.pinned
    }

    /// Appends the frame `head` followed by `body`.
    ///
    /// # Errors
    /// [`Full`] when the frame would pass the bound or the share of its half; an empty queue takes
    /// any frame.
    #[inline]
    pub fn push(&mut self, head: &[u8], body: Option<&Buf>) -> Result<(), Full> {
        self.put(head, body.map(|body| (body, 0)))
    }

    /// Appends the frame `head` followed by the octets of `body` from `from` on.
    ///
    /// # Errors
    /// As [`TxQueue::push`].
    ///
    /// # Panics
    /// If `body` has not so many octets.
    #[inline]
    pub fn push_rest(&mut self, head: &[u8], body: &Buf, from: usize) -> Result<(), Full> {
        self.put(head, Some((body, from)))
    }

    fn put(&mut self, head: &[u8], body: Option<(&Buf, usize)>) -> Result<(), Full> {
        let len = head.len() + body.map_or(0, |(body, from)| body.len() - from);
        if len > self.room() && !self.frames.is_empty() {
            return Err(Full);
        }
        let start = self.base + self.arena.len() as u64;
        self.arena.extend_from_slice(head);
        let body = match body {
            Some((body, from)) if body.len() - from <= COPY_LEN_MAX => {
                self.arena.extend_from_slice(body.get(from..).unwrap_or_default());
                None
            }
            other => other.map(|(body, from)| body.slice(from..body.len())),
        };
        let end = self.base + self.arena.len() as u64;
        let last = self.frames.back().and_then(|frame| frame.body.as_ref());
        let pins = body.as_ref().map_or(0, |body| {
            if last.is_some_and(|last| last.shares_chunk(body)) { 0 } else { body.chunk_len() }
        });
        // A chunk is shorter than 4 GiB.
        let pins = u32::try_from(pins).unwrap_or(u32::MAX);
        self.frames.push_back(TxFrame { head: start..end, body, lane: self.lane, pins });
        self.pinned += pins as usize;
        self.bytes += len;
        self.push_bytes += if self.lane == Lane::Pull { 0 } else { len };
        Ok(())
    }

    /// Appends a frame even beyond the bound: the rest of what was begun.
    pub fn push_over(&mut self, head: &[u8], body: Option<&Buf>) {
        let bound = std::mem::replace(&mut self.bytes_max, usize::MAX);
        let _ = self.push(head, body);
        self.bytes_max = bound;
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

    /// Sets the bound; what waits stays.
    pub fn set_bytes_max(&mut self, bytes_max: usize) {
        self.bytes_max = bytes_max;
    }

    /// Octets that still fit, for whose frames are put in now; an empty queue takes any frame all
    /// the same.
    #[must_use]
    pub fn room(&self) -> usize {
        let free = self.bytes_max.saturating_sub(self.bytes);
        let own = match self.lane {
            Lane::Pull if self.is_shared => self.bytes - self.push_bytes,
            Lane::Push => self.push_bytes,
            Lane::Pull | Lane::PushHeldBack => return free,
        };
        // The most with which own <= SHARE * free afterwards.
        free.saturating_mul(SHARE).saturating_sub(own) / (SHARE + 1)
    }

    /// The waiting frames in order, each as its two parts (the second is empty for small frames).
    /// The first parts of neighbouring small frames are contiguous in memory.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.frames.iter().map(|f| (self.head(f), f.body.as_deref().unwrap_or(&[])))
    }

    /// The length of each waiting frame, in octets, from frame `first` on.
    pub fn lens(&self, first: usize) -> impl Iterator<Item = usize> {
        self.frames.range(first.min(self.frames.len())..).map(TxFrame::len)
    }

    /// Describes whole frames, from frame `first` on and at most `frames_max` of them, as few
    /// contiguous pieces, as many as fit into `out`. Two pieces must fit for progress to be sure.
    pub fn gather<'a>(
        &'a self,
        first: usize,
        frames_max: usize,
        out: &mut [IoSlice<'a>],
    ) -> Gathered {
        let mut done = Gathered::default();
        let mut run: Option<Range<u64>> = None;
        for frame in self.frames.range(first.min(self.frames.len())..).take(frames_max) {
            // Behind the run so far, this frame needs at most its head and its body.
            let joins = run.as_ref().is_some_and(|r| r.end == frame.head.start);
            let open = usize::from(run.is_some());
            let more =
                usize::from(!joins && !frame.head.is_empty()) + usize::from(frame.body.is_some());
            if done.slices + open + more > out.len() {
                break;
            }
            if joins {
                run = run.map(|r| r.start..frame.head.end);
            } else if !frame.head.is_empty() {
                self.close(run.replace(frame.head.clone()), out, &mut done.slices);
            }
            if let Some(body) = &frame.body {
                self.close(run.take(), out, &mut done.slices);
                place(body, out, &mut done.slices);
            }
            done.frames += 1;
            done.octets += frame.len();
        }
        self.close(run, out, &mut done.slices);
        done
    }

    fn close<'a>(&'a self, run: Option<Range<u64>>, out: &mut [IoSlice<'a>], slices: &mut usize) {
        if let Some(run) = run {
            place(self.arena_part(&run), out, slices);
        }
    }

    /// Drops what `octets`, counted from the start of the first frame, hold whole, and returns how
    /// many octets of the frame that is first then they reach into.
    pub fn advance(&mut self, octets: usize) -> usize {
        let (mut rest, mut count) = (octets, 0);
        for len in self.lens(0) {
            if len > rest {
                break;
            }
            rest -= len;
            count += 1;
        }
        self.pop(count);
        rest
    }

    /// Drops the first `count` frames, which were sent or given up.
    pub fn pop(&mut self, count: usize) {
        for frame in self.frames.drain(..count.min(self.frames.len())) {
            let len = frame.len();
            self.bytes -= len;
            self.push_bytes -= if frame.lane == Lane::Pull { 0 } else { len };
            self.pinned -= frame.pins as usize;
        }
        // What is first now keeps its chunk alive, whoever did so before.
        if let Some(TxFrame { body: Some(body), pins: pins @ 0, .. }) = self.frames.front_mut() {
            let len = body.chunk_len();
            self.pinned += len;
            *pins = u32::try_from(len).unwrap_or(u32::MAX);
        }
        self.reclaim();
    }

    fn head(&self, frame: &TxFrame) -> &[u8] {
        self.arena_part(&frame.head)
    }

    fn arena_part(&self, range: &Range<u64>) -> &[u8] {
        let at = |position: u64| usize::try_from(position - self.base).unwrap_or(usize::MAX);
        let range = at(range.start)..at(range.end);
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

fn place<'a>(piece: &'a [u8], out: &mut [IoSlice<'a>], slices: &mut usize) {
    *out.get_mut(*slices).expect("invariant: gather counted the pieces") = IoSlice::new(piece);
    *slices += 1;
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

    #[test]
    fn a_chunk_is_pinned_once_by_frames_that_stand_together() {
        let mut queue = TxQueue::new(1 << 20);
        let chunks = [10_000, 20_000].map(|len| Buf::copy_from(&vec![7; len]));
        let parts = [(0, 0), (0, 3000), (1, 0), (0, 6000), (1, 9000)];
        for (chunk, at) in parts {
            queue.push_rest(b"head", &chunks[chunk].slice(0..at + 2000), at).unwrap();
        }
        // Short ones are copied.
        queue.push(b"", Some(&chunks[1].slice(0..COPY_LEN_MAX))).unwrap();
        assert_eq!(queue.pinned(), 2 * (10_000 + 20_000));
        assert_eq!(queue.bytes(), 5 * 2004 + COPY_LEN_MAX);
        let left = [0, 1, 2, 3, 4, 5].map(|_| {
            queue.pop(1);
            queue.pinned()
        });
        assert_eq!(left, [60_000, 50_000, 30_000, 20_000, 0, 0]);
    }

    /// Frames of each half that leave a queue of 100 KiB, of so many of 1000 octets that come for
    /// each one that leaves.
    fn leaving(pull: usize, push: usize) -> [usize; 2] {
        let mut queue = TxQueue::new(100 << 10);
        let mut left = [0; 2];
        for _ in 0..10_000 {
            for (lane, count, first) in [(Lane::Push, push, 0xf0), (Lane::Pull, pull, 6)] {
                queue.set_lane(lane);
                (0..count).for_each(|_| _ = queue.push(&[first; 1000], None));
            }
            let first = queue.iter().next().map(|(head, _)| head[0]);
            left[usize::from(first == Some(0xf0))] += usize::from(first.is_some());
            queue.pop(1);
            assert!(queue.bytes() <= 100 << 10 && queue.push_bytes() <= queue.bytes());
        }
        left
    }

    #[test]
    fn neither_half_keeps_the_other_out_of_a_queue() {
        assert_eq!(leaving(0, 10), [0, 10_000]);
        assert_eq!(leaving(10, 0), [10_000, 0]);
        for (pull, push) in [(2, 2), (1, 50), (50, 1)] {
            let [pulled, pushed] = leaving(pull, push);
            assert_eq!(pulled + pushed, 10_000, "the link is never idle");
            assert!(pulled.min(pushed) > 4500, "{pull}, {push}: {pulled}, {pushed}");
        }
    }

    #[test]
    fn neighbouring_small_frames_are_gathered_as_one_piece() {
        let large = Buf::copy_from(&[7; COPY_LEN_MAX + 1]);
        let mut queue = TxQueue::new(1 << 20);
        for head in [&b"ab"[..], b"cd"] {
            queue.push(head, None).unwrap();
        }
        queue.push(b"h", Some(&large)).unwrap();
        queue.push(b"", Some(&large)).unwrap();
        queue.push(b"ef", None).unwrap();
        let mut out = [IoSlice::new(&[]); 8];
        let all = queue.gather(0, usize::MAX, &mut out);
        assert_eq!(all, Gathered { slices: 4, frames: 5, octets: 7 + 2 * large.len() });
        let pieces: Vec<&[u8]> = out[..4].iter().map(|p| &**p).collect();
        assert_eq!(pieces, [&b"abcdh"[..], &large, &large, b"ef"]);
        assert_eq!(queue.gather(1, 1, &mut out).octets, 2);
        assert_eq!(
            queue.gather(0, 9, &mut out[..2]),
            Gathered { slices: 2, frames: 3, octets: 5 + large.len() }
        );
        assert_eq!(queue.advance(5), 1, "two frames whole, one octet of the third");
        assert_eq!(queue.lens(0).collect::<Vec<_>>(), [large.len() + 1, large.len(), 2]);
    }
}
