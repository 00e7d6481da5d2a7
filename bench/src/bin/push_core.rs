//! Work of the forwarder, and of the other parts of a node: for callgrind (what happens within
//! functions whose names start with `counted` is counted by `cargo xtask icount`), and of the
//! forwarder with `rate` against the clock.

#![allow(clippy::disallowed_methods, reason = "a measuring program has a clock")]

#[path = "../../../crates/pubsub/tests/pair/mod.rs"]
mod pair;
#[path = "../../../crates/pubsub/examples/round/mod.rs"]
mod round;

use onym_pubsub::dispatcher::Data;
use onym_pubsub::forwarder::{Config, Copies, Forwarder, LinkEntry, Source};
use onym_pubsub::verdict::Verdict;
use onym_tables::FaceId;
use onym_tables::bloom::{KeyedTags, Kind, Scheme, build_stage};
use onym_wire::push::{Filter, FrameBuilder, Id, Route, RouteBuf, Strategy};
use pair::Pair;
use round::Round;
use std::hint::black_box;
use std::time::Instant;

/// Links of the node.
const LINKS: u32 = 16;
/// Frames that are counted.
const COUNTED: usize = 1000;
/// Frames that are timed at once.
const BATCH: usize = 200_000;
const ROUNDS: usize = 9;
/// Secret of the node, for keyed tags.
const SECRET: [u64; 2] = [0x0123_4567, 0x89ab_cdef];

struct Case {
    fw: Forwarder,
    /// Frames as they arrive; the hop limit is set back before each use.
    frames: Vec<Vec<u8>>,
    hop_at: usize,
    copies: Copies,
}

/// The filter of frame `n` holds links `n` and `n` + 5 of this node and the inside of others: two
/// copies of each frame, as in a tree that branches here, and about `elements` members in all.
fn route(name: &str, scheme: &Scheme, n: u32, elements: u32) -> RouteBuf {
    let ours = [n % LINKS, (n + 5) % LINKS];
    // Single bits are exact below 256; the links of this node have the lowest ones.
    let others = match scheme.kind {
        Kind::Bits => 20 + n * 3..20 + n * 3 + elements,
        Kind::Tags { .. } => 1000 + n * 64..1000 + n * 64 + elements,
    };
    match name {
        "keyed" => {
            let (keys, flow) = (KeyedTags::new(SECRET, 5), u64::from(n));
            let mut filter = Filter::EMPTY;
            for to in ours {
                filter.add(&keys.tag(flow, LINKS, to, 0));
            }
            let elsewhere = KeyedTags::new([n.into(), 7], 5);
            others.for_each(|o| filter.add(&elsewhere.tag(flow, o, o + 1, 0)));
            RouteBuf::from(Route::Keyed { table: 0, epoch: 1, flow, filter })
        }
        "stages" => {
            let members = ours.map(|o| scheme.stage_tag(o));
            let theirs: Vec<u64> =
                (0..LINKS).filter(|l| !ours.contains(l)).map(|l| scheme.stage_tag(l)).collect();
            let stage = build_stage(0, &members, &theirs).expect("invariant: two members fit");
            RouteBuf::stages(&[stage.as_stage()]).expect("invariant: one stage fits")
        }
        _ => {
            let mut filter = Filter::EMPTY;
            ours.iter().for_each(|o| filter.add(&scheme.tag(*o, 0)));
            others.for_each(|o| filter.add(&scheme.tag(o, 0)));
            RouteBuf::flat(0, &filter)
        }
    }
}

