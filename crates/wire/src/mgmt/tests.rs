use super::*;
use proptest::prelude::*;

#[test]
fn parameters_are_written_in_canonical_order_and_read_in_any() {
    let parameters = ControlParameters {
        name: Some("/demo".parse().unwrap()),
        face_id: Some(300),
        uri: Some("udp4://1.2.3.4:6363".into()),
        local_uri: Some("udp4://1.2.3.5:6363".into()),
        origin: Some(65),
        cost: Some(0),
        capacity: Some(1),
        count: Some(2),
        flags: Some(3),
        mask: Some(4),
        strategy: Some("/localhost/nfd/strategy/asf/v=5".parse().unwrap()),
        expiration_period_ms: Some(5),
        face_persistency: Some(Persistency::Permanent),
        base_congestion_marking_interval_ns: Some(6),
        default_congestion_threshold: Some(7),
        mtu: Some(8),
    };
    let mut value = Vec::new();
    parameters.write_value(&mut value);
    let types: Vec<u32> = Reader::new(&value).map(|e| e.unwrap().typ).collect();
    assert_eq!(
        types,
        [7, 105, 114, 129, 111, 106, 131, 132, 108, 112, 107, 109, 133, 135, 136, 137]
    );
    assert_eq!(ControlParameters::parse(&parameters.to_wire()).as_ref(), Ok(&parameters));
    let mut elements: Vec<&[u8]> = Reader::new(&value).map(|e| e.unwrap().wire).collect();
    elements.reverse();
    elements.insert(3, &[121, 1, 0]);
    assert_eq!(ControlParameters::parse_value(&elements.concat()), Ok(parameters));
}

#[test]
fn a_field_that_cannot_be_read_refuses_the_structure() {
    assert_eq!(ControlParameters::parse(&[104, 3, 105, 1]), Err(Malformed::Truncated));
    assert_eq!(ControlParameters::parse(&[104, 4, 105, 2, 1]), Err(Malformed::Truncated));
    assert_eq!(ControlParameters::parse(&[104, 5, 105, 3, 1, 2, 3]), Err(Malformed::NniLength));
    assert_eq!(ControlParameters::parse(&[104, 3, 133, 1, 9]), Err(Malformed::Value(133)));
    assert_eq!(ControlParameters::parse(&[104, 3, 114, 1, 0xFF]), Err(Malformed::Value(114)));
    assert_eq!(ControlParameters::parse(&[104, 2, 107, 0]), Err(Malformed::Missing(7)));
    assert_eq!(CsInfo::parse(&[128, 0]), Err(Malformed::Missing(131)));
}

#[test]
fn a_response_needs_no_body_and_no_text() {
    let refused = ControlResponse::new(403, "authorization rejected");
    assert_eq!(ControlResponse::parse(&refused.to_wire()), Ok(refused.clone()));
    assert!(!refused.is_success());
    let bare = ControlResponse::parse(&[101, 3, 102, 1, 200]).unwrap();
    assert!(bare.is_success() && bare.text.is_empty() && bare.body.is_none());
    assert!(ControlResponse::new(200, "").to_wire().ends_with(&[103, 0]));
}

#[test]
fn a_command_carries_its_parameters_in_one_component() {
    let parameters =
        ControlParameters { name: Some("/demo".parse().unwrap()), ..Default::default() };
    let prefix: Name = "/localhost/nfd".parse().unwrap();
    let name = command_name(prefix.as_ref(), "rib", "register", &parameters);
    assert_eq!(name.len(), 5);
    assert_eq!(parameters_of(name.as_ref().last().unwrap()), Ok(parameters));
    assert!(parameters_of(Component::keyword(b"x")).is_err());
}

#[test]
fn datasets_are_lists_of_elements() {
    let entry = |uri: &str, hops: &[u64]| FibEntry {
        name: uri.parse().unwrap(),
        next_hops: hops.iter().map(|id| NextHopRecord { face_id: *id, cost: 10 }).collect(),
    };
    let entries = vec![entry("/", &[256]), entry("/a", &[]), entry("/b", &[257, 258])];
    let mut content: Vec<u8> = entries.iter().flat_map(Block::to_wire).collect();
    assert_eq!(parse_list::<FibEntry>(&content), Ok(entries.clone()));
    content.extend([240, 0]);
    assert_eq!(parse_list::<FibEntry>(&content), Ok(entries));
    content.extend([241, 0]);
    assert_eq!(parse_list::<FibEntry>(&content), Err(Malformed::Unexpected(241)));
}

#[test]
fn a_notification_and_a_route_are_read_back() {
    let event = FaceEventNotification {
        kind: FaceEventKind::Destroyed,
        face_id: 300,
        uri: "fd://7".into(),
        local_uri: "unix:///run/nfd/nfd.sock".into(),
        face_scope: Scope::Local,
        face_persistency: Persistency::OnDemand,
        link_type: LinkType::PointToPoint,
        flags: 1,
    };
    assert_eq!(FaceEventNotification::parse(&event.to_wire()), Ok(event));
    let entry = RibEntry {
        name: "/a".parse().unwrap(),
        routes: vec![Route {
            face_id: 256,
            origin: 255,
            cost: 1,
            flags: 3,
            expiration_period_ms: Some(9),
        }],
    };
    assert_eq!(RibEntry::parse(&entry.to_wire()), Ok(entry));
    let status = ForwarderStatus { nfd_version: "onym".into(), out_nacks: 9, ..Default::default() };
    let mut value = Vec::new();
    status.write_value(&mut value);
    assert_eq!(ForwarderStatus::parse_value(&value), Ok(status));
}

proptest! {
    #[test]
    fn arbitrary_fields_never_panic_as_a_structure(
        fields in proptest::collection::vec(
            (prop_oneof![Just(7u32), 100u32..155], proptest::collection::vec(any::<u8>(), 0..9)), 0..12),
        raw: Vec<u8>,
    ) {
        let mut value = Vec::new();
        fields.iter().for_each(|(typ, bytes)| tlv::put_tlv(&mut value, *typ, bytes));
        for value in [value, raw] {
            if let Ok(parameters) = ControlParameters::parse_value(&value) {
                prop_assert_eq!(ControlParameters::parse(&parameters.to_wire()), Ok(parameters));
            }
            drop((FaceStatus::parse_value(&value), RibEntry::parse_value(&value)));
            drop((ForwarderStatus::parse_value(&value), ControlResponse::parse_value(&value)));
        }
    }
}
