//! Applications of the tests: one end of a face, packets in and out.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use onym_crypto::{Freshness, Signer};
use onym_face::{Face, Flush};
use onym_frame::{Buf, BufPool, RxFrame, TxQueue};
use onym_node::config::Config;
use onym_node::{Node, NodeHandle};
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::lp::{LpHeader, LpPacket, NackReason};
use onym_wire::mgmt::{Block as _, ControlParameters, ControlResponse, command_name};
use onym_wire::name::Name;
use onym_wire::{Data, Interest};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

/// No condition takes longer, however loaded the machine is.
pub const DEADLINE: Duration = Duration::from_secs(20);

/// A configuration that listens nowhere.
pub fn quiet(shards: u16) -> Config {
    let sets = [
        "faces.unix.path=".to_owned(),
        "faces.udp.listen=".to_owned(),
        "faces.tcp.listen=".to_owned(),
        "faces.websocket.listen=".to_owned(),
        format!("shards={shards}"),
    ];
    Config::load(None, &sets).unwrap()
}

/// A quiet configuration with `sets` (`key=value`) over it.
pub fn with(shards: u16, sets: &[&str]) -> Config {
    let quiet = ["faces.unix.path=", "faces.udp.listen=", "faces.tcp.listen="];
    let mut all: Vec<String> = quiet.map(str::to_owned).to_vec();
    all.push("faces.websocket.listen=".into());
    all.push(format!("shards={shards}"));
    all.extend(sets.iter().map(|s| (*s).to_owned()));
    Config::load(None, &all).unwrap()
}

pub fn start(config: Config) -> NodeHandle {
    Node::start(config).unwrap()
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

static APPS: AtomicU32 = AtomicU32::new(1);

/// An application.
pub struct App {
    io: Box<dyn Face>,
    pool: BufPool,
    queue: TxQueue,
    frames: Vec<RxFrame>,
    nonce: u32,
}

impl App {
    pub fn new(io: impl Face + 'static) -> Self {
        Self {
            io: Box::new(io),
            pool: BufPool::new(onym_face::CHUNK_LEN, 16),
            queue: TxQueue::new(64 << 20),
            frames: Vec::new(),
            // No two applications of a test use the same nonces.
            nonce: APPS.fetch_add(1, Ordering::Relaxed) << 20,
        }
    }

    pub fn send(&mut self, wire: &[u8]) {
        self.queue.push(wire, None).unwrap();
        self.flush();
    }

    /// Sends what is queued. While the connection is being made it is tried again, for a test may
    /// wait at the other end next: nobody would send what waits here. A transport that is full is
    /// tried again by the next call.
    pub fn flush(&mut self) {
        let end = Instant::now() + DEADLINE;
        while self.io.flush(&mut self.queue).is_ok_and(|flush| flush == Flush::Blocked)
            && self.io.is_connecting()
        {
            assert!(Instant::now() < end, "the connection is not made before the deadline");
            std::thread::yield_now();
        }
    }

    pub fn interest(&mut self, text: &str) {
        self.interest_with(text, false);
    }

    pub fn interest_with(&mut self, text: &str, can_be_prefix: bool) {
        self.nonce += 1;
        let name = name(text);
        let mut wire = Vec::new();
        InterestBuilder {
            can_be_prefix,
            nonce: Some(self.nonce.to_be_bytes()),
            ..InterestBuilder::new(name.as_ref())
        }
        .write(&mut wire);
        self.send(&wire);
    }

    /// An Interest with a given nonce.
    pub fn interest_nonce(&mut self, text: &str, nonce: u32) {
        let name = name(text);
        let mut wire = Vec::new();
        let nonce = Some(nonce.to_be_bytes());
        InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }.write(&mut wire);
        self.send(&wire);
    }

    /// A Data with the token of its Interest.
    pub fn data_with_token(&mut self, text: &str, content: &[u8], token: &[u8]) {
        let packet = data(text, content);
        let header = LpHeader { pit_token: token, ..LpHeader::default() };
        self.send_lp(&header, &packet);
    }

    /// Answers the next Interest with a Nack NoRoute.
    pub fn nack_next(&mut self) {
        let frame = self.frame();
        let (packet, token) = unwrap(&frame);
        let nack = Some(NackReason::NO_ROUTE);
        self.send_lp(&LpHeader { pit_token: &token, nack, ..LpHeader::default() }, &packet);
    }

    /// A packet with link-layer fields.
    pub fn send_lp(&mut self, header: &LpHeader<'_>, packet: &[u8]) {
        let mut wire = Vec::new();
        header.write(&mut wire, packet.len());
        wire.extend_from_slice(packet);
        self.send(&wire);
    }

    /// The name in the next Nack.
    pub fn take_nack(&mut self) -> Name {
        let frame = self.frame();
        let lp = LpPacket::parse(&frame).expect("a Nack has a link header");
        assert!(lp.nack.is_some(), "{lp:?}");
        Interest::parse(lp.fragment.unwrap()).unwrap().name.to_name()
    }

    pub fn data(&mut self, text: &str, content: &[u8]) {
        self.send(&data(text, content));
    }

    /// The next frame, or none within `wait`; an error says why the face ended.
    pub fn try_frame(&mut self, wait: Duration) -> Result<Option<Buf>, String> {
        let end = Instant::now() + wait;
        loop {
            self.flush();
            if self.frames.is_empty() {
                let got = self.io.receive(&mut self.pool, 64, &mut self.frames);
                if let (Err(error), true) = (got, self.frames.is_empty()) {
                    return Err(error.to_string());
                }
            }
            if !self.frames.is_empty() {
                return Ok(Some(self.frames.remove(0).bytes));
            }
            if Instant::now() > end {
                return Ok(None);
            }
            std::thread::yield_now();
        }
    }

    pub fn frame(&mut self) -> Buf {
        self.try_frame(DEADLINE).unwrap().expect("a frame before the deadline")
    }

    /// The next Interest: its name, and the token to be returned.
    pub fn take_interest(&mut self) -> (Name, Vec<u8>) {
        let frame = self.frame();
        let (packet, token) = unwrap(&frame);
        (Interest::parse(&packet).unwrap().name.to_name(), token)
    }

    /// The next Data: name and content.
    pub fn take_data(&mut self) -> (Name, Vec<u8>) {
        let frame = self.frame();
        let (packet, _) = unwrap(&frame);
        let data = Data::parse(&packet).unwrap();
        (data.name.to_name(), data.content.to_vec())
    }

    /// The answer to a command, signed with a digest, under `prefix`.
    pub fn command(
        &mut self,
        prefix: &str,
        verb: &str,
        parameters: &ControlParameters,
    ) -> ControlResponse {
        self.send_command(prefix, verb, parameters);
        let (_, content) = self.take_data();
        ControlResponse::parse(&content).unwrap()
    }

    /// As [`App::command`], sent again while there is no answer.
    pub fn command_retried(&mut self, prefix: &str, verb: &str, parameters: &ControlParameters) {
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            self.send_command(prefix, verb, parameters);
            if let Some(frame) = self.try_frame(Duration::from_millis(500)).unwrap() {
                let (packet, _) = unwrap(&frame);
                let content = Data::parse(&packet).unwrap().content.to_vec();
                assert_eq!(ControlResponse::parse(&content).unwrap().code, 200);
                return;
            }
        }
        panic!("no answer before the deadline");
    }

    /// Sends a command, signed with a digest, under `prefix`.
    pub fn send_command(&mut self, prefix: &str, verb: &str, parameters: &ControlParameters) {
        let (module, verb) = verb.split_once('/').unwrap();
        let command = command_name(name(prefix).as_ref(), module, verb, parameters);
        self.nonce += 1;
        let freshness = Freshness {
            nonce: Some(u64::from(self.nonce).to_be_bytes()),
            time_ms: Some(unix_ms() + u64::from(self.nonce)),
            seq: None,
        };
        let mut wire = Vec::new();
        let nonce = Some(self.nonce.to_be_bytes());
        let interest = InterestBuilder { nonce, ..InterestBuilder::new(command.as_ref()) };
        Signer::digest().sign_interest(&interest, &[], freshness, &mut wire).unwrap();
        self.send(&wire);
    }

    /// Puts an Interest into the queue; [`App::flush`] sends it.
    pub fn queue_interest(&mut self, text: &str) {
        self.nonce += 1;
        let name = name(text);
        let mut wire = Vec::new();
        let nonce = Some(self.nonce.to_be_bytes());
        InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }.write(&mut wire);
        self.queue.push(&wire, None).unwrap();
    }

    /// Whether the node closes this face before the deadline.
    pub fn is_closed_by_node(&mut self) -> bool {
        let end = Instant::now() + DEADLINE;
        while Instant::now() < end {
            if self.try_frame(Duration::from_millis(10)).is_err() {
                return true;
            }
        }
        false
    }
}

