//! The management protocol against a host without a node.

use crate::feed::Feed;
use onym_crypto::{Entropy, Signer};
use onym_node::mgmt::host::{FaceError, FaceView, Host};
use onym_node::mgmt::{Blank, FaceEvent, Localhop, Management, Options, Output, Policy};
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::{Block, ControlParameters, ControlResponse};
use onym_wire::name::{Component, Name};
use onym_wire::{Data, Interest, InterestBuilder, PACKET_LEN_MAX, types};

const NOW_MS: u64 = 1_700_000_000_000;
/// Steps of one input.
const STEPS_MAX: usize = 100;
/// Answers that one packet may cause: a dataset of a blank host has few segments.
const ANSWERS_MAX: usize = 64;

/// Nonces that are the same in every run.
struct Counting(u8);

impl Entropy for Counting {
    fn fill(&mut self, out: &mut [u8]) {
        self.0 = self.0.wrapping_add(1);
        out.fill(self.0);
    }
}

const MODULES: [&str; 6] = ["cs", "faces", "fib", "rib", "strategy-choice", "status"];
const VERBS: [&str; 20] = [
    "config",
    "erase",
    "create",
    "destroy",
    "update",
    "add-nexthop",
    "remove-nexthop",
    "register",
    "unregister",
    "announce",
    "set",
    "unset",
    "list",
    "info",
    "general",
    "query",
    "events",
    "channels",
    "node",
    "routable-prefixes",
];

/// Runs what `input` chooses: Interests and Data as they are, commands that are signed, time.
///
/// # Panics
/// When an answer cannot be read, or does not answer.
pub fn management(input: &[u8]) {
    let mut feed = Feed::new(input);
    let mut host = Blank { unix_ms: NOW_MS };
    let mut now = Tick::from_ms(1000);
    let policy =
        Policy { localhop: (feed.octet() & 1 == 0).then_some(Localhop::Any), ..Policy::default() };
    let options = Options { policy, routable_prefixes: vec![Name::new()], ..Options::default() };
    let mut management = Management::new(options, Box::new(Counting(0)));
    for _ in 0..STEPS_MAX {
        if feed.is_empty() {
            break;
        }
        let op = feed.octet();
        match op % 8 {
            0 => {
                let len = usize::from(feed.short()) % PACKET_LEN_MAX;
                management.interest(feed.octets(len), FaceId::FIRST, now, &mut host);
            }
            1 => {
                let len = usize::from(feed.short()) % PACKET_LEN_MAX;
                management.data(feed.octets(len), FaceId::FIRST, now, &mut host);
            }
            2 => {
                now = now.plus_ms(u64::from(feed.short()));
                host.unix_ms += 1;
                management.handle_timeout(now, &mut host);
            }
            3 => event(&mut management, &mut feed, &mut host, now),
            _ => {
                host.unix_ms += u64::from(op >> 7);
                let wire = command(&mut feed, host.unix_ms, op);
                if wire.len() <= PACKET_LEN_MAX {
                    management.interest(&wire, FaceId::FIRST, now, &mut host);
                }
            }
        }
        drain(&mut management);
    }
}

fn event(management: &mut Management, feed: &mut Feed<'_>, host: &mut Blank, now: Tick) {
    let face: Option<FaceView> = host.face(FaceId(u32::from(feed.octet())));
    let Some(face) = face else { return };
    let event = [FaceEvent::Created, FaceEvent::Destroyed, FaceEvent::Up, FaceEvent::Down];
    management.face_event(event[feed.below(4)], &face, now);
    let ticket = u64::from(feed.octet());
    let result =
        if ticket & 1 == 0 { Ok(face) } else { Err(FaceError::ConnectFailed("refused".into())) };
    management.face_created(ticket, result);
}

