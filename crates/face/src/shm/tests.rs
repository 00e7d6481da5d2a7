use super::*;
use crate::stream::unix;
use crate::tests::{accept, check, until};
use crate::{CHUNK_LEN, UnixListener};
use onym_sys::epoll::{Epoll, Interest};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::Duration;

const LENGTH: usize = 64 << 10;
const DEADLINE: Duration = Duration::from_secs(10);
/// Control words of the direction towards the node.
const TAIL: usize = 0;
const HEAD: usize = 16;
/// And of the one towards the application.
const HEAD_OUT: usize = 64 + HEAD;

struct Bench {
    _folder: tempfile::TempDir,
    path: std::path::PathBuf,
    listener: UnixListener,
    policy: RingPolicy,
}

fn bench(policy: RingPolicy) -> Bench {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nfd.sock");
    let listener = UnixListener::bind_with(&path, policy.clone()).unwrap();
    Bench { _folder: folder, path, listener, policy }
}

fn pool() -> BufPool {
    BufPool::new(CHUNK_LEN, 64)
}

/// Both ends, negotiated.
fn pair(bench: &mut Bench) -> (ShmFace, Box<dyn Face>) {
    let mut app = connect(&bench.path, 0).unwrap();
    let mut node = accept(&mut bench.listener);
    let mut out = Vec::new();
    assert!(app.is_connecting());
    until(|| (node.receive(&mut pool(), 8, &mut out).unwrap() == Ready::Changed).then_some(()));
    until(|| {
        app.receive(&mut pool(), 8, &mut out).unwrap();
        (!app.is_connecting()).then_some(())
    });
    (app, node)
}

/// An application that writes into the memory by hand.
fn rogue(bench: &mut Bench) -> (OwnedFd, SharedMemory, Box<dyn Face>) {
    let socket = connect_socket(&bench.path).unwrap();
    negotiate::ask(&socket, LENGTH).unwrap();
    let mut node = accept(&mut bench.listener);
    assert_eq!(node.receive(&mut pool(), 8, &mut Vec::new()).unwrap(), Ready::Changed);
    let (length, memory) = until(|| negotiate::hear_answer(&socket).unwrap());
    assert_eq!(length, LENGTH);
    (socket, memory, node)
}

/// Says that `tail` octets were written.
fn publish(memory: &SharedMemory, tail: u64) {
    memory.words()[TAIL].store(tail, Ordering::Release);
}

fn queue_of(frames: &[&[u8]]) -> TxQueue {
    let mut queue = TxQueue::new(1 << 30);
    for frame in frames {
        queue.push(frame, None).unwrap();
    }
    queue
}

/// Receives until the face would be waited for.
fn drain(face: &mut dyn Face) -> Result<Vec<RxFrame>, FaceError> {
    let (mut pool, mut out) = (pool(), Vec::new());
    while face.receive(&mut pool, 64, &mut out)? != Ready::Idle {}
    Ok(out)
}

fn is_readable(face: &dyn Face) -> bool {
    let (epoll, mut events) = (Epoll::new().unwrap(), Vec::new());
    epoll.add(face.fd(), 0, Interest::Read).unwrap();
    epoll.wait(Some(Duration::ZERO), &mut events).unwrap() > 0
}

fn wait_readable(face: &dyn Face) {
    let epoll = Epoll::new().unwrap();
    epoll.add(face.fd(), 0, Interest::Read).unwrap();
    assert_eq!(epoll.wait(Some(DEADLINE), &mut Vec::new()).unwrap(), 1);
}

#[test]
fn frames_of_all_lengths_cross_shared_memory_in_order() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let (mut app, mut node) = pair(&mut bench);
    assert_eq!((app.scope(), node.scope()), (Scope::Local, Scope::Local));
    assert_eq!((app.transport(), node.transport()), (Transport::Shm, Transport::Shm));
    let uri = format!("shm://{}", bench.path.display());
    assert_eq!((app.remote_uri().to_string(), node.local_uri().to_string()), (uri.clone(), uri));
    for _ in 0..3 {
        check(&mut app, &mut *node);
    }
}

/// Until the node has answered nothing can leave, and the descriptor tells when it can: who does not
/// flush then keeps what it has to send.
#[test]
fn what_waits_for_the_answer_leaves_when_the_answer_wakes_its_sender() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let mut app = connect(&bench.path, 0).unwrap();
    let (mut queue, mut out) = (queue_of(&[&[5, 1, 1]]), Vec::new());
    assert_eq!(app.flush(&mut queue).unwrap(), Flush::Blocked);
    let mut node = accept(&mut bench.listener);
    until(|| (node.receive(&mut pool(), 8, &mut out).unwrap() == Ready::Changed).then_some(()));
    wait_readable(&app);
    app.receive(&mut pool(), 8, &mut out).unwrap();
    assert!(!app.is_connecting() && !app.room_is_writable());
    assert_eq!(app.flush(&mut queue).unwrap(), Flush::Done);
    assert_eq!(*drain(&mut *node).unwrap()[0].bytes, [5, 1, 1]);
}