impl Case {
    fn new(name: &str) -> Self {
        let kind = if name == "bits" { Kind::Bits } else { Kind::Tags { k: 5, tables: 8 } };
        let scheme = Scheme { kind, seed: 1 };
        let mut fw = Forwarder::new(Config { scheme, ..Config::default() }, 999);
        for number in 0..=LINKS {
            let link = LinkEntry { face: FaceId(256 + number), number, is_external: false };
            fw.link_add(link).expect("invariant: links differ");
        }
        fw.epoch_start(1, KeyedTags::new(SECRET, 5));
        let ids: [Id; 1] = ["/1/2".parse().expect("invariant: an identifier")];
        let payload = vec![0x5a; 1400];
        let elements = if kind == Kind::Bits { 4 } else { 12 };
        let frame = |n: u32| {
            let route = route(name, &scheme, n, elements);
            let (hop_limit, strategy) = (20, Strategy::DOMAIN_LOCAL);
            let (ids, payload) = (&ids, &payload[..]);
            let mut out = Vec::new();
            FrameBuilder { hop_limit, strategy, route: &route, ids, options: &[], payload }
                .write(&mut out);
            out
        };
        // One octet of TYPE, three of LENGTH, then version and hop limit.
        Self { fw, frames: (0..64).map(frame).collect(), hop_at: 5, copies: Copies::default() }
    }

    #[inline(always)]
    fn run(&mut self, count: usize) -> usize {
        let from = Source::Face(FaceId(256 + LINKS));
        let mut copies = 0;
        for n in 0..count {
            let frame = &mut self.frames[n % 64];
            let verdict = self.fw.receive(from, frame, &mut self.copies);
            debug_assert_eq!(verdict, Verdict::Forwarded);
            black_box(verdict);
            copies += self.copies.faces.len();
            frame[self.hop_at] = 20;
            // The number of the stage that is next; elsewhere an octet of the filter.
            if frame[4] == 0x13 {
                frame[9] = 0;
            }
        }
        copies
    }
}

#[inline(never)]
fn counted_frames(case: &mut Case) -> usize {
    case.run(COUNTED)
}

/// Publications of 64 octets from the hand of an application at one node to that of one at the next.
#[inline(never)]
fn counted_publications(pair: &mut Pair, data: &Data<'_>) -> usize {
    (0..COUNTED).map(|_| pair.publish(data, || {})).sum()
}

fn publications() {
    let item = "/1/2".parse().expect("invariant: an identifier");
    let data = Data::new(item, Strategy::DOMAIN_LOCAL, &[7; 64]);
    let mut pair = Pair::matched();
    (0..COUNTED).for_each(|_| _ = black_box(pair.publish(&data, || {})));
    assert_eq!(counted_publications(&mut pair, &data), COUNTED);
}

/// Rounds of subscribing, starting, publishing and unsubscribing.
#[inline(never)]
fn counted_rounds(round: &mut Round) -> usize {
    (0..COUNTED).map(|_| round.run()).sum()
}

fn rounds() {
    let mut round = Round::new(10_000);
    (0..COUNTED).for_each(|_| _ = black_box(round.run()));
    assert_eq!(counted_rounds(&mut round), COUNTED);
}

/// Frames per second of the best of several rounds, and copies of a frame.
fn rate(case: &mut Case) -> (f64, f64) {
    let mut best = f64::MAX;
    let mut copies = 0;
    for _ in 0..ROUNDS {
        let start = Instant::now();
        copies = black_box(case.run(BATCH));
        best = best.min(start.elapsed().as_secs_f64());
    }
    (BATCH as f64 / best, copies as f64 / BATCH as f64)
}

fn main() {
    let mut words = std::env::args().skip(1);
    let first = words.next().unwrap_or_default();
    if first == "rate" {
        println!("{:10} {:>14} {:>8}", "case", "frames/s", "copies");
        for name in ["bits", "flat", "keyed", "stages"] {
            let (frames, copies) = rate(&mut Case::new(name));
            println!("{name:10} {frames:>14.0} {copies:>8.2}");
        }
        return;
    }
    match first.as_str() {
        "push_publication" => return publications(),
        "push_round" => return rounds(),
        _ => {}
    }
    let name = first.strip_prefix("push_").unwrap_or(&first).to_owned();
    assert!(["bits", "flat", "keyed", "stages"].contains(&name.as_str()), "no case {first:?}");
    let mut case = Case::new(&name);
    case.run(COUNTED);
    assert!(counted_frames(&mut case) >= 2 * COUNTED);
    assert!(case.fw.counters().balance());
}
