//! Listeners of a process that has no descriptors left. A program of its own, because the limit is
//! the whole process's.

#![allow(clippy::unwrap_used)] // in the helpers of tests

use onym_face::{CHUNK_LEN, Incoming, Listener, UnixListener, tcp::TcpListener};
use onym_frame::BufPool;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::fs::File;
use std::io::Read;
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// Whether the other side closed the connection.
fn is_closed(mut stream: impl Read) -> bool {
    matches!(stream.read(&mut [0]), Ok(0) | Err(_))
}

fn wait_readable(listener: &dyn Listener, wanted: bool) {
    let start = Instant::now();
    loop {
        let mut fds = [PollFd::from_borrowed_fd(listener.fd(), PollFlags::IN)];
        let is_readable = poll(&mut fds, Some(&Timespec::default())).unwrap() > 0;
        if is_readable == wanted {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(10), "readable: {is_readable}");
    }
}

/// Takes every descriptor that there is while `client` waits to be accepted.
fn exhausted(listener: &mut dyn Listener) {
    let mut taken: Vec<File> = Vec::new();
    while let Ok(file) = File::open("/dev/null") {
        taken.push(file);
    }
    let (mut pool, mut out) = (BufPool::new(CHUNK_LEN, 1), Vec::new());
    wait_readable(listener, true);
    assert!(listener.accept(&mut pool, 8, &mut out).is_err());
    // It was turned away, and the listener is quiet.
    wait_readable(listener, false);
    assert!(out.is_empty());
    taken.clear();
}

fn accepted(listener: &mut dyn Listener) -> Incoming {
    let (mut pool, mut out) = (BufPool::new(CHUNK_LEN, 1), Vec::new());
    let start = Instant::now();
    while out.is_empty() {
        listener.accept(&mut pool, 8, &mut out).unwrap();
        assert!(start.elapsed() < Duration::from_secs(10), "nobody came");
    }
    out.remove(0)
}

#[test]
fn without_descriptors_connections_are_turned_away_and_later_ones_are_taken() {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: Some(64), maximum: limit.maximum }).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nfd.sock");
    let mut unix = UnixListener::bind(&path).unwrap();
    let client = UnixStream::connect(&path).unwrap();
    exhausted(&mut unix);
    assert!(is_closed(client));
    let _client = UnixStream::connect(&path).unwrap();
    assert!(matches!(accepted(&mut unix), Incoming::Face(_)));
    let mut tcp = TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let client = TcpStream::connect(tcp.address()).unwrap();
    exhausted(&mut tcp);
    assert!(is_closed(client));
    let _client = TcpStream::connect(tcp.address()).unwrap();
    assert!(matches!(accepted(&mut tcp), Incoming::Face(_)));
}
