use super::*;
use onym_tables::bloom::{Kind, build_stage};
use onym_wire::push::{FrameBuilder, Id, RouteBuf, Strategy};

const INSIDE: u32 = 100;

fn face(n: u32) -> FaceId {
    FaceId(256 + n)
}

/// A node with links 0, 1 and 2 over faces of these numbers.
fn node(scheme: Scheme) -> Forwarder {
    let mut fw = Forwarder::new(Config { scheme, ..Config::default() }, INSIDE);
    for number in 0..3 {
        fw.link_add(LinkEntry { face: face(number), number, is_external: false }).unwrap();
    }
    fw
}

fn frame(route: &RouteBuf, hop_limit: u8) -> Vec<u8> {
    let ids: [Id; 1] = ["/1/2".parse().unwrap()];
    let mut out = Vec::new();
    let payload = b"payload";
    FrameBuilder {
        hop_limit,
        strategy: Strategy::DOMAIN_LOCAL,
        route,
        ids: &ids,
        options: &[],
        payload,
    }
    .write(&mut out);
    out
}

fn flat(scheme: Scheme, numbers: &[u32]) -> RouteBuf {
    let mut filter = Filter::EMPTY;
    numbers.iter().for_each(|n| filter.add(&scheme.tag(*n, 0)));
    RouteBuf::flat(0, &filter)
}

fn send(fw: &mut Forwarder, source: Source, frame: &mut [u8]) -> (Verdict, Vec<u32>, bool) {
    let mut copies = Copies::default();
    let verdict = fw.receive(source, frame, &mut copies);
    assert!(fw.counters().balance());
    let faces = copies.faces.iter().map(|f| f.0 - 256).collect();
    (verdict, faces, copies.is_delivered)
}

#[test]
fn a_frame_goes_over_the_links_of_its_filter_but_not_back() {
    let mut fw = node(Scheme::default());
    let route = flat(Scheme::default(), &[0, 1, 2, INSIDE]);
    let got = send(&mut fw, Source::Face(face(1)), &mut frame(&route, 9));
    assert_eq!(got, (Verdict::Both, vec![0, 2], true));
    let got = send(&mut fw, Source::Own, &mut frame(&route, 9));
    assert_eq!(got, (Verdict::Forwarded, vec![0, 1, 2], false));
}

#[test]
fn a_copy_carries_one_hop_less_and_an_own_frame_leaves_as_it_is() {
    let mut fw = node(Scheme::default());
    let route = flat(Scheme::default(), &[0]);
    let mut octets = frame(&route, 9);
    send(&mut fw, Source::Face(face(1)), &mut octets);
    assert_eq!(Head::parse(&octets).unwrap().hop_limit, 8);
    send(&mut fw, Source::Own, &mut octets);
    assert_eq!(Head::parse(&octets).unwrap().hop_limit, 8);
}

#[test]
fn the_last_hop_delivers_and_sends_nothing() {
    let mut fw = node(Scheme::default());
    let with_inside = flat(Scheme::default(), &[0, INSIDE]);
    let got = send(&mut fw, Source::Face(face(1)), &mut frame(&with_inside, 1));
    assert_eq!(got, (Verdict::Delivered, vec![], true));
    let without = flat(Scheme::default(), &[0]);
    for hops in [0, 1] {
        let got = send(&mut fw, Source::Face(face(1)), &mut frame(&without, hops));
        assert_eq!(got, (Verdict::HopLimit, vec![], false), "hop limit {hops}");
    }
}

#[test]
fn a_filter_of_all_ones_goes_nowhere() {
    let mut fw = node(Scheme::default());
    let route = RouteBuf::flat(0, &Filter::ALL);
    for source in [Source::Own, Source::Face(face(0))] {
        assert_eq!(send(&mut fw, source, &mut frame(&route, 9)).0, Verdict::Overfull);
    }
}

