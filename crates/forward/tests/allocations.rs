//! After warm-up no exchange allocates: neither with cache insertion and eviction, nor from the
//! cache, nor for an Interest that ends unanswered.

use onym_forward::{Config, FaceInfo, Forwarder, Verdict};
use onym_frame::Buf;
use onym_link::{LpIn, Outbox, Packet};
use onym_sys::alloc_count::{CountingAlloc, counts};
use onym_tables::cs::CsConfig;
use onym_tables::fib::NextHop;
use onym_tables::pit::Token;
use onym_tables::{FaceId, Tick};
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::name::Name;
use onym_wire::signature::SignatureInfo;
use std::alloc::System;

#[global_allocator]
static ALLOC: CountingAlloc = CountingAlloc(System);

/// A name of eight components, distinct for each `n`.
fn name(n: u64) -> Name {
    let mut name = Name::new();
    for part in ["edu", "university", "lab", "project", "dataset", "file"] {
        name.append_generic(part);
    }
    name.append_version(1_700_000_000_000).append_segment(n);
    name
}

fn interest(n: u64, lifetime_ms: Option<u64>) -> Buf {
    let (mut out, name) = (Vec::new(), name(n));
    let nonce = u32::try_from(n).ok().map(u32::to_be_bytes);
    InterestBuilder { nonce, lifetime_ms, ..InterestBuilder::new(name.as_ref()) }.write(&mut out);
    Buf::copy_from(&out)
}

fn data(n: u64, payload: usize) -> Buf {
    let (mut out, name) = (Vec::new(), name(n));
    let content = vec![0x5a; payload];
    DataBuilder::new(name.as_ref(), &content)
        .write(&mut out, &SignatureInfo::default(), |_| Ok::<_, std::fmt::Error>([0; 32]))
        .expect("a constant signs");
    Buf::copy_from(&out)
}

struct Bench {
    fw: Forwarder,
    out: Outbox,
    now: Tick,
}

impl Bench {
    fn new(strategy: &str) -> Self {
        let cs = CsConfig { packets_max: 300, ..CsConfig::default() };
        let mut fw = Forwarder::new(Config { cs, ..Config::default() });
        let mut out = Outbox::default();
        for id in 256..260 {
            fw.face_add(FaceId(id), FaceInfo::point_to_point());
        }
        let prefix: Name = "/edu/university".parse().expect("a name");
        for (cost, face) in [(0, 257), (1, 258)] {
            let hop = NextHop { face: FaceId(face), cost };
            fw.fib_add(Tick(0), prefix.as_ref(), hop, &mut out).expect("room");
        }
        let instance: Name = format!("/localhost/nfd/strategy/{strategy}").parse().expect("a name");
        fw.strategy_set(prefix.as_ref(), instance.as_ref()).expect("a strategy");
        Self { fw, out, now: Tick::from_ms(1) }
    }

    fn receive(&mut self, face: u32, bytes: &Buf, token: Token) -> Verdict {
        let lp = LpIn { pit_token: token, ..LpIn::default() };
        self.fw.receive(
            self.now,
            Packet { face: FaceId(face), bytes: bytes.clone(), lp },
            &mut self.out,
        )
    }

    fn exchange(&mut self, interest: &Buf, data: &Buf, echo: bool) {
        // 2000 exchanges of warm-up take 6 s: ASF has sent its first probe by then.
        self.now = self.now.plus_ms(3);
        let token = Token::try_from(&[1, 2, 3, 4][..]).expect("short");
        assert_eq!(self.receive(256, interest, token), Verdict::Forwarded);
        let sent = self.out.items[0].as_pull().filter(|_| echo);
        let ours = sent.map_or_else(Token::new, |(_, lp)| lp.pit_token.clone());
        self.out.clear();
        assert_eq!(self.receive(257, data, ours), Verdict::Satisfied);
        self.out.clear();
        self.fw.handle_timeout(self.now, &mut self.out);
    }
}

/// Allocations of the second half of `packets`.
fn second_half<T>(packets: &[T], mut each: impl FnMut(&T)) -> u64 {
    let (first, second) = packets.split_at(packets.len() / 2);
    first.iter().for_each(&mut each);
    let before = counts();
    second.iter().for_each(&mut each);
    (counts() - before).allocations
}

#[test]
fn an_exchange_with_insertion_and_eviction_allocates_nothing() {
    for strategy in ["best-route", "multicast", "asf", "random"] {
        for payload in [100, 8000] {
            for echo in [true, false] {
                let packets: Vec<(Buf, Buf)> =
                    (0..4000).map(|n| (interest(n, None), data(n, payload))).collect();
                let mut b = Bench::new(strategy);
                let count = second_half(&packets, |(i, d)| b.exchange(i, d, echo));
                assert_eq!(count, 0, "{strategy}, {payload} octets, token returned: {echo}");
                assert_eq!(b.fw.cs().len(), 300);
            }
        }
    }
}

#[test]
fn a_cache_hit_allocates_nothing() {
    let mut b = Bench::new("best-route");
    let packets: Vec<(Buf, Buf)> = (0..100).map(|n| (interest(n, None), data(n, 100))).collect();
    for (i, d) in &packets {
        b.exchange(i, d, true);
    }
    let count = second_half(&packets, |(i, _)| {
        assert_eq!(b.receive(256, i, Token::new()), Verdict::CsHit);
        b.out.clear();
    });
    assert_eq!(count, 0);
}

#[test]
fn interests_that_end_unanswered_allocate_nothing() {
    let mut b = Bench::new("best-route");
    // More than are remembered as dead nonces, so that the list is at its bound, too.
    let packets: Vec<Buf> = (0..20_000).map(|n| interest(n, Some(100))).collect();
    let count = second_half(&packets, |i| {
        b.now = b.now.plus_ms(2);
        assert_eq!(b.receive(256, i, Token::new()), Verdict::Forwarded);
        b.fw.handle_timeout(b.now, &mut b.out);
        b.out.clear();
    });
    assert_eq!(count, 0);
    assert!(b.fw.counters().unsatisfied_interests > 19_000);
}
