use super::*;
use crate::alpn::{BROWSERS, PROTOCOLS};
use crate::tests::{accept, certified, frame, until};
use crate::{CHUNK_LEN, Face, Incoming, Listener as _};
use onym_frame::{BufPool, TxQueue};
use quinn::{Connection, Endpoint, RecvStream, SendStream};
use std::collections::HashSet;
use std::net::UdpSocket;
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tokio::runtime::{Builder, Runtime};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(10);

fn listener_with(gate: Gate) -> (TempDir, BridgedListener) {
    let folder = tempfile::tempdir().unwrap();
    let [chain, key] = certified(folder.path(), "node");
    let certificate = Certificate::load_quic(&chain, &key).unwrap();
    let listener = listen("127.0.0.1:0".parse().unwrap(), gate, certificate).unwrap();
    (folder, listener)
}

fn listener() -> (TempDir, BridgedListener) {
    listener_with(Gate::default())
}

/// Sends `frames` from `a` until all have come to `b`: a datagram may be lost where others are busy.
fn cross(a: &mut dyn Face, b: &mut dyn Face, frames: &[Vec<u8>]) {
    let (mut pool, mut queue) = (BufPool::new(CHUNK_LEN, 4), TxQueue::new(1 << 20));
    let mut arrived = HashSet::new();
    let (start, mut again) = (Instant::now(), Instant::now());
    while arrived.len() < frames.len() {
        assert!(start.elapsed() < PATIENCE, "{} of {} arrived", arrived.len(), frames.len());
        if queue.is_empty() && Instant::now() >= again {
            let missing = frames.iter().filter(|f| !arrived.contains(*f));
            missing.for_each(|f| queue.push(f, None).unwrap());
            again = Instant::now() + Duration::from_millis(500);
        }
        a.flush(&mut queue).unwrap();
        let mut out = Vec::new();
        b.receive(&mut pool, 64, &mut out).unwrap();
        arrived.extend(out.iter().map(|f| f.bytes.to_vec()));
        std::thread::yield_now();
    }
    assert!(arrived.iter().all(|f| frames.contains(f)), "nothing else came");
}

fn frames() -> Vec<Vec<u8>> {
    (0..60).map(|i| frame(i, 1 + (i as usize * 613) % (FRAME_MAX - 4))).collect()
}

/// Waits until a face is connected.
fn connected(face: &BridgedFace) {
    until(|| (!face.is_connecting()).then_some(()));
}

/// How a face that cannot go on says so.
fn end_of(face: &mut dyn Face) -> FaceError {
    let mut pool = BufPool::new(CHUNK_LEN, 4);
    until(|| face.receive(&mut pool, 8, &mut Vec::new()).err())
}

#[test]
fn frames_of_all_lengths_cross_between_nodes_and_the_end_is_told() {
    let (_folder, mut listener) = listener();
    let mut a = connect(listener.address(), None).unwrap();
    let mut b = accept(&mut listener);
    connected(&a);
    assert_eq!((a.scope(), b.scope()), (Scope::NonLocal, Scope::NonLocal));
    assert_eq!(a.remote_uri().to_string(), format!("quic://{}", listener.address()));
    assert_eq!(b.local_uri(), a.remote_uri());
    assert!(!a.transport().is_reliable());
    cross(&mut a, &mut *b, &frames());
    cross(&mut *b, &mut a, &frames());
    let mut queue = TxQueue::new(100_000);
    queue.push(&frame(1, 2000), None).unwrap();
    a.flush(&mut queue).unwrap();
    until(|| (a.counters().out_too_long == 1).then_some(()));
    drop(a);
    let error = end_of(&mut *b);
    assert!(matches!(error, FaceError::Closed), "{error}");
}

#[test]
fn a_node_that_shows_another_certificate_than_it_should_is_not_connected_to() {
    let (folder, mut listener) = listener();
    let [other, _] = certified(folder.path(), "other");
    let mut face = connect(listener.address(), Some(&other)).unwrap();
    let error = end_of(&mut face);
    assert!(error.to_string().contains("UnknownIssuer"), "{error}");
    let own = folder.path().join("node.pem");
    let mut face = connect(listener.address(), Some(&own)).unwrap();
    let mut met = accept(&mut listener);
    cross(&mut face, &mut *met, &frames());
    let error = connect(listener.address(), Some(&folder.path().join("absent"))).unwrap_err();
    assert!(error.to_string().contains("absent"), "{error}");
}

