//! `explain` says what `receive` then does, and changes nothing; what is known of who waits.

mod support;

use onym_forward::{Question, Verdict};
use onym_link::{LpIn, Packet};
use onym_tables::FaceId;
use onym_tables::pit::Token;
use support::{Bench, I, data_bytes, name};

#[test]
fn it_names_the_tables_that_decide() {
    let mut b = Bench::new()
        .faces(3)
        .route("/a", 257, 10)
        .route("/a", 258, 5)
        .strategy("/a/b", "multicast");
    let n = name("/a/x");
    let e = b.fw.explain(b.now, &Question::new(n.as_ref())).expect("an Interest");
    assert_eq!(e.verdict, Verdict::Forwarded);
    assert_eq!(e.fib_prefix, Some(name("/a")));
    assert_eq!(e.next_hops.iter().map(|h| h.hop.face.0).collect::<Vec<_>>(), [258, 257]);
    assert_eq!(e.chosen, [FaceId(258)]);
    assert_eq!(e.strategy_prefix, name("/"));
    assert_eq!(e.strategy.to_string(), "/localhost/nfd/strategy/best-route/v=5");
    let n = name("/a/b/x");
    let e = b.fw.explain(b.now, &Question::new(n.as_ref())).expect("an Interest");
    assert_eq!((e.strategy_prefix, e.chosen.len()), (name("/a/b"), 2));
}

#[test]
fn it_says_why_nothing_would_be_sent() {
    let mut b = Bench::new().faces(3).route("/localhop/x", 257, 0).route("/a", 257, 0);
    let n = name("/none");
    let e = b.fw.explain(b.now, &Question::new(n.as_ref())).expect("an Interest");
    assert_eq!((e.verdict, e.fib_prefix), (Verdict::NoRoute, None));
    let n = name("/localhop/x");
    let question = Question { ingress: FaceId(256), ..Question::new(n.as_ref()) };
    let e = b.fw.explain(b.now, &question).expect("an Interest");
    assert_eq!(e.verdict, Verdict::NoEligibleNextHop);
    assert_eq!(e.next_hops[0].barred, Some("the scope of the name ends at this host"));
    let n = name("/a");
    let question = Question { ingress: FaceId(257), ..Question::new(n.as_ref()) };
    let e = b.fw.explain(b.now, &question).expect("an Interest");
    assert_eq!(e.next_hops[0].barred, Some("it is where the Interest comes from"));
    assert!(b.fw.explain(b.now, &Question::new(name("/").as_ref())).is_none());
}

#[test]
fn it_sees_the_cache_pending_interests_and_hints() {
    let mut b = Bench::new().faces(3).route("/a", 257, 0).route("/isp", 258, 0);
    b.interest(256, &I::new("/a/b", 1));
    let n = name("/a/b");
    let e = b.fw.explain(b.now, &Question::new(n.as_ref())).expect("an Interest");
    assert_eq!(
        (e.verdict, e.pending, e.asked),
        (Verdict::Aggregated, Some(vec![FaceId(256)]), vec![FaceId(257)])
    );
    let question = Question { ingress: FaceId(256), ..Question::new(n.as_ref()) };
    let e = b.fw.explain(b.now, &question).expect("an Interest");
    assert_eq!(e.verdict, Verdict::Suppressed);
    b.data(257, "/a/b", 0);
    let e = b.fw.explain(b.now, &Question::new(n.as_ref())).expect("an Interest");
    assert_eq!((e.verdict, e.cs_hit, e.pending), (Verdict::CsHit, true, None));
    let (n, none, isp) = (name("/a/c"), name("/none"), name("/isp/x"));
    let hint = [none.as_ref(), isp.as_ref()];
    let question = Question { forwarding_hint: &hint, ..Question::new(n.as_ref()) };
    let e = b.fw.explain(b.now, &question).expect("an Interest");
    assert_eq!((e.delegation, e.fib_prefix), (Some(name("/isp/x")), Some(name("/isp"))));
    b.fw.set_regions(vec![name("/isp/x/y")]);
    let e = b.fw.explain(b.now, &question).expect("an Interest");
    assert_eq!((e.region_reached, e.fib_prefix), (true, Some(name("/a"))));
}

#[test]
fn asking_changes_nothing() {
    for strategy in ["best-route", "multicast", "asf", "access", "random", "self-learning"] {
        let mut b =
            Bench::new().faces(3).route("/a", 257, 0).route("/a", 258, 1).strategy("/", strategy);
        b.interest(256, &I::new("/a/b", 1));
        b.left();
        let before = (b.fw.counters().clone(), b.fw.pit_len(), b.fw.poll_timeout());
        for uri in ["/a/b", "/a/c", "/d"] {
            let n = name(uri);
            let first = b.fw.explain(b.now, &Question::new(n.as_ref()));
            assert_eq!(first, b.fw.explain(b.now, &Question::new(n.as_ref())), "{strategy} {uri}");
        }
        assert_eq!(before, (b.fw.counters().clone(), b.fw.pit_len(), b.fw.poll_timeout()));
    }
}

/// Law: a round trip begins where the one Interest was sent that is answered, which the token says or the
/// name; where it was sent again, or another face answers, nobody knows.
#[test]
fn a_round_trip_begins_with_the_only_interest_that_was_sent() {
    let mut b = Bench::new().faces(3).route("/a", 257, 0).route("/f", 257, 0);
    b.interest(256, &I::new("/a/b", 1));
    b.interest(256, &I::new("/f/b", 1).fresh());
    let (sent, tokens) = (b.now, b.left().into_iter().map(|left| left.token));
    let tokens: Vec<_> = tokens.collect();
    b.wait(30);
    let asked = |b: &Bench, face, uri: &str, token: &[u8]| {
        let lp = LpIn { pit_token: Token::try_from(token).unwrap(), ..LpIn::default() };
        let data = Packet { face: FaceId(face), bytes: data_bytes(uri, 0, b"x"), lp };
        b.fw.asked_at(&data, name(uri).as_ref().value())
    };
    for (uri, token) in [("/a/b", &tokens[0]), ("/f/b", &tokens[1])] {
        assert_eq!(asked(&b, 257, uri, token), Some(sent));
        assert_eq!(asked(&b, 257, uri, &[]), Some(sent), "by its name");
        assert_eq!(asked(&b, 258, uri, token), None, "it was not asked");
    }
    assert_eq!(asked(&b, 257, "/a/c", &[]), None, "nobody waits");
    assert_eq!(b.interest(256, &I::new("/a/b", 2)), Verdict::Forwarded, "again");
    assert_eq!(asked(&b, 257, "/a/b", &tokens[0]), None);
}
