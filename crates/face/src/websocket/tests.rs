use super::*;
use crate::tests::{accept, certified, check, until};
use crate::{CHUNK_LEN, Face, Listener as _};
use futures_util::{SinkExt, StreamExt};
use onym_frame::{BufPool, TxQueue};
use tokio_tungstenite::tungstenite::Message;

/// A gate as by default, whose applications on this machine are local.
fn local() -> Gate {
    Gate { local: true, ..Gate::default() }
}

#[test]
fn frames_of_all_lengths_cross_a_websocket_in_order() {
    let mut listener = listen("127.0.0.1:0".parse().unwrap(), local(), None).unwrap();
    let mut a = connect(listener.address(), "/any/path").unwrap();
    let mut b = accept(&mut listener);
    assert_eq!((a.scope(), b.scope()), (Scope::Local, Scope::Local));
    assert_eq!(a.remote_uri().scheme(), "ws");
    assert_eq!(b.remote_uri().scheme(), "wsclient");
    check(&mut a, &mut *b);
    let mut pool = BufPool::new(CHUNK_LEN, 4);
    drop(a);
    let error = until(|| b.receive(&mut pool, 8, &mut Vec::new()).err());
    assert!(matches!(error, FaceError::Closed), "{error}");
}

#[test]
fn a_refused_connection_is_told_by_the_face() {
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut face = connect(free, "/").unwrap();
    let mut pool = BufPool::new(CHUNK_LEN, 4);
    let error = until(|| face.receive(&mut pool, 8, &mut Vec::new()).err());
    assert!(matches!(error, FaceError::WebSocket(_)), "{error}");
}

/// A client that is not ours: it speaks the protocol by hand.
fn foreign_client(address: SocketAddr, messages: Vec<Message>) -> std::thread::JoinHandle<Message> {
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let stream = tokio::net::TcpStream::connect(address).await.unwrap();
            let url = format!("ws://{address}/");
            let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
            for message in messages {
                socket.send(message).await.unwrap();
            }
            socket.next().await.unwrap().unwrap()
        })
    })
}

#[test]
fn a_message_that_is_not_one_element_is_a_counted_drop() {
    let mut listener = listen("127.0.0.1:0".parse().unwrap(), local(), None).unwrap();
    let binary = |bytes: &'static [u8]| Message::Binary(bytes.into());
    let messages =
        vec![binary(b"\x05\x01ab"), binary(b"\x05\x09"), "text".into(), binary(b"\x05\x01a")];
    let client = foreign_client(listener.address(), messages);
    let mut face = accept(&mut listener);
    let (mut pool, mut out) = (BufPool::new(CHUNK_LEN, 4), Vec::new());
    until(|| {
        face.receive(&mut pool, 8, &mut out).unwrap();
        (!out.is_empty()).then_some(())
    });
    assert_eq!(&*out[0].bytes, b"\x05\x01a");
    assert_eq!((face.counters().in_trailing, face.counters().in_malformed), (1, 2));
    let mut queue = TxQueue::new(100);
    queue.push(b"\x06\x00", None).unwrap();
    face.flush(&mut queue).unwrap();
    assert_eq!(client.join().unwrap(), binary(b"\x06\x00"));
}

#[test]
fn a_peer_that_does_not_answer_pings_is_given_up() {
    let every = Duration::from_millis(50);
    let mut listener = listen_with("127.0.0.1:0".parse().unwrap(), local(), None, every).unwrap();
    // A peer that makes the handshake and then never reads.
    let mut stream = std::net::TcpStream::connect(listener.address()).unwrap();
    let request = "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
        Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut face = accept(&mut listener);
    let mut pool = BufPool::new(CHUNK_LEN, 4);
    let error = until(|| face.receive(&mut pool, 8, &mut Vec::new()).err());
    assert!(matches!(error, FaceError::Silent(_)), "{error}");
}

/// What the listener at `address` says to a handshake with these header fields: the status line.
fn status(address: SocketAddr, fields: &str) -> String {
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{fields}\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    std::io::Write::write_all(&mut stream, request.as_bytes()).unwrap();
    let mut line = String::new();
    std::io::BufRead::read_line(&mut std::io::BufReader::new(stream), &mut line).unwrap();
    line
}

