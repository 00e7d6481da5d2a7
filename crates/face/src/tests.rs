//! The laws that every face keeps, and those of single transports.

use super::*;
use crate::udp::{UdpFace, UdpListener, UdpOptions};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_sys::epoll::{Epoll, Interest};
use onym_wire::mgmt::Scope;
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(10);

fn pool() -> BufPool {
    BufPool::new(CHUNK_LEN, 64)
}

/// A TLV of type 6 whose value starts with `number` and is `len` octets long.
pub(crate) fn frame(number: u32, len: usize) -> Vec<u8> {
    let mut out = vec![6, 0xFD];
    out.extend(u16::try_from(len.max(253)).unwrap().to_be_bytes());
    out.extend(number.to_be_bytes());
    out.resize(4 + len.max(253), 0xAB);
    out
}

/// Moves all of `frames` from `a` to `b` and returns what arrived.
fn transfer(a: &mut dyn Face, b: &mut dyn Face, frames: &[Vec<u8>]) -> Vec<RxFrame> {
    let (mut pool, mut queue, mut out) = (pool(), TxQueue::new(1 << 30), Vec::new());
    for (i, f) in frames.iter().enumerate() {
        // Both ways to queue a frame: copied, and shared with a head of its own.
        let body = Buf::copy_from(&f[1..]);
        if i % 2 == 0 { queue.push(f, None) } else { queue.push(&f[..1], Some(&body)) }.unwrap();
    }
    let start = Instant::now();
    while out.len() < frames.len() {
        assert!(start.elapsed() < DEADLINE, "{} of {} arrived", out.len(), frames.len());
        a.flush(&mut queue).unwrap();
        b.receive(&mut pool, 64, &mut out).unwrap();
    }
    out
}

pub(crate) fn check(a: &mut dyn Face, b: &mut dyn Face) {
    let frames: Vec<_> = (0..700_u32).map(|i| frame(i, 1 + (i as usize * 613) % 8790)).collect();
    let arrived = transfer(a, b, &frames);
    assert!(arrived.iter().zip(&frames).all(|(r, f)| *r.bytes == **f));
    let arrived = transfer(b, a, &frames);
    assert!(arrived.iter().zip(&frames).all(|(r, f)| *r.bytes == **f));
}

/// Calls `step` until it gives something, waiting for `fd` in between.
pub(crate) fn until<T>(mut step: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(t) = step() {
            return t;
        }
        assert!(start.elapsed() < DEADLINE, "did not happen in time");
        std::thread::yield_now();
    }
}

pub(crate) fn accept(listener: &mut dyn Listener) -> Box<dyn Face> {
    let (mut pool, mut out) = (pool(), Vec::new());
    until(|| {
        listener.accept(&mut pool, 8, &mut out).unwrap();
        match out.pop() {
            Some(Incoming::Face(face)) => Some(face),
            Some(other) => panic!("{other:?}"),
            None => None,
        }
    })
}

/// Has `openssl` make a certificate for 127.0.0.1 in `folder`; its paths.
pub(crate) fn certified(folder: &std::path::Path, name: &str) -> [std::path::PathBuf; 2] {
    let [chain, key] = ["pem", "key"].map(|kind| folder.join(format!("{name}.{kind}")));
    let made = std::process::Command::new("openssl")
        .args("req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3".split(' '))
        .args(["-subj", &format!("/CN={name}"), "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE"])
        .arg("-out")
        .arg(&chain)
        .arg("-keyout")
        .arg(&key)
        .output()
        .expect("openssl is needed");
    assert!(made.status.success(), "{made:?}");
    [chain, key]
}

#[test]
fn frames_of_all_lengths_cross_a_mem_pair_in_order() {
    let (mut a, mut b) = mem::pair(Scope::Local).unwrap();
    check(&mut a, &mut b);
    drop(b);
    let mut queue = TxQueue::new(100);
    queue.push(b"\x05\x00", None).unwrap();
    assert!(matches!(a.flush(&mut queue), Err(FaceError::Closed)));
    assert!(matches!(a.receive(&mut pool(), 1, &mut Vec::new()), Err(FaceError::Closed)));
}

