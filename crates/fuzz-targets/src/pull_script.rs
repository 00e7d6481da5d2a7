//! Whole packet scripts against the core: as text (the conformance grammar), and as octets that
//! choose packets, faces, routes and time.

use crate::feed::Feed;
use onym_forward::{Config, FaceInfo};
use onym_frame::Buf;
use onym_link::LinkConfig;
use onym_sim::node::{Node, face_of};
use onym_tables::cs::{CsConfig, Policy};
use onym_tables::fib::NextHop;
use onym_tables::{FaceId, Tick};
use onym_testkit::core::Core;
use onym_testkit::run::{Outcome, run};
use onym_testkit::script::parse;
use onym_wire::lp::NackReason;
use onym_wire::lp::{LpHeader, LpPacket};
use onym_wire::mgmt::{LinkType, Scope};
use onym_wire::name::{Name, NameRef};
use onym_wire::{Data, DataBuilder, Interest, InterestBuilder, SignatureInfo, types};
use std::path::Path;

/// Longest text that is taken for a script; longer ones only take longer.
const TEXT_LEN_MAX: usize = 4096;
/// Most steps of a script, repetitions written out.
const STEPS_MAX: usize = 500;
/// Most virtual time of a script.
const WAIT_MAX_MS: u64 = 600_000;
const FACES: usize = 5;
const PIT_MAX: usize = 40;
const CS_MAX: usize = 8;

/// Runs `input`: a text that begins with `law:` as a packet script, anything else as choices.
///
/// # Panics
/// When an equation of the verdicts or another law of the core does not hold. That a script's
/// expectation is not met is no failure.
pub fn pull_script(input: &[u8]) {
    match std::str::from_utf8(input) {
        Ok(text) if text.starts_with("law:") => script(text),
        _ => choices(input),
    }
}

fn script(text: &str) {
    // Each repetition multiplies the work.
    let is_short = text.len() <= TEXT_LEN_MAX && text.matches("..").count() <= 8;
    let has_long_repetition = text.split('{').skip(1).any(|rest| {
        let range = rest.split('}').next().unwrap_or_default();
        range.len() > 8 && !range.starts_with("1..1")
    });
    if !is_short || has_long_repetition {
        return;
    }
    let Ok(script) = parse(Path::new("fuzz.pkt"), text) else { return };
    if script.steps.len() > STEPS_MAX || script.wait_ms() > WAIT_MAX_MS {
        return;
    }
    if let Outcome::Failed(what) = run(&Core::default(), &script) {
        assert!(!what.contains("at the end: "), "{what}");
    }
}

/// The core with the names and numbers that came up.
struct Bench {
    node: Node,
    now: Tick,
    frames_in: u64,
    /// The token of the last Interest that left on each face.
    tokens: [Vec<u8>; FACES],
}

const PREFIXES: [&str; 8] =
    ["/", "/a", "/a/b", "/a/b/c", "/localhost/x", "/localhop/x", "/region/n", "/a/%00%01"];
const STRATEGIES: [&str; 8] = [
    "best-route",
    "multicast",
    "asf",
    "access",
    "random",
    "self-learning",
    "best-route/v=5/retx-suppression-initial~1~max~10",
    "asf/v=5/probing-interval~1000",
];

fn name(feed: &mut Feed<'_>) -> Name {
    let mut name: Name = PREFIXES[feed.below(8)].parse().expect("invariant: a valid name");
    match feed.below(8) {
        0 => {}
        1 => drop(name.append_implicit_digest(&[feed.octet(); 32])),
        2 => drop(name.append_parameters_digest(&[feed.octet(); 32])),
        n => {
            for _ in 0..n - 2 {
                name.append_generic([b'a' + feed.octet() % 4]);
            }
        }
    }
    name
}

impl Bench {
    fn new(feed: &mut Feed<'_>) -> Self {
        let bits = feed.octet();
        let cs = CsConfig {
            packets_max: if bits & 1 == 0 { CS_MAX } else { 0 },
            policy: if bits & 2 == 0 { Policy::Lru } else { Policy::PriorityFifo },
            ..CsConfig::default()
        };
        let config = Config {
            pit_entries_max: PIT_MAX,
            fib_entries_max: 6,
            measurements_max: 6,
            dead_nonces_max: 16,
            originate_tokens: bits & 4 == 0,
            default_hop_limit: if bits & 8 == 0 { 0 } else { 3 },
            cs,
            ..Config::default()
        };
        let mut node = Node::new("fuzzed".to_owned(), config);
        node.change(|forwarder, _| {
            forwarder.set_regions(vec!["/region".parse().expect("invariant: a valid name")]);
        });
        for port in 0..FACES {
            let link = [LinkType::PointToPoint, LinkType::MultiAccess, LinkType::AdHoc];
            let info = FaceInfo {
                scope: if port == 0 { Scope::Local } else { Scope::NonLocal },
                link: link[port.saturating_sub(2)],
                local_fields: port == 0,
            };
            let reliability = bits & 16 != 0 && port == 1;
            let mtu = LinkConfig { reliability, ..LinkConfig::datagram(200) };
            let config = LinkConfig { local_fields: port == 0, ..LinkConfig::stream() };
            node.port_add(info, if port == 1 { mtu } else { config });
        }
        Self { node, now: Tick::from_ms(10_000), frames_in: 0, tokens: Default::default() }
    }

