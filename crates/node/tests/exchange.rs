//! Whole nodes in this process, with faces in memory, over Unix sockets and UDP.

#![allow(clippy::unwrap_used)]

mod support;

use onym_forward::verdict::Verdict;
use onym_link::PacketKind;
use onym_node::NodeHandle;
use onym_watch::record;
use onym_wire::mgmt::Scope;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use support::{App, name, quiet, start};

#[test]
fn an_interest_reaches_the_producer_and_its_data_comes_back() {
    let node = start(quiet(1));
    let (_, consumer) = node.attach(Scope::Local).unwrap();
    let (id, producer) = node.attach(Scope::Local).unwrap();
    node.route("/a", id, 0).unwrap();
    let (mut consumer, mut producer) = (App::new(consumer), App::new(producer));
    consumer.interest("/a/b");
    assert_eq!(producer.take_interest().0.to_string(), "/a/b");
    producer.data("/a/b", b"hello");
    assert_eq!(consumer.take_data().1, b"hello");
    consumer.interest("/a/b");
    assert_eq!(consumer.take_data().1, b"hello");
    let seen = node.snapshot().unwrap();
    assert_eq!(seen.verdict(PacketKind::Interest, Verdict::CsHit), 1);
    assert!(node.stop(), "nothing was left to send");
}

/// What `onym dump` is shown of packets under a prefix since it asked last, and how often.
fn dumped(viewer: &mut App, n: u32, prefix: &str) -> BTreeMap<String, usize> {
    let mut question = name("/localhost/onym/dump");
    question.append_generic(format!("viewer=1&n={n}&prefix={prefix}"));
    viewer.interest_with(&question.to_string(), true);
    let (records, missed) = record::parse(&viewer.take_data().1).unwrap();
    assert_eq!(missed, 0);
    let mut shown = BTreeMap::new();
    for record in records {
        let (way, kind) = (record.direction.word(), record.kind.word());
        *shown.entry(format!("{way} {kind} {}", record.outcome)).or_default() += 1;
    }
    shown
}

/// A node with a consumer, a producer of `/a` and a viewer.
fn watched(shards: u16) -> (NodeHandle, [App; 3]) {
    let node = start(quiet(shards));
    let faces = [(); 3].map(|()| node.attach(Scope::Local).unwrap());
    node.route("/a", faces[1].0, 0).unwrap();
    (node, faces.map(|(_, io)| App::new(io)))
}

/// Law: who looks at one prefix is shown each of its packets once, and none of others: those of turns
/// with packets of others, Nacks, and what the content store has for a shorter name.
#[test]
fn a_viewer_of_a_prefix_is_shown_each_of_its_packets_and_no_other() {
    for shards in [1, 2] {
        let (_node, [mut consumer, mut producer, mut viewer]) = watched(shards);
        assert!(dumped(&mut viewer, 0, "/a/x").is_empty());
        let mut exchange = |names: &[&str]| {
            names.iter().for_each(|name| consumer.queue_interest(name));
            consumer.flush();
            let asked: Vec<_> = names.iter().map(|_| producer.take_interest()).collect();
            for (name, token) in asked {
                producer.data_with_token(&name.to_string(), b"", &token);
            }
            names.iter().for_each(|_| drop(consumer.take_data()));
        };
        let each = |count| {
            let each = [
                "in interest forwarded",
                "out interest sent",
                "in data satisfied",
                "out data sent",
            ];
            BTreeMap::from(each.map(|what| (what.to_owned(), count)))
        };
        exchange(&["/a/x/1"]);
        assert_eq!(dumped(&mut viewer, 1, "/a/x"), each(1), "{shards} shards");
        exchange(&["/a/y/1", "/a/x/2", "/a/y/2", "/a/y/3", "/a/x/3", "/a/x/4", "/a/y/4"]);
        assert_eq!(dumped(&mut viewer, 2, "/a/x"), each(3), "{shards} shards");
        exchange(&["/a/y/5", "/a/z/1", "/a/y/6"]);
        assert!(dumped(&mut viewer, 3, "/a/x").is_empty());
        assert!(dumped(&mut viewer, 4, "/a/z/1").is_empty());
        consumer.interest_with("/a/z", true);
        consumer.take_data();
        let shown = dumped(&mut viewer, 5, "/a/z/1");
        assert_eq!(shown.into_iter().collect::<Vec<_>>(), [("out data sent".to_owned(), 1)]);
        consumer.interest("/a/z/1/9");
        producer.nack_next();
        consumer.take_nack();
        let shown = dumped(&mut viewer, 6, "/a/z/1");
        let ways: Vec<_> = shown.keys().map(|what| &what[..6]).collect();
        assert_eq!(ways, ["in int", "in nac", "out in", "out na"], "{shown:?}");
    }
}

/// Law: who begins to look is shown what answers an Interest that came before, and Data that nobody asked
/// for, with one shard and with more.
#[test]
fn a_viewer_is_shown_answers_to_what_came_before_it_and_what_nobody_asked_for() {
    for shards in [1, 2] {
        let (_node, [mut consumer, mut producer, mut viewer]) = watched(shards);
        for (n, (asked, has_token)) in (0..).zip([("/a/x/1", true), ("/a/x/2", false)]) {
            consumer.interest(asked);
            let (name, token) = producer.take_interest();
            let prefix = format!("/a/x/{}", n + 1);
            assert!(dumped(&mut viewer, 2 * n, &prefix).is_empty());
            let token = if has_token { &token[..] } else { &[] };
            producer.data_with_token(&name.to_string(), b"", token);
            consumer.take_data();
            let shown = dumped(&mut viewer, 2 * n + 1, &prefix);
            let each = ["in data satisfied", "out data sent"];
            assert_eq!(shown.into_keys().collect::<Vec<_>>(), each, "{shards} shards");
        }
        producer.data("/a/x/2/unasked", b"");
        let until = Instant::now() + Duration::from_secs(10);
        let shown = (4..).map(|n| dumped(&mut viewer, n, "/a/x/2"));
        let mut shown = shown.take_while(|_| Instant::now() < until);
        let shown = shown.find(|shown| !shown.is_empty()).unwrap();
        assert_eq!(shown.into_keys().collect::<Vec<_>>(), ["in data unsolicited"]);
    }
}
