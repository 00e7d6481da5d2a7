//! Long Interests: what they hold is bounded, shared, and given back.

mod support;

use onym_forward::{Config, Verdict};
use onym_tables::FaceId;
use support::{Bench, I, data_bytes};

const ATTACKER: u32 = 256;
const VICTIM: u32 = 257;
const UP: u32 = 258;
const OCTETS_MAX: usize = 1 << 20;

/// A node with room for a megabyte of pending Interests; `/a` leads to a producer that is silent.
fn bench() -> Bench {
    let config = Config { pit_octets_max: OCTETS_MAX, ..Config::default() };
    Bench::with(config).faces(3).route("/a", UP, 0)
}

/// A name of about 8000 octets.
fn long(n: u32) -> String {
    format!("/a/{n}/{}", "x".repeat(8000))
}

const HOUR: u64 = 3_600_000;

#[test]
fn long_interests_of_one_face_leave_room_for_others() {
    let mut b = bench();
    let mut refused = 0;
    for n in 0..1000 {
        let verdict = b.interest(ATTACKER, &I::new(&long(n), n).lifetime(HOUR));
        assert!(matches!(verdict, Verdict::Forwarded | Verdict::PitShare), "{verdict:?}");
        refused += usize::from(verdict == Verdict::PitShare);
    }
    assert!(refused > 800, "{refused}");
    assert!(b.fw.pit_octets() <= OCTETS_MAX - OCTETS_MAX / 4 + 9000, "{}", b.fw.pit_octets());
    for n in 0..100 {
        let asked = I::new(&format!("/a/victim/{n}"), 5000 + n);
        assert_eq!(b.interest(VICTIM, &asked), Verdict::Forwarded);
    }
}

#[test]
fn the_bound_holds_without_shares() {
    let config = Config { pit_octets_max: OCTETS_MAX, fairness: false, ..Config::default() };
    let mut b = Bench::with(config).faces(3).route("/a", UP, 0);
    let verdicts: Vec<Verdict> =
        (0..1000).map(|n| b.interest(ATTACKER, &I::new(&long(n), n).lifetime(HOUR))).collect();
    assert!(verdicts.contains(&Verdict::PitFull));
    assert!(b.fw.pit_octets() <= OCTETS_MAX);
}

#[test]
fn what_is_answered_is_charged_no_more() {
    let mut b = bench();
    for n in 0..1000 {
        let uri = long(n);
        assert_eq!(b.interest(ATTACKER, &I::new(&uri, n).lifetime(HOUR)), Verdict::Forwarded);
        assert_eq!(b.receive(UP, data_bytes(&uri, 0, b""), Default::default()), Verdict::Satisfied);
        b.wait(10);
    }
}

#[test]
fn a_face_that_ends_takes_its_interests_and_their_time_along() {
    let mut b = bench();
    let shared = long(0);
    assert_eq!(b.interest(ATTACKER, &I::new(&shared, 1).lifetime(HOUR)), Verdict::Forwarded);
    b.interest(VICTIM, &I::new(&shared, 2).lifetime(1000));
    assert_eq!(b.fw.pit_len(), 1);
    for n in 1..50 {
        b.interest(ATTACKER, &I::new(&long(n), 10 + n).lifetime(HOUR));
    }
    b.fw.face_remove(b.now, FaceId(ATTACKER));
    assert_eq!(b.fw.pit_len(), 1);
    assert!(b.fw.pit_octets() < 9000, "{}", b.fw.pit_octets());
    // Who is left waits a second, and not an hour.
    b.wait(1500);
    assert_eq!((b.fw.pit_len(), b.fw.pit_octets()), (0, 0));
}
