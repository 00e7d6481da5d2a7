//! The laws that hold for the simulator's networks, over random graphs of services in memory:
//! each Interest ends, none runs in a circle, and each packet that a service received has one
//! verdict. A failure prints the seed; `Net::make(seed)` makes its graph again.

use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet, PacketKind};
use onym_services::config::KindConfig;
use onym_services::control::{RouteSpec, SetRequest};
use onym_services::verdict::Verdict;
use onym_services::{Function, Kind, Now, Port, Request, Side};
use onym_tables::{FaceId, HashKey, Rng, Tick};
use onym_wire::data::DataBuilder;
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;
use std::collections::BTreeMap;

/// Packets of one run; one that reaches it does not end by itself.
const PACKETS_MAX: u64 = 200_000;
/// Times that one Interest may be put on one link.
const CROSSINGS_MAX: u32 = 2;
const START_MS: u64 = 1_000_000;

/// Where a wire ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum End {
    Service(usize, FaceId),
    Consumer,
    Producer,
}

struct Net {
    rng: Rng,
    now: Tick,
    functions: Vec<Function>,
    wires: BTreeMap<(usize, FaceId), End>,
    waiting: Vec<(End, Packet)>,
    given: Vec<u64>,
    crossings: BTreeMap<(usize, FaceId, Vec<u8>), u32>,
    answered: BTreeMap<Vec<u8>, u32>,
    producer: (usize, FaceId),
    consumer: (usize, FaceId),
    next: u32,
    carried: u64,
    what: String,
}

impl Net {
    /// Two to seven nodes of a backward and a name router each, linked with circles; every name
    /// router sends to all its neighbours.
    fn make(seed: u64) -> Self {
        let mut net = Self {
            rng: Rng::new(seed),
            now: Tick::from_ms(START_MS),
            functions: Vec::new(),
            wires: BTreeMap::new(),
            waiting: Vec::new(),
            given: Vec::new(),
            crossings: BTreeMap::new(),
            answered: BTreeMap::new(),
            producer: (0, FaceId::INVALID),
            consumer: (0, FaceId::INVALID),
            next: 255,
            carried: 0,
            what: String::new(),
        };
        let nodes = 2 + net.below(6);
        for node in 0..nodes {
            for kind in [Kind::BackwardRouter, Kind::NameRouter] {
                let number = net.functions.len() as u64;
                net.functions.push(Function::new(kind, HashKey::new(seed, number), number));
                net.given.push(0);
            }
            // Each router stands for several upstreams: a loop at one of them is no refusal.
            net.make_silent(2 * node);
            net.link(2 * node, 2 * node + 1);
        }
        let mut links = Vec::new();
        for node in 1..nodes {
            links.push((node, net.below(node)));
        }
        for _ in 0..net.below(nodes + 1) {
            let (a, b) = (net.below(nodes), net.below(nodes));
            if a != b {
                links.push((a, b));
            }
        }
        for (a, b) in &links {
            for (from, to) in [(a, b), (b, a)] {
                let face = net.link(2 * from + 1, 2 * to);
                net.route(2 * from + 1, face);
            }
        }
        let (at, from) = (2 * net.below(nodes) + 1, 2 * net.below(nodes));
        net.producer = (at, net.face(at, Side::Producer, End::Producer));
        net.route(at, net.producer.1);
        net.consumer = (from, net.face(from, Side::Consumer, End::Consumer));
        net.what = format!("seed {seed}: {nodes} nodes, links {links:?}");
        net
    }

    fn below(&mut self, n: usize) -> usize {
        usize::try_from(self.rng.below(n as u64)).unwrap_or(0)
    }

    fn moment(&self) -> Now {
        Now { tick: self.now, unix_ms: self.now.0 / 1_000_000 }
    }

    /// A backward router that answers no loop by a Nack.
    fn make_silent(&mut self, at: usize) {
        let mut config = self.functions[at].config();
        let KindConfig::BackwardRouter(own) = &mut config.own else { panic!("{config:?}") };
        own.nack = false;
        let now = self.moment();
        let done = self.functions[at].configure(now, config, &mut Outbox::default());
        done.unwrap_or_else(|e| panic!("{e}"));
    }

    fn face(&mut self, at: usize, side: Side, end: End) -> FaceId {
        self.next += 1;
        let (id, now) = (FaceId(self.next), self.moment());
        self.wires.insert((at, id), end);
        let port = Port::new(id, format!("f{}", id.0), side);
        self.functions[at].face_added(now, port, &mut Outbox::default());
        id
    }

    /// A link upward; the face of `from`.
    fn link(&mut self, from: usize, to: usize) -> FaceId {
        let up = self.face(from, Side::Producer, End::Consumer);
        let down = self.face(to, Side::Consumer, End::Service(from, up));
        self.wires.insert((from, up), End::Service(to, down));
        up
    }

