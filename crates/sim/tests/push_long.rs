//! A publication of any size travels: 20 MB over three nodes, without loss and with.

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_wire::push::{Id, Kind, Role, Strategy};
use std::time::Duration;

const PUBLISHER: AppId = AppId(1);
const SUBSCRIBER: AppId = AppId(2);
const LEN: usize = 20 << 20;

fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

/// Publishes once over two links that lose so many frames of a million; frames that the first link
/// carried for each that was needed.
fn travels(seed: u64, loss_ppm: u32) -> f64 {
    let mut net = PushNetwork::new(seed);
    for n in 0..3 {
        let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(n + 1, role, |_| {});
    }
    for n in 1..3 {
        net.link(n - 1, n, LinkConfig { loss_ppm, ..LinkConfig::default() });
    }
    net.run_for(Duration::from_secs(3));
    let strategy = Strategy::DOMAIN_LOCAL;
    for (node, app, kind, child, prefix) in [
        (0, PUBLISHER, Kind::PUBLISH_SCOPE, "/1", "/"),
        (0, PUBLISHER, Kind::PUBLISH_ITEM, "/2", "/1"),
        (1, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, "/2", "/1"),
        (2, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, "/2", "/1"),
    ] {
        net.request(node, app, 0, &Request { kind, id: id(child), prefix: id(prefix), strategy });
        net.run_for(Duration::from_secs(5));
    }
    while net.event(0, PUBLISHER).is_some() {}
    for node in [1, 2] {
        assert!(matches!(net.event(node, SUBSCRIBER), Some(Event::Status { .. })), "seed {seed}");
    }
    let payload: Vec<u8> = (0..LEN).map(|i| (i / 7 % 251) as u8).collect();
    let before = net.crossed(0, 1).0;
    let data = Data::new(id("/1/2"), strategy, &payload);
    let sent = net.publish(0, PUBLISHER, &data).expect("up").expect("started");
    let mut got = [0; 2];
    let is_done = net.run_until(Duration::from_secs(30), |net| {
        for (node, got) in [1, 2].into_iter().zip(&mut got) {
            if let Some(event) = net.event(node, SUBSCRIBER) {
                let Event::Data { payload: came, .. } = event else { panic!("{event:?}") };
                assert!(came[..] == payload[..], "seed {seed}, node {node}");
                *got += 1;
            }
        }
        got == [1, 1]
    });
    assert!(is_done, "seed {seed}: {got:?}");
    // Nothing is held for it any longer than repairs may be asked for, and nothing comes twice.
    net.run_for(Duration::from_secs(15));
    for node in [1, 2] {
        assert_eq!(net.event(node, SUBSCRIBER), None, "seed {seed}");
        let node = net.node(node).expect("up");
        assert_eq!(node.counters().incomplete, 0, "seed {seed}");
    }
    (net.crossed(0, 1).0 - before) as f64 / sent.frames as f64
}

#[test]
fn a_publication_of_20_mb_travels_over_three_nodes() {
    assert!((travels(51, 0) - 1.0).abs() < 1e-9);
}

#[test]
fn a_publication_of_20_mb_travels_whatever_is_lost_on_the_way() {
    // Of two links a fiftieth is lost, and each repair is for one of them: some more than needed.
    let frames = travels(52, 10_000);
    assert!(frames > 1.0 && frames < 1.1, "seed 52: {frames}");
    let frames = travels(53, 100_000);
    assert!(frames > 1.1 && frames < 1.6, "seed 53: {frames}");
}
