//! Frames on their way from and to a face: opaque bytes, received in bursts and sent from a queue.

use crate::{Buf, FrameRow};
use std::collections::VecDeque;
use std::io::IoSlice;
use std::ops::Range;

/// Bodies up to this length are copied behind their header, so that many small frames leave as one
/// contiguous piece; longer ones are sent from where they are (scatter-gather).
pub const COPY_LEN_MAX: usize = 1024;

/// One frame to send, or a row of them: `head` in the queue's arena, then the body of each.
#[derive(Debug)]
struct TxRow {
    head: Range<u64>,
    bodies: Option<FrameRow>,
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
    /// Octets of each frame.
    fn frame_len(&self) -> usize {
        let head = usize::try_from(self.head.end - self.head.start).unwrap_or(0);
        head + self.bodies.as_ref().map_or(0, FrameRow::frame_len)
    }

    /// Frames.
    fn count(&self) -> usize {
        self.bodies.as_ref().map_or(1, FrameRow::count)
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
        let head = head.start..head.end + body.len() as u64;
        self.append(TxRow { head, bodies: None, lane: self.lane, pins: 0 });
    }

    fn put(&mut self, head: Range<u64>, bodies: FrameRow) {
        let last = self.rows.back().and_then(|row| row.bodies.as_ref());
        let body = bodies.first();
        let is_pinned = last.is_some_and(|last| last.first().shares_chunk(body));
        let pins = if is_pinned { 0 } else { body.chunk_len() };
        self.pinned += pins;
        // A chunk is shorter than 4 GiB.
        let pins = u32::try_from(pins).unwrap_or(u32::MAX);
        self.append(TxRow { head, bodies: Some(bodies), lane: self.lane, pins });
    }

    #[inline]
    fn append(&mut self, row: TxRow) {
        let (count, octets) = (row.count(), row.count() * row.frame_len());
        self.rows.push_back(row);
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
        self.rows.iter().flat_map(|row| {
            let head = self.arena_part(&row.head);
            let lone: Option<&[u8]> = row.bodies.is_none().then_some(&[]);
            let bodies = row.bodies.iter().flat_map(FrameRow::iter);
            lone.into_iter().chain(bodies).map(move |body| (head, body))
        })
    }

