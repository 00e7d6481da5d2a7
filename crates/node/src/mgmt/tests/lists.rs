//! Datasets, the event stream, our own namespace.

use super::*;
use onym_wire::mgmt::{
    CsInfo, FaceEventKind, FaceEventNotification, FaceQueryFilter, FaceStatus, ForwarderStatus,
    RibEntry, parse_list,
};
use onym_wire::types;

fn ask(name: &Name, can_be_prefix: bool) -> Vec<u8> {
    let mut wire = Vec::new();
    let must_be_fresh = can_be_prefix;
    InterestBuilder { can_be_prefix, must_be_fresh, ..InterestBuilder::new(name.as_ref()) }
        .write(&mut wire);
    wire
}

/// The one Data that answers, copied.
fn answer(world: &mut World, name: &Name, can_be_prefix: bool) -> Option<Vec<u8>> {
    match world.send(&ask(name, can_be_prefix), APP).as_slice() {
        [] => None,
        [Output::Data { wire, no_cache: true }] => Some(wire.clone()),
        other => panic!("{other:?}"),
    }
}

/// Fetches a whole dataset, segment by segment; also how many there were.
fn fetch(world: &mut World, uri: &str) -> (Vec<u8>, u64) {
    let first = answer(world, &name(uri), true).expect("the dataset is answered");
    let first = Data::parse(&first).unwrap();
    assert!(name(uri).as_ref().is_prefix_of(first.name));
    let last = first.final_block_id.unwrap().as_segment().unwrap();
    let mut content = first.content.to_vec();
    for number in 1..=last {
        let mut segment = first.name.drop_last(1).to_name();
        segment.append_segment(number);
        let wire = answer(world, &segment, false).expect("every segment is there");
        let data = Data::parse(&wire).unwrap();
        assert!(wire.len() <= PACKET_LEN_MAX);
        assert_eq!(data.final_block_id, first.final_block_id, "on every segment");
        content.extend_from_slice(data.content);
    }
    (content, last + 1)
}

#[test]
fn every_dataset_is_answered_and_can_be_read() {
    let mut world = World::default();
    world.command("rib/register", &named("/a"));
    let p = ControlParameters { origin: Some(255), ..named("/a") };
    world.command("rib/register", &p);
    world.command("rib/register", &named("/b"));
    world.command("fib/add-nexthop", &named("/a"));
    let (faces, _) = fetch(&mut world, "/localhost/nfd/faces/list");
    let faces: Vec<FaceStatus> = parse_list(&faces).unwrap();
    assert_eq!(faces.len(), 2);
    assert_eq!((faces[0].mtu, faces[0].in_interests), (Some(8800), 7));
    let (rib, _) = fetch(&mut world, "/localhost/nfd/rib/list");
    let rib: Vec<RibEntry> = parse_list(&rib).unwrap();
    assert_eq!(rib.iter().map(|e| e.routes.len()).collect::<Vec<_>>(), [2, 1]);
    let (status, _) = fetch(&mut world, "/localhost/nfd/status/general");
    assert_eq!(ForwarderStatus::parse_value(&status).unwrap().nfd_version, "onym 0.1.0");
    let (cs, _) = fetch(&mut world, "/localhost/nfd/cs/info");
    assert_eq!(parse_list::<CsInfo>(&cs).unwrap()[0].flags, 3);
    for uri in ["/localhost/nfd/fib/list", "/localhost/nfd/faces/channels"] {
        assert!(!fetch(&mut world, uri).0.is_empty(), "{uri}");
    }
    assert_eq!(fetch(&mut world, "/localhost/nfd/strategy-choice/list"), (Vec::new(), 1));
}

#[test]
fn a_long_dataset_comes_in_segments_that_stay_while_the_tables_change() {
    let mut world = World::default();
    for i in 0..2000 {
        let name = name(&format!("/prefix/{i:08}/with/some/length"));
        world.host.fib.insert(name, vec![NextHop { face: APP, cost: 1 }]);
    }
    let uri = name("/localhost/nfd/fib/list");
    let first = answer(&mut world, &uri, true).unwrap();
    let first = Data::parse(&first).unwrap();
    world.host.fib.clear();
    let again = answer(&mut world, &uri, true).unwrap();
    assert_eq!(Data::parse(&again).unwrap().name, first.name, "the same version while fresh");
    let (content, segments) = fetch(&mut world, "/localhost/nfd/fib/list");
    assert!(segments > 5);
    assert_eq!(parse_list::<onym_wire::mgmt::FibEntry>(&content).unwrap().len(), 2000);
    world.pass_ms(1000);
    let fresh = answer(&mut world, &uri, true).unwrap();
    let fresh = Data::parse(&fresh).unwrap();
    assert!(fresh.name > first.name && fresh.content.is_empty());
    // The old version is kept some seconds longer, and no longer.
    let second = first.name.drop_last(1).to_name();
    let mut segment = second.clone();
    segment.append_segment(1);
    assert!(answer(&mut world, &segment, false).is_some());
    segment.pop();
    segment.append_segment(999);
    assert!(answer(&mut world, &segment, false).is_none());
    world.pass_ms(10_000);
    assert!(answer(&mut world, &second, true).is_none());
    assert_eq!(world.management.poll_timeout(), None);
}

