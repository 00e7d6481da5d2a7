use super::{
    Control, DomainHop, DomainRoute, Filter, Frame, FrameBuilder, Head, Home, Id, Kind, Label,
    Link, Load, OldFrame, Role, Route, RouteBuf, Sequence, Stage, Status, Strategy as Way, option,
};
use crate::tlv::Malformed;
use proptest::prelude::*;

fn label() -> impl Strategy<Value = Label> {
    any::<[u8; 8]>().prop_map(Label)
}

fn an_id() -> impl Strategy<Value = Id> {
    prop::collection::vec(any::<[u8; 8]>(), 1..6).prop_map(|labels| Id::from_labels(&labels))
}

fn a_filter() -> impl Strategy<Value = Filter> {
    any::<[u8; 32]>().prop_map(|octets| Filter::from_octets(&octets))
}

fn a_route() -> impl Strategy<Value = RouteBuf> {
    let stages = prop::collection::vec((1..400_u16, 0..16_u8, any::<u8>()), 0..5);
    (0..5_u8, any::<(u8, u8, u64)>(), a_filter(), stages).prop_map(
        |(form, (table, epoch, flow), filter, stages)| {
            let octets: Vec<Vec<u8>> =
                stages.iter().map(|s| vec![0; usize::from(s.0).div_ceil(8)]).collect();
            let stages: Vec<Stage<'_>> = stages
                .iter()
                .zip(&octets)
                .map(|(&(bits, k, seed), octets)| Stage { bits, k, seed, octets })
                .collect();
            let staged = RouteBuf::stages(&stages).unwrap();
            match form {
                0 => RouteBuf::from(Route::Link),
                1 => RouteBuf::flat(table, &filter),
                2 => RouteBuf::from(Route::Keyed { table, epoch, flow, filter }),
                3 => staged,
                _ => staged.within(table, &filter).unwrap(),
            }
        },
    )
}

proptest! {
    #[test]
    fn an_identifier_survives_its_text(id in an_id()) {
        prop_assert_eq!(id.to_string().parse::<Id>().unwrap(), id.clone());
        prop_assert_eq!(Id::from_octets(id.octets()).unwrap(), id);
    }

    #[test]
    fn a_filter_survives_text_and_octets(filter in a_filter()) {
        prop_assert_eq!(filter.to_string().parse::<Filter>().unwrap(), filter);
        prop_assert_eq!(Filter::from_octets(&filter.octets()), filter);
    }

    #[test]
    fn a_filter_contains_what_was_added_and_no_absent_bit(
        a in a_filter(), b in a_filter(), bit: u8,
    ) {
        let mut both = a;
        both.add(&b);
        prop_assert!(both.contains(&a) && both.contains(&b) && both.contains(&Filter::EMPTY));
        prop_assert_eq!(both.has(bit), a.has(bit) || b.has(bit));
        let mut one = Filter::EMPTY;
        one.set(bit);
        prop_assert_eq!(both.contains(&one), both.has(bit));
    }

    #[test]
    fn a_frame_is_read_as_it_was_written(
        hop_limit: u8, strategy in 0..8_u8, route in a_route(),
        ids in prop::collection::vec(an_id(), 1..4), payload in prop::collection::vec(any::<u8>(), 0..300),
        origin in label(), has_options: bool,
    ) {
        let mut options = Vec::new();
        if has_options {
            crate::tlv::put_tlv(&mut options, option::REPLY, route.octets());
            crate::tlv::put_tlv(&mut options, option::ORIGIN, &origin.0);
            crate::tlv::put_tlv(&mut options, 60, b"unknown");
        }
        let builder = FrameBuilder {
            hop_limit, strategy: Way(strategy), route: &route, ids: &ids,
            options: &options, payload: &payload,
        };
        let mut octets = Vec::new();
        builder.write(&mut octets);
        prop_assert_eq!(octets.len(), builder.len());
        let frame = Frame::parse(&octets).unwrap();
        prop_assert_eq!(frame.hop_limit, hop_limit);
        prop_assert_eq!(frame.strategy, Way(strategy));
        prop_assert_eq!(RouteBuf::from(frame.route), route.clone());
        prop_assert_eq!(frame.ids.map(Id::from_labels).collect::<Vec<_>>(), ids);
        prop_assert_eq!(frame.payload, &payload[..]);
        prop_assert_eq!(frame.options.reply, has_options.then_some(route.octets()));
        prop_assert_eq!(frame.options.origin, has_options.then_some(origin));
        let head = Head::parse(&octets).unwrap();
        prop_assert_eq!(octets[head.at + 1], hop_limit);
    }

    #[test]
    fn arbitrary_octets_never_panic(mut octets in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = OldFrame::parse(&octets);
        let _ = Control::parse(&octets);
        let _ = Frame::parse(&octets);
        if octets.len() > 8 {
            octets[0] = 240;
            octets[1] = u8::try_from((octets.len() - 2).min(252)).unwrap();
            octets[2] = 0x10 | (octets[2] % 6);
            octets.truncate(254);
            if let Ok(frame) = Frame::parse(&octets) {
                frame.ids.for_each(drop);
                if let Route::Stages(stages) = frame.route {
                    (0..=stages.count()).for_each(|i| assert!(!stages.get(i).is_some_and(|s| s.has(4095))));
                }
            }
        }
    }

    #[test]
    fn a_broken_octet_never_panics(at: prop::sample::Index, octet: u8) {
        let mut octets = a_message().octets();
        *at.get_mut(&mut octets) = octet;
        let _ = Control::parse(&octets);
    }
}