    fn route(&mut self, at: usize, face: FaceId) {
        let (prefix, face) = ("/data".to_owned(), format!("f{}", face.0));
        let add = vec![RouteSpec { prefix, face, via: None, cost: 0 }];
        let request = Request::Routes(SetRequest::Change { add, remove: Vec::new() });
        let now = self.moment();
        let done = self.functions[at].control(now, request, &mut Outbox::default());
        done.unwrap_or_else(|e| panic!("{e}"));
    }

    fn ask(&mut self, number: u64) {
        let mut name: Name = "/data".parse().unwrap_or_else(|e| panic!("{e}"));
        name.append_segment(number);
        let nonce = Some(self.rng.next_u32().to_be_bytes());
        let mut wire = Vec::new();
        InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }.write(&mut wire);
        let (at, face) = self.consumer;
        let packet = Packet { face, bytes: Buf::copy_from(&wire), lp: LpIn::default() };
        self.waiting.push((End::Service(at, face), packet));
    }

    /// Takes what a service sent to the ends of its wires.
    fn carry(&mut self, at: usize, out: &Outbox) {
        for item in &out.items {
            let Some((kind, sent)) = item.as_pull() else { continue };
            let end = self.wires[&(at, item.face)];
            let face = if let End::Service(_, face) = end { face } else { item.face };
            let lp = LpIn {
                pit_token: sent.pit_token.clone(),
                nack: sent.nack,
                next_hop_face: sent.incoming_face,
                prefix_announcement: sent.prefix_announcement.clone(),
                ..LpIn::default()
            };
            let bytes = Buf::copy_from(out.bytes(item));
            if kind == PacketKind::Interest {
                let crossed = (at, item.face, bytes.to_vec());
                let count = self.crossings.entry(crossed).or_default();
                *count += 1;
                assert!(*count <= CROSSINGS_MAX, "{}: a circle at {at}", self.what);
            }
            self.waiting.push((end, Packet { face, bytes, lp }));
        }
    }

    fn answer(&mut self, packet: &Packet) {
        let interest = Interest::parse(&packet.bytes).unwrap_or_else(|e| panic!("{e}"));
        let mut wire = Vec::new();
        DataBuilder::new(interest.name, b"content")
            .write(&mut wire, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]))
            .unwrap_or_else(|e| panic!("{e}"));
        let (at, face) = self.producer;
        let lp = LpIn { pit_token: packet.lp.pit_token.clone(), ..LpIn::default() };
        let packet = Packet { face, bytes: Buf::copy_from(&wire), lp };
        self.waiting.push((End::Service(at, face), packet));
    }

    /// Carries packets, any one of those under way next, until none is.
    fn settle(&mut self) {
        while !self.waiting.is_empty() {
            self.carried += 1;
            assert!(self.carried < PACKETS_MAX, "{}: it does not end", self.what);
            let chosen = self.below(self.waiting.len());
            let (end, packet) = self.waiting.swap_remove(chosen);
            match end {
                End::Consumer if packet.kind() == PacketKind::Data => {
                    *self.answered.entry(packet.bytes.to_vec()).or_default() += 1;
                }
                End::Consumer => {}
                End::Producer => self.answer(&packet),
                End::Service(at, _) => {
                    self.given[at] += 1;
                    let (now, mut out) = (self.moment(), Outbox::default());
                    self.functions[at].receive(now, packet, &mut out);
                    self.carry(at, &out);
                }
            }
        }
    }

    fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        for at in 0..self.functions.len() {
            let (now, mut out) = (self.moment(), Outbox::default());
            self.functions[at].handle_timeout(now, &mut out);
            self.carry(at, &out);
        }
        self.settle();
    }

    fn check(&mut self) {
        for at in 0..self.functions.len() {
            let function = &self.functions[at];
            let verdicts: u64 = Verdict::ALL.iter().map(|v| function.verdicts().sum(*v)).sum();
            assert_eq!(verdicts, self.given[at], "{}: verdicts of service {at}", self.what);
            let pending = function.drain_state().pending;
            assert_eq!(pending, 0, "{}: service {at} still waits", self.what);
        }
    }
}

#[test]
fn interests_end_without_circles_and_packets_have_one_verdict_on_every_graph_of_services() {
    for seed in 0..200 {
        let mut net = Net::make(seed);
        let count = 1 + net.below(10) as u64;
        for round in 0..3 {
            for number in 0..count {
                net.ask(round * count + number);
            }
            net.settle();
            net.wait(20);
        }
        net.wait(5000);
        net.check();
        let answered = net.answered.len() as u64;
        assert_eq!(answered, 3 * count, "{}: what was asked for came", net.what);
        assert!(net.answered.values().all(|n| *n == 1), "{}: once each", net.what);
    }
}
