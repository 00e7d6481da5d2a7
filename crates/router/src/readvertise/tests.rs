//! Laws of telling.

use super::spread::{Outcome, Place, Spread, Timing, Told, Verb};
use super::*;
use onym_wire::mgmt::Route;

fn name(uri: &str) -> Name {
    uri.parse().unwrap()
}

fn wanted(prefixes: &[(&str, u64)]) -> BTreeMap<Name, u64> {
    prefixes.iter().map(|(uri, cost)| (name(uri), *cost)).collect()
}

/// Says all that is due at `ms`, with this answer.
fn said(spread: &mut Spread, ms: u64, outcome: Outcome) -> Vec<(String, Verb)> {
    let now = Tick::from_ms(ms);
    let mut all = Vec::new();
    while let Some(told) = spread.next(now) {
        spread.answered(now, &told, outcome);
        all.push((told.prefix.to_string(), told.verb));
        assert!(all.len() < 100, "said again and again");
    }
    all
}

#[test]
fn what_is_wanted_is_told_once_each_hour_and_at_once_when_the_place_appears() {
    let mut spread = Spread::new(Timing::NLSR);
    spread.look(Tick(0), Place::Away, wanted(&[("/a", 1)]));
    assert_eq!(said(&mut spread, 0, Outcome::Done), [], "nobody is there");
    spread.look(Tick(0), Place::There, wanted(&[("/a", 1)]));
    assert_eq!(said(&mut spread, 0, Outcome::Done), [("/a".into(), Verb::Register(1))]);
    spread.look(Tick::from_ms(500), Place::There, wanted(&[("/a", 1), ("/b", 0)]));
    assert_eq!(said(&mut spread, 500, Outcome::Done), [("/b".into(), Verb::Register(0))]);
    // A cost that changes is told; NFD does not.
    spread.look(Tick::from_ms(1000), Place::There, wanted(&[("/a", 7), ("/b", 0)]));
    assert_eq!(said(&mut spread, 1000, Outcome::Done), [("/a".into(), Verb::Register(7))]);
    spread.look(Tick::from_ms(1500), Place::There, wanted(&[("/a", 7)]));
    assert_eq!(said(&mut spread, 1500, Outcome::Done), [("/b".into(), Verb::Unregister)]);
    assert_eq!(said(&mut spread, 3_600_000, Outcome::Done), []);
    assert_eq!(said(&mut spread, 3_601_000, Outcome::Done), [("/a".into(), Verb::Register(7))]);
    // It ended and began again.
    spread.look(Tick::from_ms(4_000_000), Place::Away, wanted(&[("/a", 7)]));
    spread.look(Tick::from_ms(4_001_000), Place::There, wanted(&[("/a", 7)]));
    assert_eq!(said(&mut spread, 4_001_000, Outcome::Done), [("/a".into(), Verb::Register(7))]);
}

#[test]
fn a_refusal_is_repeated_ever_later_and_an_unknown_prefix_is_not_withdrawn() {
    let mut spread = Spread::new(Timing::NLSR);
    spread.look(Tick(0), Place::There, wanted(&[("/a", 1)]));
    let mut times = Vec::new();
    for ms in (0..8_000_000).step_by(10_000) {
        if !said(&mut spread, ms, Outcome::Failed).is_empty() {
            times.push(ms / 1000);
        }
    }
    assert_eq!(&times[..5], [0, 100, 300, 700, 1500], "doubling");
    assert!(times.windows(2).all(|w| w[1] - w[0] <= 3600), "{times:?}");
    spread.look(Tick::from_ms(9_000_000), Place::There, wanted(&[]));
    assert_eq!(said(&mut spread, 9_000_000, Outcome::Done), [], "it never was there");
}

#[test]
fn what_changed_while_it_was_said_is_said_again() {
    let mut spread = Spread::new(Timing::HUB);
    spread.look(Tick(0), Place::There, wanted(&[("/a", 1)]));
    let told = spread.next(Tick(0)).unwrap();
    spread.look(Tick(1), Place::There, wanted(&[("/a", 2)]));
    spread.answered(Tick(2), &told, Outcome::Done);
    let second = Told { prefix: name("/a"), verb: Verb::Register(2) };
    assert_eq!(spread.next(Tick(2)), Some(second.clone()));
    spread.look(Tick(3), Place::There, wanted(&[]));
    spread.answered(Tick(4), &second, Outcome::Done);
    assert_eq!(
        said(&mut spread, 1, Outcome::Done),
        [("/a".into(), Verb::Unregister)],
        "not wanted any more"
    );
    assert_eq!(said(&mut spread, 4_000_000, Outcome::Done), []);
}

#[test]
fn only_client_routes_of_public_names_are_told_and_the_shortest_identity_stands_for_them() {
    let route = |origin, cost| Route { face_id: 300, origin, cost, ..Route::default() };
    let entry = |uri: &str, routes| RibEntry { name: name(uri), routes };
    let rib = [
        entry("/alice/film", vec![route(65, 9), route(65, 4), route(0, 1)]),
        entry("/alice/app", vec![route(0, 0)]),
        entry("/bob/x", vec![route(65, 0)]),
        entry("/localhost/nlsr", vec![route(65, 0)]),
        entry("/localhop/nfd", vec![route(255, 0)]),
    ];
    assert_eq!(for_nlsr(&rib), wanted(&[("/alice/film", 4), ("/bob/x", 0)]));
    assert!(
        place(&rib, &["localhost", "nlsr"]) == Place::There
            && place(&rib, &["localhost", "other"]) == Place::Away
    );
    let identity = |uri: &str| (name(uri), Signer::digest());
    let keys = [identity("/alice/film"), identity("/alice/nrd"), identity("/carol")];
    assert_eq!(for_hub(&rib, &keys), wanted(&[("/alice", HUB_COST)]), "/bob has no identity here");
}
