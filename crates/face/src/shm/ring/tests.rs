use super::*;
use std::sync::atomic::{AtomicU8, AtomicU64};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::time::Duration;

/// Memory without a mapping.
#[derive(Debug)]
struct Plain {
    words: Vec<AtomicU64>,
    octets: Vec<AtomicU8>,
}

impl Memory for Arc<Plain> {
    fn load(&self, word: usize, order: Ordering) -> u64 {
        self.words[word].load(order)
    }

    fn store(&self, word: usize, value: u64, order: Ordering) {
        self.words[word].store(value, order);
    }

    fn swap(&self, word: usize, value: u64, order: Ordering) -> u64 {
        self.words[word].swap(value, order)
    }

    fn read(&self, at: usize, out: &mut [u8]) {
        for (out, octet) in out.iter_mut().zip(&self.octets[at..]) {
            *out = octet.load(Relaxed);
        }
    }

    fn write(&self, at: usize, octets: &[u8]) {
        for (octet, place) in octets.iter().zip(&self.octets[at..]) {
            place.store(*octet, Relaxed);
        }
    }
}

fn ring(len: usize) -> (Arc<Plain>, Writer<Arc<Plain>>, Reader<Arc<Plain>>) {
    let memory = Arc::new(Plain {
        words: (0..2 * DIRECTION_WORDS).map(|_| AtomicU64::new(0)).collect(),
        octets: (0..Place::memory(len)).map(|_| AtomicU8::new(0)).collect(),
    });
    let place = Place::new(1, len);
    let writer = Writer::new(Arc::clone(&memory), place);
    (Arc::clone(&memory), writer, Reader::new(memory, place))
}

/// Octets that tell their number and length.
fn octets(number: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| u8::try_from((number * 31 + i) % 251).unwrap()).collect()
}

#[test]
fn octets_of_every_number_come_out_as_they_went_in_wherever_the_ring_wraps() {
    let (memory, mut writer, mut reader) = ring(64);
    for number in 0..1000 {
        let sent = octets(number, number % 65);
        assert!(writer.room(sent.len()).unwrap() >= sent.len());
        let (first, second) = sent.split_at(sent.len() / 3);
        writer.write(first);
        writer.write(second);
        writer.publish();
        assert_eq!(reader.available(), Ok(sent.len()));
        let mut got = vec![0; sent.len()];
        reader.copy(&mut got);
        reader.take(got.len());
        assert_eq!(got, sent, "{number}");
    }
    assert!(memory.octets[..64].iter().all(|o| o.load(Relaxed) == 0), "the other direction's");
}

#[test]
fn nothing_is_seen_before_it_is_published() {
    let (_, mut writer, reader) = ring(64);
    writer.write(b"abc");
    assert_eq!(reader.available(), Ok(0));
    writer.publish();
    assert_eq!(reader.available(), Ok(3));
}

#[test]
fn a_full_ring_has_no_room_and_its_writer_is_woken_once_half_is_free() {
    let (_, mut writer, mut reader) = ring(64);
    writer.write(&[7; 64]);
    assert_eq!(writer.room(1), Ok(0));
    writer.publish();
    assert_eq!(writer.octets(), 64);
    assert_eq!(writer.wait_for_room(1), Ok(true));
    assert!(!reader.take(31));
    assert!(reader.take(1), "half is free");
    assert!(!reader.take(1), "told once");
    assert_eq!(writer.wait_for_room(33), Ok(false), "there is room");
    assert!(!reader.take(31), "and nobody waits");
}

#[test]
fn a_reader_that_does_not_sleep_is_not_woken_and_one_that_does_is_woken_once() {
    let (_, mut writer, reader) = ring(64);
    writer.write(b"a");
    assert!(!writer.publish());
    assert!(!reader.sleep(), "there is something");
    assert!(!writer.publish());
    let (_, mut writer, reader) = ring(64);
    assert!(reader.sleep());
    writer.write(b"a");
    assert!(writer.publish());
    assert!(!writer.publish());
}

#[test]
fn a_lying_writer_is_found_out() {
    let (memory, _, mut reader) = ring(64);
    let tail = &memory.words[DIRECTION_WORDS + TAIL];
    for lie in [65, u64::MAX, 1 << 63] {
        tail.store(lie, Relaxed);
        assert_eq!(reader.available(), Err(LIE_TAIL), "{lie}");
    }
    tail.store(64, Relaxed);
    reader.take(64);
    tail.store(63, Relaxed);
    assert_eq!(reader.available(), Err(LIE_TAIL), "its position went back");
    assert!(!reader.sleep(), "and it cannot send us to sleep");
}

#[test]
fn a_lying_reader_is_found_out_or_hurts_itself() {
    let (memory, mut writer, _) = ring(64);
    let head = &memory.words[DIRECTION_WORDS + HEAD];
    writer.write(&[7; 64]);
    for lie in [65, u64::MAX] {
        head.store(lie, Relaxed);
        assert_eq!(writer.room(1), Err(LIE_HEAD));
        assert_eq!(writer.wait_for_room(1), Err(LIE_HEAD));
        assert_eq!(writer.octets(), 0);
    }
    head.store(32, Relaxed);
    assert_eq!(writer.room(1), Ok(32));
    writer.write(&[7; 30]);
    head.store(31, Relaxed);
    assert_eq!(writer.room(3), Ok(1), "it went back and has less");
    head.store(29, Relaxed);
    assert_eq!(writer.room(3), Err(LIE_HEAD), "more than there was");
}

/// A bell between two threads: rung at most once before it is heard.
fn bell() -> (SyncSender<()>, Receiver<()>) {
    sync_channel(1)
}

/// Sends `count` packets through a ring so small that both sides sleep again and again.
fn stress(len: usize, count: usize, longest: usize) {
    let (_, mut writer, mut reader) = ring(len);
    let (wake_reader, reader_woken) = bell();
    let (wake_writer, writer_woken) = bell();
    let patience = Duration::from_secs(60);
    let len = |n: usize| 1 + (n * 7919) % longest;
    std::thread::scope(|scope| {
        scope.spawn(move || {
            for n in 0..count {
                let packet = octets(n, len(n));
                while writer.room(packet.len()).unwrap() < packet.len() {
                    if writer.wait_for_room(packet.len()).unwrap() {
                        writer_woken.recv_timeout(patience).expect("woken when there is room");
                    }
                }
                writer.write(&packet);
                if writer.publish() {
                    let _ = wake_reader.try_send(());
                }
            }
        });
        for n in 0..count {
            while reader.available().unwrap() == 0 {
                if reader.sleep() {
                    reader_woken.recv_timeout(patience).expect("woken when there is a packet");
                    reader.awake();
                }
            }
            let mut out = vec![0; len(n)];
            reader.copy(&mut out);
            assert_eq!(out, octets(n, len(n)), "packet {n}");
            if reader.take(out.len()) {
                let _ = wake_writer.try_send(());
            }
        }
    });
}

#[test]
fn no_packet_and_no_wake_up_is_lost_between_two_threads() {
    stress(128, 200_000, 60);
    stress(512, 50_000, 200);
}
