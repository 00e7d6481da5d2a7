use super::*;
use crate::{CHUNK_LEN, Face, mem};
use onym_frame::{BufPool, TxQueue};
use onym_sys::epoll::{Epoll, Interest};
use onym_wire::mgmt::Scope;
use std::io::Write;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

#[test]
fn a_delayed_frame_arrives_after_the_delay_and_wakes_the_descriptor() {
    let delay = Duration::from_millis(30);
    for (outgoing, incoming) in [(delay, Duration::ZERO), (Duration::ZERO, delay)] {
        let (a, mut b) = mem::pair(Scope::Local).unwrap();
        let lane = |delay| Impairment { delay, ..Impairment::default() };
        let faults = Faults { seed: 1, outgoing: lane(outgoing), incoming: lane(incoming) };
        let mut a = FaultFace::new(Box::new(a), &faults).unwrap();
        let (mut pool, mut queue) = (BufPool::new(CHUNK_LEN, 4), TxQueue::new(1 << 20));
        let (start, mut out, mut back) = (Instant::now(), Vec::new(), Vec::new());
        queue.push(b"\x05\x00", None).unwrap();
        a.flush(&mut queue).unwrap();
        queue.push(b"\x06\x00", None).unwrap();
        b.flush(&mut queue).unwrap();
        let epoll = Epoll::new().unwrap();
        epoll.add(a.fd(), 0, Interest::Read).unwrap();
        while out.is_empty() || back.is_empty() {
            assert!(start.elapsed() < Duration::from_secs(5));
            epoll.wait(Some(Duration::from_secs(5)), &mut Vec::new()).unwrap();
            a.receive(&mut pool, 8, &mut back).unwrap();
            b.receive(&mut pool, 8, &mut out).unwrap();
        }
        assert!(start.elapsed() >= delay);
    }
}

#[test]
fn frames_lost_on_purpose_are_counted_as_faults() {
    let (a, mut b) = mem::pair(Scope::Local).unwrap();
    let outgoing = Impairment { loss: 0.5, ..Impairment::default() };
    let faults = Faults { seed: 3, outgoing, incoming: Impairment::default() };
    let mut a = FaultFace::new(Box::new(a), &faults).unwrap();
    let (mut pool, mut queue) = (BufPool::new(CHUNK_LEN, 4), TxQueue::new(1 << 20));
    for _ in 0..200 {
        queue.push(b"\x05\x00", None).unwrap();
    }
    a.flush(&mut queue).unwrap();
    let mut out = Vec::new();
    b.receive(&mut pool, 1000, &mut out).unwrap();
    assert!(a.counters().faults > 50 && out.len() > 50);
    assert_eq!(out.len() as u64 + a.counters().faults, 200);
}

/// A writer whose bytes can be looked at while somebody else owns it.
#[derive(Clone, Default)]
struct Shared(Arc<Mutex<Vec<u8>>>);

impl Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_capture_holds_both_directions_as_blocks_whose_lengths_agree() {
    let file = Shared::default();
    let capture = Arc::new(Mutex::new(Capture::new(Box::new(file.clone())).unwrap()));
    let (a, mut b) = mem::pair(Scope::Local).unwrap();
    let mut a = PcapFace::new(Box::new(a), Arc::clone(&capture));
    let (mut pool, mut queue) = (BufPool::new(CHUNK_LEN, 4), TxQueue::new(1 << 20));
    queue.push(b"\x05\x01x", None).unwrap();
    a.flush(&mut queue).unwrap();
    queue.push(b"\x06\x02yz", None).unwrap();
    b.flush(&mut queue).unwrap();
    a.receive(&mut pool, 8, &mut Vec::new()).unwrap();
    let bytes = file.0.lock().unwrap().clone();
    if let Some(path) = std::env::var_os("ONYM_TEST_PCAP") {
        std::fs::write(path, &bytes).unwrap();
    }
    let word = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
    let (mut at, mut types, mut frames) = (0, Vec::new(), Vec::new());
    while at < bytes.len() {
        let len = word(at + 4) as usize;
        assert_eq!(word(at + len - 4) as usize, len);
        types.push(word(at));
        if word(at) == 6 {
            let captured = word(at + 20) as usize;
            frames.push(bytes[at + 28..at + 28 + captured].to_vec());
        }
        at += len;
    }
    assert_eq!(types, [0x0A0D_0D0A, 1, 6, 6]);
    assert_eq!((frames[0][1], &frames[0][14..]), (4, &b"\x86\x24\x05\x01x"[..]));
    assert_eq!((frames[1][1], &frames[1][14..]), (0, &b"\x86\x24\x06\x02yz"[..]));
}

#[test]
fn a_traced_face_carries_the_same_frames() {
    let (a, mut b) = mem::pair(Scope::Local).unwrap();
    let mut a = TraceFace::new(Box::new(a), 2);
    let (mut pool, mut queue, mut out) =
        (BufPool::new(CHUNK_LEN, 4), TxQueue::new(1 << 20), Vec::new());
    for _ in 0..4 {
        queue.push(b"\x05\x01x", None).unwrap();
    }
    a.flush(&mut queue).unwrap();
    b.receive(&mut pool, 8, &mut out).unwrap();
    assert_eq!(out.len(), 4);
}