#[test]
fn the_certificate_in_the_files_now_is_shown() {
    let (folder, mut listener) = listener();
    let [chain, key] = ["pem", "key"].map(|kind| folder.path().join(format!("node.{kind}")));
    let [other, other_key] = certified(folder.path(), "other");
    // Half a change: what was before is shown on.
    std::fs::write(&key, "nothing of use").unwrap();
    let first = folder.path().join("first.pem");
    std::fs::copy(&chain, &first).unwrap();
    let _face = connect(listener.address(), Some(&first)).unwrap();
    accept(&mut listener);
    std::fs::copy(&other, &chain).unwrap();
    std::fs::copy(&other_key, &key).unwrap();
    let _face = connect(listener.address(), Some(&other)).unwrap();
    accept(&mut listener);
    let mut late = connect(listener.address(), Some(&first)).unwrap();
    assert!(matches!(end_of(&mut late), FaceError::Quic(_)));
}

/// Passes datagrams on between a client and `server`; `moved` has it do so by another address, as a
/// NAT that forgot does.
struct Nat {
    inside: UdpSocket,
    outside: UdpSocket,
    client: Option<SocketAddr>,
    server: SocketAddr,
}

impl Nat {
    fn before(server: SocketAddr) -> Self {
        let socket = || {
            let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
            socket.set_nonblocking(true).unwrap();
            socket
        };
        Self { inside: socket(), outside: socket(), client: None, server }
    }

    fn moved(&mut self) {
        self.outside = Self::before(self.server).outside;
    }

    fn pass(&mut self) {
        let mut octets = [0; 2048];
        while let Ok((len, from)) = self.inside.recv_from(&mut octets) {
            self.client = Some(from);
            self.outside.send_to(&octets[..len], self.server).unwrap();
        }
        while let Ok((len, from)) = self.outside.recv_from(&mut octets) {
            if let Some(client) = self.client.filter(|_| from == self.server) {
                self.inside.send_to(&octets[..len], client).unwrap();
            }
        }
    }
}

/// One frame from `a` to `b` by way of `nat`, sent again until it is there.
fn pass_one(nat: &mut Nat, a: &mut dyn Face, b: &mut dyn Face, number: u32) {
    let (mut pool, mut queue) = (BufPool::new(CHUNK_LEN, 4), TxQueue::new(1 << 20));
    let (wanted, mut again) = (frame(number, 300), Instant::now());
    until(|| {
        if Instant::now() >= again {
            queue.push(&wanted, None).unwrap();
            again = Instant::now() + Duration::from_millis(200);
        }
        a.flush(&mut queue).unwrap();
        nat.pass();
        let mut out = Vec::new();
        b.receive(&mut pool, 64, &mut out).unwrap();
        out.iter().any(|f| *f.bytes == *wanted).then_some(())
    });
}

#[test]
fn a_face_survives_that_its_peer_has_another_address_and_nobody_else_gets_it() {
    let (_folder, mut listener) = listener();
    let mut nat = Nat::before(listener.address());
    let at = nat.inside.local_addr().unwrap();
    let mut a = connect(at, None).unwrap();
    let (mut pool, mut out) = (BufPool::new(CHUNK_LEN, 4), Vec::new());
    let mut b = until(|| {
        nat.pass();
        listener.accept(&mut pool, 8, &mut out).unwrap();
        out.pop().map(|incoming| match incoming {
            Incoming::Face(face) => face,
            other => panic!("{other:?}"),
        })
    });
    pass_one(&mut nat, &mut a, &mut *b, 1);
    pass_one(&mut nat, &mut *b, &mut a, 2);
    nat.moved();
    pass_one(&mut nat, &mut a, &mut *b, 3);
    pass_one(&mut nat, &mut *b, &mut a, 4);
    // Who has no keys of the connection changes nothing, whatever it repeats of what it saw.
    let stranger = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut octets = [0; 2048];
    let mut queue = TxQueue::new(1 << 20);
    queue.push(&frame(5, 300), None).unwrap();
    a.flush(&mut queue).unwrap();
    let len = until(|| nat.inside.recv_from(&mut octets).ok()).0;
    nat.outside.send_to(&octets[..len], nat.server).unwrap();
    stranger.send_to(&octets[..len], nat.server).unwrap();
    octets[len - 1] ^= 1;
    stranger.send_to(&octets[..len], nat.server).unwrap();
    pass_one(&mut nat, &mut *b, &mut a, 6);
    pass_one(&mut nat, &mut a, &mut *b, 7);
    let mut more = Vec::new();
    listener.accept(&mut pool, 8, &mut more).unwrap();
    assert!(more.is_empty(), "the same face all the time: {more:?}");
}

/// A client that speaks as a browser does.
struct Browser {
    runtime: Runtime,
    _endpoint: Endpoint,
    connection: Connection,
}

impl Browser {
    fn connect(to: SocketAddr) -> Self {
        let runtime = Builder::new_current_thread().enable_all().build().unwrap();
        let (endpoint, connection) = runtime.block_on(async {
            let config = config::client(None, &[BROWSERS]).unwrap();
            let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
            let connecting = endpoint.connect_with(config, to, "127.0.0.1").unwrap();
            let connection = timeout(PATIENCE, connecting).await.unwrap().unwrap();
            (endpoint, connection)
        });
        Self { runtime, _endpoint: endpoint, connection }
    }

