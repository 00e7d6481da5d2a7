//! Shares bind under contention only: an attacker loses its own, a lone flow keeps everything.

mod support;

use onym_forward::{Config, Verdict};
use onym_link::{LpIn, PacketKind};
use onym_tables::FaceId;
use onym_wire::lp::NackReason;
use std::collections::{BTreeMap, VecDeque};
use support::{Bench, I, data_bytes};

const VICTIM: u32 = 256;
const ATTACKER: u32 = 258;
const UP: u32 = 257;

/// A node between a fetching victim, an attacker, and a producer that answers `/a/v` after
/// `rtt_ms` and nothing else.
struct Scene {
    b: Bench,
    rtt_ms: u64,
    ms: u64,
    next: u64,
    in_flight: u64,
    /// Interests on their way to the producer, by the moment the answer is here.
    answers: VecDeque<(u64, String)>,
    retries: VecDeque<(u64, u64)>,
    fetched: u64,
    refused: u64,
    junk: u64,
    nonce: u32,
}

impl Scene {
    fn new(rtt_ms: u64, pit_entries_max: usize) -> Self {
        let config = Config { pit_entries_max, ..Config::default() };
        let b = Bench::with(config).faces(3).route("/a", UP, 0);
        Self {
            b,
            rtt_ms,
            ms: 0,
            next: 0,
            in_flight: 0,
            answers: VecDeque::new(),
            retries: VecDeque::new(),
            fetched: 0,
            refused: 0,
            junk: 0,
            nonce: 0,
        }
    }

    fn ask(&mut self, face: u32, uri: &str) -> Verdict {
        self.nonce += 1;
        self.b.interest(face, &I::new(uri, self.nonce).lifetime(4000))
    }

    fn victim(&mut self, window: u64) {
        while self.retries.front().is_some_and(|(at, _)| *at <= self.ms) {
            let (_, n) = self.retries.pop_front().expect("not empty");
            self.victim_asks(n);
        }
        while self.in_flight < window {
            let n = self.next;
            self.next += 1;
            self.in_flight += 1;
            self.victim_asks(n);
        }
    }

    fn victim_asks(&mut self, n: u64) {
        let verdict = self.ask(VICTIM, &format!("/a/v/{n}"));
        if verdict != Verdict::Forwarded {
            self.refused += 1;
            self.retries.push_back((self.ms + self.rtt_ms.max(10), n));
        }
    }

    fn attack(&mut self, count: u64) {
        for _ in 0..count {
            self.junk += 1;
            let uri = format!("/a/none/{}", self.junk);
            self.ask(ATTACKER, &uri);
        }
    }

    /// One millisecond passes; the producer and the network do their part.
    fn step(&mut self) {
        for left in self.b.left() {
            match (left.kind, left.face) {
                (PacketKind::Interest, UP) if left.name.starts_with("/a/v/") => {
                    self.answers.push_back((self.ms + self.rtt_ms, left.name));
                }
                (PacketKind::Data, VICTIM) => {
                    self.fetched += 1;
                    self.in_flight -= 1;
                }
                _ => {}
            }
        }
        self.ms += 1;
        self.b.wait(1);
        while self.answers.front().is_some_and(|(at, _)| *at <= self.ms) {
            let (_, uri) = self.answers.pop_front().expect("not empty");
            let lp = LpIn { no_cache: true, ..LpIn::default() };
            assert_eq!(self.b.receive(UP, data_bytes(&uri, 0, b""), lp), Verdict::Satisfied);
        }
    }

    fn refusals(&self) -> u64 {
        let c = self.b.fw.counters();
        [Verdict::PitShare, Verdict::Congestion, Verdict::PitFull]
            .iter()
            .map(|v| c.verdict(PacketKind::Interest, *v))
            .sum()
    }
}

#[test]
fn a_lone_flow_is_never_refused_at_any_round_trip_time() {
    for (rtt_ms, window) in [(1, 64), (10, 1000), (100, 3000), (300, 6000)] {
        let mut s = Scene::new(rtt_ms, 65_536);
        for _ in 0..4 * rtt_ms + 200 {
            s.victim(window);
            s.step();
        }
        assert_eq!(s.refusals(), 0, "{rtt_ms} ms");
        assert!(s.fetched >= window * 2);
        s.b.check();
    }
}

