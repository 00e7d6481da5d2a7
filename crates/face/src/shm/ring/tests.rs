use super::*;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

type Words = Arc<Vec<AtomicU64>>;

fn memory(words: usize) -> Words {
    Arc::new((0..Place::memory_words(words)).map(|_| AtomicU64::new(0)).collect())
}

fn ring(words: usize) -> (Words, Writer<Words>, Reader<Words>) {
    let memory = memory(words);
    let place = Place::new(1, words);
    let writer = Writer::new(Arc::clone(&memory), place);
    (Arc::clone(&memory), writer, Reader::new(memory, place))
}

/// Octets that tell their number and length.
fn octets(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((number * 31 + i) % 251).unwrap()).collect()
}

fn taken(reader: &mut Reader<Words>, len: usize) -> Vec<u8> {
    let mut out = vec![0; len.next_multiple_of(8)];
    assert!(reader.available().unwrap() >= out.len());
    reader.copy(&mut out);
    reader.take(out.len());
    assert!(out[len..].iter().all(|o| *o == 0), "padding is zero");
    out.truncate(len);
    out
}

#[test]
fn frames_of_every_length_and_split_come_out_as_they_went_in_wherever_the_ring_wraps() {
    let (_, mut writer, mut reader) = ring(8);
    let mut number = 0;
    for len in 0..=64 {
        for split in 0..=len {
            let frame = octets(number, len);
            assert_eq!(writer.push(&frame[..split], &frame[split..]), Ok(true));
            writer.publish();
            assert_eq!(taken(&mut reader, len), frame, "{len} split at {split}");
            // Shift the place where the next one begins.
            if number % 3 == 0 {
                assert_eq!(writer.push(b"x", b""), Ok(true));
                writer.publish();
                assert_eq!(taken(&mut reader, 1), b"x");
            }
            number += 1;
        }
    }
}

#[test]
fn nothing_is_seen_before_it_is_published() {
    let (_, mut writer, reader) = ring(8);
    writer.push(b"abc", b"").unwrap();
    assert_eq!(reader.available(), Ok(0));
    writer.publish();
    assert_eq!(reader.available(), Ok(8));
}

#[test]
fn a_full_ring_refuses_and_its_writer_is_woken_once_half_is_free() {
    let (_, mut writer, mut reader) = ring(8);
    for _ in 0..8 {
        assert_eq!(writer.push(b"12345678", b""), Ok(true));
    }
    assert_eq!(writer.push(b"1", b""), Ok(false));
    writer.publish();
    assert_eq!(writer.octets(), 64);
    assert_eq!(writer.wait_for_room(1), Ok(true));
    for _ in 0..3 {
        assert!(!reader.take(8));
    }
    assert!(reader.take(8), "half is free");
    assert!(!reader.take(8), "told once");
    assert_eq!(writer.wait_for_room(40), Ok(false), "there is room");
    assert!(!reader.take(24), "and nobody waits");
}

#[test]
fn a_reader_that_does_not_sleep_is_not_woken_and_one_that_does_is_woken_once() {
    let (_, mut writer, reader) = ring(8);
    writer.push(b"a", b"").unwrap();
    writer.publish();
    assert!(!writer.must_wake());
    assert!(!reader.sleep(), "there is something");
    assert!(!writer.must_wake());
    let (_, mut writer, reader) = ring(8);
    assert!(reader.sleep());
    writer.push(b"a", b"").unwrap();
    writer.publish();
    assert!(writer.must_wake());
    assert!(!writer.must_wake());
}

#[test]
fn a_lying_writer_is_found_out() {
    let (memory, _, reader) = ring(8);
    let tail = DIRECTION_WORDS + TAIL;
    for lie in [9, u64::MAX, 1 << 63] {
        memory[tail].store(lie, Relaxed);
        assert_eq!(reader.available(), Err(LIE_TAIL), "{lie}");
    }
    memory[tail].store(8, Relaxed);
    let mut reader = reader;
    reader.take(64);
    memory[tail].store(7, Relaxed);
    assert_eq!(reader.available(), Err(LIE_TAIL), "its position went back");
    assert!(!reader.sleep(), "and it cannot send us to sleep");
}

#[test]
fn a_lying_reader_is_found_out_or_hurts_itself() {
    let (memory, mut writer, _) = ring(8);
    let head = DIRECTION_WORDS + HEAD;
    for _ in 0..8 {
        writer.push(b"a", b"").unwrap();
    }
    for lie in [9, u64::MAX] {
        memory[head].store(lie, Relaxed);
        assert_eq!(writer.push(b"a", b""), Err(LIE_HEAD));
        assert_eq!(writer.wait_for_room(1), Err(LIE_HEAD));
        assert_eq!(writer.octets(), 0);
    }
    memory[head].store(4, Relaxed);
    assert_eq!(writer.push(b"a", b""), Ok(true));
    for _ in 0..3 {
        writer.push(b"a", b"").unwrap();
    }
    memory[head].store(3, Relaxed);
    // Nine words between what it says now and what was written.
    assert_eq!(writer.push(b"a", b""), Err(LIE_HEAD));
}

/// A bell between two threads: rung at most once before it is heard.
fn bell() -> (SyncSender<()>, Receiver<()>) {
    sync_channel(1)
}

/// Sends `count` frames through a ring so small that both sides sleep again and again.
fn stress(words: usize, count: usize, longest: usize) {
    let (_, mut writer, mut reader) = ring(words);
    let (wake_reader, reader_woken) = bell();
    let (wake_writer, writer_woken) = bell();
    let patience = Duration::from_secs(60);
    let len = |n: usize| 1 + (n * 7919) % longest;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..count {
                let frame = octets(n, len(n));
                let (head, body) = frame.split_at(n % (frame.len() + 1));
                while !writer.push(head, body).unwrap() {
                    if writer.wait_for_room(frame.len()).unwrap() {
                        writer_woken.recv_timeout(patience).expect("woken when there is room");
                    }
                }
                writer.publish();
                if writer.must_wake() {
                    let _ = wake_reader.try_send(());
                }
            }
        });
        for n in 0..count {
            while reader.available().unwrap() == 0 {
                if reader.sleep() {
                    reader_woken.recv_timeout(patience).expect("woken when there is a frame");
                    reader.awake();
                }
            }
            let mut out = vec![0; len(n).next_multiple_of(8)];
            reader.copy(&mut out);
            assert_eq!(out[..len(n)], octets(n, len(n)), "frame {n}");
            if reader.take(out.len()) {
                let _ = wake_writer.try_send(());
            }
        }
    });
}

#[test]
fn no_frame_and_no_wake_up_is_lost_between_two_threads() {
    // Interpreted (miri), a thousandth of it takes as long.
    let count = if cfg!(miri) { 200 } else { 200_000 };
    stress(16, count, 60);
    stress(64, count / 4, 200);
}
