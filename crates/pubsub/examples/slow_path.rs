//! The slow path against the clock: requests at a rendezvous, trees of a topology manager, and
//! whole rounds within one node (subscribe, start, publish, deliver, unsubscribe) as in Fig. 6 of
//! the Blackadder paper.

#![allow(clippy::disallowed_methods, reason = "a measuring program has a clock")]

mod round;

use onym_pubsub::rendezvous::graph::request::Request as GraphRequest;
use onym_pubsub::rendezvous::graph::{Graph, Limits};
use onym_pubsub::topology::{Map, NodeState, Routing};
use onym_tables::Rng;
use onym_wire::push::{Id, Kind, Label, Link, Role, Strategy};
use round::Round;
use std::hint::black_box;
use std::time::Instant;

const ITEMS: u64 = 100_000;
const ROUNDS: u64 = 200_000;

fn id(labels: &[u64]) -> Id {
    labels.iter().fold(Id::default(), |id, l| id.child(Label::from_u64(*l)))
}

/// Subscribing to a random item and unsubscribing again, in the information graph.
fn graph() -> f64 {
    let mut graph = Graph::new(Limits::default());
    let mut ask = |node: u64, kind: Kind, child: u64, prefix: &Id| {
        let (id, prefix) = (id(&[child]), prefix.clone());
        let request = GraphRequest { kind, id, prefix, strategy: Strategy::DOMAIN_LOCAL };
        graph.request(Label::from_u64(node), &request).expect("invariant: a fitting request")
    };
    let (root, scope) = (Id::default(), id(&[1]));
    ask(1, Kind::PUBLISH_SCOPE, 1, &root);
    for item in 0..ITEMS {
        ask(1, Kind::PUBLISH_ITEM, item, &scope);
    }
    let mut rng = Rng::new(1);
    let start = Instant::now();
    for _ in 0..ROUNDS {
        let (node, item) = (2 + rng.below(72), rng.below(ITEMS));
        black_box(ask(node, Kind::SUBSCRIBE_ITEM, item, &scope));
        black_box(ask(node, Kind::UNSUBSCRIBE_ITEM, item, &scope));
    }
    start.elapsed().as_secs_f64() / (2 * ROUNDS) as f64
}

/// One tree to a random node, and its filter, in a random tree of 106 nodes.
fn tree() -> f64 {
    let mut rng = Rng::new(1);
    let mut states: Vec<NodeState> = (0..106)
        .map(|inside| NodeState {
            inside,
            role: Role::default(),
            links: Vec::new(),
            exits: Vec::new(),
        })
        .collect();
    let mut number = 106;
    for n in 1..106_usize {
        let end = rng.below(n as u64) as usize;
        for (from, to) in [(n, end), (end, n)] {
            let neighbour = Label::from_u64(to as u64);
            states[from].links.push(Link { neighbour, number, cost: 1 });
            number += 1;
        }
    }
    let mut map = Map::default();
    for (n, state) in states.into_iter().enumerate() {
        map.set(Label::from_u64(n as u64), Some(state));
    }
    let (routing, root) = (Routing::default(), Label::from_u64(0));
    let start = Instant::now();
    for _ in 0..20_000 {
        let to = Label::from_u64(1 + rng.below(105));
        let tree = map.tree(root, &[to]).expect("invariant: a node of the map");
        black_box(routing.route(&map, root, &tree));
    }
    start.elapsed().as_secs_f64() / 20_000.0
}

/// Whole rounds within one node.
fn node_local() -> f64 {
    let mut round = Round::new(ITEMS);
    let start = Instant::now();
    let delivered: usize = (0..ROUNDS).map(|_| round.run()).sum();
    assert_eq!(delivered as u64, ROUNDS);
    start.elapsed().as_secs_f64() / ROUNDS as f64
}

fn main() {
    println!("{:34} {:>12} {:>12}", "operation", "seconds", "per second");
    for (name, seconds) in [
        ("request at a rendezvous", graph()),
        ("tree and filter, 106 nodes", tree()),
        ("whole round within one node", node_local()),
    ] {
        println!("{name:34} {seconds:>12.9} {:>12.0}", 1.0 / seconds);
    }
}
