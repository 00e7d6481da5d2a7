//! Frames on their way from and to a face: opaque bytes, received in bursts and sent from a queue.

use crate::{Buf, FrameRow};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

/// Bodies up to this length are copied behind their header, so that many small frames leave as one
/// contiguous piece; longer ones are sent from where they are (scatter-gather).
pub const COPY_LEN_MAX: usize = 1024;

/// One frame to send, or a row of them of one length: `head` in the queue's arena and then the body of
/// each; or, where they have no bodies, one behind the other in the arena.
#[derive(Debug)]
struct TxRow {
    head: Range<u64>,
    bodies: Option<FrameRow>,
    /// Octets of each frame.
    len: usize,
    /// Frames without bodies.
    copies: usize,
    lane: Lane,
    /// Octets that its bodies keep alive and the row before does not.
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

impl TxRow {
    /// Frames.
    #[inline]
    fn count(&self) -> usize {
        self.bodies.as_ref().map_or(self.copies, FrameRow::count)
    }

    /// Where the octets in the arena of frame `from` and those behind it are, up to frame `to`.
    #[inline]
    fn copied(&self, from: usize, to: usize) -> Range<u64> {
        self.head.start + (from * self.len) as u64..self.head.start + (to * self.len) as u64
    }

    /// Takes the first `count` frames off, of which there are not more; whether that leaves some.
    fn skip(&mut self, count: usize) -> bool {
        if let Some(bodies) = self.bodies.take() {
            self.bodies = bodies.skip(count);
            return self.bodies.is_some();
        }
        self.copies -= count;
        self.head.start += (count * self.len) as u64;
        self.copies > 0
    }
}

/// A place in a queue, between two frames; the front by default.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TxPlace {
    row: usize,
    /// Frames of the row that come before it.
    frame: usize,
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
    /// Where the frames behind them start.
    pub next: TxPlace,
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
    rows: VecDeque<TxRow>,
    /// Frames in `rows`.
    frames: usize,
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
            rows: VecDeque::new(),
            frames: 0,
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
        let len = head.len() + body.map_or(0, |body| body.len());
        if len > self.room() && self.frames > 0 {
            return Err(Full);
        }
        let head = self.store(head);
        match body {
            Some(body) if body.len() > COPY_LEN_MAX => {
                self.put(head, FrameRow::one(body.clone()));
            }
            body => self.put_copy(head, body.map_or(&[], |body| body)),
        }
        Ok(())
    }

    /// Appends the frame `head` followed by `body`, both copied.
    ///
    /// # Errors
    /// As [`TxQueue::push`].
    #[inline]
    pub fn push_joined(&mut self, head: &[u8], body: &[u8]) -> Result<(), Full> {
        if head.len() + body.len() > self.room() && self.frames > 0 {
            return Err(Full);
        }
        let head = self.store(head);
        self.put_copy(head, body);
        Ok(())
    }

    /// Appends a frame for each of `row`: `head`, and then the frame's octets from `from` on. Those
    /// at the end that pass the bound, or the share of their half, are not taken; an empty queue
    /// takes any frame. How many were taken.
    ///
    /// # Panics
    /// If the frames have not so many octets.
    pub fn push_row(&mut self, head: &[u8], row: &FrameRow, from: usize) -> usize {
        let body_len = row.frame_len() - from;
        let fit = self.room().checked_div(head.len() + body_len).unwrap_or(usize::MAX);
        let fit = fit.max(usize::from(self.frames == 0)).min(row.count());
        if fit == 0 {
            return 0;
        }
        if body_len <= COPY_LEN_MAX {
            for frame in row.iter().take(fit) {
                let head = self.store(head);
                self.put_copy(head, frame.get(from..).unwrap_or_default());
            }
        } else {
            let head = self.store(head);
            self.put(head, row.rests(from).take(fit));
        }
        fit
    }

    /// Keeps `octets` in the arena; where they are.
    fn store(&mut self, octets: &[u8]) -> Range<u64> {
        let start = self.base + self.arena.len() as u64;
        self.arena.extend_from_slice(octets);
        start..start + octets.len() as u64
    }

    /// Appends a frame whose body is short, as a part of its head.
    #[inline]
    fn put_copy(&mut self, head: Range<u64>, body: &[u8]) {
        self.arena.extend_from_slice(body);
        let end = head.end + body.len() as u64;
        let len = usize::try_from(end - head.start).unwrap_or(0);
        self.count(1, len);
        if let Some(last) = self.rows.back_mut()
            && last.bodies.is_none()
            && (last.len, last.lane, last.head.end) == (len, self.lane, head.start)
        {
            last.head.end = end;
            last.copies += 1;
            return;
        }
        let head = head.start..end;
        self.rows.push_back(TxRow { head, bodies: None, len, copies: 1, lane: self.lane, pins: 0 });
    }

    fn put(&mut self, head: Range<u64>, bodies: FrameRow) {
        let last = self.rows.back().and_then(|row| row.bodies.as_ref());
        let body = bodies.first();
        let is_pinned = last.is_some_and(|last| last.first().shares_chunk(body));
        let pins = if is_pinned { 0 } else { body.chunk_len() };
        self.pinned += pins;
        // A chunk is shorter than 4 GiB.
        let pins = u32::try_from(pins).unwrap_or(u32::MAX);
        let len = usize::try_from(head.end - head.start).unwrap_or(0) + bodies.frame_len();
        self.count(bodies.count(), len);
        let (bodies, lane) = (Some(bodies), self.lane);
        self.rows.push_back(TxRow { head, bodies, len, copies: 0, lane, pins });
    }

    /// Counts `count` frames more, of so many octets each.
    #[inline]
    fn count(&mut self, count: usize, len: usize) {
        let octets = count * len;
        self.frames += count;
        self.bytes += octets;
        self.push_bytes += if self.lane == Lane::Pull { 0 } else { octets };
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
        self.frames
    }

    /// Whether nothing waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.frames == 0
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
        self.rows.iter().flat_map(move |row| {
            let none: &[u8] = &[];
            let copied = (0..row.copies).map(move |n| self.arena_part(&row.copied(n, n + 1)));
            let bodies = row.bodies.iter().flat_map(FrameRow::iter);
            let whole = bodies.map(move |body| (self.arena_part(&row.head), body));
            copied.map(move |frame| (frame, none)).chain(whole)
        })
    }

    /// The lengths of the waiting frames from `from` on, in octets: of how many in a row each is.
    #[inline]
    pub fn lens(&self, from: TxPlace) -> impl Iterator<Item = (usize, usize)> {
        let mut before = from.frame;
        self.rows
            .range(from.row.min(self.rows.len())..)
            .map(move |row| (row.len, row.count() - std::mem::take(&mut before)))
    }

    /// Describes whole frames, from `from` on and at most `frames_max` of them, as few contiguous
    /// pieces, as many as fit into `out`. Two pieces must fit for progress to be sure.
    pub fn gather<'a>(
        &'a self,
        from: TxPlace,
        frames_max: usize,
        out: &mut [IoSlice<'a>],
    ) -> Gathered {
        let mut pieces = Pieces { queue: self, out, used: 0, run: None };
        let mut done = Gathered { next: from, ..Gathered::default() };
        'all: for row in self.rows.range(from.row.min(self.rows.len())..) {
            let Some(bodies) = &row.bodies else {
                let first = done.next.frame;
                let last = row.copies.min(first + (frames_max - done.frames));
                if first == last || !pieces.add(&row.copied(first, last), None) {
                    break;
                }
                done.count(last - first, row.len);
                if last < row.copies {
                    break;
                }
                done.next = TxPlace { row: done.next.row + 1, frame: 0 };
                continue;
            };
            for body in bodies.iter_from(done.next.frame) {
                if done.frames == frames_max || !pieces.add(&row.head, Some(body)) {
                    break 'all;
                }
                done.count(1, row.len);
            }
            done.next = TxPlace { row: done.next.row + 1, frame: 0 };
        }
        pieces.close();
        done.slices = pieces.used;
        done
    }

    /// Drops what `octets`, counted from the start of the first frame, hold whole, and returns how
    /// many octets of the frame that is first then they reach into.
    pub fn advance(&mut self, octets: usize) -> usize {
        let (mut rest, mut done) = (octets, 0);
        for (len, count) in self.lens(TxPlace::default()) {
            let whole = rest.checked_div(len).unwrap_or(count).min(count);
            rest -= whole * len;
            done += whole;
            if whole < count {
                break;
            }
        }
        self.pop(done);
        rest
    }

    /// Drops the first `count` frames, which were sent or given up.
    pub fn pop(&mut self, count: usize) {
        let mut left = count.min(self.frames);
        self.frames -= left;
        while left > 0
            && let Some(row) = self.rows.front_mut()
        {
            let gone = left.min(row.count());
            left -= gone;
            let octets = gone * row.len;
            self.bytes -= octets;
            self.push_bytes -= if row.lane == Lane::Pull { 0 } else { octets };
            if !row.skip(gone) {
                self.pinned -= row.pins as usize;
                self.rows.pop_front();
            }
        }
        // What is first now keeps its chunk alive, whoever did so before.
        if let Some(TxRow { bodies: Some(bodies), pins: pins @ 0, .. }) = self.rows.front_mut() {
            let len = bodies.first().chunk_len();
            self.pinned += len;
            *pins = u32::try_from(len).unwrap_or(u32::MAX);
        }
        self.reclaim();
    }

    fn arena_part(&self, range: &Range<u64>) -> &[u8] {
        let at = |position: u64| usize::try_from(position - self.base).unwrap_or(usize::MAX);
        let range = at(range.start)..at(range.end);
        self.arena.get(range).expect("invariant: the head of a waiting frame is in the arena")
    }

    /// Gives back arena space once more than half of it was sent, so its cost is amortised.
    fn reclaim(&mut self) {
        let Some(first) = self.rows.front() else {
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

impl Gathered {
    /// So many frames more, of the row where `next` is, of so many octets each.
    fn count(&mut self, count: usize, len: usize) {
        self.frames += count;
        self.octets += count * len;
        self.next.frame += count;
    }
}

/// Pieces of a queue, being gathered.
struct Pieces<'a, 'o> {
    queue: &'a TxQueue,
    out: &'o mut [IoSlice<'a>],
    used: usize,
    /// Heads that follow each other in the arena, not in `out` yet.
    run: Option<Range<u64>>,
}

impl<'a> Pieces<'a, '_> {
    /// Adds a frame; false when it does not fit.
    fn add(&mut self, head: &Range<u64>, body: Option<&'a [u8]>) -> bool {
        // Behind the run so far, a frame needs at most its head and its body.
        let joins = self.run.as_ref().is_some_and(|run| run.end == head.start);
        let open = usize::from(self.run.is_some());
        let more = usize::from(!joins && !head.is_empty()) + usize::from(body.is_some());
        if self.used + open + more > self.out.len() {
            return false;
        }
        if joins {
            self.run = self.run.take().map(|run| run.start..head.end);
        } else if !head.is_empty() {
            self.close();
            self.run = Some(head.clone());
        }
        if let Some(body) = body {
            self.close();
            self.place(body);
        }
        true
    }

    fn close(&mut self) {
        if let Some(run) = self.run.take() {
            self.place(self.queue.arena_part(&run));
        }
    }

    fn place(&mut self, piece: &'a [u8]) {
        let place = self.out.get_mut(self.used).expect("invariant: the pieces were counted");
        *place = IoSlice::new(piece);
        self.used += 1;
    }
}

#[cfg(test)]
mod tests;
