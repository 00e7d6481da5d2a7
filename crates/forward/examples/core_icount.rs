//! Work for callgrind: whole exchanges in functions of their own, whose instructions are counted.
//!
//! `cargo xtask icount` builds and runs this; see bench/budget.toml.

use onym_forward::{Config, FaceInfo, Forwarder, LpIn, Outbox, Packet, Token};
use onym_tables::cs::CsConfig;
use onym_tables::fib::NextHop;
use onym_tables::{FaceId, Tick};
use onym_wire::Buf;
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
    fn new() -> Self {
        let cs = CsConfig { packets_max: CS_PACKETS, ..CsConfig::default() };
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
    fn run(&mut self, e: &Exchange, token: Token, echoes: bool) {
        self.now = self.now.plus_ms(1);
        let lp = LpIn { pit_token: token, ..LpIn::default() };
        let up = Packet { face: FaceId(256), bytes: e.interest.clone(), lp };
        black_box(self.fw.receive(self.now, up, &mut self.out));
        let ours = if echoes { self.out.items[0].lp.pit_token.clone() } else { Token::new() };
        self.out.clear();
        let lp = LpIn { pit_token: ours, ..LpIn::default() };
        let down = Packet { face: FaceId(257), bytes: e.data.clone(), lp };
        black_box(self.fw.receive(self.now, down, &mut self.out));
        self.out.clear();
        self.fw.handle_timeout(self.now, &mut self.out);
    }
}

#[inline(never)]
fn case_exchange(case: &mut Case, exchanges: &[Exchange], echoes: bool) {
    for e in exchanges {
        case.run(e, Token::new(), echoes);
    }
}

#[inline(never)]
fn case_cs_hit(case: &mut Case, exchanges: &[Exchange]) {
    for e in exchanges {
        let up = Packet { face: FaceId(256), bytes: e.interest.clone(), lp: LpIn::default() };
        black_box(case.fw.receive(case.now, up, &mut case.out));
        case.out.clear();
    }
}

fn main() {
    let wanted = std::env::args().nth(1).unwrap_or_default();
    let payload = if wanted == "exchange_large" { 8000 } else { 100 };
    let mut case = Case::new();
    let warm: Vec<Exchange> = (0..WARM_UP).map(|n| exchange(n, payload)).collect();
    for e in &warm {
        case.run(e, Token::new(), true);
    }
    let more: Vec<Exchange> = (WARM_UP..WARM_UP + COUNTED).map(|n| exchange(n, payload)).collect();
    match wanted.as_str() {
        "exchange_token" | "exchange_large" => case_exchange(&mut case, &more, true),
        "exchange_name" => case_exchange(&mut case, &more, false),
        "cs_hit" => {
            // The last ones of the warm-up, again and again.
            let from = warm.len() - CS_PACKETS + 12;
            let cached: Vec<Exchange> =
                (0..COUNTED as usize).map(|n| exchange((from + n % 500) as u32, payload)).collect();
            case_cs_hit(&mut case, &cached);
            assert_eq!(case.fw.counters().cs_hits, u64::from(COUNTED));
        }
        other => {
            panic!("cases are exchange_token, exchange_name, exchange_large, cs_hit; not {other:?}")
        }
    }
    assert!(case.fw.counters().receptions_balance() && case.fw.counters().copies_balance());
}