    fn receive(&mut self, port: usize, frame: &[u8]) {
        self.frames_in += 1;
        self.node.receive(self.now, port, Buf::copy_from(frame));
    }

    fn wrapped(&mut self, port: usize, header: &LpHeader<'_>, packet: &[u8]) {
        let mut frame = Vec::new();
        header.write(&mut frame, packet.len());
        frame.extend_from_slice(packet);
        self.receive(port, &frame);
    }

    /// Everything that leaves must be readable; tokens are kept for answers.
    fn flush(&mut self) {
        let (tokens, now) = (&mut self.tokens, self.now);
        self.node.flush(
            now,
            |_| 0,
            |sent| {
                let packet = LpPacket::parse(&sent.bytes).expect("law: what leaves can be read");
                let Some(bytes) = packet.fragment.filter(|_| !packet.is_fragmented()) else {
                    return;
                };
                if let Ok(interest) = Interest::parse(bytes) {
                    assert!(interest.nonce.is_some(), "law: an Interest leaves with a Nonce");
                    assert!(
                        interest.hop_limit != Some(0) || sent.port == 0 || packet.nack.is_some()
                    );
                    tokens[sent.port] = packet.pit_token.unwrap_or_default().to_vec();
                } else {
                    Data::parse(bytes).expect("law: what leaves is an Interest or Data");
                    assert!(packet.nack.is_none(), "law: only an Interest is refused");
                }
            },
        );
    }

    fn check(&self) {
        self.node.check().unwrap_or_else(|law| panic!("{law}"));
        let forwarder = self.node.forwarder();
        assert!(forwarder.pit_len() <= PIT_MAX, "law: the PIT keeps its bound");
        assert!(forwarder.cs().len() <= CS_MAX, "law: the content store keeps its bound");
        assert_eq!(forwarder.cs().is_empty(), forwarder.cs().octets() == 0);
        let frames: u64 =
            (0..FACES).map(|p| self.node.link_counters(p).verdicts.iter().sum::<u64>()).sum();
        assert_eq!(frames, self.frames_in, "law: each frame has one verdict");
    }

    fn step(&mut self, feed: &mut Feed<'_>) {
        let op = feed.octet();
        let port = usize::from(op >> 4) % FACES;
        match op % 16 {
            0 => {
                let len = usize::from(feed.octet());
                let frame = feed.octets(len);
                self.receive(port, frame);
            }
            1..=5 => self.interest(port, feed),
            6..=8 => self.data(port, feed),
            9 => self.nack(port, feed),
            10 | 11 => self.now = self.now.plus_ms(u64::from(feed.octet()).pow(2)),
            12 => self.route(port, feed),
            13 => {
                let (prefix, strategy) = (PREFIXES[feed.below(8)], STRATEGIES[feed.below(8)]);
                let prefix: Name = prefix.parse().expect("invariant: a valid name");
                let instance = format!("/localhost/nfd/strategy/{strategy}");
                let instance: Name = instance.parse().expect("invariant: a valid name");
                self.node.change(|forwarder, _| {
                    if op & 128 == 0 {
                        let _ = forwarder.strategy_set(prefix.as_ref(), instance.as_ref());
                    } else {
                        forwarder.strategy_unset(prefix.as_ref());
                    }
                });
            }
            14 => self.face(port, feed),
            _ => self.store(feed),
        }
    }

    fn interest(&mut self, port: usize, feed: &mut Feed<'_>) {
        let (name, bits, nonce) = (name(feed), feed.octet(), feed.octet());
        let hint: Vec<Name> = (0..usize::from(bits >> 6)).map(|_| self::name(feed)).collect();
        let hint: Vec<NameRef<'_>> = hint.iter().map(Name::as_ref).collect();
        let builder = InterestBuilder {
            name: name.as_ref(),
            can_be_prefix: bits & 1 != 0,
            must_be_fresh: bits & 2 != 0,
            forwarding_hint: &hint,
            nonce: (nonce != 0).then_some([0, 0, 0, nonce % 8]),
            lifetime_ms: (bits & 4 != 0).then(|| u64::from(feed.octet()) * 40),
            hop_limit: (bits & 8 != 0).then(|| feed.octet() % 3),
        };
        let mut wire = Vec::new();
        if bits & 16 != 0 {
            let digest = |bytes: &[u8]| onym_crypto::digest::sha256(&[bytes]);
            builder.write_with_parameters(&mut wire, &[nonce], digest);
        } else {
            builder.write(&mut wire);
        }
        let token = [nonce; 8];
        let mut header = LpHeader::default();
        if bits & 32 != 0 {
            let more = feed.octet();
            header.pit_token = &token[..usize::from(more % 9)];
            header.non_discovery = more & 32 != 0;
            let face = FaceId::FIRST.0 + u32::from(nonce % 6);
            header.next_hop_face = (more & 64 != 0).then_some(face.into());
            header.congestion_mark = u64::from(more >> 7);
        }
        self.wrapped(port, &header, &wire);
    }

