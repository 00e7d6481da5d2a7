use super::*;
use onym_crypto::digest::implicit_digest;
use onym_crypto::signer::write_digest_data;
use onym_wire::DataBuilder;

fn name(uri: &str) -> Name {
    uri.parse().expect("a name")
}

fn data(uri: &str) -> Vec<u8> {
    let mut wire = Vec::new();
    write_digest_data(&DataBuilder::new(name(uri).as_ref(), b"content"), &mut wire);
    wire
}

fn endpoint() -> Endpoint {
    Endpoint::new(7, Limits::default())
}

fn nack(endpoint: &mut Endpoint, now: Tick, wire: &[u8], reason: NackReason) -> bool {
    endpoint.receive(now, &Inbound { nack: Some(reason), ..Inbound::bare(wire) })
}

fn answers(endpoint: &mut Endpoint) -> Vec<RequestId> {
    let events = std::iter::from_fn(|| endpoint.poll_event());
    events
        .map(|event| match event {
            Event::Data { id, .. } => id,
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn a_data_answers_every_request_that_it_matches_and_no_other() {
    let mut e = endpoint();
    let wire = data("/a/b");
    let mut ask = |uri: &str, can_be_prefix| {
        let request = Request { can_be_prefix, ..Request::new(name(uri)) };
        e.express(Tick(0), &request).expect("room")
    };
    let exact = ask("/a/b", false);
    let prefix = ask("/a", true);
    let _short = ask("/a", false);
    let _longer = ask("/a/b/c", true);
    let mut full = name("/a/b");
    full.append_implicit_digest(&implicit_digest(&wire));
    let digest = e.express(Tick(0), &Request::new(full.clone())).expect("room");
    full.pop().append_implicit_digest(&[9; 32]);
    let _other = e.express(Tick(0), &Request::new(full)).expect("room");
    assert!(e.receive(Tick(5), &Inbound::bare(&wire)));
    let mut found = answers(&mut e);
    found.sort_unstable();
    assert_eq!(found, [exact, prefix, digest]);
    assert_eq!(e.pending(), 3);
    assert!(!e.receive(Tick(6), &Inbound::bare(&wire)), "nobody waits any more");
    assert_eq!(e.counters().unsolicited, 1);
}

#[test]
fn a_request_is_tried_as_often_as_told_and_then_ends_once() {
    let mut e = endpoint();
    let interval = Some(Duration::from_millis(100));
    let request = Request { tries: 3, interval, ..Request::new(name("/a")) };
    let asked = e.express(Tick(0), &request).expect("room");
    let mut nonces = Vec::new();
    for at in [100, 200, 300] {
        let sent = e.poll_transmit().expect("sent");
        nonces.push(Interest::parse(&sent.wire).expect("an Interest").nonce);
        assert_eq!(e.poll_transmit(), None);
        assert_eq!(e.poll_timeout(), Tick::from_ms(at));
        e.handle_timeout(Tick::from_ms(at - 1));
        assert_eq!(e.poll_transmit(), None);
        e.handle_timeout(Tick::from_ms(at));
    }
    nonces.dedup();
    assert_eq!(nonces.len(), 3, "each sending has its own Nonce");
    let end = e.poll_event();
    assert!(
        matches!(end, Some(Event::Unanswered { id, why: Unanswered::Timeout }) if id == asked),
        "{end:?}"
    );
    assert!(e.poll_event().is_none());
    assert_eq!((e.pending(), e.poll_timeout()), (0, Tick::NEVER));
}

#[test]
fn nacks_count_with_the_last_nonce_and_by_their_reason() {
    let mut e = endpoint();
    let request = Request { tries: 3, ..Request::new(name("/a")) };
    e.express(Tick(0), &request).expect("room");
    let first = e.poll_transmit().expect("sent").wire;
    assert!(nack(&mut e, Tick(1), &first, NackReason::DUPLICATE));
    let second = e.poll_transmit().expect("sent again at once").wire;
    assert!(!nack(&mut e, Tick(2), &first, NackReason::NO_ROUTE), "stale");
    assert!(nack(&mut e, Tick(2), &second, NackReason::CONGESTION));
    assert_eq!(e.poll_transmit(), None);
    assert_eq!(e.poll_timeout(), Tick(2) + CONGESTION_WAIT);
    e.handle_timeout(e.poll_timeout());
    let third = e.poll_transmit().expect("sent after a wait").wire;
    assert!(nack(&mut e, Tick(3), &third, NackReason::CONGESTION), "the last try");
    let end = e.poll_event();
    assert!(matches!(end, Some(Event::Unanswered { why: Unanswered::Nack(_), .. })), "{end:?}");
    assert_eq!(e.counters().stale_nacks, 1);
}

#[test]
fn at_its_bounds_an_endpoint_refuses_and_counts() {
    let limits = Limits {
        pending_max: 2,
        prefixes_max: 1,
        incoming_max: 1,
        transmit_octets_max: 60,
        ..Limits::default()
    };
    let mut e = Endpoint::new(1, limits);
    e.express(Tick(0), &Request::new(name("/a"))).expect("room");
    e.express(Tick(0), &Request::new(name("/b"))).expect("room");
    assert_eq!(e.express(Tick(0), &Request::new(name("/c"))), Err(Refused::Pending));
    let served = e.serve(name("/p")).expect("room");
    assert_eq!(e.serve(name("/p")), Ok(served));
    assert_eq!(e.serve(name("/q")), Err(Refused::Prefixes));
    let mut other = endpoint();
    other.express(Tick(0), &Request::new(name("/p/x"))).expect("room");
    let wire = other.poll_transmit().expect("sent").wire;
    assert!(e.receive(Tick(0), &Inbound::bare(&wire)));
    assert!(e.receive(Tick(0), &Inbound::bare(&wire)), "for it, and dropped");
    assert_eq!(e.counters().incoming_dropped, 1);
    for _ in 0..4 {
        e.notify(wire.clone(), None);
    }
    assert!(e.counters().transmit_dropped > 0);
    let octets: usize = std::iter::from_fn(|| e.poll_transmit()).map(|t| t.wire.len()).sum();
    assert!(octets <= 60, "{octets}");
    let octets_max = Limits { pending_octets_max: 10, ..Limits::default() };
    let mut e = Endpoint::new(1, octets_max);
    assert_eq!(e.express(Tick(0), &Request::new(name("/long/name"))), Err(Refused::Pending));
}

#[test]
fn a_reply_carries_the_token_and_the_longest_prefix_wins() {
    let mut e = endpoint();
    let short = e.serve(name("/p")).expect("room");
    let long = e.serve(name("/p/q")).expect("room");
    let mut wires = Vec::new();
    for uri in ["/p/q/r", "/p/z", "/other"] {
        let mut asking = endpoint();
        asking.express(Tick(0), &Request::new(name(uri))).expect("room");
        wires.extend(asking.poll_transmit().map(|t| t.wire));
    }
    for (wire, expected) in wires.iter().zip([Some(long), Some(short), None]) {
        let inbound =
            Inbound { pit_token: b"tok", incoming_face: Some(300), ..Inbound::bare(wire) };
        assert_eq!(e.receive(Tick(0), &inbound), expected.is_some());
        let Some(Event::Interest { prefix, incoming }) = e.poll_event() else {
            assert_eq!(expected, None);
            continue;
        };
        assert_eq!((Some(prefix), incoming.face), (expected, Some(300)));
        e.refuse(&incoming, NackReason::NO_ROUTE);
        let frame = e.poll_transmit().expect("a Nack").to_frame();
        let back = Inbound::from_frame(&frame).expect("a frame");
        assert_eq!((back.pit_token, back.nack), (&b"tok"[..], Some(NackReason::NO_ROUTE)));
    }
    e.stop_serving(long);
    e.receive(Tick(0), &Inbound::bare(&wires[0]));
    assert!(matches!(e.poll_event(), Some(Event::Interest { prefix, .. }) if prefix == short));
}

#[test]
fn what_cannot_be_parsed_is_counted_and_leaves_nothing() {
    let mut e = endpoint();
    for wire in [&b""[..], b"\x05", b"\x05\x00", b"\x06\x02\x07\x00", b"\x64\x00", b"\xff\xff"] {
        assert!(!e.receive(Tick(0), &Inbound::bare(wire)));
    }
    assert_eq!(e.counters().malformed, 6);
    assert!(e.poll_event().is_none() && e.poll_transmit().is_none());
}

#[test]
fn a_cancelled_request_is_never_heard_of_again() {
    let mut e = endpoint();
    let id = e.express(Tick(0), &Request::new(name("/a"))).expect("room");
    e.cancel(id);
    e.handle_timeout(Tick::from_ms(10_000));
    assert!(!e.receive(Tick(0), &Inbound::bare(&data("/a"))));
    assert!(e.poll_event().is_none());
}
