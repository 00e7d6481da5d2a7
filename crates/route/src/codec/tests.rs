use super::*;
use crate::names::{self, Names};
use onym_wire::{Data, Interest};

#[path = "captured.rs"]
mod captured;

fn bytes(hex: &str) -> Vec<u8> {
    let digit = |c: u8| (c as char).to_digit(16).unwrap() as u8;
    hex.as_bytes().chunks(2).map(|pair| digit(pair[0]) << 4 | digit(pair[1])).collect()
}

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn entry(to: &str, via: &str, cost: u64, other_cost: u64) -> AdvEntry {
    let (destination, next_hop) = (name(to), name(via));
    AdvEntry { destination, next_hop, cost, other_cost, seq: None, metric: None }
}

fn written<T>(value: &T, write: impl Fn(&T, &mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    write(value, &mut out);
    out
}

#[test]
fn captured_advertisements_are_read_and_written_alike() {
    for (hex, uri, entries) in [
        (
            captured::ADVERT,
            "/localhop/net/a/32=DV/32=ADV/56=%04K%0D%C26/54=%03/50=%00",
            vec![
                entry("/net/a", "/net/a", 0, 16),
                entry("/net/b", "/net/b", 1, 16),
                entry("/net/c", "/net/b", 2, 16),
            ],
        ),
        (
            captured::INSECURE_ADVERT,
            "",
            vec![entry("/net/p", "/net/p", 0, 16), entry("/net/q", "/net/p", 1, 16)],
        ),
    ] {
        let wire = bytes(hex);
        let data = Data::parse(&wire).unwrap();
        let advert = Advert::parse(data.content, 100).unwrap();
        assert_eq!(advert.entries, entries);
        assert_eq!(written(&advert, Advert::write), data.content);
        assert!(uri.is_empty() || data.name.len() == name(uri).len());
    }
    let wire = bytes(captured::ADVERT);
    let mut expected = names::advert(name("/net/a").as_ref(), 1_795_444_162, 3);
    expected.append_segment(0);
    // The capture is of the run that began at this second.
    let boot = Data::parse(&wire).unwrap().name.get(5).unwrap().as_timestamp().unwrap();
    expected = names::advert(name("/net/a").as_ref(), boot, 3);
    expected.append_segment(0);
    assert_eq!(Data::parse(&wire).unwrap().name, expected);
}

#[test]
fn captured_sync_interests_are_read_and_their_content_written_alike() {
    let names = Names::new(name("/net"), name("/net/x")).unwrap();
    for (hex, router) in [(captured::ACT, "/net/a"), (captured::INSECURE_ACT, "/net/p")] {
        let wire = bytes(hex);
        let interest = Interest::parse(&wire).unwrap();
        onym_crypto::verify::check_parameters_digest(&interest).unwrap();
        assert!(names.sync_active.as_ref().is_prefix_of(interest.name));
        assert_eq!((interest.hop_limit, interest.lifetime_ms), (Some(2), Some(1000)));
        assert!(!interest.can_be_prefix && !interest.must_be_fresh);
        let data = Data::parse(interest.app_parameters.unwrap()).unwrap();
        assert_eq!(names.router_of_sync(data.name), Some(name(router)));
        let hello = Hello::parse(data.content).unwrap();
        assert_eq!(hello.router, name(router));
        assert_eq!(written(&hello, Hello::write), data.content);
    }
}

#[test]
fn both_captured_chains_verify() {
    let (root, certificate) =
        (bytes(captured::ROOT_CERTIFICATE), bytes(captured::ROUTER_CERTIFICATE));
    let root = Data::parse(&root).unwrap();
    let certificate = Data::parse(&certificate).unwrap();
    let key = |cert: &Data<'_>| onym_crypto::PublicKey::from_spki(cert.content).unwrap();
    onym_crypto::verify::data(&root, &key(&root)).unwrap();
    onym_crypto::verify::data(&certificate, &key(&root)).unwrap();
    let advert = bytes(captured::ADVERT);
    onym_crypto::verify::data(&Data::parse(&advert).unwrap(), &key(&certificate)).unwrap();
    for hex in [captured::ACT, captured::PREFIX_SYNC] {
        let wire = bytes(hex);
        let inner = Interest::parse(&wire).unwrap().app_parameters.unwrap();
        onym_crypto::verify::data(&Data::parse(inner).unwrap(), &key(&certificate)).unwrap();
    }
}

#[test]
fn captured_prefix_operations_are_read_and_written_alike() {
    let exit_router = name("/net/c");
    let hello = name("/app/c/hello");
    let add = vec![PrefixAdd { name: hello.clone(), cost: 0, through: Vec::new() }];
    let expected = [
        PrefixOps { reset: true, exit_router: exit_router.clone(), ..PrefixOps::default() },
        PrefixOps { adds: add, exit_router: exit_router.clone(), ..PrefixOps::default() },
        PrefixOps { removes: vec![hello], exit_router, ..PrefixOps::default() },
    ];
    let captured = [captured::OP_RESET, captured::OP_ADD, captured::OP_REMOVE];
    for (hex, expected) in captured.into_iter().zip(expected) {
        let ops = PrefixOps::parse(&bytes(hex)).unwrap();
        assert_eq!(ops, expected);
        assert_eq!(written(&ops, PrefixOps::write), bytes(hex));
    }
    let wire = bytes(captured::OP_DATA);
    let data = Data::parse(&wire).unwrap();
    assert_eq!(data.content, bytes(captured::OP_ADD));
    let names = Names::new(name("/net"), name("/net/x")).unwrap();
    assert!(names.prefixes_of(name("/net/c").as_ref()).as_ref().is_prefix_of(data.name));
}

#[test]
fn the_captured_status_is_read_although_its_data_is_not_signed() {
    let wire = bytes(captured::STATUS);
    assert!(Data::parse(&wire).is_err(), "it has no signature");
    let mut content = None;
    for element in Reader::new(Element::parse(&wire).unwrap().value) {
        let element = element.unwrap();
        content = content.or((element.typ == types::CONTENT).then_some(element.value));
    }
    let status = Status::parse(content.unwrap()).unwrap();
    assert_eq!((&status.router, status.rib_entries), (&name("/net/c"), 3));
    assert_eq!(written(&status, Status::write), content.unwrap());
}

#[test]
fn wrappers_of_the_old_form_and_unknown_critical_fields_are_refused() {
    let advert = Advert { entries: vec![entry("/net/a", "/net/a", 0, 16)], requests: vec![] };
    let plain = written(&advert, Advert::write);
    let mut wrapped = Vec::new();
    tlv::put_tlv(&mut wrapped, STATE_VECTOR, &plain);
    assert_eq!(Advert::parse(&wrapped, 9), Err(Malformed::UnknownCritical(201)));
    for (typ, refused) in [(65_001, true), (65_000, false)] {
        let mut odd = plain.clone();
        tlv::put_tlv(&mut odd, typ, &[]);
        assert_eq!(Advert::parse(&odd, 9).is_err(), refused, "{typ}");
    }
    assert_eq!(Advert::parse(&[plain.clone(), plain].concat(), 1), Err(Malformed::TooLong));
}

#[test]
fn what_ours_add_is_read_again_and_skipped_by_who_does_not_know_it() {
    let mut far = entry("/net/b", "/net/c", 16, 16);
    (far.seq, far.metric) = (Some(7 << 16), Some(300));
    let request = Request { destination: name("/net/d"), seq: 9, to: Some(name("/net/c")) };
    let delta = Delta {
        base: 4,
        entries: vec![far.clone()],
        removed: vec![name("/net/e")],
        requests: vec![request.clone(), Request { to: None, ..request.clone() }],
    };
    let hello = Hello {
        router: name("/net/a"),
        boot: 1,
        seq: 5,
        delta: Some(delta),
        heard: vec![Heard { router: name("/net/c"), seq: 77 }],
        goodbye: true,
    };
    assert_eq!(Hello::parse(&written(&hello, Hello::write)), Ok(hello));
    let advert = Advert { entries: vec![far], requests: vec![request] };
    assert_eq!(Advert::parse(&written(&advert, Advert::write), 9), Ok(advert));
    let ours = [DEST_SEQ, METRIC, REQUEST, REQUEST_TO, DELTA, ADVERT_SEQ, REMOVED, HEARD, GOODBYE];
    assert!(ours.iter().all(|typ| !tlv::is_critical(*typ)));
}

#[test]
fn two_routers_or_two_numbers_in_one_hello_are_refused() {
    let hello = |router: &str| Hello {
        router: name(router),
        boot: 1,
        seq: 2,
        delta: None,
        heard: vec![],
        goodbye: false,
    };
    let one = written(&hello("/net/a"), Hello::write);
    let inner = |wire: &[u8]| Element::parse(wire).unwrap().value.to_vec();
    let mut two = Vec::new();
    tlv::put_tlv(&mut two, STATE_VECTOR, &[inner(&one), inner(&one)].concat());
    assert_eq!(Hello::parse(&two), Err(Malformed::Unexpected(ENTRY)));
    for cut in 0..one.len() {
        assert!(Hello::parse(&one[..cut]).is_err());
    }
}

#[test]
fn captured_local_commands_and_metadata_are_read() {
    use onym_wire::mgmt::{Block, ControlResponse, parameters_of};
    let wire = bytes(captured::REGISTER);
    let command = Interest::parse(&wire).unwrap().name;
    assert_eq!(command.len(), 6);
    let parameters = parameters_of(command.get(4).unwrap()).unwrap();
    assert_eq!(parameters.name, Some(name("/app/c/hello")));
    assert_eq!((parameters.face_id, parameters.cost), (Some(6), Some(0)));
    let reply = bytes(captured::REGISTER_REPLY);
    let reply = ControlResponse::parse_value(Element::parse(&reply).unwrap().value).unwrap();
    assert_eq!((reply.code, reply.body.unwrap().origin), (200, Some(65)));
    let wire = bytes(captured::CERTIFICATE_INTEREST);
    assert!(!Interest::parse(&wire).unwrap().forwarding_hint.is_empty());
    let metadata = bytes(captured::SNAPSHOT_METADATA);
    let version = Reader::new(&metadata).next().unwrap().unwrap();
    assert_eq!(name_of(version).last().unwrap().as_version(), Some(1));
}

fn name_of(element: Element<'_>) -> NameRef<'_> {
    NameRef::parse_value(element.value).unwrap()
}

#[test]
fn networks_that_a_prefix_came_through_are_skipped_by_who_does_not_know_them() {
    let through = vec!["/net/a1".parse().unwrap(), "/net/core".parse().unwrap()];
    let add = PrefixAdd { name: "/site".parse().unwrap(), cost: 3, through };
    let exit_router: Name = "/net/core/r1".parse().unwrap();
    let ops = PrefixOps { exit_router, adds: vec![add.clone()], ..PrefixOps::default() };
    let mut content = Vec::new();
    ops.write(&mut content);
    assert_eq!(PrefixOps::parse(&content), Ok(ops.clone()));
    // Its type is even: whoever reads as the packet format says skips it.
    const { assert!(!tlv::is_critical(THROUGH)) };
    let many = (0..=THROUGH_MAX).map(|i| format!("/net/a{i}").parse().unwrap()).collect();
    let ops = PrefixOps { adds: vec![PrefixAdd { through: many, ..add }], ..ops };
    let mut content = Vec::new();
    ops.write(&mut content);
    assert_eq!(PrefixOps::parse(&content), Err(Malformed::TooLong));
}
