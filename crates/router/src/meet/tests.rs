//! Laws of meeting: one face for a neighbour, bounded, given back.

use super::hello::Hello;
use super::lan::tests::interface;
use super::lan::{Kind, Lan, Way};
use super::*;

const NOW: Tick = Tick(0);

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn meet() -> Meet {
    meet_as("/net/a")
}

fn meet_as(own: &str) -> Meet {
    let mut meet = Meet::new(name(own), Duration::from_secs(5), Duration::from_secs(15), 7);
    let lan = |face, kind, reach: &str| Lan {
        face,
        kind,
        interface: interface(),
        reach: Some(reach.parse().unwrap()),
    };
    let lans = vec![
        lan(300, Kind::Udp4, "udp4://192.0.2.1:6363"),
        lan(301, Kind::Udp6, "udp6://[fe80::1]:6363"),
    ];
    meet.set_lans(NOW, lans);
    meet
}

fn hello(router: &str, signed_ms: u64, reach: &str) -> Hello {
    let reach = vec![reach.parse().unwrap()];
    Hello { router: name(router), signed_ms, interval_ms: 5_000, reach }
}

fn outputs(meet: &mut Meet) -> Vec<Output> {
    std::iter::from_fn(|| meet.poll_output()).filter(|o| !matches!(o, Output::Say { .. })).collect()
}

/// Lets time pass to `ms`, with neighbours heard by `heard`.
fn until(meet: &mut Meet, ms: u64, heard: &[u64]) -> Vec<Output> {
    let now = Tick::from_ms(ms);
    let heard: Vec<_> = heard.iter().map(|face| (name("/net/b"), *face)).collect();
    meet.look(now, &heard, &BTreeSet::new());
    meet.handle_timeout(now);
    outputs(meet)
}

fn made(meet: &mut Meet, ms: u64, out: &[Output], face: u64) -> String {
    let [Output::Make { id, way, .. }] = out else { panic!("{out:?}") };
    meet.made(Tick::from_ms(ms), *id, Ok(Made { face, is_own: true }));
    let up = outputs(meet);
    assert!(matches!(&up[..], [Output::Up { face: f, .. }] if *f == face), "{up:?}");
    way.uri.clone()
}

#[test]
fn a_router_heard_at_two_addresses_gets_one_face_and_a_second_when_the_first_is_silent() {
    let mut meet = meet();
    meet.heard(NOW, 300, &hello("/net/b", 1, "udp4://192.0.2.2:6363"));
    assert_eq!(until(&mut meet, 100, &[]), [], "a better address may come");
    meet.heard(NOW, 301, &hello("/net/b", 2, "udp6://[fe80::2]:6363"));
    let out = until(&mut meet, 300, &[]);
    assert_eq!(made(&mut meet, 300, &out, 400), "udp6://[fe80::2%eth0]:6363");
    // It goes on to say so, and is heard by the face: nothing happens.
    for ms in (1_000..60_000).step_by(1_000) {
        let now = Tick::from_ms(ms);
        meet.heard(now, 300, &hello("/net/b", ms, "udp4://192.0.2.2:6363"));
        assert_eq!(until(&mut meet, ms, &[400]), []);
    }
    // The face falls silent, and the other address is tried.
    meet.heard(Tick::from_ms(70_000), 300, &hello("/net/b", 70_000, "udp4://192.0.2.2:6363"));
    assert_eq!(until(&mut meet, 70_000, &[]), []);
    meet.heard(Tick::from_ms(84_000), 300, &hello("/net/b", 84_000, "udp4://192.0.2.2:6363"));
    let out = until(&mut meet, 85_000, &[]);
    let (down, make) = out.split_at(2);
    assert_eq!(down, [Output::Down { face: 400 }, Output::Destroy { face: 400 }]);
    assert_eq!(made(&mut meet, 85_000, make, 401), "udp4://192.0.2.2:6363");
}

#[test]
fn who_is_not_heard_any_more_loses_its_face_and_faces_of_others_stay() {
    let mut meet = meet();
    meet.heard(NOW, 300, &hello("/net/b", 1, "udp4://192.0.2.2:6363"));
    let out = until(&mut meet, 300, &[]);
    made(&mut meet, 300, &out, 400);
    assert_eq!(until(&mut meet, 14_900, &[]), []);
    assert_eq!(until(&mut meet, 30_000, &[400]), [], "heard by its face: multicast may be lost");
    let gone = until(&mut meet, 30_001, &[]);
    assert_eq!(gone, [Output::Down { face: 400 }, Output::Destroy { face: 400 }]);
    // A face that was there before is none of ours to destroy.
    meet.heard(Tick::from_ms(31_000), 300, &hello("/net/b", 9, "udp4://192.0.2.2:6363"));
    let out = until(&mut meet, 31_300, &[]);
    let [Output::Make { id, .. }] = &out[..] else { panic!("{out:?}") };
    meet.made(Tick::from_ms(31_300), *id, Ok(Made { face: 402, is_own: false }));
    outputs(&mut meet);
    meet.set_lans(Tick::from_ms(32_000), Vec::new());
    assert_eq!(outputs(&mut meet), [Output::Down { face: 402 }], "its interface went");
}