    /// The lengths of the waiting frames from `from` on, in octets: of how many in a row each is.
    #[inline]
    pub fn lens(&self, from: TxPlace) -> impl Iterator<Item = (usize, usize)> {
        let mut before = from.frame;
        self.rows
            .range(from.row.min(self.rows.len())..)
            .map(move |row| (row.frame_len(), row.count() - std::mem::take(&mut before)))
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
            let len = row.frame_len();
            match &row.bodies {
                None if done.frames == frames_max || !pieces.add(&row.head, None) => break,
                None => done.count(len),
                Some(bodies) => {
                    for body in bodies.iter_from(done.next.frame) {
                        if done.frames == frames_max || !pieces.add(&row.head, Some(body)) {
                            break 'all;
                        }
                        done.count(len);
                    }
                }
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
            let octets = gone * row.frame_len();
            self.bytes -= octets;
            self.push_bytes -= if row.lane == Lane::Pull { 0 } else { octets };
            row.bodies = row.bodies.take().and_then(|bodies| bodies.skip(gone));
            if row.bodies.is_none() {
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
    /// One frame more, of the row where `next` is.
    fn count(&mut self, len: usize) {
        self.frames += 1;
        self.octets += len;
        self.next.frame += 1;
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
mod tests {
    use super::*;
    use crate::RxFrame;
    use proptest::collection::vec;
    use proptest::{prop_assert_eq, proptest};

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
            let row = FrameRow::one(chunks[chunk].slice(0..at + 2000));
            assert_eq!(queue.push_row(b"head", &row, at), 1);
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
        let front = TxPlace::default();
        let all = queue.gather(front, usize::MAX, &mut out);
        assert_eq!((all.slices, all.frames, all.octets), (4, 5, 7 + 2 * large.len()));
        let pieces: Vec<&[u8]> = out[..4].iter().map(|p| &**p).collect();
        assert_eq!(pieces, [&b"abcdh"[..], &large, &large, b"ef"]);
        let one = queue.gather(front, 1, &mut out).next;
        assert_eq!(queue.gather(one, 1, &mut out).octets, 2);
        let few = queue.gather(front, 9, &mut out[..2]);
        assert_eq!((few.slices, few.frames, few.octets), (2, 3, 5 + large.len()));
        assert_eq!(queue.advance(5), 1, "two frames whole, one octet of the third");
        let lens = [(large.len() + 1, 1), (large.len(), 1), (2, 1)];
        assert_eq!(queue.lens(front).collect::<Vec<_>>(), lens);
    }

    /// What is gathered with `pieces_max` pieces at a time, `frames_max` frames at a time.
    fn gathered(queue: &TxQueue, frames_max: usize, pieces_max: usize) -> (usize, Vec<u8>) {
        let (mut frames, mut octets, mut at) = (0, Vec::new(), TxPlace::default());
        loop {
            let mut out = vec![IoSlice::new(&[]); pieces_max];
            let done = queue.gather(at, frames_max, &mut out);
            if done.frames == 0 {
                return (frames, octets);
            }
            let before = octets.len();
            out[..done.slices].iter().for_each(|piece| octets.extend_from_slice(piece));
            assert_eq!(octets.len() - before, done.octets);
            (frames, at) = (frames + done.frames, done.next);
        }
    }

    /// Frames as long as each other in one chunk, `gap` octets between them.
    fn row(count: usize, len: usize, gap: usize) -> FrameRow {
        let octets: Vec<u8> = (0..=255).cycle().take(count * (len + gap)).collect();
        let chunk = Buf::copy_from(&octets);
        let frame = |n: usize| chunk.slice(n * (len + gap)..n * (len + gap) + len);
        let frames = (0..count).map(|n| RxFrame { endpoint: 0, bytes: frame(n) });
        FrameRow::of(&frames.collect::<Vec<_>>()).unwrap()
    }

    /// All that can be asked of a queue but what it keeps in memory.
    fn seen(queue: &TxQueue) -> (Vec<Vec<u8>>, Vec<usize>, [usize; 4]) {
        let frames = queue.iter().map(|(head, body)| [head, body].concat()).collect();
        let lens = queue.lens(TxPlace::default());
        let lens = lens.flat_map(|(len, count)| std::iter::repeat_n(len, count)).collect();
        (frames, lens, [queue.len(), queue.bytes(), queue.push_bytes(), queue.room()])
    }

    proptest! {
        #[test]
        fn a_queue_does_with_a_row_what_it_does_with_its_frames(
            steps in vec((0..3_usize, (1..9_usize, 0..4_usize, 0..3_usize), 0..5_usize, 0..4_usize,
                0..3_usize, 0..60_000_usize, (1..9_usize, 2..7_usize)), 1..60),
        ) {
            let [mut rows, mut frames] = [TxQueue::new(40_000), TxQueue::new(40_000)];
            for (lane, (count, len, gap), head, from, does, amount, limits) in steps {
                let lane = [Lane::Pull, Lane::Push, Lane::PushHeldBack][lane];
                [&mut rows, &mut frames].into_iter().for_each(|queue| queue.set_lane(lane));
                let (row, head) = (row(count, 5 + 600 * len, gap), &b"head"[..head]);
                let bodies: Vec<Buf> = row.iter().map(|f| Buf::copy_from(&f[from..])).collect();
                let taken = rows.push_row(head, &row, from);
                let pushed = bodies.iter().take_while(|body| frames.push(head, Some(body)).is_ok());
                prop_assert_eq!(taken, pushed.count());
                match does {
                    0 => {
                        let octets = amount.min(rows.bytes());
                        prop_assert_eq!(rows.advance(octets), frames.advance(octets));
                    }
                    1 => [&mut rows, &mut frames].into_iter().for_each(|q| q.pop(amount % 6)),
                    _ => {}
                }
                prop_assert_eq!(seen(&rows), seen(&frames));
                prop_assert_eq!(gathered(&rows, limits.0, limits.1), gathered(&frames, 9, 9));
                prop_assert_eq!(rows.is_empty(), rows.pinned() + rows.arena.len() == 0);
            }
        }
    }
}