#[test]
fn a_query_lists_the_faces_that_fit_every_condition() {
    let mut world = World::default();
    let mut query = |filter: &FaceQueryFilter| {
        let mut uri = name("/localhost/nfd/faces/query");
        uri.append_generic(filter.to_wire());
        let wire = answer(&mut world, &uri, true).unwrap();
        let data = Data::parse(&wire).unwrap();
        let faces: Vec<FaceStatus> = parse_list(data.content).unwrap();
        faces.iter().map(|f| f.face_id).collect::<Vec<_>>()
    };
    let none = FaceQueryFilter::default();
    assert_eq!(query(&none), [300, 301]);
    let scheme = |s: &str| FaceQueryFilter { uri_scheme: Some(s.into()), ..none.clone() };
    assert_eq!(query(&scheme("unix")), [300], "the local scheme counts too");
    assert_eq!(query(&scheme("udp4")), [301]);
    let both = FaceQueryFilter { face_id: Some(300), ..scheme("udp4") };
    assert!(query(&both).is_empty());
}

#[test]
fn a_malformed_filter_is_refused_by_a_nack_of_the_same_name() {
    let mut world = World::default();
    for uri in ["/localhost/nfd/faces/query/junk", "/localhost/nfd/faces/query"] {
        let wire = answer(&mut world, &name(uri), true).unwrap();
        let data = Data::parse(&wire).unwrap();
        assert_eq!(data.name, name(uri));
        assert_eq!(data.content_type, types::CONTENT_NACK);
        let response = ControlResponse::parse(data.content).unwrap();
        assert_eq!((response.code, response.text.as_str()), (400, "Malformed filter"));
    }
}

#[test]
fn datasets_are_for_local_faces_and_need_discovery() {
    let mut world = World::default();
    let uri = name("/localhost/nfd/faces/list");
    assert!(world.send(&ask(&uri, true), PEER).is_empty());
    assert!(world.send(&ask(&uri, true), FaceId(999)).is_empty());
    assert!(answer(&mut world, &uri, false).is_none());
    assert!(answer(&mut world, &name("/localhost/nfd/faces/list/v=1/seg=0"), false).is_none());
    assert_eq!(world.management.counters().ignored, 4);
}

#[test]
fn names_around_a_dataset_are_answered_as_nfd_answers_them() {
    let mut world = World::default();
    // Behind it: the dataset, under the longer name; versions and segments that are not kept: nothing.
    let longer = name("/localhost/nfd/faces/list/foo/bar");
    let wire = answer(&mut world, &longer, true).expect("the dataset under the longer name");
    let data = Data::parse(&wire).unwrap();
    assert_eq!(data.name.drop_last(2).to_name(), longer);
    assert_eq!(parse_list::<FaceStatus>(data.content).unwrap().len(), 2);
    let version = data.name.drop_last(1).to_name();
    assert!(answer(&mut world, &version, true).is_some(), "a kept version is found by its prefix");
    for gone in ["list/v=1", "list/seg=0", "list/v=1/seg=0", "list/foo/v=1"] {
        let uri = name(&format!("/localhost/nfd/faces/{gone}"));
        assert!(answer(&mut world, &uri, true).is_none(), "{gone}");
    }
    // Above it: nothing listens there, whatever is kept below.
    assert!(answer(&mut world, &name("/localhost/nfd/faces/list"), true).is_some());
    for above in ["/localhost/nfd", "/localhost/nfd/faces", "/localhost/nfd/rib"] {
        assert!(answer(&mut world, &name(above), true).is_none(), "{above}");
    }
    // A command is answered under its own name, with the flag as without.
    let command = command_name(name("/localhost/nfd").as_ref(), "rib", "register", &named("/a"));
    for can_be_prefix in [false, true] {
        let wire = answer(&mut world, &command, can_be_prefix).expect("a command is answered");
        assert_eq!(Data::parse(&wire).unwrap().name, command);
    }
}

#[test]
fn kept_datasets_are_bounded() {
    let mut world = World::default();
    for id in 0..600 {
        let filter = FaceQueryFilter { face_id: Some(id), ..FaceQueryFilter::default() };
        let mut uri = name("/localhost/nfd/faces/query");
        uri.append_generic(filter.to_wire());
        assert!(answer(&mut world, &uri, true).is_some());
    }
    assert_eq!(world.management.datasets.len(), 256);
}

