//! Each verb: defaults, the body of its answer, its errors.

use super::*;
use onym_wire::mgmt::Persistency;

fn uri(uri: &str) -> ControlParameters {
    ControlParameters { uri: Some(uri.into()), ..ControlParameters::default() }
}

#[test]
fn register_fills_in_every_field_that_clients_insist_on() {
    let mut world = World::default();
    let answer = world.command("rib/register", &named("/demo"));
    assert_eq!((answer.code, answer.text.as_str()), (200, "OK"));
    let expected = ControlParameters {
        face_id: Some(300),
        origin: Some(0),
        cost: Some(0),
        flags: Some(1),
        ..named("/demo")
    };
    assert_eq!(answer.body, Some(expected));
    assert_eq!(world.host.routes.len(), 1);
    assert_eq!(world.host.routes[0].face, APP);
}

#[test]
fn register_takes_every_field_and_unregister_removes_that_route_only() {
    let mut world = World::default();
    let p = ControlParameters {
        face_id: Some(301),
        origin: Some(65),
        cost: Some(9),
        flags: Some(2),
        expiration_period_ms: Some(1_200_000),
        ..named("/demo")
    };
    assert_eq!(world.command("rib/register", &p).body, Some(p.clone()));
    let route = &world.host.routes[0];
    assert_eq!((route.face, route.origin, route.cost, route.flags), (PEER, 65, 9, 2));
    assert_eq!(route.expiration_ms, Some(1_200_000));
    // Another origin: nothing to remove, and still done.
    assert_eq!(world.command("rib/unregister", &named("/demo")).code, 200);
    assert_eq!(world.host.routes.len(), 1);
    let p = ControlParameters { face_id: Some(301), origin: Some(65), ..named("/demo") };
    assert_eq!(world.command("rib/unregister", &p).body, Some(p));
    assert!(world.host.routes.is_empty());
}

#[test]
fn missing_forbidden_and_lonely_fields_are_400_and_named() {
    let mut world = World::default();
    let empty = ControlParameters::default();
    let mut refused = |verb: &str, p: &ControlParameters, word: &str| {
        let answer = world.command(verb, p);
        assert_eq!(answer.code, 400, "{verb}");
        assert!(answer.text.starts_with("failed in validating parameters"), "{}", answer.text);
        assert!(answer.text.contains(word), "{verb}: {}", answer.text);
    };
    refused("rib/register", &empty, "Name is missing");
    refused("rib/register", &ControlParameters { mask: Some(1), ..named("/a") }, "Mask");
    refused("rib/register", &ControlParameters { origin: Some(65_536), ..named("/a") }, "Origin");
    refused("rib/unregister", &ControlParameters { cost: Some(1), ..named("/a") }, "Cost");
    refused("fib/add-nexthop", &empty, "Name");
    refused("fib/add-nexthop", &ControlParameters { flags: Some(1), ..named("/a") }, "Flags");
    refused("fib/remove-nexthop", &ControlParameters { cost: Some(1), ..named("/a") }, "Cost");
    refused("faces/create", &empty, "Uri");
    refused(
        "faces/create",
        &ControlParameters { flags: Some(1), ..uri("udp4://1.2.3.4:1") },
        "Mask",
    );
    refused("faces/update", &uri("udp4://1.2.3.4:1"), "Uri");
    refused("faces/destroy", &empty, "FaceId");
    let zero = ControlParameters { face_id: Some(0), ..ControlParameters::default() };
    refused("faces/destroy", &zero, "FaceId");
    refused("cs/config", &ControlParameters { mask: Some(1), ..empty.clone() }, "Flags and Mask");
    refused("cs/erase", &empty, "Name");
    refused("cs/erase", &ControlParameters { count: Some(0), ..named("/a") }, "Count");
    refused("strategy-choice/set", &named("/a"), "Strategy");
    refused("strategy-choice/unset", &named("/"), "unset");
    refused("strategy-choice/unset", &empty, "Name");
}

#[test]
fn names_longer_than_a_table_keeps_are_414_and_full_tables_507() {
    let mut world = World::default();
    let long = named(&"/x".repeat(33));
    for verb in ["rib/register", "fib/add-nexthop"] {
        assert_eq!(world.command(verb, &long).code, 414, "{verb}");
    }
    let strategy = Some(name("/localhost/nfd/strategy/multicast"));
    let p = ControlParameters { strategy, ..long.clone() };
    assert_eq!(world.command("strategy-choice/set", &p).code, 414);
    for verb in ["rib/unregister", "fib/remove-nexthop"] {
        assert_eq!(world.command(verb, &long).code, 200, "{verb}");
    }
    let full = ControlParameters { cost: Some(666), ..named("/a") };
    assert_eq!(world.command("rib/register", &full).code, 507);
}