#[test]
fn frames_of_all_lengths_cross_unix_streams_in_order() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("made/on/the/way/nfd.sock");
    let mut listener = UnixListener::bind(&path).unwrap();
    let mut a = unix::connect(&path).unwrap();
    let mut b = accept(&mut listener);
    assert_eq!((a.scope(), b.scope()), (Scope::Local, Scope::Local));
    assert_eq!(b.local_uri().to_string(), format!("unix://{}", path.display()));
    check(&mut a, &mut *b);
}

#[test]
fn frames_of_all_lengths_cross_tcp_in_order() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let mut listener = tcp::TcpListener::bind(address.parse().unwrap()).unwrap();
        let mut a = tcp::connect(listener.address()).unwrap();
        let mut b = accept(&mut listener);
        assert_eq!((a.scope(), b.scope()), (Scope::Local, Scope::Local));
        assert_eq!(a.remote_uri(), b.local_uri());
        check(&mut a, &mut *b);
    }
}

#[test]
fn a_tcp_connection_that_is_refused_says_so_when_it_becomes_writable() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let outcome = tcp::connect(free).and_then(|mut face| {
        let epoll = Epoll::new().unwrap();
        epoll.add(face.fd(), 0, Interest::ReadWrite).unwrap();
        epoll.wait(Some(DEADLINE), &mut Vec::new()).unwrap();
        let mut queue = TxQueue::new(100);
        face.flush(&mut queue)
    });
    assert!(matches!(outcome, Err(FaceError::Io { .. })), "{outcome:?}");
}

#[test]
fn a_stream_that_is_not_packets_is_closed_with_the_reason() {
    use std::io::Write;
    for bad in [&[0_u8, 1][..], &[6, 0xFD, 0x22, 0x61], &[6, 0xFD, 0, 5]] {
        let (mut a, b) = std::os::unix::net::UnixStream::pair().unwrap();
        let mut b = unix::from_stream(b).unwrap();
        a.write_all(&[5, 1, 7]).unwrap();
        a.write_all(bad).unwrap();
        let mut out = Vec::new();
        let error = b.receive(&mut pool(), 8, &mut out).unwrap_err();
        assert!(matches!(error, FaceError::Malformed(_)) && error.is_fatal());
        assert_eq!(out.len(), 1, "the packet before it counts");
    }
}

#[test]
fn a_packet_that_comes_octet_by_octet_is_one_frame() {
    use std::io::Write;
    let (mut a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    let mut b = unix::from_stream(b).unwrap();
    let (mut pool, mut out) = (pool(), Vec::new());
    let whole = frame(1, 300);
    for octet in &whole {
        assert!(out.is_empty());
        a.write_all(&[*octet]).unwrap();
        b.receive(&mut pool, 8, &mut out).unwrap();
    }
    assert_eq!(*out[0].bytes, *whole);
    a.write_all(&[6]).unwrap();
    drop(a);
    b.receive(&mut pool, 8, &mut out).unwrap();
    let error = b.receive(&mut pool, 8, &mut out).unwrap_err();
    assert!(matches!(error, FaceError::ClosedInPacket));
}

#[test]
fn a_stale_unix_socket_is_replaced_and_a_living_one_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nfd.sock");
    drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
    assert!(path.exists(), "a std listener leaves its file");
    let living = UnixListener::bind(&path).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::mode(&path.metadata().unwrap().permissions());
    assert_eq!(mode & 0o777, 0o666);
    assert!(matches!(UnixListener::bind(&path), Err(FaceError::InUse(_))));
    drop(living);
    assert!(!path.exists(), "a listener removes its file");
    std::fs::write(&path, "not a socket").unwrap();
    assert!(matches!(UnixListener::bind(&path), Err(FaceError::Address { .. })));
    assert!(path.exists());
}

#[test]
fn a_udp_peer_gets_a_face_on_the_listening_port_and_the_kernel_prefers_it() {
    for address in ["127.0.0.1:0", "[::1]:0"] {
        let options = UdpOptions::default();
        let mut listener = UdpListener::bind(address.parse().unwrap(), &options).unwrap();
        let mut a = UdpFace::connect(None, listener.address(), &options).unwrap();
        assert!(a.buffers().recv.got > 0);
        let mut queue = TxQueue::new(1 << 20);
        queue.push(b"\x05\x01a", None).unwrap();
        queue.push(b"\x05\x01b", None).unwrap();
        a.flush(&mut queue).unwrap();
        let (mut pool, mut out) = (pool(), Vec::new());
        let peer = until(|| {
            listener.accept(&mut pool, 8, &mut out).unwrap();
            if out.len() < 2 {
                return None;
            }
            let Incoming::Frame { peer, frame } = &out[1] else { panic!("{out:?}") };
            assert_eq!(&*frame.bytes, b"\x05\x01b");
            Some(*peer)
        });
        let mut b = listener.face_for(peer).unwrap();
        assert_eq!(a.remote_uri(), b.local_uri());
        assert_eq!(b.scope(), Scope::NonLocal, "UDP is never local");
        check(&mut a, &mut *b);
        assert!(matches!(listener.accept(&mut pool, 8, &mut out), Ok(Ready::Idle)));
        assert_eq!(out.len(), 2, "nothing more came to the listener");
    }
}

