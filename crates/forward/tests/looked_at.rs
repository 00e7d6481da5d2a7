//! What a shell is told that looks at some pending Interests: which packets may answer them.

mod support;

use onym_forward::Verdict;
use onym_frame::Buf;
use onym_link::LpIn;
use onym_tables::FaceId;
use support::{Bench, I, data_bytes};

fn bench() -> Bench {
    Bench::new().faces(2).route("/a", 257, 0)
}

/// The token with which the last Interest left.
fn token(b: &mut Bench) -> Vec<u8> {
    b.left().pop().expect("it left").token
}

/// Whether something was met since this was asked last.
fn has_met(b: &mut Bench) -> bool {
    let has_met = b.fw.has_met();
    b.fw.forget_met();
    has_met
}

/// Law: the answer of an entry that is looked at is met, with and without its token; that of another
/// one is not.
#[test]
fn the_answer_of_what_is_looked_at_is_met_and_no_other() {
    let mut b = bench();
    for with_token in [true, false] {
        for is_looked_at in [false, true] {
            let name = format!("/a/{with_token}/{is_looked_at}");
            b.interest(256, &I::new(&name, 1));
            let token = token(&mut b);
            if is_looked_at {
                b.fw.look_out_for(&token);
            }
            assert!(!has_met(&mut b));
            let told: &[u8] = if with_token { &token } else { &[] };
            assert_eq!(b.data_with(257, &name, 0, told), Verdict::Satisfied);
            assert_eq!(has_met(&mut b), is_looked_at, "{name}");
        }
    }
    b.fw.look_out_for(&[0; 6]);
    b.fw.look_out_for(b"no token");
    b.interest(256, &I::new("/a/true/true/again", 2));
    let token = token(&mut b);
    b.data_with(257, "/a/true/true/again", 0, &token);
    assert!(!has_met(&mut b), "a place that is used again is not looked at any more");
    b.check();
}

/// Law: who begins to look misses no answer to what was asked before, nor one by a longer name.
#[test]
fn what_was_asked_before_is_looked_at_when_all_is() {
    let mut b = bench();
    b.interest(256, &I::new("/a/1", 1));
    b.interest(256, &I::new("/a/2", 2).prefix());
    b.fw.look_out_for_all();
    b.interest(256, &I::new("/a/3", 3));
    for (name, is_looked_at) in [("/a/3", false), ("/a/1", true), ("/a/2/longer", true)] {
        assert_eq!(b.data(257, name, 0), Verdict::Satisfied);
        assert_eq!(has_met(&mut b), is_looked_at, "{name}");
    }
}

/// Law: an Interest with the context of a trace is taken in, and met, where such are recorded; elsewhere
/// it has a field that no Interest has.
#[test]
fn an_interest_with_a_context_is_met_where_such_are_recorded() {
    let mut b = bench();
    let asks = |b: &mut Bench, nonce: u32, no_cache: bool| {
        let bytes = I::new("/a/1", nonce).bytes();
        let attached = Some(Buf::copy_from(&[1; 26]));
        b.receive(256, bytes, LpIn { prefix_announcement: attached, no_cache, ..LpIn::default() })
    };
    assert_eq!(asks(&mut b, 1, false), Verdict::UnexpectedField);
    b.fw.take_contexts();
    b.fw.forget_met();
    assert_eq!(asks(&mut b, 2, false), Verdict::Forwarded);
    assert!(has_met(&mut b));
    assert_eq!(asks(&mut b, 3, true), Verdict::UnexpectedField, "for another field");
    b.check();
}

/// Law: Data that end no entry are met, whatever becomes of them.
#[test]
fn data_that_answer_nothing_are_met() {
    let mut b = bench();
    assert_eq!(b.data(257, "/a/unasked", 0), Verdict::Unsolicited);
    assert!(has_met(&mut b));
    let malformed = data_bytes("/a", 0, b"x").slice(0..9);
    assert_eq!(b.receive(257, malformed, LpIn::default()), Verdict::Malformed);
    assert!(has_met(&mut b));
    assert_eq!(b.data(257, "/localhost/a", 0), Verdict::Scope);
    assert!(has_met(&mut b));
    assert_eq!(b.receive(257, data_bytes("/a", 0, &[0; 9000]), LpIn::default()), Verdict::TooLarge);
    assert!(has_met(&mut b));
    b.fw.face_remove(b.now, FaceId(257));
    b.fw.forget_met();
    assert_eq!(b.data(257, "/a/1", 0), Verdict::IngressGone);
    assert!(has_met(&mut b));
}