#[test]
fn next_hops_are_added_for_faces_that_exist_and_removed_without_question() {
    let mut world = World::default();
    let p = ControlParameters { cost: Some(5), ..named("/a") };
    let done = ControlParameters { face_id: Some(300), ..p.clone() };
    assert_eq!(world.command("fib/add-nexthop", &p).body, Some(done));
    let missing = ControlParameters { face_id: Some(999), ..named("/a") };
    assert_eq!(world.command("fib/add-nexthop", &missing).code, 410);
    let huge = ControlParameters { face_id: Some(u64::MAX), ..named("/a") };
    assert_eq!(world.command("fib/add-nexthop", &huge).code, 410);
    assert_eq!(world.command("fib/remove-nexthop", &missing).body, Some(missing));
    assert_eq!(world.host.fib[&name("/a")], [NextHop { face: APP, cost: 5 }]);
    let own = ControlParameters { face_id: Some(300), ..named("/a") };
    assert_eq!(world.command("fib/remove-nexthop", &named("/a")).body, Some(own));
    assert!(world.host.fib[&name("/a")].is_empty());
}

#[test]
fn the_content_store_is_configured_bit_by_bit() {
    let mut world = World::default();
    let p = ControlParameters {
        capacity: Some(100),
        flags: Some(0),
        mask: Some(2),
        ..ControlParameters::default()
    };
    let body = world.command("cs/config", &p).body.unwrap();
    assert_eq!((body.capacity, body.flags), (Some(100), Some(1)), "serve is off, admit unchanged");
    let body = world.command("cs/config", &ControlParameters::default()).body.unwrap();
    assert_eq!((body.capacity, body.flags), (Some(100), Some(1)), "asks without changing");
}

#[test]
fn erase_takes_256_at_once_and_says_when_more_remain() {
    let mut world = World::default();
    world.host.cs_under = 300;
    let body = world.command("cs/erase", &named("/a")).body.unwrap();
    assert_eq!((body.count, body.capacity), (Some(256), Some(256)));
    let p = ControlParameters { count: Some(40), ..named("/a") };
    let body = world.command("cs/erase", &p).body.unwrap();
    assert_eq!((body.count, body.capacity), (Some(40), None), "as many as were asked for");
    let body = world.command("cs/erase", &named("/a")).body.unwrap();
    assert_eq!((body.count, body.capacity), (Some(4), None));
}

#[test]
fn strategies_answer_with_their_full_name() {
    let mut world = World::default();
    let p = |uri: &str| ControlParameters { strategy: Some(name(uri)), ..named("/a") };
    let body = world.command("strategy-choice/set", &p("/localhost/nfd/strategy/multicast")).body;
    assert_eq!(body, Some(p("/localhost/nfd/strategy/multicast/v=5")));
    assert_eq!(world.command("strategy-choice/set", &p("/nothing")).code, 404);
    let refused = world.command("strategy-choice/set", &p("/localhost/nfd/strategy/asf/v=9"));
    assert_eq!((refused.code, refused.text.as_str()), (409, "asf has versions up to 5"));
    assert_eq!(world.command("strategy-choice/unset", &named("/a")).body, Some(named("/a")));
    assert!(world.host.strategies.is_empty());
}

#[test]
fn a_face_is_made_and_described_in_canonical_order() {
    let mut world = World::default();
    let p = ControlParameters {
        face_persistency: Some(Persistency::Permanent),
        flags: Some(2),
        mask: Some(2),
        mtu: Some(1400),
        ..uri("udp4://192.0.2.9:6363")
    };
    let body = world.command("faces/create", &p).body.unwrap();
    assert_eq!(body.face_id, Some(400));
    assert_eq!(body.uri.as_deref(), Some("udp4://192.0.2.9:6363"));
    assert!(body.local_uri.is_some() && body.flags.is_some() && body.face_persistency.is_some());
    let (_, spec) = &world.host.created[0];
    assert_eq!(spec.props.persistency, Some(Persistency::Permanent));
    assert_eq!((spec.props.flags, spec.props.mask, spec.props.mtu), (2, 2, Some(1400)));
}