#[test]
fn octets_behind_the_element_of_a_datagram_are_a_counted_drop() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = UdpOptions::default();
    let mut face = UdpFace::connect(None, socket.local_addr().unwrap(), &options).unwrap();
    let text = face.local_uri().to_string();
    socket.connect(text.strip_prefix("udp4://").unwrap()).unwrap();
    for datagram in [&b"\x05\x01ab"[..], b"\x05\x05abc", b"", b"\x05\x01a"] {
        socket.send(datagram).unwrap();
    }
    let (mut pool, mut out) = (pool(), Vec::new());
    until(|| {
        face.receive(&mut pool, 8, &mut out).unwrap();
        (!out.is_empty()).then_some(())
    });
    assert_eq!(&*out[0].bytes, b"\x05\x01a");
    assert_eq!((face.counters().in_trailing, face.counters().in_malformed), (1, 2));
}

#[test]
fn a_udp_receive_buffer_that_fills_up_is_told_and_one_that_is_read_in_time_is_not() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = UdpOptions { recv_buffer: 32 << 10, ..UdpOptions::default() };
    let mut face = UdpFace::connect(None, socket.local_addr().unwrap(), &options).unwrap();
    let text = face.local_uri().to_string();
    socket.connect(text.strip_prefix("udp4://").unwrap()).unwrap();
    let datagram = [&b"\x06\xFD\x07\xCC"[..], &[0; 1996]].concat();
    let mut pool = pool();
    let mut round = |datagrams: usize| {
        for _ in 0..datagrams {
            socket.send(&datagram).unwrap();
        }
        let (mut out, mut pressed) = (Vec::new(), false);
        until(|| {
            face.receive(&mut pool, 64, &mut out).unwrap();
            pressed |= face.is_pressed();
            (out.len() == datagrams).then_some(())
        });
        pressed
    };
    assert!((0..30).all(|_| !round(1)));
    assert!((0..5).any(|_| round(8)));
}

#[test]
fn a_udp_peer_that_is_gone_is_an_error_that_is_not_fatal() {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").unwrap();
    let options = UdpOptions::default();
    let mut face = UdpFace::connect(None, socket.local_addr().unwrap(), &options).unwrap();
    drop(socket);
    let mut queue = TxQueue::new(100);
    let error = until(|| {
        queue.push(b"\x05\x00", None).unwrap();
        face.flush(&mut queue).err()
    });
    assert!(matches!(error, FaceError::Unreachable(_)) && !error.is_fatal());
    assert!(face.counters().out_refused > 0);
}

#[test]
fn a_udp_port_of_another_program_is_not_shared() {
    let other = UdpListener::bind("127.0.0.1:0".parse().unwrap(), &UdpOptions::default()).unwrap();
    assert!(UdpListener::bind(other.address(), &UdpOptions::default()).is_err());
}

#[test]
fn chunks_go_back_to_the_pool_when_their_packets_are_gone() {
    let (a, b) = std::os::unix::net::UnixStream::pair().unwrap();
    let (mut a, mut b) = (unix::from_stream(a).unwrap(), unix::from_stream(b).unwrap());
    let (mut pool, mut queue, mut out) = (pool(), TxQueue::new(1 << 20), Vec::new());
    let mut chunks = std::collections::HashSet::new();
    for i in 0..1000 {
        queue.push(&frame(i, 500), None).unwrap();
        a.flush(&mut queue).unwrap();
        b.receive(&mut pool, 8, &mut out).unwrap();
        assert_eq!(out.len(), 1);
        chunks.insert(out[0].bytes.as_ptr());
        out.clear();
    }
    assert!(chunks.len() <= 2, "{} chunks for packets that were gone at once", chunks.len());
}
