//! A forwarder with faces and a short way to say packets.
#![allow(dead_code, missing_docs, unreachable_pub)]

use onym_forward::{Config, FaceInfo, Forwarder, Verdict};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet, PacketKind, Transmit};
use onym_tables::fib::NextHop;
use onym_tables::pit::Token;
use onym_tables::{FaceId, Tick};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::lp::NackReason;
use onym_wire::name::Name;
use onym_wire::types;

/// What left: face, kind, name, token, Nack reason.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Left {
    pub face: u32,
    pub kind: PacketKind,
    pub name: String,
    pub token: Vec<u8>,
    pub nack: Option<NackReason>,
    pub hop_limit: Option<u8>,
}

pub struct Bench {
    pub fw: Forwarder,
    pub now: Tick,
    pub out: Outbox,
    pub sent: u64,
}

pub fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

#[derive(Clone)]
pub struct I {
    pub name: String,
    pub can_be_prefix: bool,
    pub must_be_fresh: bool,
    pub nonce: Option<u32>,
    pub lifetime_ms: Option<u64>,
    pub hop_limit: Option<u8>,
    pub hint: Vec<String>,
    pub lp: LpIn,
}

impl I {
    pub fn new(name: &str, nonce: u32) -> Self {
        Self {
            name: name.into(),
            can_be_prefix: false,
            must_be_fresh: false,
            nonce: Some(nonce),
            lifetime_ms: None,
            hop_limit: None,
            hint: Vec::new(),
            lp: LpIn::default(),
        }
    }
    pub fn prefix(mut self) -> Self {
        self.can_be_prefix = true;
        self
    }
    pub fn fresh(mut self) -> Self {
        self.must_be_fresh = true;
        self
    }
    pub fn hop_limit(mut self, n: u8) -> Self {
        self.hop_limit = Some(n);
        self
    }
    pub fn lifetime(mut self, ms: u64) -> Self {
        self.lifetime_ms = Some(ms);
        self
    }
    pub fn hint(mut self, uri: &str) -> Self {
        self.hint.push(uri.into());
        self
    }
    pub fn token(mut self, token: &[u8]) -> Self {
        self.lp.pit_token = Token::try_from(token).expect("at most 32 octets");
        self
    }
    pub fn bytes(&self) -> Buf {
        let name = name(&self.name);
        let hints: Vec<Name> = self.hint.iter().map(|h| self::name(h)).collect();
        let mut builder = InterestBuilder::new(name.as_ref());
        builder.can_be_prefix = self.can_be_prefix;
        builder.must_be_fresh = self.must_be_fresh;
        builder.nonce = self.nonce.map(u32::to_be_bytes);
        builder.lifetime_ms = self.lifetime_ms;
        builder.hop_limit = self.hop_limit;
        let hints: Vec<_> = hints.iter().map(Name::as_ref).collect();
        builder.forwarding_hint = &hints;
        let mut out = Vec::new();
        builder.write(&mut out);
        Buf::copy_from(&out)
    }
}

pub fn data_bytes(uri: &str, freshness_ms: u64, content: &[u8]) -> Buf {
    let name = name(uri);
    let mut builder = DataBuilder::new(name.as_ref(), content);
    builder.freshness_ms = freshness_ms;
    let mut out = Vec::new();
    let info = onym_wire::signature::SignatureInfo {
        kind: types::SIGNATURE_DIGEST_SHA256,
        ..Default::default()
    };
    builder
        .write(&mut out, &info, |_| Ok::<_, std::convert::Infallible>([0u8; 32]))
        .expect("signs");
    Buf::copy_from(&out)
}

impl Bench {
    pub fn new() -> Self {
        Self::with(Config::default())
    }

    pub fn with(config: Config) -> Self {
        Self {
            fw: Forwarder::new(config),
            now: Tick::from_ms(1000),
            out: Outbox::default(),
            sent: 0,
        }
    }