#[test]
fn the_fill_limit_is_exact() {
    let mut fw = node(Scheme::default());
    let numbers: Vec<u32> = (0..179).collect();
    let route = flat(Scheme::default(), &numbers);
    assert_eq!(send(&mut fw, Source::Own, &mut frame(&route, 9)).0, Verdict::Forwarded);
    let numbers: Vec<u32> = (0..180).collect();
    let route = flat(Scheme::default(), &numbers);
    assert_eq!(send(&mut fw, Source::Own, &mut frame(&route, 9)).0, Verdict::Overfull);
}

#[test]
fn faults_of_a_frame_have_verdicts_of_their_own() {
    let mut fw = node(Scheme::default());
    let good = frame(&flat(Scheme::default(), &[0]), 9);
    let with = |at: usize, octet: u8| {
        let mut bad = good.clone();
        bad[at] = octet;
        bad
    };
    let own = Source::Own;
    assert_eq!(send(&mut fw, own, &mut with(2, 0x21)).0, Verdict::Version);
    assert_eq!(send(&mut fw, own, &mut with(2, 0x19)).0, Verdict::Form);
    assert_eq!(send(&mut fw, own, &mut with(0, 5)).0, Verdict::Malformed);
    assert_eq!(send(&mut fw, own, &mut with(6, 7)).0, Verdict::Malformed, "no such table");
    assert_eq!(send(&mut fw, own, &mut good[..20].to_vec()).0, Verdict::Malformed);
    assert_eq!(send(&mut fw, own, &mut []).0, Verdict::Malformed);
    let stranger = Source::Face(FaceId(9999));
    assert_eq!(send(&mut fw, stranger, &mut good.clone()).0, Verdict::IngressGone);
    let nothing = flat(Scheme::default(), &[50]);
    assert_eq!(send(&mut fw, own, &mut frame(&nothing, 9)).0, Verdict::NoMatch);
    fw.config.forms[1] = false;
    assert_eq!(send(&mut fw, own, &mut good.clone()).0, Verdict::Form);
}

#[test]
fn a_link_frame_is_delivered_and_never_forwarded() {
    let mut fw = node(Scheme::default());
    let route = RouteBuf::from(Route::Link);
    let got = send(&mut fw, Source::Face(face(0)), &mut frame(&route, 1));
    assert_eq!(got, (Verdict::Delivered, vec![], true));
}

#[test]
fn each_table_has_tags_of_its_own() {
    let scheme = Scheme { kind: Kind::Tags { k: 5, tables: 8 }, seed: 1 };
    let mut fw = node(scheme);
    for table in 0..8 {
        let route = RouteBuf::flat(table, &scheme.tag(1, table));
        let got = send(&mut fw, Source::Own, &mut frame(&route, 9));
        assert_eq!(got, (Verdict::Forwarded, vec![1], false), "table {table}");
    }
    let other = RouteBuf::flat(3, &scheme.tag(1, 2));
    assert_eq!(send(&mut fw, Source::Own, &mut frame(&other, 9)).0, Verdict::NoMatch);
}

#[test]
fn a_keyed_filter_serves_one_flow_one_way_and_two_epochs() {
    let mut fw = node(Scheme::default());
    let keys = KeyedTags::new([5, 6], 5);
    let filter = keys.tag(77, 0, 2, 1);
    let keyed = |flow, epoch| RouteBuf::from(Route::Keyed { table: 1, epoch, flow, filter });
    let from_0 = Source::Face(face(0));
    assert_eq!(send(&mut fw, from_0, &mut frame(&keyed(77, 4), 9)).0, Verdict::Epoch);
    fw.epoch_start(4, keys);
    let got = send(&mut fw, from_0, &mut frame(&keyed(77, 4), 9));
    assert_eq!(got, (Verdict::Forwarded, vec![2], false));
    let other_flow = send(&mut fw, from_0, &mut frame(&keyed(78, 4), 9));
    assert_eq!(other_flow.0, Verdict::NoMatch);
    let other_way = send(&mut fw, Source::Face(face(1)), &mut frame(&keyed(77, 4), 9));
    assert_eq!(other_way.0, Verdict::NoMatch);
    fw.epoch_start(5, KeyedTags::new([7, 8], 5));
    assert_eq!(send(&mut fw, from_0, &mut frame(&keyed(77, 4), 9)).0, Verdict::Forwarded);
    assert_eq!(send(&mut fw, from_0, &mut frame(&keyed(77, 5), 9)).0, Verdict::NoMatch);
    fw.epoch_start(6, KeyedTags::new([9, 9], 5));
    assert_eq!(send(&mut fw, from_0, &mut frame(&keyed(77, 4), 9)).0, Verdict::Epoch);
}