#[test]
fn repetitions_strangers_addresses_and_crowds_make_no_faces() {
    let mut meet = meet();
    meet.heard(NOW, 300, &hello("/net/b", 5, "udp4://198.51.100.1:6363"));
    meet.heard(NOW, 999, &hello("/net/b", 5, "udp4://192.0.2.2:6363"));
    meet.heard(NOW, 300, &hello("/net/a", 5, "udp4://192.0.2.2:6363"));
    assert_eq!(
        (meet.counters.elsewhere, meet.peers.len()),
        (1, 0),
        "elsewhere, no link, ourselves"
    );
    meet.heard(NOW, 300, &hello("/net/b", 5, "udp4://192.0.2.2:6363"));
    meet.heard(NOW, 300, &hello("/net/b", 5, "udp4://192.0.2.3:6363"));
    assert_eq!((meet.counters.taken, meet.counters.replayed), (1, 1));
    for n in 0..200 {
        meet.heard(NOW, 300, &hello(&format!("/net/r{n}"), 5, "udp4://192.0.2.2:6363"));
    }
    assert_eq!((meet.peers.len(), meet.counters.full), (PEERS_MAX, 200 - 63));
    let checked = (0..1000).filter(|_| meet.allow(NOW, 300)).count() as u64;
    assert_eq!((checked, meet.counters.flooded), (BURST, 1000 - BURST));
    let later = (0..1000).filter(|_| meet.allow(Tick::from_ms(1_000), 300)).count() as u64;
    assert_eq!(later, RATE);
}

#[test]
fn a_newcomer_is_answered_soon_by_all_kinds_of_address_and_hellos_keep_their_distance() {
    [300, 301].into_iter().for_each(newcomer_heard_by_300_is_answered_by);
}

fn newcomer_heard_by_300_is_answered_by(face: u64) {
    let mut meet = meet();
    let mut said = Vec::new();
    for ms in 0..20_000 {
        let now = Tick::from_ms(ms);
        if ms == 3_000 {
            meet.heard(now, 300, &hello("/net/b", 5, "udp4://192.0.2.2:6363"));
        }
        meet.handle_timeout(now);
        while let Some(output) = meet.poll_output() {
            if matches!(output, Output::Say { lan, .. } if lan == face) {
                said.push(ms);
            }
        }
    }
    assert!(said.iter().any(|ms| (3_000..3_200).contains(ms)), "{said:?}");
    assert!(said.windows(2).all(|w| w[1] - w[0] >= SPACING_MS), "{said:?}");
    assert!(said.len() <= 8, "about one in five seconds: {said:?}");
}

#[test]
fn a_host_is_followed_to_its_new_address_and_kept_while_silent() {
    let mut meet = meet();
    let link = Link { uri: "udp://b.example".into(), mtu: Some(1400), cost: 3 };
    let way = |uri: &str| Way { kind: Kind::Udp4, uri: uri.into(), local: None };
    meet.resolved(NOW, 0, &link, vec![way("udp4://192.0.2.2:6363")]);
    let out = until(&mut meet, 0, &[]);
    assert_eq!(made(&mut meet, 0, &out, 400), "udp4://192.0.2.2:6363");
    meet.resolved(Tick::from_ms(30_000), 0, &link, vec![way("udp4://192.0.2.2:6363")]);
    assert_eq!(until(&mut meet, 100_000, &[]), [], "its only address");
    meet.resolved(Tick::from_ms(130_000), 0, &link, vec![way("udp4://192.0.2.7:6363")]);
    let out = until(&mut meet, 130_000, &[]);
    let (down, make) = out.split_at(2);
    assert_eq!(down, [Output::Down { face: 400 }, Output::Destroy { face: 400 }]);
    assert_eq!(made(&mut meet, 130_000, make, 401), "udp4://192.0.2.7:6363");
    // Nothing is found for a while: what there is stays.
    meet.face_gone(Tick::from_ms(140_000), 401);
    let out = until(&mut meet, 141_000, &[]);
    assert_eq!(made(&mut meet, 141_000, &out, 402), "udp4://192.0.2.7:6363");
}

#[test]
fn who_is_held_down_gets_no_face() {
    let mut meet = meet();
    meet.heard(NOW, 300, &hello("/net/b", 1, "udp4://192.0.2.2:6363"));
    let held = BTreeSet::from([name("/net/b")]);
    for ms in (0..10_000).step_by(250) {
        meet.look(Tick::from_ms(ms), &[], &held);
        meet.handle_timeout(Tick::from_ms(ms));
    }
    assert_eq!(outputs(&mut meet), []);
}

#[test]
fn of_two_the_one_whose_name_is_less_makes_the_face_and_the_other_when_that_fails() {
    let mut meet = meet_as("/net/z");
    meet.heard(NOW, 300, &hello("/net/b", 1, "udp4://192.0.2.2:6363"));
    assert_eq!(until(&mut meet, 1_700, &[]), [], "the other one makes it");
    // It did: the neighbour is heard by a face that is not ours.
    for ms in (1_740..10_000).step_by(250) {
        assert_eq!(until(&mut meet, ms, &[777]), []);
    }
    let out = until(&mut meet, 11_000, &[]);
    assert_eq!(made(&mut meet, 11_000, &out, 400), "udp4://192.0.2.2:6363", "and not any more");
}
