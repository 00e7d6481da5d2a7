//! Laws that hold however many shards there are.

#![allow(clippy::unwrap_used)]

mod support;

use onym_forward::verdict::Verdict;
use onym_link::PacketKind;
use onym_node::NodeHandle;
use onym_wire::mgmt::Scope;
use support::{App, start, until, with};

/// Every law is shown with these numbers of shards.
const SHARDS: [u16; 3] = [1, 2, 4];

fn app(node: &NodeHandle) -> (onym_tables::FaceId, App) {
    let (id, io) = node.attach(Scope::Local).unwrap();
    (id, App::new(io))
}

/// Both equations of the registry hold in every shard, and nothing was lost between them.
fn balanced(node: &NodeHandle) {
    let seen = node.snapshot().unwrap();
    for (i, shard) in seen.shards.iter().enumerate() {
        assert!(shard.counters.receptions_balance(), "shard {i}: {:?}", shard.counters);
        assert!(shard.counters.copies_balance(), "shard {i}: {:?}", shard.counters);
        assert_eq!(shard.crossing_full, 0);
    }
}

#[test]
fn names_spread_over_all_shards_and_each_answer_finds_its_way() {
    for shards in SHARDS {
        let node = start(with(shards, &[]));
        // Several consumers, so that faces are of different shards too.
        let mut consumers: Vec<App> = (0..4).map(|_| app(&node).1).collect();
        let (id, mut producer) = app(&node);
        node.route("/a", id, 0).unwrap();
        for n in 0..400 {
            let consumer = &mut consumers[n % 4];
            let text = format!("/a/{n}");
            consumer.interest(&text);
            let (name, _) = producer.take_interest();
            assert_eq!(name.to_string(), text);
            // Without the token: Data finds its way by its own name.
            producer.data(&text, text.as_bytes());
            assert_eq!(consumer.take_data().1, text.as_bytes());
        }
        let seen = node.snapshot().unwrap();
        assert_eq!(seen.verdict(PacketKind::Data, Verdict::Satisfied), 400);
        let least = seen.shards.iter().map(|s| s.counters.received[0]).min().unwrap();
        assert!(least > 400 / u64::from(shards) / 4, "a shard has too few: {least}");
        balanced(&node);
    }
}

#[test]
fn the_token_of_a_shard_brings_its_answer_back_to_it() {
    for shards in SHARDS {
        let node = start(with(shards, &[]));
        let ((_, mut consumer), (id, mut producer)) = (app(&node), app(&node));
        node.route("/a", id, 0).unwrap();
        for n in 0..100 {
            consumer.interest(&format!("/a/{n}"));
            let (name, token) = producer.take_interest();
            assert_eq!(token.len(), 6, "the node's own token goes upstream");
            producer.data_with_token(&name.to_string(), b"x", &token);
            consumer.take_data();
        }
        let seen = node.snapshot().unwrap();
        let wrong = seen.sum(|s| s.counters.foreign_tokens + s.counters.stale_tokens);
        assert_eq!((seen.verdict(PacketKind::Data, Verdict::Satisfied), wrong), (100, 0));
        balanced(&node);
    }
}

#[test]
fn what_one_shard_cached_answers_a_discovery_in_another() {
    for shards in SHARDS {
        let node = start(with(shards, &[]));
        let ((_, mut consumer), (id, mut producer)) = (app(&node), app(&node));
        node.route("/a", id, 0).unwrap();
        for n in 0..16 {
            consumer.interest(&format!("/a/{n}/v=1"));
            producer.take_interest();
            producer.data(&format!("/a/{n}/v=1"), b"x");
            consumer.take_data();
            consumer.interest_with(&format!("/a/{n}"), true);
            assert_eq!(consumer.take_data().0.to_string(), format!("/a/{n}/v=1"));
        }
        let seen = node.snapshot().unwrap();
        assert_eq!(seen.verdict(PacketKind::Interest, Verdict::CsHit), 16);
        balanced(&node);
    }
}