#[test]
fn an_attacker_at_full_blast_is_refused_and_the_victim_keeps_its_rate() {
    for (rtt_ms, window) in [(2, 32), (30, 500), (300, 2000)] {
        let run = |attack: u64| {
            let mut s = Scene::new(rtt_ms, 262_144);
            for ms in 0..6 * rtt_ms + 1500 {
                s.victim(window);
                // From 300 ms on, when the victim is at its rate.
                if ms > 300 {
                    s.attack(attack);
                }
                s.step();
            }
            s
        };
        let (alone, under_attack) = (run(0), run(40));
        let kept = under_attack.fetched as f64 / alone.fetched as f64;
        assert!(kept > 0.95, "{rtt_ms} ms: {} of {}", under_attack.fetched, alone.fetched);
        let through = under_attack.junk - under_attack.refusals() + under_attack.refused;
        assert!(
            through < under_attack.junk / 5,
            "{rtt_ms} ms: {through} of {} reached the producer",
            under_attack.junk
        );
        let weights = (
            under_attack.b.fw.turn_weight(FaceId(VICTIM)),
            under_attack.b.fw.turn_weight(FaceId(ATTACKER)),
        );
        assert!(weights.0 == 16 && weights.1 <= 16, "{weights:?}");
    }
}

#[test]
fn an_attacker_at_the_papers_pace_does_not_slow_the_victim() {
    // 2000 Interests every 6 s, names that do not exist.
    let mut s = Scene::new(20, 262_144);
    for ms in 0..13_000 {
        s.victim(64);
        if ms % 6000 == 100 {
            s.attack(2000);
        }
        s.step();
    }
    assert_eq!(s.refused, 0);
}

#[test]
fn a_flow_that_starts_under_attack_gets_to_its_rate() {
    let mut s = Scene::new(100, 262_144);
    for ms in 0..3000 {
        s.attack(20);
        if ms >= 1000 {
            s.victim(1000);
        }
        s.step();
    }
    // Alone it would have fetched 1000 in each of 20 round trips.
    assert!(s.fetched > 14_000, "{}", s.fetched);
}

#[test]
fn beyond_three_quarters_of_the_pit_a_face_keeps_its_share_only() {
    let mut s = Scene::new(50, 1000);
    // Alone, the attacker gets three quarters, and what is beyond stays for others.
    s.attack(2000);
    s.step();
    let c = s.b.fw.counters();
    assert_eq!(s.b.fw.pit_len(), 750);
    assert_eq!(c.verdict(PacketKind::Interest, Verdict::PitShare), 1250);
    for _ in 0..500 {
        s.victim(40);
        s.attack(10);
        s.step();
    }
    assert_eq!(s.refused, 0);
    assert!(s.fetched >= 40 * 8, "{}", s.fetched);
    let mut faces: BTreeMap<u32, u32> = BTreeMap::new();
    for face in s.b.fw.faces().iter() {
        faces.insert(face.id.0, face.load.pending);
    }
    assert_eq!(faces[&ATTACKER], 750);
    s.b.check();
}

#[test]
fn without_fairness_only_the_limits_bind() {
    let config = Config { pit_entries_max: 1000, fairness: false, ..Config::default() };
    let mut s = Scene::new(50, 1000);
    s.b = Bench::with(config).faces(3).route("/a", UP, 0);
    s.attack(1100);
    assert_eq!(s.b.fw.pit_len(), 1000);
    let c = s.b.fw.counters();
    assert_eq!(c.verdict(PacketKind::Interest, Verdict::PitFull), 100);
    assert_eq!(s.refusals(), 100);
    assert_eq!(s.b.fw.turn_weight(FaceId(ATTACKER)), 16);
}

#[test]
fn who_asks_the_node_itself_contends_with_nobody() {
    let mut s = Scene::new(300, 65_536);
    s.b = s.b.route("/own", FaceId::INTERNAL.0, 0);
    for n in 0..1500 {
        // More and more at once: the flow has not yet earned what it has pending.
        s.victim(n);
        let uri = format!("/own/{n}");
        s.ask(ATTACKER, &uri);
        let answer = s.b.receive(FaceId::INTERNAL.0, data_bytes(&uri, 0, b""), LpIn::default());
        assert_eq!(answer, Verdict::Satisfied);
        s.step();
    }
    assert_eq!(s.refusals(), 0);
    s.b.check();
}

#[test]
fn a_refused_interest_is_answered_with_congestion_and_leaves_nothing() {
    let mut s = Scene::new(50, 100);
    s.attack(76);
    let nacks: Vec<_> = s.b.left().into_iter().filter(|l| l.nack.is_some()).collect();
    assert_eq!(nacks.len(), 1);
    assert_eq!((nacks[0].face, nacks[0].nack), (ATTACKER, Some(NackReason::CONGESTION)));
    assert_eq!(s.b.fw.pit_len(), 75);
}
