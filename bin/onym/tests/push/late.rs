//! What is retained of an item, over daemons and from the command line: a subscriber that comes later
//! starts with it.

use crate::support::Place;
use crate::{ask_until, lines, push_daemon};
use onym_client::push::{App, Error, Event, Retain};
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

/// Old values are for nobody who comes late (P-79).
#[test]
fn what_is_retained_for_a_second_is_forgotten_then() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    let publish = ["publish", "/1/2", "--text", "old", "--retain", "3", "--lifetime", "1"];
    let _publisher = place.start(&publish);
    ask_until("it is forgotten for its age", || {
        place.json(&["rendezvous", "status"])["retained"]["expired"] == 1
    });
    let told = place.json(&["explain", "--push", "/1/2"]);
    let wanted = serde_json::json!({
        "publications": 0, "most": 3, "lifetime_ms": 1000, "deadline_ms": null, "priority": 0,
        "waits": false,
    });
    assert_eq!(told["here"]["retained"], wanted);
    let told = place.run(&["explain", "--push", "/1/2"]).out;
    assert!(told.contains("0 of at most 3 for late subscribers, each for 1000 ms"), "{told}");
    let late = place.run(&["subscribe", "/1/2", "--count", "1", "--timeout", "0"]);
    assert_eq!((late.code, &late.out[..]), (5, ""), "{late:?}");
    let alone = place.run(&["publish", "/1/2", "--text", "x", "--deadline", "1"]);
    assert_eq!(alone.code, 2, "{alone:?}");
}

/// Publisher and subscriber hear that nothing follows in time (P-82).
#[test]
fn what_does_not_follow_by_its_deadline_is_overdue() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    let strategy = Strategy::DOMAIN_LOCAL;
    let open = || App::open(Some(&place.node()), "test").unwrap();
    let (mut publisher, mut subscriber) = (open(), open());
    let (item, within): (Id, _) = ("/1/2".parse().unwrap(), Duration::from_millis(500));
    publisher.publish_scope(&Id::from_labels(item.parent()), strategy).unwrap();
    publisher.publish_item(&item, strategy).unwrap();
    let retain = Retain { deadline: Some(within), priority: 7, ..Retain::last(1) };
    publisher.retain_as(&item, retain).unwrap();
    subscriber.subscribe_item(&item, strategy).unwrap();
    publisher.publish(&item, strategy, b"x").unwrap();
    let overdue = Event::Overdue { id: item, within };
    for app in [&mut publisher, &mut subscriber] {
        let first = app.event(Some(PATIENCE)).unwrap();
        assert!(matches!(first, Some(Event::StartPublish(_) | Event::Data { .. })), "{first:?}");
        assert_eq!(app.event(Some(PATIENCE)).unwrap(), Some(overdue.clone()));
    }
    assert_eq!(place.json(&["rendezvous", "status"])["retained"]["overdue"], 1);
    let told = place.run(&["explain", "--push", "/1/2"]).out;
    assert!(told.contains("the next one within 500 ms") && told.contains("7 of 7"), "{told}");
    let beyond = publisher.retain_as(&"/1/2".parse().unwrap(), Retain { priority: 8, ..retain });
    assert!(matches!(beyond, Err(Error::Refused { status: Status::FULL, .. })), "{beyond:?}");
    let wrong = place.run(&["publish", "/1/3", "--text", "x", "--retain", "--priority", "8"]);
    assert_eq!(wrong.code, 2, "{wrong:?}");
}

/// Who pauses gets all from a publisher that waits; for one that does not read at all it waits once
/// (P-93).
#[test]
fn a_publisher_that_wants_to_waits_for_who_is_behind() {
    const COUNT: usize = 400;
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a", "shards=2", "push.hold_ms=2000"]);
    let (strategy, item): (_, Id) = (Strategy::DOMAIN_LOCAL, "/1/2".parse().unwrap());
    let open = || {
        let mut app = App::open(Some(&place.node()), "test").unwrap();
        app.subscribe_item(&item, strategy).unwrap();
        app
    };
    let mut maker = App::open(Some(&place.node()), "test").unwrap();
    maker.publish_scope(&Id::from_labels(item.parent()), strategy).unwrap();
    let (mut reader, mut sleeper) = (open(), open());
    let file = place.path("lines");
    let lines: Vec<String> = (0..COUNT).map(|n| format!("{n:0>8000}\n")).collect();
    std::fs::write(&file, lines.concat()).unwrap();
    let args = ["publish", "/1/2", file.to_str().unwrap(), "--lines", "--retain", "2", "--wait"];
    let _publisher = place.start(&args);
    for (n, line) in lines.iter().enumerate() {
        let event = reader.event(Some(PATIENCE)).unwrap();
        let Some(Event::Data { payload, .. }) = &event else { panic!("{n}: {event:?}") };
        assert_eq!(payload[..], line.as_bytes()[..8000], "{n}");
        if n % 50 == 0 {
            // It takes its time, but not so long as a publisher waits.
            std::thread::sleep(Duration::from_millis(100));
        }
    }
    let told = place.json(&["explain", "--push", "/1/2"])["here"].clone();
    assert_eq!((&told["retained"]["waits"], &told["retained"]["most"]), (&true.into(), &2.into()));
    assert_eq!(told["behind"], "publishers wait, then the oldest goes");
    let status = place.json(&["rendezvous", "status"])["retained"].clone();
    assert_eq!((&status["waiting"], &status["in_vain"]), (&0.into(), &1.into()), "{status}");
    let (mut came, mut missed) = (0, 0);
    while came + missed < COUNT as u64 {
        match sleeper.event(Some(PATIENCE)).unwrap() {
            Some(Event::Data { .. }) => came += 1,
            Some(Event::Missed(count)) => missed += count,
            event => panic!("{event:?}"),
        }
    }
    assert!(missed > 0, "{came} came");
    let alone = place.run(&["publish", "/1/2", "--text", "x", "--wait"]);
    assert_eq!(alone.code, 2, "{alone:?}");
}
