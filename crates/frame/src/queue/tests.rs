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