#[test]
fn stages_end_after_their_last() {
    let scheme = Scheme::default();
    let mut fw = node(scheme);
    let first = build_stage(0, &[scheme.stage_tag(2)], &[scheme.stage_tag(0), scheme.stage_tag(1)]);
    let second = build_stage(
        1,
        &[scheme.stage_tag(INSIDE)],
        &(0..3).map(|n| scheme.stage_tag(n)).collect::<Vec<_>>(),
    );
    let (first, second) = (first.unwrap(), second.unwrap());
    let route = RouteBuf::stages(&[first.as_stage(), second.as_stage()]).unwrap();
    let mut octets = frame(&route, 9);
    assert_eq!(send(&mut fw, Source::Own, &mut octets), (Verdict::Forwarded, vec![2], false));
    let got = send(&mut fw, Source::Face(face(2)), &mut octets);
    assert_eq!(got, (Verdict::Delivered, vec![], true));
    assert_eq!(send(&mut fw, Source::Face(face(1)), &mut octets).0, Verdict::NoMatch);
}

#[test]
fn a_frame_from_another_domain_gets_the_filter_of_this_one() {
    let scheme = Scheme::default();
    let mut fw = node(scheme);
    fw.link_add(LinkEntry { face: face(7), number: 7, is_external: true }).unwrap();
    let (exit, delivery) = (1234, 5678);
    fw.border.exits.push(Exit { tag: exit, filter: scheme.tag(1, 0) });
    fw.border.delivery = delivery;
    fw.border.receivers_set("/1/2".parse().unwrap(), Some(scheme.tag(2, 0)));
    let own = build_stage(0, &[1], &[]).unwrap();
    for (members, faces) in
        [(vec![exit], vec![1]), (vec![delivery], vec![2]), (vec![exit, delivery], vec![1, 2])]
    {
        let others: Vec<u64> =
            [exit, delivery].into_iter().filter(|t| !members.contains(t)).collect();
        let here = build_stage(1, &members, &others).unwrap();
        let stages = RouteBuf::stages(&[own.as_stage(), here.as_stage()]).unwrap();
        let route = stages.within(0, &scheme.tag(99, 0)).unwrap();
        let mut octets = frame(&route, 9);
        let got = send(&mut fw, Source::Face(face(7)), &mut octets);
        assert_eq!(got, (Verdict::Forwarded, faces.clone(), false));
        let Route::Domains { stages, filter, .. } = Head::parse(&octets).unwrap().route else {
            panic!("another form");
        };
        assert_eq!(stages.index(), 1);
        assert!(!filter.contains(&scheme.tag(99, 0)), "the other domain's filter is gone");
        // Back at another border there is no further stage.
        let got = send(&mut fw, Source::Face(face(7)), &mut octets);
        assert_eq!(got.0, Verdict::NoMatch);
    }
}

#[test]
fn links_are_bounded_and_unique() {
    let mut fw = node(Scheme::default());
    let twice = LinkEntry { face: face(1), number: 9, is_external: false };
    assert_eq!(fw.link_add(twice), Err(LinkError::Twice(face(1))));
    assert!(fw.link_remove(face(1)) && !fw.link_remove(face(1)));
    let route = flat(Scheme::default(), &[0, 1, 2]);
    let got = send(&mut fw, Source::Own, &mut frame(&route, 9));
    assert_eq!(got.1, [0, 2]);
}