    /// Sends these octets as a request; the start of the answer's head, empty when there is none.
    fn request(&self, octets: &[u8]) -> (Vec<u8>, SendStream, RecvStream) {
        self.runtime.block_on(async {
            let (mut ask, mut answer) = self.connection.open_bi().await.unwrap();
            ask.write_all(octets).await.unwrap();
            let mut head = vec![0; 5];
            let got = timeout(2 * PATIENCE, answer.read(&mut head)).await.unwrap();
            head.truncate(got.ok().flatten().unwrap_or(0));
            (head, ask, answer)
        })
    }
}

/// A request for a session with these fields beside.
fn asked(authority: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let mut head = qpack::Encoder::new();
    head.connect(authority, "/ndn");
    fields.iter().for_each(|(name, value)| head.field(name, value));
    let head = head.end();
    let mut out = Vec::new();
    h3::put_varint(&mut out, 1);
    h3::put_varint(&mut out, head.len() as u64);
    out.extend(head);
    out
}

/// The answer's head, as far as the status.
fn status(head: &[u8]) -> u16 {
    match head {
        [1, _, 0, 0, 0xD9] => 200,
        [1, _, 0, 0, 0xFF] => 400,
        _ => 0,
    }
}

#[test]
fn a_page_of_this_machine_gets_a_session_and_its_datagrams_are_frames() {
    let (_folder, mut listener) = listener();
    let browser = Browser::connect(listener.address());
    // Something unknown comes first, as browsers like to send.
    let mut request = vec![0x40, 0x5F, 3, 1, 2, 3];
    let here = listener.address().to_string();
    request.extend(asked(&here, &[("origin", "http://localhost:8000"), ("x", "y")]));
    let (head, mut ask, _answer) = browser.request(&request);
    assert_eq!(status(&head), 200, "{head:02x?}");
    let mut face = accept(&mut listener);
    assert_eq!(face.scope(), Scope::NonLocal);
    for datagram in [
        &b"\x00\x05\x01a"[..],
        b"",
        b"\x00",
        b"\x00\x05\x09",
        b"\x00\x05\x01ab",
        // Another session, and a number that does not end.
        b"\x04\x05\x01b",
        b"\xC0\x00",
        // A longer form of the same number.
        b"\x40\x00\x05\x01c",
    ] {
        browser.connection.send_datagram(datagram.to_vec().into()).unwrap();
    }
    let (mut pool, mut out) = (BufPool::new(CHUNK_LEN, 4), Vec::new());
    until(|| {
        browser.runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
        face.receive(&mut pool, 8, &mut out).unwrap();
        (out.len() == 2).then_some(())
    });
    let came: Vec<_> = out.iter().map(|frame| frame.bytes.to_vec()).collect();
    assert_eq!(came, [b"\x05\x01a", b"\x05\x01c"]);
    assert_eq!((face.counters().in_trailing, face.counters().in_malformed), (1, 5));
    let mut queue = TxQueue::new(100);
    queue.push(b"\x06\x00", None).unwrap();
    face.flush(&mut queue).unwrap();
    let got = browser
        .runtime
        .block_on(async { timeout(PATIENCE, browser.connection.read_datagram()).await });
    assert_eq!(&*got.unwrap().unwrap(), b"\x00\x06\x00");
    // The end of the stream is the end of the session.
    ask.finish().unwrap();
    browser
        .runtime
        .block_on(async { timeout(PATIENCE, browser.connection.closed()).await })
        .unwrap();
    assert!(matches!(end_of(&mut *face), FaceError::Closed));
}

#[test]
fn a_server_that_speaks_to_browsers_only_is_asked_for_a_session() {
    let (_folder, mut listener) = listener();
    let to = listener.address();
    let browser = Browser::connect(to);
    let asked = browser.runtime.block_on(h3::ask(&browser.connection, to)).unwrap();
    assert_eq!(asked.number, 0);
    let mut face = accept(&mut listener);
    drop(asked);
    let _ =
        browser.runtime.block_on(async { timeout(PATIENCE, browser.connection.closed()).await });
    assert!(matches!(end_of(&mut *face), FaceError::Closed));
    // One that lets nobody in says so.
    let nobody = Gate { origins: Vec::new(), hosts: Vec::new(), local: false };
    let (_folder, listener) = listener_with(nobody);
    let browser = Browser::connect(listener.address());
    let elsewhere = "192.0.2.1:6367".parse().unwrap();
    let refused = browser.runtime.block_on(h3::ask(&browser.connection, elsewhere)).unwrap_err();
    assert!(refused.to_string().contains("status 403"), "{refused}");
}

