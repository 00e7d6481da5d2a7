//! Applications of the tests: one end of a face, packets in and out.
#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::expect_used)]

use onym_face::Face;
use onym_node::config::Config;
use onym_node::{Node, NodeHandle};
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::lp::LpPacket;
use onym_wire::name::Name;
use onym_wire::{Buf, BufPool, Data, Interest, RxFrame, TxQueue};
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

pub fn start(config: Config) -> NodeHandle {
    Node::start(config).unwrap()
}

pub fn name(text: &str) -> Name {
    text.parse().unwrap()
}

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
            nonce: 1,
        }
    }

    pub fn send(&mut self, wire: &[u8]) {
        self.queue.push(wire, None).unwrap();
        self.flush();
    }

    pub fn flush(&mut self) {
        // A blocked transport is tried again by the next call.
        let _ = self.io.flush(&mut self.queue);
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

/// Waits until `check` holds.
pub fn until(what: &str, mut check: impl FnMut() -> bool) {
    let end = Instant::now() + DEADLINE;
    while !check() {
        assert!(Instant::now() < end, "not before the deadline: {what}");
        std::thread::yield_now();
    }
}
