//! The management protocol over the faces of a running node.

#![allow(clippy::unwrap_used)]

mod support;

use onym_wire::interest::InterestBuilder;
use onym_wire::mgmt::{
    Block as _, ControlParameters, FaceEventKind, FaceEventNotification, Persistency, RibEntry,
    Scope, parse_list,
};
use std::time::{Duration, Instant};
use support::{App, name, quiet, socket_dir, start, tcp_app, unix_app, until, unwrap, with};

fn named(text: &str) -> ControlParameters {
    ControlParameters { name: Some(name(text)), ..ControlParameters::default() }
}

#[test]
fn an_application_registers_under_localhop_whether_others_may_or_not() {
    for setting in ["rib.localhop=false", "rib.localhop=true"] {
        let node = start(with(2, &["faces.tcp.listen=127.0.0.1:0", setting]));
        let mut app = tcp_app(&node);
        let answer = app.command("/localhop/nfd", "rib/register", &named("/a"));
        assert_eq!(answer.code, 200, "{setting}: {answer:?}");
        let (_, io) = node.attach(Scope::Local).unwrap();
        let mut consumer = App::new(io);
        consumer.interest("/a/1");
        assert_eq!(app.take_interest().0.to_string(), "/a/1");
    }
}

#[test]
fn another_machine_does_not_register_unless_that_is_configured() {
    let node = start(quiet(2));
    let (_, io) = node.attach(Scope::NonLocal).unwrap();
    let mut stranger = App::new(io);
    stranger.interest("/localhost/nfd/rib/list");
    // The dataset gets no answer, the registration is told that nobody is there.
    stranger.send_command("/localhop/nfd", "rib/register", &named("/a"));
    assert!(stranger.take_nack().to_string().starts_with("/localhop/nfd/rib/register"));
    assert_eq!(node.snapshot().unwrap().rib_routes, 0);
}

#[test]
fn a_neighbour_that_takes_registrations_is_preferred_to_ourselves_while_others_may_not() {
    let node = start(quiet(1));
    let (id, io) = node.attach(Scope::NonLocal).unwrap();
    let mut gateway = App::new(io);
    node.route("/localhop/nfd", id, 10).unwrap();
    let (_, io) = node.attach(Scope::Local).unwrap();
    let mut app = App::new(io);
    app.send_command("/localhop/nfd", "rib/register", &named("/a"));
    assert!(gateway.take_interest().0.to_string().starts_with("/localhop/nfd/rib/register"));
}

#[test]
fn subscribers_hear_of_faces_that_come_and_go() {
    let (_dir, unix) = socket_dir();
    let node = start(with(2, &[&unix, "faces.udp.listen=127.0.0.1:0"]));
    let mut watcher = unix_app(&node);
    let event = |watcher: &mut App| {
        let (name, content) = watcher.take_data();
        let seq = name.as_ref().get(4).unwrap().as_sequence_num().unwrap();
        (seq, FaceEventNotification::parse(&content).unwrap())
    };
    // The watcher's own face is the first event.
    watcher.interest("/localhost/nfd/faces/events/seq=0");
    let (_, own) = event(&mut watcher);
    assert_eq!(own.kind, FaceEventKind::Created);
    watcher.interest("/localhost/nfd/faces/events/seq=1");
    let (id, io) = node.attach(Scope::Local).unwrap();
    let (seq, made) = event(&mut watcher);
    assert_eq!((seq, made.kind, made.face_id), (1, FaceEventKind::Created, u64::from(id.0)));
    watcher.interest("/localhost/nfd/faces/events/seq=2");
    drop(io);
    let (seq, gone) = event(&mut watcher);
    assert_eq!((seq, gone.kind, gone.face_id), (2, FaceEventKind::Destroyed, u64::from(id.0)));
}

#[test]
fn subscribers_hear_that_nobody_is_at_the_other_end_of_a_face_that_goes_on() {
    let (_dir, unix) = socket_dir();
    let node = start(with(1, &[&unix, "faces.udp.listen=127.0.0.1:0"]));
    let mut watcher = unix_app(&node);
    // A port that was free a moment ago.
    let port = std::net::UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let create = ControlParameters {
        uri: Some(format!("udp4://127.0.0.1:{port}")),
        face_persistency: Some(Persistency::Permanent),
        ..ControlParameters::default()
    };
    let made = watcher.command("/localhost/nfd", "faces/create", &create);
    let face = made.body.unwrap().face_id.unwrap();
    let route = ControlParameters { face_id: Some(face), ..named("/far") };
    assert_eq!(watcher.command("/localhost/nfd", "rib/register", &route).code, 200);
    // The watcher's own face and this one were the first two events.
    watcher.interest("/localhost/nfd/faces/events/seq=2");
    watcher.interest("/far/1");
    let (_, content) = watcher.take_data();
    let told = FaceEventNotification::parse(&content).unwrap();
    assert_eq!((told.kind, told.face_id), (FaceEventKind::Refused, face));
    assert!(node.snapshot().unwrap().faces.iter().any(|(id, _)| u64::from(id.0) == face));
}

