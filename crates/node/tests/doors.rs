//! Who gets in by which door of the node.
#![allow(clippy::unwrap_used)]

mod support;

use onym_wire::mgmt::Scope;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};
use support::{DEADLINE, start, until, with};

/// A node that listens for WebSocket connections on loopback, with `sets` over it.
fn web_node(sets: &[&str]) -> (onym_node::NodeHandle, SocketAddr) {
    let mut all = vec!["faces.websocket.listen=127.0.0.1:0"];
    all.extend(sets);
    let node = start(with(1, &all));
    let at = node.bound().websocket[0];
    (node, at)
}

/// A handshake with these header fields; the status line and the connection.
fn shake(at: SocketAddr, fields: &str) -> (String, TcpStream) {
    let mut stream = TcpStream::connect(at).unwrap();
    stream.set_read_timeout(Some(DEADLINE)).unwrap();
    let request = format!(
        "GET / HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n{fields}\
         Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut line = String::new();
    let _ = BufReader::new(stream.try_clone().unwrap()).read_line(&mut line);
    (line, stream)
}

/// The scope of the one WebSocket face there is.
fn web_scope(node: &onym_node::NodeHandle) -> Scope {
    let mut scope = None;
    until("there is a WebSocket face", || {
        let faces = node.faces().unwrap();
        scope = faces.iter().find(|f| f.remote_uri.starts_with("wsclient://")).map(|f| f.scope);
        scope.is_some()
    });
    scope.unwrap()
}

#[test]
fn pages_of_elsewhere_get_no_face_and_rebound_names_neither() {
    let (node, at) = web_node(&[]);
    for fields in [
        format!("Host: {at}\r\nOrigin: https://evil.example\r\n"),
        format!("Host: {at}\r\nOrigin: null\r\n"),
        // DNS rebinding: the page's own name means 127.0.0.1 by now.
        format!("Host: evil.example:{0}\r\nOrigin: http://evil.example:{0}\r\n", at.port()),
        format!("Host: evil.example:{}\r\n", at.port()),
    ] {
        let (line, _open) = shake(at, &fields);
        assert!(line.contains(" 403 "), "{fields}: {line}");
    }
    assert!(node.faces().unwrap().is_empty());
    let (line, _open) = shake(at, &format!("Host: {at}\r\nOrigin: http://localhost:3000\r\n"));
    assert!(line.contains(" 101 "), "{line}");
}

#[test]
fn a_websocket_is_local_only_where_that_is_on() {
    let (node, at) = web_node(&[]);
    let (line, _open) = shake(at, &format!("Host: {at}\r\n"));
    assert!(line.contains(" 101 "), "{line}");
    assert_eq!(web_scope(&node), Scope::NonLocal);
    let (node, at) = web_node(&["faces.websocket.local=true"]);
    let (_, _open) = shake(at, &format!("Host: {at}\r\n"));
    assert_eq!(web_scope(&node), Scope::Local);
}

#[test]
fn a_proxy_on_this_machine_does_not_make_its_clients_local() {
    for fields in [
        "X-Forwarded-For: 203.0.113.7\r\n",
        "Forwarded: for=203.0.113.7\r\n",
        "Via: 1.1 proxy.example\r\n",
    ] {
        let (node, at) = web_node(&["faces.websocket.local=true"]);
        let (line, _open) = shake(at, &format!("Host: {at}\r\n{fields}"));
        assert!(line.contains(" 101 "), "{line}");
        assert_eq!(web_scope(&node), Scope::NonLocal, "{fields}");
    }
    // One that says nothing: its clients are told by the page or the name that they ask for.
    let (_node, at) = web_node(&["faces.websocket.local=true"]);
    for fields in [
        "Host: node.example\r\n".to_owned(),
        format!("Host: {at}\r\nOrigin: https://site.example\r\n"),
    ] {
        assert!(shake(at, &fields).0.contains(" 403 "), "{fields}");
    }
}

#[test]
fn connections_that_say_nothing_do_not_keep_honest_ones_out() {
    let (_node, at) = web_node(&[]);
    let silent: Vec<TcpStream> = (0..300).map(|_| TcpStream::connect(at).unwrap()).collect();
    let start = Instant::now();
    let (line, _open) = shake(at, &format!("Host: {at}\r\n"));
    assert!(line.contains(" 101 "), "{line}");
    assert!(start.elapsed() < Duration::from_secs(8), "{:?}", start.elapsed());
    drop(silent);
}
