//! The second level of the content store: what memory forgot is answered from the disk, also after a
//! restart; what is stale, erased, of this host only, or damaged is not; and a disk that is full, away
//! or slow stops nobody.

#![allow(clippy::unwrap_used)]

mod support;

use onym_node::{Node, NodeHandle, Snapshot};
use onym_wire::data::DataBuilder;
use onym_wire::interest::InterestBuilder;
use onym_wire::mgmt::{ControlParameters, Scope};
use std::fs;
use std::path::Path;
use support::{App, name, until, with};

/// Packets that memory has room for.
const MEMORY: usize = 8;

fn node(place: &Path, sets: &[&str]) -> NodeHandle {
    let folder = format!("cs.disk.folder={}", place.display());
    let memory = format!("cs.packets_max={MEMORY}");
    let base = [folder.as_str(), memory.as_str(), "cs.disk.free_min_bytes=0"];
    Node::start(with(1, &[&base[..], sets].concat())).unwrap()
}

fn attach(node: &NodeHandle) -> App {
    App::new(node.attach(Scope::Local).unwrap().1)
}

/// A producer of everything under `/p`.
fn producer(node: &NodeHandle) -> App {
    let mut app = attach(node);
    let named = ControlParameters { name: Some(name("/p")), ..ControlParameters::default() };
    assert_eq!(app.command("/localhost/nfd", "rib/register", &named).code, 200);
    app
}

fn data(uri: &str, freshness_ms: u64) -> Vec<u8> {
    let (name, mut wire) = (name(uri), Vec::new());
    let builder = DataBuilder { freshness_ms, ..DataBuilder::new(name.as_ref(), b"content") };
    onym_crypto::signer::write_digest_data(&builder, &mut wire);
    wire
}

/// Asks for `uri`, which its producer has to answer.
fn from_producer(consumer: &mut App, producer: &mut App, uri: &str, freshness_ms: u64) {
    consumer.interest(uri);
    assert_eq!(producer.take_interest().0, name(uri));
    producer.send(&data(uri, freshness_ms));
    assert_eq!(consumer.take_data().0, name(uri));
}

/// Asks for `uri`, which must be answered without its producer.
fn from_store(consumer: &mut App, uri: &str) {
    consumer.interest(uri);
    assert_eq!(consumer.take_data().0, name(uri));
}

fn snapshot(node: &NodeHandle) -> Snapshot {
    node.snapshot().unwrap()
}

/// Has memory forget everything else.
fn flood(consumer: &mut App, producer: &mut App, word: &str) {
    for n in 0..=MEMORY {
        from_producer(consumer, producer, &format!("/p/flood/{word}/{n}"), 0);
    }
}

fn kept(node: &NodeHandle, count: u64) {
    let so_many = || snapshot(node).disk.is_some_and(|disk| disk.kept == count);
    until("the packets are on the disk", so_many);
}

/// Asks for `uri` with MustBeFresh.
fn ask_fresh(consumer: &mut App, uri: &str) {
    let (name, mut wire) = (name(uri), Vec::new());
    InterestBuilder { must_be_fresh: true, ..InterestBuilder::new(name.as_ref()) }.write(&mut wire);
    consumer.send(&wire);
}

#[test]
fn what_was_asked_for_twice_is_on_the_disk_and_answered_from_there_also_after_a_restart() {
    let place = tempfile::tempdir().unwrap();
    let first = node(place.path(), &[]);
    let (mut consumer, mut maker) = (attach(&first), producer(&first));
    from_producer(&mut consumer, &mut maker, "/p/once", 0);
    from_producer(&mut consumer, &mut maker, "/p/twice", 60_000);
    from_store(&mut consumer, "/p/twice");
    from_store(&mut consumer, "/p/twice");
    kept(&first, 1);
    flood(&mut consumer, &mut maker, "a");
    from_store(&mut consumer, "/p/twice");
    let counts = snapshot(&first).disk();
    assert_eq!((counts.hits, counts.late, counts.offers.offered), (1, 0, 1), "{counts:?}");
    // What was asked for once is not there; its second time from the network writes it.
    from_producer(&mut consumer, &mut maker, "/p/once", 0);
    kept(&first, 2);
    assert!(first.stop());
    let second = node(place.path(), &[]);
    let mut consumer = attach(&second);
    until("the shelf is open", || snapshot(&second).disk.is_some_and(|d| d.packets == 2));
    from_store(&mut consumer, "/p/once");
    // It is as fresh as it was.
    ask_fresh(&mut consumer, "/p/twice");
    assert_eq!(consumer.take_data().0, name("/p/twice"));
    // By a prefix that is one component shorter.
    consumer.interest_with("/p", true);
    consumer.take_data();
    assert_eq!(snapshot(&second).disk().hits, 2, "the last is in memory again");
}