#[test]
fn pages_of_elsewhere_and_what_is_no_request_for_a_session_get_none() {
    let (_folder, mut listener) = listener();
    let here = listener.address().to_string();
    let own = ("origin", "http://localhost:8000");
    let mut get = qpack::Encoder::new();
    get.field(":method", "GET");
    let get = get.end();
    let plain = [&[1, u8::try_from(get.len()).unwrap()][..], &get].concat();
    for request in [
        asked(&here, &[("origin", "https://evil.example")]),
        asked(&here, &[("origin", "null")]),
        asked(&here, &[own, ("origin", "https://evil.example")]),
        // DNS rebinding: the page's own name means 127.0.0.1 by now.
        asked("evil.example:6367", &[("origin", "http://evil.example:6367")]),
        asked("evil.example:6367", &[]),
        asked(&here, &[own, ("host", "evil.example")]),
        asked(&here, &[own, (":protocol", "websocket")]),
        plain,
    ] {
        let browser = Browser::connect(listener.address());
        assert_eq!(status(&browser.request(&request).0), 400, "{request:02x?}");
    }
    for garbage in [
        // Data before a head, settings on a request, a head that is too long or cannot be read.
        &b"\x00\x01a"[..],
        b"\x04\x00",
        b"\x01\x80\x00\x40\x01",
        b"\x21\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF",
        b"\x01\x03\x00\x00\x80",
        b"\x01\x01\x01",
    ] {
        let browser = Browser::connect(listener.address());
        assert_eq!(browser.request(garbage).0, b"", "{garbage:02x?}");
    }
    let mut more = Vec::new();
    listener.accept(&mut BufPool::new(CHUNK_LEN, 1), 8, &mut more).unwrap();
    assert!(more.is_empty(), "{more:?}");
}

#[test]
fn streams_that_a_browser_opens_beside_its_session_hold_no_more_than_their_windows() {
    let (_folder, mut listener) = listener();
    let browser = Browser::connect(listener.address());
    let here = listener.address().to_string();
    let (head, _ask, _answer) = browser.request(&asked(&here, &[]));
    assert_eq!(status(&head), 200);
    let _face = accept(&mut listener);
    let written = browser.runtime.block_on(async {
        let (mut written, mut open) = (0, Vec::new());
        while let Ok(Ok(stream)) =
            timeout(Duration::from_millis(300), browser.connection.open_uni()).await
        {
            open.push(stream);
        }
        for stream in &mut open {
            while let Ok(Ok(n)) =
                timeout(Duration::from_millis(50), stream.write(&[0; 16 << 10])).await
            {
                written += n;
            }
        }
        written
    });
    assert!((1..=160 << 10).contains(&written), "{written} octets were taken");
}

#[test]
fn handshakes_that_are_never_finished_do_not_lock_others_out() {
    let (_folder, mut listener) = listener();
    let to = listener.address();
    // First packets of handshakes, each from a port of its own that answers are not read from.
    let sink = UdpSocket::bind("127.0.0.1:0").unwrap();
    sink.set_read_timeout(Some(PATIENCE)).unwrap();
    let runtime = Builder::new_current_thread().enable_all().build().unwrap();
    let _inside = runtime.enter();
    let endpoint = Endpoint::client("127.0.0.1:0".parse().unwrap()).unwrap();
    let at = sink.local_addr().unwrap();
    let begin = |_| {
        let config = config::client(None, PROTOCOLS).unwrap();
        endpoint.connect_with(config, at, "127.0.0.1").unwrap()
    };
    let (mut begun, mut ports) = (Vec::new(), Vec::new());
    let mut octets = [0; 2048];
    for i in 0..300 {
        begun.push(begin(i));
        runtime.block_on(async { tokio::time::sleep(Duration::from_millis(1)).await });
        let len = sink.recv(&mut octets).unwrap();
        let port = UdpSocket::bind("127.0.0.1:0").unwrap();
        port.send_to(&octets[..len], to).unwrap();
        // What is no QUIC at all.
        port.send_to(&octets[len / 2..len], to).unwrap();
        port.send_to(b"\x05\x01a", to).unwrap();
        port.set_nonblocking(true).unwrap();
        ports.push(port);
    }
    let start = Instant::now();
    let mut face = connect(to, None).unwrap();
    let mut met = accept(&mut listener);
    assert!(start.elapsed() < Duration::from_secs(8), "as long as a handshake may take");
    cross(&mut face, &mut *met, &frames());
    // Most were asked to come again with what they were told (Retry): they have no place.
    let mut told = HashSet::new();
    until(|| {
        for (i, port) in ports.iter().enumerate() {
            if port.recv(&mut octets).is_ok() && octets[0] & 0xF0 == 0xF0 {
                told.insert(i);
            }
        }
        (told.len() > 200).then_some(())
    });
}