#[test]
fn faces_that_cannot_be_are_refused_before_the_node_is_asked() {
    let mut world = World::default();
    let mut code = |p: &ControlParameters| world.command("faces/create", p).code;
    assert_eq!(code(&uri("nonsense")), 400);
    assert_eq!(code(&uri("udp://router.example")), 400, "to be looked up");
    assert_eq!(code(&uri("udp4://router.example:6363")), 400);
    assert_eq!(code(&uri("udp4://224.0.23.170:56363")), 406);
    assert_eq!(code(&uri("ether://[01:00:5e:00:17:aa]")), 406);
    assert_eq!(code(&uri("ether://[08:00:27:01:01:01]")), 406, "without its interface");
    let local_uri = Some("udp4://192.0.2.2:1".to_owned());
    assert_eq!(code(&ControlParameters { local_uri, ..uri("tcp4://192.0.2.9:6363") }), 406);
    let local_uri = Some("dev://eth0".to_owned());
    assert_eq!(code(&ControlParameters { local_uri, ..uri("udp4://192.0.2.9:6363") }), 406);
    let on_demand = Some(Persistency::OnDemand);
    let p = ControlParameters { face_persistency: on_demand, ..uri("udp4://192.0.2.9:6363") };
    assert_eq!(code(&p), 406);
    let small = ControlParameters { mtu: Some(63), ..uri("udp4://192.0.2.9:6363") };
    assert_eq!(code(&small), 406);
    assert_eq!(code(&ControlParameters { mtu: Some(1400), ..uri("tcp4://192.0.2.9:6363") }), 406);
    let fields = |u: &str| ControlParameters { flags: Some(1), mask: Some(1), ..uri(u) };
    assert_eq!(code(&fields("udp4://127.0.0.1:6363")), 406);
    assert_eq!(code(&fields("tcp4://192.0.2.9:6363")), 406);
    assert_eq!(code(&fields("tcp4://127.0.0.1:6363")), 200, "TCP to this machine is local");
    let local_uri = Some("dev://eth0".to_owned());
    assert_eq!(code(&ControlParameters { local_uri, ..uri("ether://[08:00:27:01:01:01]") }), 200);
    assert_eq!(world.host.created.len(), 2);
}

#[test]
fn a_uri_that_needs_no_look_up_is_made_canonical() {
    let mut world = World::default();
    assert_eq!(world.command("faces/create", &uri("udp://192.0.2.9:6363")).code, 200);
    for text in ["udp://192.0.2.9", "udp4://192.0.2.9"] {
        assert_eq!(
            world.command("faces/create", &uri(text)).code,
            400,
            "{text}: a port is missing"
        );
    }
    let local_uri = Some("udp4://192.0.2.2:6363".to_owned());
    let from = ControlParameters { local_uri, ..uri("udp4://192.0.2.9:6363") };
    assert_eq!(world.command("faces/create", &from).code, 200);
    for (_, spec) in &world.host.created {
        assert_eq!(spec.remote_uri, "udp4://192.0.2.9:6363");
    }
}

#[test]
fn each_reason_of_the_node_has_its_code_and_an_existing_face_its_description() {
    type Case = (fn(&FaceSpec) -> Creation, u64);
    let refuse: [Case; 5] = [
        (|_| Creation::Refused(FaceError::BadUri("bad".into())), 400),
        (|_| Creation::Refused(FaceError::Unsupported("no".into())), 406),
        (|_| Creation::Refused(FaceError::ConnectFailed("refused".into())), 504),
        (|_| Creation::Refused(FaceError::System("too many open files".into())), 500),
        (
            |spec| {
                let face = view(PEER, Scope::NonLocal, &spec.remote_uri, "udp4://192.0.2.2:6363");
                Creation::Refused(FaceError::Exists(Box::new(face)))
            },
            409,
        ),
    ];
    for (creation, code) in refuse {
        let mut world = World::default();
        world.host.creation = creation;
        let answer = world.command("faces/create", &uri("udp4://192.0.2.1:6363"));
        assert_eq!(answer.code, code);
        assert_eq!(answer.body.and_then(|b| b.face_id), (code == 409).then_some(301));
    }
}