#[test]
fn whatever_links_come_and_go_a_frame_goes_over_those_that_its_filter_holds() {
    let seed = 11;
    println!("seed {seed}");
    let mut rng = onym_tables::Rng::new(seed);
    let scheme = Scheme { kind: Kind::Tags { k: 3, tables: 2 }, seed: 1 };
    let mut fw = Forwarder::new(Config { scheme, ..Config::default() }, INSIDE);
    let mut links: Vec<u32> = Vec::new();
    let (mut most, mut sent) = (0, 0);
    for step in 0..1200 {
        // Up to more than two words of links, and down to few again.
        let number = 200 + rng.below(300) as u32;
        let is_growing = step % 600 < 350;
        if let Some(at) = links.iter().position(|l| *l == number) {
            if !is_growing || rng.below(4) == 0 {
                assert!(fw.link_remove(face(number)));
                links.swap_remove(at);
            }
        } else if is_growing || rng.below(8) == 0 {
            let link = LinkEntry { face: face(number), number, is_external: false };
            assert_eq!(fw.link_add(link), Ok(()));
            links.push(number);
        }
        most = most.max(links.len());
        let Some(from) = links.get(rng.below(1 + links.len() as u64) as usize).copied() else {
            continue;
        };
        let numbers: Vec<u32> = (0..rng.below(40)).map(|_| 200 + rng.below(300) as u32).collect();
        let route = flat(scheme, &numbers);
        let Route::Flat { filter, .. } = route.as_ref() else { panic!("a flat filter") };
        let is_held = |l: &&u32| **l != from && filter.contains(&scheme.tag(**l, 0));
        let held: Vec<u32> = links.iter().filter(is_held).copied().collect();
        let got = send(&mut fw, Source::Face(face(from)), &mut frame(&route, 9));
        assert_eq!(got.1, held, "{step}");
        sent += held.len();
    }
    assert!(most > 2 * 64 && sent > 500, "{most} links, {sent} copies");
}

/// Law: a lost link's frames leave with the links of the way round it, over its first one even back;
/// once, and not when the filter would be too full.
#[test]
fn a_frame_goes_round_a_lost_link_once() {
    let scheme = Scheme::default();
    let mut fw = node(scheme);
    fw.detours_set(&[Detour { lost: 0, way: vec![1, 50, 51] }]);
    let mut whole = frame(&flat(scheme, &[0, 2, 90]), 9);
    let got = send(&mut fw, Source::Face(face(1)), &mut whole);
    assert_eq!(got, (Verdict::Forwarded, vec![0, 2, 1], false));
    let route = flat(scheme, &[0, 2, 90, 1, 50, 51]);
    assert_eq!(whole, frame(&route, 8), "hop limit and filter are all that changed");
    // It comes back: the links of the tree that are of this node, and no further round.
    let got = send(&mut fw, Source::Face(face(2)), &mut whole);
    assert_eq!(got, (Verdict::Forwarded, vec![0, 1], false));
    assert_eq!(whole, frame(&route, 7));
    // Another tree does not change.
    let mut other = frame(&flat(scheme, &[2, 90]), 9);
    assert_eq!(send(&mut fw, Source::Own, &mut other).1, [2]);
    assert_eq!(other, frame(&flat(scheme, &[2, 90]), 9));
    // As many ones as the limit allows are left over.
    let full: Vec<u32> = (0..1).chain(70..70 + 176).collect();
    let mut fits = frame(&flat(scheme, &full[..176]), 9);
    assert_eq!(send(&mut fw, Source::Own, &mut fits).1, [0, 1]);
    let mut over = frame(&flat(scheme, &full), 9);
    let before = over.clone();
    assert_eq!(send(&mut fw, Source::Own, &mut over).1, [0]);
    assert_eq!(over, before);
}