fn event(world: &mut World, event: FaceEvent) -> Option<Vec<u8>> {
    let face = world.host.faces[&PEER.0].clone();
    world.management.face_event(event, &face, world.now);
    match world.management.poll_output() {
        Some(Output::Data { wire, no_cache: true }) => Some(wire),
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn subscribers_wait_for_the_next_event_and_then_follow_the_numbers() {
    let mut world = World::default();
    let stream = name("/localhost/nfd/faces/events");
    assert!(answer(&mut world, &stream, true).is_none(), "silent until an event exists");
    let wire = event(&mut world, FaceEvent::Created).expect("someone waits");
    let data = Data::parse(&wire).unwrap();
    assert_eq!(data.name, name("/localhost/nfd/faces/events/seq=0"));
    assert_eq!((data.freshness_ms, data.content_type), (1000, 0));
    let told = FaceEventNotification::parse(data.content).unwrap();
    assert_eq!((told.kind, told.face_id), (FaceEventKind::Created, 301));
    assert_eq!(told.uri, "udp4://192.0.2.1:6363");

    assert_eq!(event(&mut world, FaceEvent::Down), None, "nobody waits: nothing is sent");
    let missed = answer(&mut world, &name("/localhost/nfd/faces/events/seq=1"), false);
    assert!(missed.is_some(), "but it is kept");
    assert!(answer(&mut world, &name("/localhost/nfd/faces/events/seq=2"), false).is_none());
    let wire = event(&mut world, FaceEvent::Destroyed).unwrap();
    assert_eq!(Data::parse(&wire).unwrap().name, name("/localhost/nfd/faces/events/seq=2"));
}

#[test]
fn old_events_are_no_news_and_old_subscribers_are_forgotten() {
    let mut world = World::default();
    event(&mut world, FaceEvent::Created);
    let stream = name("/localhost/nfd/faces/events");
    assert!(answer(&mut world, &stream, true).is_some(), "fresh");
    world.pass_ms(1000);
    assert!(answer(&mut world, &stream, true).is_none());
    world.pass_ms(4000);
    assert_eq!(event(&mut world, FaceEvent::Up), None, "its Interest ended after 4 s");
    for _ in 0..2000 {
        event(&mut world, FaceEvent::Up);
    }
    assert!(answer(&mut world, &name("/localhost/nfd/faces/events/seq=0"), false).is_none());
    let newest = name("/localhost/nfd/faces/events/seq=2001");
    assert!(answer(&mut world, &newest, false).is_some());
}

#[test]
fn changes_of_the_rib_are_a_stream_of_their_own() {
    let mut world = World::default();
    let change = |world: &mut World, changes| {
        world.management.rib_changed(changes, world.now);
        world.management.poll_output()
    };
    let stream = name("/localhost/onym/rib/events");
    assert!(answer(&mut world, &stream, true).is_none(), "silent until something changed");
    let Some(Output::Data { wire, no_cache: true }) = change(&mut world, 3) else { panic!() };
    let data = Data::parse(&wire).unwrap();
    assert_eq!(data.name, name("/localhost/onym/rib/events/seq=0"));
    assert_eq!(data.content, br#"{"changes":3}"#);
    assert!(change(&mut world, 4).is_none(), "nobody waits: nothing is sent");
    assert!(answer(&mut world, &name("/localhost/onym/rib/events/seq=1"), false).is_some());
    assert!(event(&mut world, FaceEvent::Up).is_none(), "a face is no route");
    let far = ask(&name("/localhost/onym/rib/events/seq=1"), false);
    assert!(world.send(&far, PEER).is_empty(), "who is not here is not told");
}

#[test]
fn our_own_namespace_answers_in_one_data_or_in_segments() {
    let mut world = World::default();
    let uri = name("/localhost/onym/status/node");
    let whole = answer(&mut world, &uri, false).unwrap();
    assert_eq!(Data::parse(&whole).unwrap().name, uri);
    assert_eq!(fetch(&mut world, "/localhost/onym/status/node").0, b"{\"faces\":2}");
    let mut wire = Vec::new();
    name("/some/name").as_ref().write_tlv(&mut wire);
    let mut explain = name("/localhost/onym/explain");
    explain.append_generic(&wire);
    let data = answer(&mut world, &explain, false).unwrap();
    assert_eq!(Data::parse(&data).unwrap().content, b"{\"name\":\"/some/name\"}");
    assert!(answer(&mut world, &name("/localhost/onym/explain/junk"), false).is_none());
    assert!(world.send(&ask(&uri, false), PEER).is_empty());
}

#[test]
fn routable_prefixes_are_told_to_everybody_when_there_are_any() {
    let uri = name("/localhop/nfd/rib/routable-prefixes");
    let mut world = World::default();
    assert!(matches!(world.send(&ask(&uri, true), PEER).as_slice(), [Output::NoRoute { .. }]));
    let options = Options { routable_prefixes: vec![name("/site")], ..Options::default() };
    let mut world = World::with(options);
    let sent = world.send(&ask(&uri, true), PEER);
    let [Output::Data { wire, .. }] = sent.as_slice() else { panic!("{sent:?}") };
    let data = Data::parse(wire).unwrap();
    assert_eq!((data.freshness_ms, data.content), (5000, &b"\x07\x06\x08\x04site"[..]));
}
