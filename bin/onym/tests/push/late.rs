//! What is retained of an item, over daemons and from the command line: a subscriber that comes later
//! starts with it.

use crate::support::Place;
use crate::{ask_until, lines, push_daemon};
use onym_client::push::{App, Error, Event};
use onym_wire::push::{Id, Status, Strategy};
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(30);

/// Subscribes by the command line and returns the texts of the first `count` publications.
fn heard(place: &Place, count: &str, more: &[&str]) -> Vec<String> {
    let mut args = vec!["subscribe", "/1/2", "--json", "--count", count, "--timeout", "60"];
    args.extend(more);
    let told = place.run(&args);
    assert_eq!(told.code, 0, "{told:?}");
    let texts = lines(&told.out).into_iter().filter(|line| line["event"] == "data");
    texts.map(|line| line["text"].as_str().unwrap_or("-").to_owned()).collect()
}

#[test]
fn who_subscribes_later_starts_with_what_was_published_with_retain() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a", "shards=2"]);
    let file = place.path("lines");
    std::fs::write(&file, "one\ntwo\nthree\n").unwrap();
    let file = file.to_str().unwrap();
    let publisher = place.start(&["publish", "/1/2", file, "--lines", "--retain", "2"]);
    ask_until("three lines were published", || {
        place.json(&["explain", "--push", "/1/2"])["here"]["retained"]["publications"] == 2
    });
    for _ in 0..2 {
        assert_eq!(heard(&place, "2", &[]), ["two", "three"]);
    }
    let told = place.json(&["rendezvous", "status"]);
    let retained = &told["retained"];
    assert_eq!((&retained["items"], &retained["publications"]), (&1.into(), &2.into()));
    assert_eq!(retained["told"], 4);
    drop(publisher);
    ask_until("it is forgotten with its publisher", || {
        place.json(&["rendezvous", "status"])["retained"]["items"] == 0
    });
    let wrong =
        place.run(&["publish", "/1/2", "--text", "x", "--retain", "--strategy", "broadcast"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
    assert!(wrong.err.contains("--retain does not go with --strategy broadcast"), "{wrong:?}");
}

/// Applications at all shards subscribe one after the other while a publisher goes on: each starts
/// with what is retained and misses nothing behind it.
#[test]
fn late_subscribers_at_every_shard_get_everything_in_order_while_the_publisher_goes_on() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a", "shards=2"]);
    let open = || App::open(Some(&place.node()), "late").unwrap();
    let (scope, item): (Id, Id) = ("/1".parse().unwrap(), "/1/2".parse().unwrap());
    let mut publisher = open();
    publisher.publish_scope(&scope, Strategy::DOMAIN_LOCAL).unwrap();
    let early = publisher.retain(&item, 1).unwrap_err();
    assert!(matches!(early, Error::Refused { status: Status::NO_ITEM, .. }), "{early}");
    publisher.publish_item(&item, Strategy::DOMAIN_LOCAL).unwrap();
    publisher.retain(&item, 5).unwrap();
    let (mut number, mut subscribers) = (0_u32, Vec::new());
    for _ in 0..12 {
        for _ in 0..50 {
            publisher.publish(&item, Strategy::DOMAIN_LOCAL, &number.to_be_bytes()).unwrap();
            number += 1;
        }
        publisher.drain().unwrap();
        let mut app = open();
        app.subscribe_item(&item, Strategy::DOMAIN_LOCAL).unwrap();
        subscribers.push((app, number));
    }
    for (mut app, before) in subscribers {
        let mut next = None;
        while next != Some(number) {
            let event = app.event(Some(PATIENCE)).unwrap();
            let Some(Event::Data { payload, .. }) = &event else { panic!("{event:?}") };
            let got = u32::from_be_bytes(payload[..4].try_into().unwrap());
            assert!(got < before || next.is_some(), "it starts with {got} of {before}");
            assert_eq!(next.unwrap_or(got), got);
            next = Some(got + 1);
        }
    }
}