#[test]
fn an_application_that_begins_with_a_packet_has_a_stream() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let mut app = unix::connect(&bench.path).unwrap();
    let mut node = accept(&mut bench.listener);
    assert!(drain(&mut *node).unwrap().is_empty(), "nothing came yet");
    check(&mut app, &mut *node);
    assert_eq!(node.transport(), Transport::Unix);
    assert_eq!(node.local_uri().to_string(), format!("unix://{}", bench.path.display()));
    assert_eq!(bench.policy.count(), 0);
}

#[test]
fn a_side_that_is_awake_is_not_woken_and_one_that_sleeps_is_woken_once() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let (mut app, mut node) = pair(&mut bench);
    app.flush(&mut queue_of(&[&[5, 0]])).unwrap();
    assert!(!is_readable(&*node), "it did not sleep yet");
    assert_eq!(drain(&mut *node).unwrap().len(), 1);
    for _ in 0..3 {
        app.flush(&mut queue_of(&[&[5, 0]])).unwrap();
    }
    wait_readable(&*node);
    let mut out = Vec::new();
    assert_eq!(node.receive(&mut pool(), 64, &mut out).unwrap(), Ready::More);
    assert_eq!(out.len(), 3);
    assert!(!is_readable(&*node), "one wake-up for all");
    assert!(drain(&mut *node).unwrap().is_empty());
}

#[test]
fn a_full_ring_blocks_until_the_reader_took_half_and_then_wakes_its_writer() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let (mut app, mut node) = pair(&mut bench);
    let frame = [&[6, 0xFD, 0x1F, 0x40][..], &[7; 8000]].concat();
    let mut queue = queue_of(&[&frame[..]; 12]);
    assert!(drain(&mut app).unwrap().is_empty());
    assert_eq!(app.flush(&mut queue).unwrap(), Flush::Blocked);
    assert_eq!(queue.len(), 12 - LENGTH / 8004);
    assert!(app.queue_octets() > LENGTH - 8004);
    assert!(!app.room_is_writable() && !is_readable(&app));
    let arrived = drain(&mut *node).unwrap();
    assert_eq!(arrived.len(), LENGTH / 8004);
    wait_readable(&app);
    assert!(drain(&mut app).unwrap().is_empty());
    assert_eq!(app.flush(&mut queue).unwrap(), Flush::Done);
    assert!(drain(&mut *node).unwrap().iter().all(|f| *f.bytes == *frame));
}

#[test]
fn what_a_peer_wrote_before_its_end_arrives_before_its_end_is_told() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let (mut app, mut node) = pair(&mut bench);
    assert!(drain(&mut *node).unwrap().is_empty());
    app.flush(&mut queue_of(&[&[5, 1, 1], &[5, 1, 2]])).unwrap();
    drop(app);
    let (mut pool, mut out) = (pool(), Vec::new());
    wait_readable(&*node);
    let end = until(|| node.receive(&mut pool, 64, &mut out).err());
    assert!(matches!(end, FaceError::Closed), "{end}");
    assert_eq!(out.len(), 2);
    assert_eq!(bench.policy.count(), 1);
    drop(node);
    assert_eq!(bench.policy.count(), 0, "its place is free again");
}

#[test]
fn the_application_sees_the_end_of_its_node() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let (mut app, node) = pair(&mut bench);
    assert!(drain(&mut app).unwrap().is_empty());
    drop(node);
    wait_readable(&app);
    assert!(matches!(drain(&mut app), Err(FaceError::Closed)));
}

#[test]
fn positions_that_cannot_be_and_packets_in_part_close_the_face() {
    type Write = fn(&SharedMemory);
    let lies: [(&str, Write); 6] = [
        ("more than fits", |m| publish(m, LENGTH as u64 + 1)),
        ("a position that goes back", |m| publish(m, u64::MAX)),
        ("no packet at all", |m| publish(m, 8)),
        ("a packet in part", |m| {
            m.write(0, &[6, 20, 0]);
            publish(m, 16);
        }),
        ("a packet longer than one may be", |m| {
            m.write(0, &[6, 0xFD, 0xFF, 0xFF]);
            publish(m, LENGTH as u64);
        }),
        ("half a header", |m| {
            m.write(0, &[5, 2, 0, 0, 6, 0xFF]);
            publish(m, 6);
        }),
    ];
    for (what, write) in lies {
        let mut bench = bench(RingPolicy::new(LENGTH, 2));
        let (_socket, memory, mut node) = rogue(&mut bench);
        write(&memory);
        let error = drain(&mut *node).expect_err(what);
        let told = matches!(error, FaceError::Ring(_) | FaceError::Malformed(_));
        assert!(told && error.is_fatal(), "{what}: {error}");
    }
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let (_socket, memory, mut node) = rogue(&mut bench);
    memory.words()[HEAD_OUT].store(1 << 40, Ordering::Release);
    let frame = [&[6, 0xFD, 0x1F, 0x40][..], &[7; 8000]].concat();
    let mut queue = queue_of(&[&frame[..]; 12]);
    assert!(matches!(node.flush(&mut queue), Err(FaceError::Ring(_))));
}