#[test]
fn freshness_goes_on_from_when_a_packet_came_and_not_from_when_it_was_written() {
    let place = tempfile::tempdir().unwrap();
    let node = node(place.path(), &["cs.disk.prefixes=[\"/p/film\"]"]);
    let (mut consumer, mut maker) = (attach(&node), producer(&node));
    from_producer(&mut consumer, &mut maker, "/p/film/long", 60_000);
    from_producer(&mut consumer, &mut maker, "/p/film/short", 1);
    from_producer(&mut consumer, &mut maker, "/p/late", 500);
    // It was stale when it was asked for again, and so it is written.
    let came = std::time::Instant::now();
    until("it is stale", || came.elapsed().as_millis() > 500);
    from_store(&mut consumer, "/p/late");
    kept(&node, 3);
    flood(&mut consumer, &mut maker, "a");
    for uri in ["/p/film/short", "/p/late"] {
        ask_fresh(&mut consumer, uri);
        assert_eq!(maker.take_interest().0, name(uri), "the disk has it, and it is not fresh");
        maker.send(&data(uri, 1));
        assert_eq!(consumer.take_data().0, name(uri));
    }
    ask_fresh(&mut consumer, "/p/film/long");
    assert_eq!(consumer.take_data().0, name("/p/film/long"));
    let counts = snapshot(&node).disk();
    assert_eq!((counts.hits, counts.misses), (1, 2), "{counts:?}");
}

#[test]
fn what_is_erased_or_of_this_host_only_does_not_come_back_from_the_disk() {
    let place = tempfile::tempdir().unwrap();
    let node = node(place.path(), &["cs.disk.prefixes=[\"/\"]"]);
    let (mut consumer, mut maker) = (attach(&node), producer(&node));
    for n in 0..3 {
        from_producer(&mut consumer, &mut maker, &format!("/p/gone/{n}"), 0);
    }
    from_producer(&mut consumer, &mut maker, "/p/stays", 0);
    let named = ControlParameters { name: Some(name("/localhost/p")), ..Default::default() };
    assert_eq!(maker.command("/localhost/nfd", "rib/register", &named).code, 200);
    from_producer(&mut consumer, &mut maker, "/localhost/p/here", 60_000);
    kept(&node, 4);
    flood(&mut consumer, &mut maker, "a");
    let gone = ControlParameters { name: Some(name("/p/gone")), ..ControlParameters::default() };
    let answer = consumer.command("/localhost/nfd", "cs/erase", &gone);
    assert_eq!((answer.code, answer.body.unwrap().count), (200, Some(3)));
    for uri in ["/p/gone/1", "/localhost/p/here"] {
        from_producer(&mut consumer, &mut maker, uri, 0);
    }
    from_store(&mut consumer, "/p/stays");
}

