//! Whatever comes in, management does not panic and stays within its bounds.

use super::*;
use proptest::prelude::*;

/// Interests near to what management answers: known words, then anything.
fn near() -> impl Strategy<Value = Vec<u8>> {
    let word = prop_oneof![
        Just(b"localhost".to_vec()),
        Just(b"localhop".to_vec()),
        Just(b"nfd".to_vec()),
        Just(b"onym".to_vec()),
        Just(b"rib".to_vec()),
        Just(b"faces".to_vec()),
        Just(b"register".to_vec()),
        Just(b"announce".to_vec()),
        Just(b"query".to_vec()),
        Just(b"events".to_vec()),
        Just(b"explain".to_vec()),
        Just(b"create".to_vec()),
        Just(b"list".to_vec()),
        proptest::collection::vec(any::<u8>(), 0..40),
    ];
    let first = prop_oneof![Just("/localhost/nfd"), Just("/localhop/nfd"), Just("/localhost/onym")];
    let flags = (any::<bool>(), any::<bool>(), any::<Option<u32>>());
    let tail =
        proptest::collection::vec((prop_oneof![Just(8_u16), Just(54), Just(50)], word), 0..7);
    (first, tail, flags, proptest::collection::vec(any::<u8>(), 0..60)).prop_map(
        |(first, tail, (prefix, signed, parameters), bytes)| {
            let mut uri = name(first);
            for (typ, value) in &tail {
                uri.push(onym_wire::Component { typ: *typ, value });
            }
            let mut wire = Vec::new();
            let interest =
                InterestBuilder { can_be_prefix: prefix, ..InterestBuilder::new(uri.as_ref()) };
            if parameters.is_some() && signed {
                let freshness = Freshness { time_ms: Some(NOW_MS), ..Freshness::default() };
                Signer::digest().sign_interest(&interest, &bytes, freshness, &mut wire).unwrap();
            } else if signed {
                let uri = Signer::digest().sign_name(uri.as_ref(), NOW_MS, [1; 8]).unwrap();
                InterestBuilder::new(uri.as_ref()).write(&mut wire);
            } else {
                interest.write(&mut wire);
            }
            wire
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn any_interest_is_answered_with_packets_or_ignored(
        wires in proptest::collection::vec(near(), 1..8),
        junk in proptest::collection::vec(any::<u8>(), 0..80),
        flip in any::<(prop::sample::Index, u8)>(),
        from in prop_oneof![Just(APP), Just(PEER), Just(FaceId(1))],
        localhop: bool,
    ) {
        let policy = Policy { localhop: localhop.then_some(Localhop::Any), ..Policy::default() };
        let mut world = World::policy(policy);
        for mut wire in wires {
            let mut sent = world.send(&wire, from);
            let at = flip.0.index(wire.len());
            wire[at] ^= flip.1;
            sent.extend(world.send(&wire, from));
            for output in sent {
                let Output::Data { wire, .. } = output else { continue };
                prop_assert!(wire.len() <= PACKET_LEN_MAX);
                prop_assert!(Data::parse(&wire).is_ok());
            }
            world.pass_ms(100);
        }
        world.send(&junk, from);
        world.management.data(&junk, from, world.now, &mut world.host);
    }

    #[test]
    fn a_host_without_a_node_takes_any_interest(wires in proptest::collection::vec(near(), 1..8)) {
        let mut host = Blank { unix_ms: NOW_MS };
        let mut management = Management::new(Options::default(), Box::new(SystemEntropy));
        for wire in wires {
            management.interest(&wire, APP, Tick::from_ms(1), &mut host);
        }
        while management.poll_output().is_some() {}
    }
}

#[test]
fn answers_that_would_pass_the_packet_limit_lose_their_body_or_are_left_out() {
    let mut world = World::default();
    for len in [4000, 4400, 8000] {
        let mut prefix = Name::new();
        prefix.append_generic(vec![b'x'; len]);
        let p = ControlParameters { name: Some(prefix), ..ControlParameters::default() };
        let wire = world.signed(&name_of("rib/register", &p), &Signer::digest());
        let sent = world.send(&wire, APP);
        for output in &sent {
            let Output::Data { wire, .. } = output else { panic!() };
            assert!(wire.len() <= PACKET_LEN_MAX);
        }
        let response = response(&sent).unwrap();
        assert_eq!((response.code, response.body.is_some()), (200, len < 4400));
    }
}