/// A command or dataset request whose parameters are octets of the input, signed by a digest.
fn command(feed: &mut Feed<'_>, unix_ms: u64, op: u8) -> Vec<u8> {
    let mut name: Name = ["/localhost/nfd", "/localhop/nfd", "/localhost/onym"]
        [usize::from(op >> 3) % 3]
        .parse()
        .expect("invariant: a valid name");
    name.append_generic(MODULES[feed.below(6)]).append_generic(VERBS[feed.below(20)]);
    let len = usize::from(feed.octet());
    let octets = feed.octets(len);
    let mut parameters = Vec::new();
    match feed.octet() % 4 {
        0 => parameters.extend_from_slice(octets),
        1 => onym_wire::tlv::put_tlv(&mut parameters, types::CONTROL_PARAMETERS, octets),
        _ => chosen(octets).write(&mut parameters),
    }
    let bits = feed.octet();
    if bits & 1 == 0 {
        name.push(Component::generic(&parameters));
    }
    let mut wire = Vec::new();
    let builder = InterestBuilder {
        can_be_prefix: bits & 2 != 0,
        must_be_fresh: bits & 4 != 0,
        nonce: Some([0; 4]),
        ..InterestBuilder::new(name.as_ref())
    };
    if bits & 8 == 0 {
        let signer = Signer::digest();
        let info = onym_wire::SignatureInfo {
            time: (bits & 16 == 0).then_some(unix_ms),
            nonce: (bits & 32 == 0).then_some(&[1; 8]),
            ..signer.info()
        };
        let body: &[u8] = if bits & 64 == 0 { &[] } else { octets };
        let digest = |bytes: &[u8]| onym_crypto::digest::sha256(&[bytes]);
        builder
            .write_signed(
                &mut wire,
                body,
                &info,
                |parts| Ok::<_, std::convert::Infallible>(onym_crypto::digest::sha256(parts)),
                digest,
            )
            .unwrap_or_else(|never| match never {});
    } else {
        builder.write(&mut wire);
    }
    wire
}

/// Parameters with the fields that the first two octets choose.
fn chosen(octets: &[u8]) -> ControlParameters {
    let mut feed = Feed::new(octets);
    let bits = feed.short();
    let mut number = |bit: u16| {
        let (small, large) = (feed.octet(), feed.octet());
        (bits & (1 << bit) != 0).then(|| u64::from(small) << (large % 64))
    };
    ControlParameters {
        face_id: number(0),
        origin: number(1),
        cost: number(2),
        capacity: number(3),
        count: number(4),
        flags: number(5),
        mask: number(6),
        expiration_period_ms: number(7),
        base_congestion_marking_interval_ns: number(8),
        default_congestion_threshold: number(9),
        mtu: number(10),
        name: (bits & (1 << 11) != 0).then(|| "/a/b".parse().expect("invariant: a valid name")),
        strategy: (bits & (1 << 12) != 0).then(|| {
            let mut name: Name =
                "/localhost/nfd/strategy".parse().expect("invariant: a valid name");
            name.append_generic(feed.octets(12)).append_version(5);
            name
        }),
        uri: (bits & (1 << 13) != 0).then(|| String::from_utf8_lossy(feed.octets(24)).into_owned()),
        local_uri: (bits & (1 << 14) != 0)
            .then(|| String::from_utf8_lossy(feed.octets(24)).into_owned()),
        ..ControlParameters::default()
    }
}

/// Every answer can be read, fits a packet, and has a code and a sentence when it is a response.
fn drain(management: &mut Management) {
    for _ in 0..ANSWERS_MAX {
        let Some(output) = management.poll_output() else { return };
        match output {
            Output::Interest { wire, .. } | Output::NoRoute { interest: wire } => {
                Interest::parse(&wire).expect("law: an Interest of or to management can be read");
            }
            Output::Data { wire, .. } => {
                assert!(wire.len() <= PACKET_LEN_MAX, "law: an answer fits a packet");
                let data = Data::parse(&wire).expect("law: an answer can be read");
                if let Ok(response) = ControlResponse::parse(data.content) {
                    assert!((100..600).contains(&response.code), "{response:?}");
                    assert!(!response.text.is_empty(), "law: an answer has a sentence");
                }
            }
            Output::Verified { .. } => panic!("law: only what was handed to be verified is told"),
        }
    }
    panic!("law: one packet causes few answers");
}