    /// Faces numbered from 256, all to other nodes.
    pub fn faces(mut self, count: u32) -> Self {
        for id in 0..count {
            self.fw.face_add(FaceId(256 + id), FaceInfo::point_to_point());
        }
        self
    }

    pub fn local(mut self, id: u32) -> Self {
        self.fw.face_add(FaceId(id), FaceInfo::local());
        self
    }

    pub fn route(mut self, uri: &str, face: u32, cost: u64) -> Self {
        self.add_route(uri, face, cost);
        self
    }

    pub fn add_route(&mut self, uri: &str, face: u32, cost: u64) {
        let hop = NextHop { face: FaceId(face), cost };
        self.fw.fib_add(self.now, name(uri).as_ref(), hop, &mut self.out).expect("a route");
    }

    pub fn strategy(mut self, uri: &str, strategy: &str) -> Self {
        let instance = name(&format!("/localhost/nfd/strategy/{strategy}"));
        self.fw.strategy_set(name(uri).as_ref(), instance.as_ref()).expect("a strategy");
        self
    }

    pub fn receive(&mut self, face: u32, bytes: Buf, lp: LpIn) -> Verdict {
        self.fw.receive(self.now, Packet { face: FaceId(face), bytes, lp }, &mut self.out)
    }

    pub fn interest(&mut self, face: u32, interest: &I) -> Verdict {
        self.receive(face, interest.bytes(), interest.lp.clone())
    }

    pub fn data(&mut self, face: u32, uri: &str, freshness_ms: u64) -> Verdict {
        self.data_with(face, uri, freshness_ms, &[])
    }

    pub fn data_with(&mut self, face: u32, uri: &str, freshness_ms: u64, token: &[u8]) -> Verdict {
        let pit_token = Token::try_from(token).expect("at most 32 octets");
        let lp = LpIn { pit_token, ..LpIn::default() };
        self.receive(face, data_bytes(uri, freshness_ms, b"x"), lp)
    }

    pub fn nack(&mut self, face: u32, interest: &I, reason: u64) -> Verdict {
        let lp = LpIn { nack: Some(NackReason(reason)), ..LpIn::default() };
        self.receive(face, interest.bytes(), lp)
    }

    pub fn wait(&mut self, ms: u64) {
        self.now = self.now.plus_ms(ms);
        self.fw.handle_timeout(self.now, &mut self.out);
    }

    /// Both equations of the registry, and every copy accounted for.
    pub fn check(&mut self) {
        let waiting = self.out.items.len() as u64;
        let counters = self.fw.counters();
        assert!(counters.receptions_balance(), "first equation: {counters:?}");
        assert!(counters.copies_balance(), "second equation: {counters:?}");
        assert_eq!(counters.sent.iter().sum::<u64>(), self.sent + waiting);
    }

    /// What left since the last time.
    pub fn left(&mut self) -> Vec<Left> {
        let left: Vec<Left> = self.out.items.iter().map(|t| describe(&self.out, t)).collect();
        self.sent += left.len() as u64;
        self.out.clear();
        left
    }

    /// As `left`, in short: `face kind name`.
    pub fn short(&mut self) -> Vec<String> {
        self.left()
            .iter()
            .map(|l| match l.nack {
                Some(reason) => format!("{} nack{} {}", l.face, reason.0, l.name),
                None => format!("{} {} {}", l.face, format!("{:?}", l.kind).to_lowercase(), l.name),
            })
            .collect()
    }
}

fn describe(out: &Outbox, t: &Transmit) -> Left {
    let bytes = out.bytes(t);
    let (kind, lp) = t.as_pull().expect("a forwarder sends packets of the pull half");
    let (name, hop_limit) = match kind {
        PacketKind::Data => (Data::parse(bytes).expect("a Data").name.to_string(), None),
        _ => {
            let interest = Interest::parse(bytes).expect("an Interest");
            (interest.name.to_string(), interest.hop_limit)
        }
    };
    Left { face: t.face.0, kind, name, token: lp.pit_token.to_vec(), nack: lp.nack, hop_limit }
}