    fn data(&mut self, port: usize, feed: &mut Feed<'_>) {
        let (name, bits) = (name(feed), feed.octet());
        let content = vec![bits; usize::from(feed.octet()) * 20];
        let builder = DataBuilder {
            freshness_ms: u64::from(bits & 3) * 1000,
            ..DataBuilder::new(name.as_ref(), &content)
        };
        let mut wire = Vec::new();
        builder
            .write(&mut wire, &SignatureInfo::of_kind(types::SIGNATURE_NULL), |_| {
                Ok::<_, std::convert::Infallible>([])
            })
            .unwrap_or_else(|never| match never {});
        let token = if bits & 4 == 0 { self.tokens[port].clone() } else { vec![bits; 8] };
        let header = LpHeader {
            pit_token: if bits & 8 == 0 { &token } else { &[] },
            no_cache: bits & 16 != 0,
            congestion_mark: u64::from(bits >> 7),
            ..LpHeader::default()
        };
        self.wrapped(port, &header, &wire);
    }

    fn nack(&mut self, port: usize, feed: &mut Feed<'_>) {
        let (name, bits) = (name(feed), feed.octet());
        let mut wire = Vec::new();
        InterestBuilder {
            can_be_prefix: bits & 1 != 0,
            must_be_fresh: bits & 2 != 0,
            nonce: Some([0, 0, 0, (bits >> 2) % 8]),
            ..InterestBuilder::new(name.as_ref())
        }
        .write(&mut wire);
        let reason = NackReason([0, 50, 100, 150][usize::from(bits >> 6)]);
        self.wrapped(port, &LpHeader { nack: Some(reason), ..LpHeader::default() }, &wire);
    }

    fn route(&mut self, port: usize, feed: &mut Feed<'_>) {
        let prefix: Name = PREFIXES[feed.below(8)].parse().expect("invariant: a valid name");
        let (cost, now) = (feed.octet(), self.now);
        let hop = NextHop { face: face_of(port), cost: u64::from(cost & 127) };
        self.node.change(|forwarder, out| {
            if cost & 128 == 0 {
                let _ = forwarder.fib_add(now, prefix.as_ref(), hop, out);
            } else {
                forwarder.fib_remove(prefix.as_ref(), hop.face);
            }
        });
    }

    /// A face goes and comes again under the same number.
    fn face(&mut self, port: usize, feed: &mut Feed<'_>) {
        let (now, is_back) = (self.now, feed.octet() & 1 == 0);
        let link = if port == 3 { LinkType::MultiAccess } else { LinkType::PointToPoint };
        self.node.change(|forwarder, _| {
            forwarder.face_remove(now, face_of(port));
            if is_back {
                let scope = if port == 0 { Scope::Local } else { Scope::NonLocal };
                forwarder.face_add(face_of(port), FaceInfo { scope, link, local_fields: false });
            }
        });
    }

    fn store(&mut self, feed: &mut Feed<'_>) {
        let (bits, prefix, now) = (feed.octet(), name(feed), self.now);
        self.node.change(|forwarder, _| {
            if bits & 1 == 0 {
                forwarder.cs_erase(prefix.as_ref(), usize::from(bits >> 4));
                return;
            }
            let config = CsConfig {
                packets_max: usize::from(bits >> 5),
                admit: bits & 2 != 0,
                serve: bits & 4 != 0,
                policy: if bits & 8 == 0 { Policy::Lru } else { Policy::PriorityFifo },
                bytes_max: if bits & 16 == 0 { 3000 } else { 1 << 20 },
            };
            while forwarder.cs_configure(now, config) {}
        });
    }
}

fn choices(input: &[u8]) {
    let mut feed = Feed::new(input);
    let mut bench = Bench::new(&mut feed);
    for _ in 0..STEPS_MAX {
        if feed.is_empty() {
            break;
        }
        bench.step(&mut feed);
        if bench.node.poll_timeout() <= bench.now {
            bench.node.handle_timeout(bench.now);
        }
        bench.flush();
        bench.check();
    }
    settle(&mut bench);
}

/// Without further packets every pending Interest ends.
fn settle(bench: &mut Bench) {
    for _ in 0..20_000 {
        if bench.node.forwarder().pit_len() == 0 {
            break;
        }
        let due = bench.node.poll_timeout();
        assert!(due != Tick::NEVER, "law: a pending Interest has a timer");
        bench.now = bench.now.max(due);
        bench.node.handle_timeout(bench.now);
        bench.flush();
    }
    bench.check();
    assert_eq!(bench.node.forwarder().pit_len(), 0, "law: every pending Interest ends");
}