#[test]
fn subscribers_hear_of_routes_that_come_end_and_go() {
    let node = start(quiet(2));
    let (_, io) = node.attach(Scope::Local).unwrap();
    let mut watcher = App::new(io);
    let (_, io) = node.attach(Scope::Local).unwrap();
    let mut app = App::new(io);
    let hear = |watcher: &mut App, seq: u64, changes: u64| {
        let (name, content) = watcher.take_data();
        assert_eq!(name.to_string(), format!("/localhost/onym/rib/events/seq={seq}"));
        assert_eq!(content, format!("{{\"changes\":{changes}}}").into_bytes());
        watcher.interest(&format!("/localhost/onym/rib/events/seq={}", seq + 1));
    };
    watcher.interest("/localhost/onym/rib/events/seq=0");
    let p = ControlParameters { expiration_period_ms: Some(50), ..named("/short") };
    assert_eq!(app.command("/localhost/nfd", "rib/register", &p).code, 200);
    hear(&mut watcher, 0, 1);
    // Its end, of which nobody asked the node anything.
    hear(&mut watcher, 1, 2);
    let routing = ControlParameters { origin: Some(128), ..named("/routed") };
    assert_eq!(app.command("/localhost/nfd", "rib/register", &routing).code, 200);
    assert_eq!(app.command("/localhost/nfd", "rib/register", &named("/long")).code, 200);
    hear(&mut watcher, 2, 3);
    drop(app);
    hear(&mut watcher, 3, 4);
}

#[test]
fn a_registration_ends_with_its_time_and_with_its_face() {
    let node = start(quiet(2));
    let (_, io) = node.attach(Scope::Local).unwrap();
    let mut app = App::new(io);
    let p = ControlParameters { expiration_period_ms: Some(50), ..named("/short") };
    assert_eq!(app.command("/localhost/nfd", "rib/register", &p).code, 200);
    until("the route has expired", || node.snapshot().unwrap().rib_routes == 0);
    assert_eq!(app.command("/localhost/nfd", "rib/register", &named("/long")).code, 200);
    assert_eq!(node.snapshot().unwrap().rib_routes, 1);
    drop(app);
    until("the route went with its face", || node.snapshot().unwrap().rib_routes == 0);
    assert_eq!(node.explain("/long").unwrap()["verdict"], "no_route");
}

#[test]
fn a_flood_of_commands_of_one_application_leaves_the_others_served() {
    let node = start(quiet(2));
    let (_, io) = node.attach(Scope::Local).unwrap();
    let mut flooder = App::new(io);
    for n in 0..20_000 {
        flooder.queue_interest(&format!("/localhost/nfd/rib/nothing/{n}"));
    }
    let (_, io) = node.attach(Scope::Local).unwrap();
    let mut app = App::new(io);
    for n in 0..20 {
        flooder.flush();
        // Lost to the flood at worst: then asked again, as clients do.
        app.command_retried("/localhost/nfd", "rib/register", &named(&format!("/a/{n}")));
    }
    assert_eq!(node.snapshot().unwrap().rib_routes, 20);
}

/// Asks for a trace that ends at this node.
fn trace(app: &mut App, target: &str, number: u32) {
    let name = name(&format!("{target}/{number}/32=traceroute"));
    let (nonce, hop_limit) = (Some(number.to_be_bytes()), Some(1));
    let mut wire = Vec::new();
    InterestBuilder { nonce, hop_limit, ..InterestBuilder::new(name.as_ref()) }.write(&mut wire);
    app.send(&wire);
}

/// Law: whoever floods a node with traces gets the share of one face, while others are forwarded and
/// may trace.
#[test]
fn a_flood_of_traces_costs_its_own_share_only() {
    let (node, begun) = (start(quiet(1)), Instant::now());
    let (id, io) = node.attach(Scope::Local).unwrap();
    let mut producer = App::new(io);
    node.route("/a", id, 0).unwrap();
    let [mut consumer, mut flooder, mut tracer] =
        [(); 3].map(|()| App::new(node.attach(Scope::Local).unwrap().1));
    for round in 0..50 {
        (0..100).for_each(|n| trace(&mut flooder, "/flood", 100 * round + n));
        consumer.interest(&format!("/a/{round}"));
        let (name, token) = producer.take_interest();
        producer.data_with_token(&name.to_string(), b"", &token);
        consumer.take_data();
    }
    trace(&mut tracer, "/a/b", 1);
    assert_eq!(tracer.take_data().0.to_string(), "/a/b/1/32=traceroute");
    let mut answered = 0;
    while let Some(frame) = flooder.try_frame(Duration::ZERO).unwrap() {
        answered += u64::from(unwrap(&frame).0[0] == 6);
    }
    let share = 20 + 20 * (begun.elapsed().as_secs() + 1);
    assert!((1..=share).contains(&answered), "{answered}, not {share} of 5000");
}

#[test]
fn routes_listed_are_those_registered() {
    let node = start(quiet(2));
    let (id, io) = node.attach(Scope::Local).unwrap();
    let mut app = App::new(io);
    for text in ["/b", "/a", "/a/c"] {
        assert_eq!(app.command("/localhost/nfd", "rib/register", &named(text)).code, 200);
    }
    app.interest_with("/localhost/nfd/rib/list", true);
    let (_, content) = app.take_data();
    let list: Vec<RibEntry> = parse_list(&content).unwrap();
    let names: Vec<String> = list.iter().map(|e| e.name.to_string()).collect();
    assert_eq!(names, ["/a", "/a/c", "/b"]);
    assert!(list.iter().all(|e| e.routes[0].face_id == u64::from(id.0)));
}
