//! Nodes whose processors are busy work in rounds, in which messages share frames (P-46).

use onym_pubsub::dispatcher::Request;
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::{Costs, LinkConfig};
use onym_wire::push::{Id, Kind, Label, Role, Status, Strategy};
use std::time::Duration;

const APP: AppId = AppId(1);
const RENDEZVOUS: usize = 0;
const OTHER: usize = 1;
const ITEMS: u64 = 2000;

/// What came of `ITEMS` requests made at once: statuses in order, and frames over the link in both
/// directions.
fn ask(cost: Duration, loss_ppm: u32, seed: u64) -> (Vec<(u64, Status)>, u64) {
    let mut net = PushNetwork::new(seed);
    net.add_node(1, Role::RENDEZVOUS.and(Role::TOPOLOGY), |_| {});
    net.add_node(2, Role::default(), |_| {});
    net.link(RENDEZVOUS, OTHER, LinkConfig { loss_ppm, ..LinkConfig::default() });
    net.run_for(Duration::from_secs(10));
    let (id, prefix, strategy) =
        (Id::root(Label::from_u64(1)), Id::default(), Strategy::DOMAIN_LOCAL);
    net.request(OTHER, APP, 0, &Request { kind: Kind::PUBLISH_SCOPE, id, prefix, strategy });
    net.run_for(Duration::from_secs(10));
    for node in [RENDEZVOUS, OTHER] {
        net.set_costs(node, Costs { frame: cost, request: cost, ..Costs::default() });
    }
    let frames = |net: &PushNetwork| net.crossed(0, 1).1 + net.crossed(1, 0).1;
    let before = frames(&net);
    for number in 1..=ITEMS {
        let (id, prefix) = (Id::root(Label::from_u64(number)), Id::root(Label::from_u64(1)));
        let kind = Kind::PUBLISH_ITEM;
        net.request(OTHER, APP, number, &Request { kind, id, prefix, strategy });
    }
    net.run_for(Duration::from_secs(5));
    let sent = frames(&net) - before;
    net.run_for(Duration::from_secs(60));
    let mut answers = Vec::new();
    while let Some(event) = net.event(OTHER, APP) {
        if let Event::Status { tag, status } = event {
            answers.push((tag, status));
        }
    }
    (answers, sent)
}

fn all_ok() -> Vec<(u64, Status)> {
    (0..=ITEMS).map(|tag| (tag, Status::OK)).collect()
}

#[test]
fn a_busy_node_says_much_in_few_frames_and_everything_in_order() {
    let (answers, alone) = ask(Duration::ZERO, 0, 1);
    assert_eq!(answers, all_ok());
    assert!(alone >= ITEMS, "{alone}: nobody is busy, so every request travels alone");
    let (answers, shared) = ask(Duration::from_micros(10), 0, 1);
    assert_eq!(answers, all_ok());
    assert!(shared < alone / 5, "{shared} frames of busy nodes, {alone} of idle ones");
}

#[test]
fn a_bundle_that_is_lost_is_said_again() {
    for seed in 0..5 {
        let (answers, _) = ask(Duration::from_micros(10), 200_000, seed);
        assert_eq!(answers, all_ok(), "seed {seed}");
    }
}
