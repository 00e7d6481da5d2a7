//! Traffic engineering by the topology manager: costs and failures.

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_tables::Tick;
use onym_wire::push::{Id, Kind, Role, Strategy};
use std::time::Duration;

const PUBLISHER: AppId = AppId(1);
const SUBSCRIBER: AppId = AppId(2);

fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

/// Nodes of which the first is rendezvous and topology manager, and these links at a cost.
fn network(links: &[(usize, usize, u16)]) -> PushNetwork {
    let mut net = PushNetwork::new(1);
    let nodes = links.iter().map(|(a, b, _)| 1 + a.max(b)).max().unwrap_or(1);
    for n in 0..nodes {
        let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(n as u64 + 1, role, |_| {});
    }
    for (a, b, cost) in links {
        net.link(*a, *b, LinkConfig { cost: *cost, ..LinkConfig::default() });
    }
    net.run_for(Duration::from_secs(3));
    net
}

fn ask(net: &mut PushNetwork, node: usize, app: AppId, kind: Kind, child: &str, prefix: &str) {
    let strategy = Strategy::DOMAIN_LOCAL;
    net.request(node, app, 0, &Request { kind, id: id(child), prefix: id(prefix), strategy });
    let is_done = net.run_until(Duration::from_secs(20), |net| {
        let status = net.event(node, app);
        matches!(status, Some(Event::Status { status, .. }) if status.0 == 0)
    });
    assert!(is_done, "{kind:?} of node {node}");
}

/// One item, with its publisher and subscriber.
fn matched(net: &mut PushNetwork, publisher: usize, subscriber: usize) {
    ask(net, publisher, PUBLISHER, Kind::PUBLISH_SCOPE, "/1", "/");
    ask(net, publisher, PUBLISHER, Kind::PUBLISH_ITEM, "/2", "/1");
    ask(net, subscriber, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, "/2", "/1");
    net.run_for(Duration::from_secs(1));
}

fn publish(net: &mut PushNetwork, publisher: usize) {
    let data = Data::new(id("/1/2"), Strategy::DOMAIN_LOCAL, b"text");
    assert!(net.publish(publisher, PUBLISHER, &data).is_some_and(|sent| sent.is_ok()));
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
    let mut net = network(&[(0, 1, 1), (1, 3, 1), (0, 2, 2), (2, 3, 2)]);
    matched(&mut net, 0, 3);
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

/// A publisher beside the topology manager, with a way of two links and a dearer one, of which each
/// link takes 5 ms; the second link of the way dies. How long nothing came, and what was lost of one
/// publication in a millisecond.
fn gap(is_told: bool) -> (Duration, usize) {
    let mut net = PushNetwork::new(1);
    for n in 0..5 {
        let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(n + 1, role, |_| {});
    }
    let delay = Duration::from_millis(5);
    for (a, b, cost) in [(0, 1, 1), (1, 2, 1), (2, 4, 1), (1, 3, 2), (3, 4, 2)] {
        net.link(a, b, LinkConfig { cost, delay, ..LinkConfig::default() });
    }
    net.run_for(Duration::from_secs(3));
    matched(&mut net, 1, 4);
    net.news = Some(Vec::new());
    let link = net.link_between(2, 4).expect("it was made");
    let mut sent = 0;
    for ms in 0..6000 {
        if ms == 1000 && is_told {
            net.link_down_told(link);
        } else if ms == 1000 {
            net.link_down(link);
        }
        publish(&mut net, 1);
        sent += 1;
        net.run_for(Duration::from_millis(1));
    }
    net.run_for(Duration::from_secs(1));
    let news = net.news.take().unwrap_or_default();
    let came =
        news.iter().filter(|(_, node, _, event)| *node == 4 && matches!(event, Event::Data { .. }));
    let at: Vec<Tick> = came.map(|(at, ..)| *at).collect();
    let longest = at.windows(2).map(|pair| pair[1].since(pair[0])).max();
    (longest.unwrap_or_default(), sent - at.len())
}

/// Law: a link of a tree that dies leaves a gap of its detection and one round trip: here 10 ms from
/// its end to the manager, 5 ms from there to the publisher, 10 ms from there to the subscriber.
#[test]
fn a_failure_costs_detection_and_a_round_trip() {
    let told = gap(true);
    let silent = gap(false);
    let trip = Duration::from_millis(25);
    assert!(told.0 <= trip && told.1 <= 25, "{told:?}");
    assert!(silent.0 <= Duration::from_millis(3500) + trip, "{silent:?}");
}
