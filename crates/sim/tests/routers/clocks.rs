//! Clocks that are wrong, routers and forwarders that start again.

use super::{SEED, prefix, settle, until_routed};
use onym_route::Notice;
use onym_sim::routers::{Graph, RouterNetwork, Setting};

fn ring() -> RouterNetwork {
    let mut net = RouterNetwork::new(&Graph::ring(6), Setting::new(10, SEED));
    net.with(2, |router, now| assert!(router.announce(now, &prefix("/app"), 300, 0)));
    settle(&mut net, 8_000);
    net
}

/// `node` starts again and announces `name`.
fn again(net: &mut RouterNetwork, node: usize, name: &str) {
    net.kill(node);
    net.pass(500);
    net.start(node);
    net.retry_all();
    net.with(node, |router, now| assert!(router.announce(now, &prefix(name), 300, 0)));
}

#[test]
fn a_clock_that_is_set_while_a_router_runs_changes_no_way() {
    let mut net = ring();
    let before: u64 = net.counters().iter().map(|c| c.route_changes).sum();
    for ahead_ms in [3_600_000, -3_600_000, 0, 2 * 86_400_000, 0] {
        net.set_clock(2, ahead_ms);
        net.pass(40_000);
    }
    let after: u64 = net.counters().iter().map(|c| c.route_changes).sum();
    assert_eq!(after, before);
    let down = |node| net.notices(node).iter().any(|n| matches!(n, Notice::NeighbourDown(..)));
    assert!((0..6).all(|node| !down(node)), "times of signatures kill nobody");
    assert!((0..6).all(|node| net.leads(node, &prefix("/app"), 2)));
}

#[test]
fn a_router_that_starts_again_with_its_clock_in_the_past_is_believed() {
    let mut net = ring();
    net.set_clock(2, -1_000_000);
    again(&mut net, 2, "/app");
    let ms = until_routed(&mut net, &prefix("/app"), Some(2), 10_000);
    println!("seed {SEED}: 1000 s back and started again: routed after {ms} ms");
    settle(&mut net, 8_000);
}

#[test]
fn a_router_from_the_far_future_is_mute_and_others_go_on() {
    let mut net = ring();
    net.set_clock(2, 2 * 86_400_000);
    again(&mut net, 2, "/app");
    net.pass(40_000);
    // Nobody believes its number: there is no way to it, and by it there is.
    assert!((0..6).filter(|node| *node != 2).all(|node| net.hops(node, &net.group(2)).is_empty()));
    assert!((0..6).all(|node| net.hops(node, &prefix("/app")).is_empty()));
    let others = [0, 1, 3, 4, 5];
    for from in others {
        for to in others.into_iter().filter(|to| *to != from) {
            assert!(!net.hops(from, &net.group(to)).is_empty(), "{from} to {to}");
        }
    }
    // A neighbour that starts with a right clock never repeats what it said.
    again(&mut net, 3, "/new");
    until_routed(&mut net, &prefix("/new"), Some(3), 10_000);
}

#[test]
fn a_forwarder_that_starts_again_gets_its_faces_and_routes_back() {
    let mut net = ring();
    net.restart_forwarder(2);
    net.restart_forwarder(4);
    for node in [2, 4] {
        net.with(node, |router, now| assert!(router.announce(now, &prefix("/more"), 301, 0)));
    }
    settle(&mut net, 8_000);
    assert!((0..6).all(|node| net.end_of(node, &prefix("/more")).is_some_and(|end| end % 2 == 0)));
    net.with(2, |router, now| assert!(router.announce(now, &prefix("/app"), 300, 0)));
    until_routed(&mut net, &prefix("/app"), Some(2), 2_000);
}