#[test]
fn a_connection_that_takes_time_is_answered_when_it_ends() {
    let mut world = World::default();
    world.host.creation = |_| Creation::Pending;
    let target = uri("tcp4://192.0.2.9:6363");
    let mut tickets = Vec::new();
    for _ in 0..2 {
        let wire = world.signed(&name_of("faces/create", &target), &Signer::digest());
        assert!(world.send(&wire, APP).is_empty());
        tickets.push(world.host.created.last().unwrap().0);
    }
    assert_ne!(tickets[0], tickets[1]);
    let face = view(FaceId(401), Scope::NonLocal, "tcp4://192.0.2.9:6363", "tcp4://192.0.2.2:9");
    world.management.face_created(tickets[1], Err(FaceError::ConnectFailed("refused".into())));
    world.management.face_created(tickets[0], Ok(face.clone()));
    world.management.face_created(tickets[0], Ok(face));
    let sent: Vec<Output> = std::iter::from_fn(|| world.management.poll_output()).collect();
    let codes: Vec<u64> = sent.chunks(1).map(|one| response(one).unwrap().code).collect();
    assert_eq!(codes, [504, 200], "each once");
}

#[test]
fn connections_that_wait_are_bounded() {
    let mut world = World::default();
    world.host.creation = |_| Creation::Pending;
    for _ in 0..CREATIONS_MAX {
        let wire =
            world.signed(&name_of("faces/create", &uri("tcp4://192.0.2.9:1")), &Signer::digest());
        assert!(world.send(&wire, APP).is_empty());
    }
    assert_eq!(world.command("faces/create", &uri("tcp4://192.0.2.9:1")).code, 504);
    assert_eq!(world.host.created.len(), CREATIONS_MAX, "the node is not asked");
}

#[test]
fn update_changes_masked_bits_of_the_requesters_face_by_default() {
    let mut world = World::default();
    let p = ControlParameters { flags: Some(7), mask: Some(1), ..ControlParameters::default() };
    let body = world.command("faces/update", &p).body.unwrap();
    assert_eq!((body.face_id, body.flags, body.uri), (Some(300), Some(1), None));
    let missing = ControlParameters { face_id: Some(999), ..ControlParameters::default() };
    assert_eq!(world.command("faces/update", &missing).code, 404);
    let remote = ControlParameters { face_id: Some(301), ..p };
    let refused = world.command("faces/update", &remote);
    assert_eq!((refused.code, refused.text.as_str()), (409, "Invalid properties specified"));
    assert_eq!(refused.body.unwrap().flags, Some(1));
    let mtu = |mtu| ControlParameters { mtu: Some(mtu), ..ControlParameters::default() };
    for bad in [10, 9000] {
        let refused = world.command("faces/update", &mtu(bad));
        assert_eq!((refused.code, refused.body.unwrap().mtu), (409, Some(bad)));
    }
}

#[test]
fn destroy_is_done_whether_the_face_is_there_or_not() {
    let mut world = World::default();
    for (id, left) in [(301, 1), (301, 1), (1, 1), (u64::MAX, 1)] {
        let p = ControlParameters { face_id: Some(id), ..ControlParameters::default() };
        let answer = world.command("faces/destroy", &p);
        assert_eq!((answer.code, answer.body), (200, Some(p)));
        assert_eq!(world.host.faces.len(), left);
    }
}

#[test]
fn unknown_verbs_and_modules_are_501_with_what_there_is() {
    let mut world = World::default();
    let answer = world.command("rib/renounce", &named("/a"));
    assert_eq!(answer.code, 501);
    assert!(answer.text.contains("announce, register, unregister"), "{}", answer.text);
    let answer = world.command("weather/set", &named("/a"));
    assert_eq!(answer.code, 501);
    assert!(answer.text.contains("strategy-choice"), "{}", answer.text);
}

#[test]
fn the_log_is_set_in_our_own_namespace_and_only_there() {
    let mut world = World::default();
    let filter = ControlParameters { uri: Some("debug".into()), ..ControlParameters::default() };
    let ours = name_under("/localhost/onym", "log/set", &filter);
    let wire = world.signed(&ours, &Signer::digest());
    // This host keeps no log, which is what it says.
    let answer = response(&world.send(&wire, APP)).unwrap();
    assert_eq!((answer.code, answer.text.contains("no log")), (400, true));
    assert_eq!(world.command("log/set", &filter).code, 501);
    let other = name_under("/localhost/onym", "faces/create", &filter);
    let wire = world.signed(&other, &Signer::digest());
    assert!(world.send(&wire, APP).is_empty());
}
