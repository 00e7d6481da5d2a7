//! Requests that trace a name: who is answered, and those that are sent on.

use super::*;
use onym_wire::trace::{APPLICATION, FORWARDER, HOP_LIMIT, Kind, Leg, Reply, request};

/// A request about `/app/file`, with legs.
fn asked(kind: Kind, nonce: u8, legs: &[Leg]) -> Vec<u8> {
    let name = request(kind, &name("/app/file"), [nonce; 4]);
    let interest = InterestBuilder {
        must_be_fresh: true,
        hop_limit: Some(0),
        ..InterestBuilder::new(name.as_ref())
    };
    let (mut parameters, mut wire) = (Vec::new(), Vec::new());
    legs.iter().for_each(|leg| leg.write(&mut parameters));
    match legs {
        [] => interest.write(&mut wire),
        _ => onym_crypto::signer::write_parameters(&interest, &parameters, &mut wire),
    }
    wire
}

fn world(code: u16) -> World {
    let mut world = World::default();
    let traced = Traced { sender: name("/net/a"), code, more: "{}".into() };
    (world.host.traced, world.host.tracers) = (Some(traced), vec![APP, PEER]);
    world
}

/// The name of the one Data that was sent, and sender and code in it.
fn replied(sent: &[Output]) -> Option<(Name, Name, u16)> {
    let [Output::Data { wire, no_cache: true }] = sent else { return None };
    let data = Data::parse(wire).unwrap();
    onym_crypto::verify::integrity(&data).unwrap();
    assert_eq!(data.freshness_ms, 1);
    let reply = Reply::parse(data.content).unwrap();
    Some((data.name.to_name(), reply.sender.to_name(), reply.code))
}

#[test]
fn those_that_may_are_answered_and_others_hear_nothing() {
    let mut world = world(HOP_LIMIT);
    let wire = asked(Kind::Trace, 1, &[]);
    let name_asked = Interest::parse(&wire).unwrap().name.to_name();
    let answer = replied(&world.send(&wire, APP)).unwrap();
    assert_eq!(answer, (name_asked, name("/net/a"), HOP_LIMIT));
    world.host.tracers = vec![APP];
    assert_eq!(world.send(&asked(Kind::Trace, 2, &[]), PEER), []);
    assert_eq!(world.send(&asked(Kind::Trace, 2, &[Leg { face: 301, hops: 1 }]), PEER), []);
    assert_eq!(world.send(&asked(Kind::Trace, 3, &[]), FaceId(999)), []);
}

#[test]
fn an_echo_is_answered_for_what_is_here_only() {
    for (code, is_answered) in [(HOP_LIMIT, false), (FORWARDER, true), (APPLICATION, true)] {
        let mut world = world(code);
        let answer = replied(&world.send(&asked(Kind::Echo, 1, &[]), APP));
        assert_eq!(answer.is_some(), is_answered, "{code}");
    }
}

#[test]
fn a_request_with_legs_is_sent_on_by_its_face_and_the_reply_returned() {
    let mut world = world(HOP_LIMIT);
    let legs = [Leg { face: PEER.0, hops: 2 }, Leg { face: 400, hops: 1 }];
    let wire = asked(Kind::Trace, 1, &legs);
    let came = Interest::parse(&wire).unwrap().name.to_name();
    let sent = world.send(&wire, APP);
    let [Output::Interest { wire, next_hop: PEER }] = sent.as_slice() else {
        panic!("{sent:?}");
    };
    let on = Interest::parse(wire).unwrap();
    assert_eq!(on.hop_limit, Some(3), "the own forwarder takes one");
    let (next, rest) = Leg::first(on.app_parameters.unwrap()).unwrap().unwrap();
    assert_eq!((next, rest), (legs[1], &[][..]));
    assert!(onym_crypto::verify::check_parameters_digest(&on).is_ok(), "its digest is right");

    // Whoever replies under another name, or with anything else, is not heard.
    let sender = name("/net/z");
    let content = Reply { sender: sender.as_ref(), code: 2, more: None }.to_content();
    for (name, content, is_heard) in
        [(&came, &content, false), (&on.name.to_name(), &content, true)]
    {
        let mut data = Vec::new();
        let builder = onym_wire::DataBuilder::new(name.as_ref(), content);
        onym_crypto::signer::write_digest_data(&builder, &mut data);
        world.management.data(&data, PEER, world.now, &mut world.host);
        let sent: Vec<_> = std::iter::from_fn(|| world.management.poll_output()).collect();
        let expected = is_heard.then(|| (came.clone(), sender.clone(), 2));
        assert_eq!(replied(&sent), expected, "{name}");
    }
}

/// Law: requests that are sent on are bounded, for each face and together, and what is overdue
/// gives its place up; legs to nowhere and to applications are not followed.
#[test]
fn what_is_sent_on_is_bounded() {
    let mut world = world(HOP_LIMIT);
    let mut sends = |face: FaceId, nonce: u8, to: FaceId, pass_ms: u64| {
        world.pass_ms(pass_ms);
        world.host.tracers.push(face);
        !world.send(&asked(Kind::Trace, nonce, &[Leg { face: to.0, hops: 1 }]), face).is_empty()
    };
    for to in [APP, FaceId(999), FaceId::NULL, FaceId::INVALID] {
        assert!(!sends(APP, 0, to, 0), "{to:?}");
    }
    let own = (0..100).filter(|nonce| sends(APP, *nonce, PEER, 0)).count();
    assert_eq!(own, 16, "of one face");
    let others = (0..100).filter(|n| sends(FaceId(500 + u32::from(*n)), 100 + n, PEER, 0)).count();
    assert_eq!(others, 48, "64 of all");
    assert!(sends(APP, 200, PEER, 4001), "the others are overdue");
}