#[test]
fn data_that_answers_a_discovery_is_cached_where_exact_interests_look() {
    for shards in SHARDS {
        let node = start(with(shards, &[]));
        let ((_, mut consumer), (id, mut producer)) = (app(&node), app(&node));
        node.route("/a", id, 0).unwrap();
        for n in 0..16 {
            consumer.interest_with(&format!("/a/{n}"), true);
            let (_, token) = producer.take_interest();
            producer.data_with_token(&format!("/a/{n}/v=1"), b"x", &token);
            consumer.take_data();
            consumer.interest(&format!("/a/{n}/v=1"));
            consumer.take_data();
        }
        let seen = node.snapshot().unwrap();
        assert_eq!(seen.verdict(PacketKind::Interest, Verdict::CsHit), 16);
        balanced(&node);
    }
}

#[test]
fn one_data_answers_exact_and_discovery_interests_alike() {
    for shards in SHARDS {
        let node = start(with(shards, &[]));
        let ((_, mut one), (_, mut other)) = (app(&node), app(&node));
        let (id, mut producer) = app(&node);
        node.route("/a", id, 0).unwrap();
        for n in 0..16 {
            let full = format!("/a/{n}/v=1");
            one.interest_with(&format!("/a/{n}"), true);
            producer.take_interest();
            other.interest(&full);
            producer.take_interest();
            producer.data(&full, b"both");
            assert_eq!(one.take_data().1, b"both");
            assert_eq!(other.take_data().1, b"both");
        }
        balanced(&node);
    }
}

#[test]
fn a_strategy_and_a_route_hold_in_every_shard() {
    for shards in SHARDS {
        let node = start(with(shards, &["strategy.\"/m\"=multicast"]));
        let (_, mut consumer) = app(&node);
        let ((a, mut left), (b, mut right)) = (app(&node), app(&node));
        node.route("/m", a, 0).unwrap();
        node.route("/m", b, 10).unwrap();
        for n in 0..32 {
            consumer.interest(&format!("/m/{n}"));
            assert_eq!(left.take_interest().0, right.take_interest().0);
            left.data(&format!("/m/{n}"), b"x");
            consumer.take_data();
        }
        balanced(&node);
    }
}

#[test]
fn interests_for_the_same_name_from_faces_of_different_shards_are_one() {
    for shards in SHARDS {
        let node = start(with(shards, &[]));
        let mut consumers: Vec<App> = (0..5).map(|_| app(&node).1).collect();
        let (id, mut producer) = app(&node);
        node.route("/a", id, 0).unwrap();
        for n in 0..16 {
            let text = format!("/a/{n}");
            consumers[0].interest(&text);
            while producer.take_interest().0.to_string() != text {}
            consumers[1..].iter_mut().for_each(|c| c.interest(&text));
            until("all Interests are there", || {
                let all = node.snapshot().unwrap().sum(|s| s.counters.received[0]);
                all == (n + 1) * 5
            });
            producer.data(&text, b"x");
            consumers.iter_mut().for_each(|c| assert_eq!(c.take_data().1, b"x"));
            // A slow machine may have seen a retransmission.
            let data = node.snapshot().unwrap().verdict(PacketKind::Data, Verdict::Satisfied);
            assert_eq!(data, n + 1);
        }
        balanced(&node);
    }
}

#[test]
fn a_nack_finds_the_interest_in_whichever_shard_it_waits() {
    for shards in SHARDS {
        let node = start(with(shards, &[]));
        let ((_, mut consumer), (id, mut producer)) = (app(&node), app(&node));
        node.route("/a", id, 0).unwrap();
        for n in 0..32 {
            consumer.interest_with(&format!("/a/{n}"), n % 2 == 0);
            producer.nack_next();
            assert_eq!(consumer.take_nack().to_string(), format!("/a/{n}"));
        }
        let seen = node.snapshot().unwrap();
        assert_eq!(seen.verdict(PacketKind::Nack, Verdict::NackForwarded), 32);
        balanced(&node);
    }
}

#[test]
fn a_face_that_closes_is_forgotten_by_every_shard() {
    for shards in SHARDS {
        let node = start(with(shards, &[]));
        let (_, mut consumer) = app(&node);
        let (id, producer) = app(&node);
        node.route("/a", id, 0).unwrap();
        drop(producer);
        until("the face is gone", || node.faces().unwrap().len() == 1);
        for n in 0..16 {
            consumer.interest(&format!("/a/{n}"));
            consumer.take_nack();
        }
        let seen = node.snapshot().unwrap();
        assert_eq!(seen.verdict(PacketKind::Interest, Verdict::NoRoute), 16);
        balanced(&node);
    }
}
