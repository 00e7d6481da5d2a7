//! Whole nodes in this process, with faces in memory, over Unix sockets and UDP.

#![allow(clippy::unwrap_used)]

mod support;

use onym_forward::verdict::Verdict;
use onym_link::PacketKind;
use onym_wire::mgmt::Scope;
use support::{App, quiet, start};

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
