//! A name router and a strategy forwarder apart from each other: over TCP, next hops and their costs
//! reach the strategy, and what a stranger says of them does not.

#![allow(clippy::unwrap_used)]

use onym_crypto::Signer;
use onym_crypto::signer::{Freshness, write_digest_data};
use onym_host::{Host, Kind, Options};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::lp::{LpHeader, LpPacket};
use onym_wire::mgmt::{ControlParameters, command_name};
use onym_wire::name::Name;
use onym_wire::tlv::Element;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::process::CommandExt as _;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// How long anything may take; generous, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(kind: Kind, listen: &[&str], config: Value) -> Host {
    let mut options = Options::new(kind);
    options.listen = listen.iter().map(|l| l.parse().unwrap()).collect();
    let Value::Object(config) = config else { panic!("{config}") };
    options.config = config;
    Host::start(options).unwrap()
}

fn call(host: &Host, method: &str, path: &str, body: &str) -> Value {
    let mut stream = TcpStream::connect(host.control()).unwrap();
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    let _ = stream.read_to_string(&mut text);
    serde_json::from_str(text.split_once("\r\n\r\n").unwrap().1).unwrap()
}

/// The connection of a program.
struct End(TcpStream);

impl End {
    fn to(host: &Host, listener: &str) -> Self {
        let uri = host.listener(listener).unwrap();
        let stream = TcpStream::connect(uri.strip_prefix("tcp4://").unwrap()).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(stream)
    }

    fn send(&mut self, frame: &[u8]) {
        self.0.write_all(frame).unwrap();
    }

    /// The next packet, out of its frame.
    fn next(&mut self) -> Vec<u8> {
        let mut frame = Vec::new();
        loop {
            let mut octet = [0];
            self.0.read_exact(&mut octet).unwrap();
            frame.push(octet[0]);
            if Element::parse(&frame).is_ok() {
                return LpPacket::parse(&frame).unwrap().fragment.unwrap().to_vec();
            }
        }
    }

    /// Answers the next Interest; its name.
    fn serve(&mut self) -> String {
        let asked = self.next();
        let name = Interest::parse(&asked).unwrap().name.to_name();
        let mut wire = Vec::new();
        write_digest_data(&DataBuilder::new(name.as_ref(), b"x"), &mut wire);
        self.send(&wire);
        name.to_string()
    }

    fn register(&mut self, prefix: &str, cost: u64) {
        let name = Some(prefix.parse().unwrap());
        let parameters = ControlParameters { name, cost: Some(cost), ..Default::default() };
        let root: Name = "/localhost/nfd".parse().unwrap();
        let command = command_name(root.as_ref(), "rib", "register", &parameters);
        let builder =
            InterestBuilder { nonce: Some([9; 4]), ..InterestBuilder::new(command.as_ref()) };
        let mut wire = Vec::new();
        Signer::digest().sign_interest(&builder, &[], Freshness::default(), &mut wire).unwrap();
        self.send(&wire);
        let answer = self.next();
        assert!(Data::parse(&answer).is_ok(), "{answer:02x?}");
    }

    fn got(&mut self) -> String {
        Data::parse(&self.next()).unwrap().name.to_string()
    }
}

fn interest(uri: &str, nonce: u32) -> Vec<u8> {
    let name: Name = uri.parse().unwrap();
    let mut wire = Vec::new();
    InterestBuilder { nonce: Some(nonce.to_be_bytes()), ..InterestBuilder::new(name.as_ref()) }
        .write(&mut wire);
    wire
}

/// A name router in front of a strategy forwarder.
fn chain() -> (Host, Host) {
    let sf = start(
        Kind::StrategyForwarder,
        &["in=tcp4://127.0.0.1:0,peer=service", "out=tcp4://127.0.0.1:0,side=producer"],
        json!({ "route_strategies": { "/": "best-route" } }),
    );
    let nr = start(
        Kind::NameRouter,
        &["in=tcp4://127.0.0.1:0"],
        json!({ "registration": "open", "strategy_forwarder": "up" }),
    );
    let face = json!({ "uri": sf.listener("in").unwrap(), "peer": "service", "wait_ms": 10000 });
    let made = call(&nr, "PUT", "/v1/faces/up", &face.to_string());
    assert_eq!((&made["face"]["state"], &made["face"]["peer"]), (&json!("up"), &json!("service")));
    (nr, sf)
}

#[test]
fn over_sockets_the_cheapest_next_hop_is_asked_and_the_next_one_when_it_is_gone() {
    let (nr, sf) = chain();
    let (mut near, mut far) = (End::to(&sf, "out"), End::to(&sf, "out"));
    far.register("/a", 10);
    near.register("/a", 1);
    let mut consumer = End::to(&nr, "in");
    consumer.send(&interest("/a/1", 1));
    assert_eq!(near.serve(), "/a/1");
    assert_eq!(consumer.got(), "/a/1");
    drop(near);
    let end = Instant::now() + PATIENCE;
    // The face to the name router's side, and that of the producer that is left.
    while call(&sf, "GET", "/v1/faces", "")["faces"].as_array().unwrap().len() > 2 {
        assert!(Instant::now() < end, "the face of a producer that is gone stays");
        std::thread::yield_now();
    }
    consumer.send(&interest("/a/2", 2));
    // Of the first one this producer heard nothing.
    assert_eq!(far.serve(), "/a/2");
    assert_eq!(consumer.got(), "/a/2");
}

#[test]
fn next_hops_and_origins_of_a_stranger_are_ignored() {
    let (nr, sf) = chain();
    let mut producer = End::to(&sf, "out");
    producer.register("/a", 1);
    let mut consumer = End::to(&nr, "in");
    let asked = interest("/a/1", 1);
    let mut forged = Vec::new();
    let hops: Vec<u8> = [&[1, 1][..], &[0xff; 16]].concat();
    LpHeader { service_origin: Some(77), service_next_hops: Some(&hops), ..LpHeader::default() }
        .write(&mut forged, asked.len());
    forged.extend_from_slice(&asked);
    consumer.send(&forged);
    assert_eq!(producer.serve(), "/a/1");
    assert_eq!(consumer.got(), "/a/1");
}

#[test]
fn a_program_of_another_user_is_no_service_of_the_chain() {
    if onym_sys::peer::own_uid() != 0 {
        eprintln!("skipped: only root can start a program as another user");
        return;
    }
    let sf = start(Kind::StrategyForwarder, &["in=tcp4://127.0.0.1:0,peer=service"], json!({}));
    let port = sf.listener("in").unwrap().rsplit(':').next().unwrap().to_owned();
    let peers = || {
        let faces = call(&sf, "GET", "/v1/faces", "")["faces"].clone();
        let mut peers: Vec<String> =
            faces.as_array().unwrap().iter().map(|f| f["peer"].as_str().unwrap().into()).collect();
        peers.sort();
        peers
    };
    let end = Instant::now() + PATIENCE;
    let own = End::to(&sf, "in");
    // Nobody's shell, connected until it is told to end.
    let line = format!("exec 3<>/dev/tcp/127.0.0.1/{port}; read");
    let mut stranger =
        Command::new("bash").args(["-c", &line]).uid(65_534).stdin(Stdio::piped()).spawn().unwrap();
    while peers() != ["any", "service"] {
        assert!(Instant::now() < end, "{:?}", peers());
        std::thread::yield_now();
    }
    drop(stranger.stdin.take());
    assert!(stranger.wait().is_ok());
    drop(own);
}