/// Law: octets that changed on the disk are never served: the producer is asked.
#[test]
fn a_damaged_packet_is_asked_for_elsewhere_and_written_again() {
    let place = tempfile::tempdir().unwrap();
    let node = node(place.path(), &["cs.disk.prefixes=[\"/p/film\"]"]);
    let (mut consumer, mut maker) = (attach(&node), producer(&node));
    from_producer(&mut consumer, &mut maker, "/p/film/1", 0);
    kept(&node, 1);
    flood(&mut consumer, &mut maker, "a");
    let log = place.path().join("00000001.log");
    let mut octets = fs::read(&log).unwrap();
    let at = octets.windows(7).position(|w| w == b"content").unwrap();
    octets[at] ^= 1;
    fs::write(&log, &octets).unwrap();
    from_producer(&mut consumer, &mut maker, "/p/film/1", 0);
    until("it is written again", || snapshot(&node).disk.is_some_and(|d| d.kept == 2));
    until("the damage is told", || snapshot(&node).disk.is_some_and(|d| d.damaged > 0));
    flood(&mut consumer, &mut maker, "b");
    from_store(&mut consumer, "/p/film/1");
}

/// Law: a disk that is full, or a folder that cannot be opened, is told in a sentence, and the node
/// goes on.
#[test]
fn a_disk_that_cannot_be_used_is_told_and_stops_nobody() {
    let place = tempfile::tempdir().unwrap();
    let full = node(
        place.path(),
        &["cs.disk.prefixes=[\"/p\"]", "cs.disk.free_min_bytes=1000000000000000000"],
    );
    let (mut consumer, mut maker) = (attach(&full), producer(&full));
    from_producer(&mut consumer, &mut maker, "/p/1", 0);
    from_store(&mut consumer, "/p/1");
    let trouble = |node: &NodeHandle| snapshot(node).disk.and_then(|disk| disk.trouble);
    until("it is told", || trouble(&full).is_some_and(|t| t.contains("the disk is full")));
    assert!(snapshot(&full).disk.is_some_and(|disk| (disk.kept, disk.refused) == (0, 1)));
    // Another node has the folder.
    let other = node(place.path(), &["cs.disk.prefixes=[\"/p\"]"]);
    let (mut consumer, mut maker) = (attach(&other), producer(&other));
    from_producer(&mut consumer, &mut maker, "/p/1", 0);
    let words = "another process has the store open";
    until("it is told", || trouble(&other).is_some_and(|t| t.contains(words)));
}

/// Law: what is on the disk is bounded, and the oldest gives way.
#[test]
fn the_oldest_gives_way_when_there_are_too_many() {
    let place = tempfile::tempdir().unwrap();
    let sets = ["cs.disk.prefixes=[\"/p\"]", "cs.disk.packets_max=1024", "cs.packets_max=64"];
    let node = node(place.path(), &sets);
    let (mut consumer, mut maker) = (attach(&node), producer(&node));
    for n in 0..1500 {
        from_producer(&mut consumer, &mut maker, &format!("/p/{n}"), 0);
        if n % 100 == 0 {
            kept(&node, n + 1);
        }
    }
    kept(&node, 1500);
    until("some went", || snapshot(&node).disk.is_some_and(|d| d.packets <= 1024 && d.gone > 400));
    from_producer(&mut consumer, &mut maker, "/p/0", 0);
    from_store(&mut consumer, "/p/1300");
}

/// Law: with several shards, and Interests by prefix among them, each is answered from the disk.
#[test]
fn several_shards_share_one_disk() {
    let place = tempfile::tempdir().unwrap();
    let folder = format!("cs.disk.folder={}", place.path().display());
    let sets = [&folder, "cs.packets_max=4", "cs.disk.prefixes=[\"/p/film\"]"];
    let sets = [&sets[..], &["cs.disk.free_min_bytes=0"]].concat();
    let node = Node::start(with(2, &sets)).unwrap();
    let (mut consumer, mut maker) = (attach(&node), producer(&node));
    let uri = |n: u64| {
        let mut object = name(&format!("/p/film/{n}"));
        object.append_segment(0).to_string()
    };
    for n in 0..16 {
        from_producer(&mut consumer, &mut maker, &uri(n), 0);
    }
    kept(&node, 16);
    flood(&mut consumer, &mut maker, "a");
    for n in 0..16 {
        from_store(&mut consumer, &uri(n));
    }
    consumer.interest_with("/p/film/3", true);
    assert_eq!(consumer.take_data().0, name(&uri(3)));
    assert!(snapshot(&node).disk().hits >= 8, "{:?}", snapshot(&node).disk());
}
