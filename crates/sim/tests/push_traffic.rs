//! Traffic engineering by the topology manager: costs and failures.

mod push_item;

use onym_pubsub::Event;
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_wire::push::Role;
use push_item::{SUBSCRIBER, TWO_WAYS, gap, matched, publish};
use std::time::Duration;

/// Nodes of which the first is rendezvous and topology manager, and these links at a cost.
fn network(links: &[(usize, usize, u16)], delay: Duration) -> PushNetwork {
    let mut net = PushNetwork::new(1);
    let nodes = links.iter().map(|(a, b, _)| 1 + a.max(b)).max().unwrap_or(1);
    for n in 0..nodes {
        let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(n as u64 + 1, role, |_| {});
    }
    for (a, b, cost) in links {
        net.link(*a, *b, LinkConfig { cost: *cost, delay, ..LinkConfig::default() });
    }
    net.run_for(Duration::from_secs(3));
    net
}

/// Publications that came since this was asked last.
fn came(net: &mut PushNetwork, node: usize) -> usize {
    let events = std::iter::from_fn(|| net.event(node, SUBSCRIBER));
    events.filter(|event| matches!(event, Event::Data { .. })).count()
}

/// Law: a link that costs more carries a tree no more, one that costs less again does; meanwhile it
/// stays up, and each publication comes once.
#[test]
fn another_cost_moves_a_tree_and_takes_no_link_down() {
    let mut net =
        network(&[(0, 1, 1), (1, 3, 1), (0, 2, 2), (2, 3, 2)], LinkConfig::default().delay);
    matched(&mut net, 0, &[3]);
    let link = net.link_between(0, 1).expect("it was made");
    for (cost, by, way) in [(1, 1, "short"), (9, 2, "cheap"), (1, 1, "short again")] {
        net.set_cost(link, cost);
        for _ in 0..100 {
            publish(&mut net, 0);
            net.run_for(Duration::from_millis(2));
        }
        let before = net.crossed(0, by).0;
        publish(&mut net, 0);
        net.run_for(Duration::from_millis(100));
        assert_eq!(net.crossed(0, by).0, before + 1, "{way}");
        assert_eq!(came(&mut net, 3), 101, "{way}");
    }
}

/// Law: a link of a tree that dies leaves a gap of its detection and one round trip: here 10 ms from
/// its end to the manager, 5 ms from there to the publisher, 10 ms from there to the subscriber.
#[test]
fn a_failure_costs_detection_and_a_round_trip() {
    let of = |is_told| gap(&mut network(&TWO_WAYS, Duration::from_millis(5)), is_told);
    let (told, silent) = (of(true), of(false));
    let trip = Duration::from_millis(25);
    assert!(told.0 <= trip && told.1 <= 25, "{told:?}");
    assert!(silent.0 <= Duration::from_millis(3500) + trip, "{silent:?}");
}