fn a_message() -> Control {
    let filter = Filter::from_octets(&[7; 32]);
    let route = RouteBuf::flat(3, &filter);
    let node = Label::from_u64;
    Control {
        sequence: Sequence { session: 9, number: 10 },
        ids: vec!["/1/2".parse().unwrap(), "/3".parse().unwrap()],
        prefix: "/7".parse().unwrap(),
        strategy: Way::DOMAIN_LOCAL,
        status: Some(Status::EXISTS),
        route: Some(route.clone()),
        reply: Some(route.clone()),
        publishers: (0..300).map(node).collect(),
        subscribers: vec![node(1)],
        gone: vec![node(8)],
        nodes: vec![node(2), node(3)],
        item: Some(0),
        version: 300,
        is_full: true,
        epoch: Some(77),
        number: 1,
        digest: u64::MAX,
        hops: 5,
        role: Role::RENDEZVOUS.and(Role::TOPOLOGY),
        request: Sequence { session: 1, number: 2 },
        body: b"body".to_vec(),
        links: vec![Link { neighbour: node(5), number: 70_000, cost: 10 }],
        loads: vec![Load { link: 70_000, capacity: 80_000, percent: 90 }],
        way: vec![70_000, 1],
        homes: vec![Home { role: Role::TOPOLOGY, node: node(6), route }],
        missing: vec![(1, 2), (5, 9)],
        domains: vec![DomainRoute {
            destination: node(7),
            delivery: 8,
            path: vec![DomainHop { domain: node(9), exit: 10 }],
        }],
        ..Control::new(Kind::PUBLISH_SCOPE, node(42))
    }
}

#[test]
fn a_message_with_every_field_is_read_as_it_was_written() {
    let message = a_message();
    assert_eq!(Control::parse(&message.octets()).unwrap(), message);
}

#[test]
fn a_mac_is_the_last_field_and_covers_all_before_it() {
    let mut octets = a_message().octets();
    assert_eq!(Control::split_mac(&octets), None);
    let before = octets.clone();
    Control::put_mac(&mut octets, &[9; 16]);
    assert_eq!(Control::split_mac(&octets), Some((&before[..], &[9; 16])));
    assert_eq!(Control::parse(&octets).unwrap(), a_message());
}

#[test]
fn text_forms_of_identifiers() {
    let id: Id = "/0001/3333".parse().unwrap();
    assert_eq!(id.to_string(), "/0001/3333");
    assert_eq!(id.octets(), [0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0x33, 0x33]);
    assert_eq!("/".parse::<Id>().unwrap(), Id::default());
    assert_eq!("/0".parse::<Id>().unwrap(), Id::root(Label([0; 8])));
    for bad in ["", "1", "//", "/12345678123456789", "/x", "/+1"] {
        assert!(bad.parse::<Id>().is_err(), "{bad}");
    }
    assert!(Id::from_octets(&[0; 9]).is_none());
}

#[test]
fn bit_255_is_written_first() {
    let mut filter = Filter::EMPTY;
    filter.set(255);
    filter.set(0);
    let text = filter.to_string();
    assert!(text.starts_with("10") && text.ends_with("01"), "{text}");
    let mut octets = [0; 32];
    (octets[0], octets[31]) = (1, 128);
    assert_eq!(filter.octets(), octets);
}

#[test]
fn the_faults_of_a_frame_are_told_apart() {
    let route = RouteBuf::flat(0, &Filter::ALL);
    let ids = ["/1".parse().unwrap()];
    let strategy = Way::IMPLICIT;
    let builder = FrameBuilder {
        hop_limit: 4,
        strategy,
        route: &route,
        ids: &ids,
        options: &[],
        payload: &[],
    };
    let mut good = Vec::new();
    builder.write(&mut good);
    let with = |at: usize, octet: u8| {
        let mut bad = good.clone();
        bad[at] = octet;
        Frame::parse(&bad).map(drop)
    };
    assert_eq!(with(2, 0x21), Err(Malformed::Value(2)), "another version");
    assert_eq!(with(2, 0x1f), Err(Malformed::Unexpected(15)), "an unknown form");
    assert_eq!(with(0, 5), Err(Malformed::Unexpected(5)), "another packet");
    let ids_at = 2 + 4 + 33;
    assert_eq!(with(ids_at, 0), Err(Malformed::Missing(7)), "no id");
    assert_eq!(with(ids_at + 1, 0), Err(Malformed::EmptyName), "an empty id");
    assert_eq!(with(ids_at + 1, 9), Err(Malformed::Truncated), "an id beyond the frame");
    assert!(Head::parse(&good[..good.len() - 1]).is_err());
}

#[test]
fn the_old_frame_has_the_size_of_the_old_node() {
    let ids = ["/1/2".parse().unwrap()];
    let mut octets = Vec::new();
    OldFrame::write(&mut octets, &Filter::ALL, &ids, b"x");
    assert_eq!(octets.len(), 50 + 1);
    let frame = OldFrame::parse(&octets).unwrap();
    assert_eq!((frame.filter, frame.payload), (Filter::ALL, &b"x"[..]));
    assert_eq!(frame.ids.map(Id::from_labels).collect::<Vec<_>>(), ids);
    octets[32] = 0;
    assert!(OldFrame::parse(&octets).is_err());
}