#[test]
fn a_page_that_is_not_allowed_is_told_403_and_gets_no_face() {
    let mut listener = listen("127.0.0.1:0".parse().unwrap(), local(), None).unwrap();
    let at = listener.address();
    let foreign = format!("Host: {at}\r\nOrigin: https://evil.example\r\n");
    assert!(status(at, &foreign).contains("403"), "{}", status(at, &foreign));
    let rebound = "Host: evil.example:9696\r\nOrigin: http://evil.example:9696\r\n";
    assert!(status(at, rebound).contains("403"));
    let own = format!("Host: {at}\r\nOrigin: http://localhost:8000\r\n");
    assert!(status(at, &own).contains("101"));
    // The only face is that of the page of this machine.
    assert_eq!(accept(&mut listener).scope(), Scope::Local);
    let mut more = Vec::new();
    listener.accept(&mut BufPool::new(CHUNK_LEN, 1), 8, &mut more).unwrap();
    assert!(more.is_empty(), "{more:?}");
}

#[test]
fn connections_that_say_nothing_do_not_lock_others_out() {
    let mut listener = listen("127.0.0.1:0".parse().unwrap(), local(), None).unwrap();
    let mut silent: Vec<std::net::TcpStream> =
        (0..400).map(|_| std::net::TcpStream::connect(listener.address()).unwrap()).collect();
    let start = std::time::Instant::now();
    let own = format!("Host: {}\r\n", listener.address());
    assert!(status(listener.address(), &own).contains("101"));
    accept(&mut listener);
    assert!(start.elapsed() < Duration::from_secs(8), "as long as a handshake may take");
    // The oldest were closed to make room.
    let oldest = &mut silent[0];
    oldest.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    assert!(!matches!(std::io::Read::read(oldest, &mut [0; 1]), Ok(1..)));
}

/// Whether a client that trusts `authority` and no other gets through with a packet.
fn reaches(address: SocketAddr, authority: &std::path::Path) -> bool {
    use tokio_rustls::rustls::pki_types::pem::PemObject as _;
    use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
    use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto::aws_lc_rs::default_provider};
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(authority).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        .with_no_client_auth();
    let connector = tokio_rustls::TlsConnector::from(Arc::new(config));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let name = ServerName::try_from("127.0.0.1").unwrap();
        let Ok(stream) = connector.connect(name, stream).await else { return false };
        let url = format!("wss://{address}/");
        let (mut socket, _) = tokio_tungstenite::client_async(url, stream).await.unwrap();
        socket.send(Message::Binary(b"\x05\x01a"[..].into())).await.unwrap();
        true
    })
}

#[test]
fn browsers_are_met_by_tls_with_the_certificate_that_is_in_the_files_now() {
    let folder = tempfile::tempdir().unwrap();
    let ([chain, key], other) = (certified(folder.path(), "one"), certified(folder.path(), "two"));
    let first = folder.path().join("first.pem");
    std::fs::copy(&chain, &first).unwrap();
    let certificate = Certificate::load(&chain, &key).unwrap();
    let at = "127.0.0.1:0".parse().unwrap();
    let mut listener = listen(at, local(), Some(certificate)).unwrap();
    assert!(reaches(listener.address(), &first));
    let mut face = accept(&mut listener);
    let (mut pool, mut out) = (BufPool::new(CHUNK_LEN, 4), Vec::new());
    until(|| {
        face.receive(&mut pool, 8, &mut out).ok()?;
        (!out.is_empty()).then_some(())
    });
    assert_eq!(&*out[0].bytes, b"\x05\x01a");
    // Half a change: what was before is shown on.
    std::fs::write(&key, "nothing of use").unwrap();
    assert!(reaches(listener.address(), &first));
    std::fs::copy(&other[0], &chain).unwrap();
    std::fs::copy(&other[1], &key).unwrap();
    assert!(!reaches(listener.address(), &first));
    assert!(reaches(listener.address(), &other[0]));
    // Who does not speak TLS is not heard, and those who say nothing lock nobody out.
    let mut plain = std::net::TcpStream::connect(listener.address()).unwrap();
    std::io::Write::write_all(&mut plain, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n").unwrap();
    let mut said = Vec::new();
    let _ = std::io::Read::read_to_end(&mut plain, &mut said);
    assert!(!said.windows(4).any(|octets| octets == b"HTTP"), "{said:?}");
    let connect = |_| std::net::TcpStream::connect(listener.address()).unwrap();
    let silent: Vec<_> = (0..400).map(connect).collect();
    let start = std::time::Instant::now();
    assert!(reaches(listener.address(), &other[0]));
    assert!(start.elapsed() < Duration::from_secs(8), "as long as a handshake may take");
    drop(silent);
    let error = Certificate::load(&folder.path().join("absent"), &key).unwrap_err();
    assert!(error.to_string().contains("absent"), "{error}");
}
