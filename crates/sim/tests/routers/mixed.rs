//! Networks in which some routers are deployed ones.

use super::SEED;
use onym_route::Notice;
use onym_sim::routers::{Graph, RouterNetwork, Setting};
use onym_tables::Tick;
use std::collections::BTreeSet;

/// How long a loop through deployed routers lasts at most: each step makes the way one longer at
/// least, 16 is none, and a step takes a hello, 10 ms, a fetch, and what ours are damped by.
fn bound_ms(delay_ms: u64) -> u64 {
    16 * (3 * delay_ms + 10 + 100)
}

/// Runs for `ms`; how long, in ms, best ways to `destination` closed a loop at a stretch.
fn longest_loop(net: &mut RouterNetwork, destination: usize, ms: u64) -> u64 {
    let until = net.now.plus_ms(ms);
    let (mut since, mut longest) = (None, 0);
    net.run(until, &mut |net| {
        let start: Option<Tick> = since;
        if net.best_loop(destination) {
            since = start.or(Some(net.now));
        } else if let Some(start) = start {
            longest = longest.max(net.now.since(start).as_millis());
            since = None;
        }
    });
    assert_eq!(since, None, "ways to {destination} close a loop in the end");
    u64::try_from(longest).unwrap()
}

fn mixed(graph: &Graph, delay_ms: u64, plain: impl Fn(usize) -> bool) -> RouterNetwork {
    let plain: BTreeSet<usize> = (0..graph.len()).filter(|node| plain(*node)).collect();
    let mut net = RouterNetwork::new(graph, Setting { plain, ..Setting::new(delay_ms, SEED) });
    net.pass(20_000);
    assert_eq!(net.wrong(), 0, "{}", graph.name);
    net
}

#[test]
fn a_loop_in_a_mixed_network_ends_within_its_bound() {
    let cases = [
        (Graph::ring_and_stub(3), 3),
        (Graph::ring_and_stub(6), 6),
        (Graph::two_cliques(4), 4),
        (Graph::grid(4), 5),
    ];
    for delay_ms in [1, 50] {
        for (graph, dies) in &cases {
            for (kind, every) in [("all deployed", 1), ("every second deployed", 2)] {
                let mut net = mixed(graph, delay_ms, |node| node % every == 0);
                net.kill(*dies);
                let looped = longest_loop(&mut net, *dies, 70_000);
                let bound = bound_ms(delay_ms);
                println!(
                    "{}, {delay_ms} ms, {kind}: router {dies} died, a loop of {looped} ms, bound {bound} ms",
                    graph.name
                );
                assert!(looped <= bound, "{}: {looped} ms", graph.name);
                let left =
                    (0..net.len()).filter(|node| !net.hops(*node, &net.group(*dies)).is_empty());
                assert_eq!(left.count(), 0, "{}: somebody has a way", graph.name);
                assert_eq!(net.wrong(), 0, "{}", graph.name);
            }
        }
    }
}

#[test]
fn one_deployed_router_at_the_edge_costs_the_others_a_short_loop_and_no_way() {
    let graph = Graph::grid(4);
    let mut net = mixed(&graph, 10, |node| node == 15);
    net.kill(5);
    let looped = longest_loop(&mut net, 5, 5_000);
    println!(
        "one deployed router in a grid of 16: a loop of {looped} ms, bound {} ms",
        bound_ms(10)
    );
    assert!(looped <= bound_ms(10));
    for to in (0..15).filter(|to| *to != 5) {
        let hops = |from: &usize| net.hops(*from, &net.group(to));
        let wrong: Vec<_> = net.wrong_to(to).into_iter().filter(|from| *from != 15).collect();
        let hops: Vec<_> = wrong.iter().map(|from| (from, hops(from))).collect();
        assert!(hops.is_empty(), "to {to}: {hops:?}, {:?}", net.distances(to));
    }
}

#[test]
fn links_between_both_kinds_fail_and_heal() {
    let graph = Graph::ring(6);
    let mut net = mixed(&graph, 10, |node| node % 2 == 0);
    net.cut(0);
    // The deployed end notices in two dead intervals.
    let mut looped = 0;
    for destination in 0..6 {
        let before = net.now;
        looped = looped.max(longest_loop(&mut net, destination, 12_000));
        assert!(net.now > before);
    }
    assert_eq!(net.wrong(), 0);
    net.mend(0);
    net.pass(20_000);
    assert_eq!(net.wrong(), 0);
    println!("a link between both kinds failed: a loop of {looped} ms");
    assert!(looped <= bound_ms(10));
    let down = |node| net.notices(node).iter().any(|n| matches!(n, Notice::NeighbourDown(..)));
    assert!(down(1), "ours saw its face go down");
}