/// Unix time, in milliseconds.
pub fn unix_ms() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    u64::try_from(since.as_millis()).unwrap()
}

/// An application on the Unix socket of the node.
pub fn unix_app(node: &NodeHandle) -> App {
    App::new(onym_face::unix::connect(node.bound().unix.as_ref().unwrap()).unwrap())
}

/// A peer over UDP.
pub fn udp_app(node: &NodeHandle) -> App {
    let options = onym_face::udp::UdpOptions::default();
    App::new(onym_face::udp::UdpFace::connect(None, node.bound().udp[0], &options).unwrap())
}

/// A peer over TCP.
pub fn tcp_app(node: &NodeHandle) -> App {
    App::new(onym_face::tcp::connect(node.bound().tcp[0]).unwrap())
}

/// A socket path in a directory of its own.
pub fn socket_dir() -> (tempfile::TempDir, String) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("n.sock");
    let setting = format!("faces.unix.path={}", path.display());
    (dir, setting)
}

/// An Interest with this nonce.
pub fn interest_wire(text: &str, nonce: u32) -> Vec<u8> {
    let (name, mut wire) = (name(text), Vec::new());
    let nonce = Some(nonce.to_be_bytes());
    InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }.write(&mut wire);
    wire
}

/// A Data with a digest signature.
pub fn data(text: &str, content: &[u8]) -> Vec<u8> {
    let name = name(text);
    let mut wire = Vec::new();
    let builder = DataBuilder { freshness_ms: 60_000, ..DataBuilder::new(name.as_ref(), content) };
    onym_crypto::signer::write_digest_data(&builder, &mut wire);
    wire
}

/// The packet of a frame and its PIT token.
pub fn unwrap(frame: &Buf) -> (Buf, Vec<u8>) {
    if frame[0] != 0x64 {
        return (frame.clone(), Vec::new());
    }
    let lp = LpPacket::parse(frame).unwrap();
    let packet = frame.slice_of(lp.fragment.unwrap());
    (packet, lp.pit_token.map(<[u8]>::to_vec).unwrap_or_default())
}

/// The answer to a command in a frame, if it is one.
pub fn response(frame: &Buf) -> Option<ControlResponse> {
    let (packet, _) = unwrap(frame);
    ControlResponse::parse(Data::parse(&packet).ok()?.content).ok()
}

/// Waits until `check` holds.
pub fn until(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !check() {
        assert!(Instant::now() < end, "not before the deadline: {what}");
        std::thread::yield_now();
    }
}