#[test]
fn bytes_that_change_after_they_were_copied_change_no_packet() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let (_socket, memory, mut node) = rogue(&mut bench);
    memory.write(0, &[5, 2, 7, 7]);
    publish(&memory, 4);
    let (mut pool, mut out) = (pool(), Vec::new());
    node.receive(&mut pool, 8, &mut out).unwrap();
    memory.write(0, &[255; 4]);
    assert_eq!(&*out[0].bytes, [5, 2, 7, 7]);
}

#[test]
fn wake_ups_without_end_cost_their_receiver_little_and_block_nobody() {
    let mut bench = bench(RingPolicy::new(LENGTH, 2));
    let (socket, _memory, mut node) = rogue(&mut bench);
    assert!(drain(&mut *node).unwrap().is_empty());
    while rustix::net::send(&socket, &[0; 4096], SendFlags::DONTWAIT).is_ok() {}
    let mut rounds = 0;
    while is_readable(&*node) {
        assert!(drain(&mut *node).unwrap().is_empty());
        // The node's own wake-ups find a full or a free socket and never wait for it.
        node.flush(&mut queue_of(&[&[5, 0]])).unwrap();
        rounds += 1;
        if rounds == 1000 {
            break;
        }
    }
    assert!(rounds > 1);
}

#[test]
fn rings_are_refused_with_the_reason_when_they_are_off_or_too_many() {
    for (count_max, reason) in [(0, "shared memory is off here"), (1, "there are 1 rings already")]
    {
        let mut bench = bench(RingPolicy::new(LENGTH, count_max));
        let _first = (count_max > 0).then(|| pair(&mut bench));
        let mut app = connect(&bench.path, 0).unwrap();
        let mut node = accept(&mut bench.listener);
        let closed = node.receive(&mut pool(), 8, &mut Vec::new()).unwrap_err();
        assert!(closed.to_string().contains(reason) && closed.is_fatal(), "{closed}");
        drop(node);
        let told = until(|| app.flush(&mut TxQueue::new(0)).err());
        assert!(told.to_string().contains(reason), "{told}");
        assert_eq!(bench.policy.count(), count_max);
    }
}

#[test]
fn a_request_is_answered_within_the_bounds_of_the_node() {
    for (wanted, given) in [(0, 1 << 18), (1, 1 << 16), (100_000, 1 << 16), (1 << 30, 1 << 18)] {
        let mut bench = bench(RingPolicy::new((1 << 18) + 5, 2));
        let socket = connect_socket(&bench.path).unwrap();
        negotiate::ask(&socket, wanted).unwrap();
        let mut node = accept(&mut bench.listener);
        assert_eq!(node.receive(&mut pool(), 8, &mut Vec::new()).unwrap(), Ready::Changed);
        assert_eq!(until(|| negotiate::hear_answer(&socket).unwrap()).0, given);
    }
}

#[test]
fn a_request_that_is_none_closes_the_face_and_takes_no_place() {
    for request in [&[0xF3][..], &[0xF3, 0], &[0xF3, 6, 0x81, 1, 9, 0x83, 1, 0], &[0xF3; 600]] {
        let mut bench = bench(RingPolicy::new(LENGTH, 1));
        let socket = connect_socket(&bench.path).unwrap();
        rustix::net::send(&socket, request, SendFlags::empty()).unwrap();
        let mut node = accept(&mut bench.listener);
        assert!(node.receive(&mut pool(), 8, &mut Vec::new()).is_err(), "{request:x?}");
        assert_eq!(bench.policy.count(), 0);
    }
}

#[test]
fn a_forwarder_that_knows_no_rings_is_told_from_one_that_does() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("nfd.sock");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let mut app = connect(&path, 0).unwrap();
    let (mut stream, _): (UnixStream, _) = listener.accept().unwrap();
    let mut request = [0; 64];
    let got = std::io::Read::read(&mut stream, &mut request).unwrap();
    assert_eq!(&request[..got], [0xF3, 6, 0x81, 1, 1, 0x83, 1, 0]);
    drop(stream);
    let told = until(|| app.receive(&mut pool(), 8, &mut Vec::new()).err());
    assert!(matches!(told, FaceError::RingRefused(_)), "{told}");
    let told = connect_within(&path, 0, Duration::from_millis(50)).unwrap_err();
    assert!(matches!(told, FaceError::Silent(_)), "{told}");
}
