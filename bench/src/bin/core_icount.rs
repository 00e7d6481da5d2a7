//! Work for callgrind: what happens within the functions whose names start with `counted` is
//! counted by `cargo xtask icount`, case by case of bench/budget.toml.

use onym_forward::{Config, FaceInfo, Forwarder};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet};
use onym_tables::cs::CsConfig;
use onym_tables::fib::{Fib, NextHop};
use onym_tables::pit::Token;
use onym_tables::{FaceId, HashKey, NameHashes, Tick};
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;
use std::hint::black_box;

/// Packets that the content store holds: every exchange that is counted evicts one.
const CS_PACKETS: usize = 512;
/// Exchanges before and while instructions are counted.
const WARM_UP: u32 = 2000;
const COUNTED: u32 = 1000;
/// Routes of the case `fib_lookup`.
const ROUTES: u32 = 1_000_000;

struct Exchange {
    interest: Buf,
    data: Buf,
}

fn exchange(n: u32, payload: usize) -> Exchange {
    let mut name = Name::new();
    for part in ["edu", "university", "lab", "project", "dataset"] {
        name.append_generic(part);
    }
    name.append_generic("measurements.bin").append_version(1_700_000_000_000);
    name.append_segment(u64::from(n));
    let mut interest = Vec::new();
    let nonce = Some(n.wrapping_mul(0x9e37_79b9).to_be_bytes());
    InterestBuilder { nonce, ..InterestBuilder::new(name.as_ref()) }.write(&mut interest);
    let mut data = Vec::new();
    let content = vec![0x5a; payload];
    let signed = DataBuilder { freshness_ms: 10_000, ..DataBuilder::new(name.as_ref(), &content) }
        .write(&mut data, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]));
    assert!(signed.is_ok());
    Exchange { interest: Buf::copy_from(&interest), data: Buf::copy_from(&data) }
}

struct Case {
    fw: Forwarder,
    out: Outbox,
    now: Tick,
}

impl Case {
    fn new(cs_packets: usize) -> Self {
        let cs = CsConfig { packets_max: cs_packets, ..CsConfig::default() };
        let mut fw = Forwarder::new(Config { cs, ..Config::default() });
        let mut out = Outbox::default();
        fw.face_add(FaceId(256), FaceInfo::local());
        fw.face_add(FaceId(257), FaceInfo::local());
        let prefix: Name = "/edu/university".parse().expect("invariant: a name");
        let hop = NextHop { face: FaceId(257), cost: 0 };
        fw.fib_add(Tick(0), prefix.as_ref(), hop, &mut out).expect("invariant: room for a route");
        Self { fw, out, now: Tick::from_ms(1) }
    }

    /// One Interest in and out, its Data in and out; `echoes` says whether the upstream returns
    /// PIT tokens.
    fn run(&mut self, e: &Exchange, echoes: bool) {
        self.now = self.now.plus_ms(1);
        let up = Packet { face: FaceId(256), bytes: e.interest.clone(), lp: LpIn::default() };
        black_box(self.fw.receive(self.now, up, &mut self.out));
        let sent = self.out.items[0].as_pull().filter(|_| echoes);
        let ours = sent.map_or_else(Token::new, |(_, lp)| lp.pit_token.clone());
        self.out.clear();
        let lp = LpIn { pit_token: ours, ..LpIn::default() };
        let down = Packet { face: FaceId(257), bytes: e.data.clone(), lp };
        black_box(self.fw.receive(self.now, down, &mut self.out));
        self.out.clear();
        self.fw.handle_timeout(self.now, &mut self.out);
    }

    fn finish(self) {
        let counters = self.fw.counters();
        assert!(counters.receptions_balance() && counters.copies_balance());
    }
}

#[inline(never)]
fn counted_exchanges(case: &mut Case, exchanges: &[Exchange], echoes: bool) {
    for e in exchanges {
        case.run(e, echoes);
    }
}

#[inline(never)]
fn counted_hits(case: &mut Case, exchanges: &[Exchange]) {
    for e in exchanges {
        let up = Packet { face: FaceId(256), bytes: e.interest.clone(), lp: LpIn::default() };
        black_box(case.fw.receive(case.now, up, &mut case.out));
        case.out.clear();
    }
}

#[inline(never)]
fn counted_lookups(fib: &Fib, key: &HashKey, names: &[Name]) {
    let mut hashes = NameHashes::default();
    for name in names {
        hashes.fill(key, name.value(), fib.lengths());
        black_box(fib.lookup(&hashes, name.value()));
    }
}

fn exchanges(payload: usize, cs_packets: usize, echoes: bool) {
    let mut case = Case::new(cs_packets);
    for n in 0..WARM_UP {
        case.run(&exchange(n, payload), echoes);
    }
    let more: Vec<Exchange> = (WARM_UP..WARM_UP + COUNTED).map(|n| exchange(n, payload)).collect();
    counted_exchanges(&mut case, &more, echoes);
    assert_eq!(case.fw.cs().len(), cs_packets);
    assert_eq!(case.fw.counters().satisfied_interests, u64::from(WARM_UP + COUNTED));
    case.finish();
}

fn hits(payload: usize) {
    let mut case = Case::new(CS_PACKETS);
    for n in 0..WARM_UP {
        case.run(&exchange(n, payload), true);
    }
    // The last ones of the warm-up, again and again.
    let from = WARM_UP - 500;
    let cached: Vec<Exchange> = (0..COUNTED).map(|n| exchange(from + n % 500, payload)).collect();
    counted_hits(&mut case, &cached);
    assert_eq!(case.fw.counters().cs_hits, u64::from(COUNTED));
    case.finish();
}

/// Routes of three, four and five components; a third of the names match at each length.
fn lookups() {
    let key = HashKey::new(1, 2);
    let mut fib = Fib::new(ROUTES as usize);
    let name = |n: u32| {
        let mut name = Name::new();
        name.append_generic("net").append_generic(n.to_be_bytes());
        for part in ["site", "unit", "host"].iter().take(1 + n as usize % 3) {
            name.append_generic(part);
        }
        name
    };
    for n in 0..ROUTES {
        let name = name(n);
        let hashes = NameHashes::new(&key, name.value(), u64::MAX);
        let prefix = hashes.prefix(name.value(), 3 + n as usize % 3).expect("invariant: so long");
        let hop = NextHop { face: FaceId(256 + n % 100), cost: 0 };
        fib.add(&prefix, hop).expect("invariant: room for a route");
    }
    let longer = |n: u32| {
        let mut name = name(n.wrapping_mul(7919) % ROUTES);
        while name.len() < 7 {
            name.append_generic("more");
        }
        name.append_segment(u64::from(n));
        name
    };
    let names: Vec<Name> = (0..COUNTED).map(longer).collect();
    counted_lookups(&fib, &key, &names);
    let hashes = NameHashes::new(&key, names[5].value(), fib.lengths());
    assert!(fib.len() == ROUTES as usize && fib.lookup(&hashes, names[5].value()).is_some());
}

fn main() {
    match std::env::args().nth(1).unwrap_or_default().as_str() {
        "exchange" => exchanges(100, CS_PACKETS, true),
        "exchange_by_name" => exchanges(100, CS_PACKETS, false),
        "exchange_8000" => exchanges(8000, CS_PACKETS, true),
        "exchange_uncached" => exchanges(100, 0, true),
        "exchange_8000_uncached" => exchanges(8000, 0, true),
        "cs_hit" => hits(100),
        "cs_hit_8000" => hits(8000),
        "fib_lookup" => lookups(),
        other => panic!("no case is called {other:?}; bench/budget.toml names them"),
    }
}
