//! Laws of routing, in a network of virtual time: `cargo test -p onym-sim --test routers -- --nocapture`
//! prints the figures.

#![allow(clippy::unwrap_used, clippy::disallowed_methods)]

mod areas;
mod clocks;
mod costs;
mod hostile;
mod large;
mod mixed;

use onym_route::Notice;
use onym_sim::routers::{Graph, RouterNetwork, Setting};
use onym_tables::Tick;

/// Seed of all runs here.
const SEED: u64 = 20_261_123;

/// What one disturbance cost.
#[derive(Debug, Clone, Copy)]
struct Outcome {
    /// Until the last route was right, ms.
    converged_ms: u64,
    packets: u64,
    changes: u64,
}

/// Runs for `ms`; no ways may close a loop at any moment; tells when the last route became right.
fn settle(net: &mut RouterNetwork, ms: u64) -> Outcome {
    let start = net.now;
    let packets = net.packets;
    let changes: u64 = net.counters().iter().map(|c| c.route_changes).sum();
    let mut last = start;
    net.run(start.plus_ms(ms), &mut |net| {
        if let Some((destination, cycle)) = net.looped() {
            panic!("at {:?}: the ways to {destination} close a loop: {cycle:?}", net.now);
        }
        last = net.now;
    });
    assert_eq!(net.wrong(), 0, "routes that are not the shortest after {ms} ms");
    let after: u64 = net.counters().iter().map(|c| c.route_changes).sum();
    Outcome {
        converged_ms: last.since(start).as_millis().try_into().unwrap(),
        packets: net.packets - packets,
        changes: after.saturating_sub(changes),
    }
}

fn started(shape: &Graph, delay_ms: u64) -> (RouterNetwork, Outcome) {
    let mut net = RouterNetwork::new(shape, Setting::new(delay_ms, SEED));
    let outcome = settle(&mut net, 6_000);
    println!(
        "{}, {delay_ms} ms links, seed {SEED}: cold start {} ms, {} packets, diameter {}",
        shape.name,
        outcome.converged_ms,
        outcome.packets,
        net.diameter()
    );
    (net, outcome)
}

fn small() -> Vec<Graph> {
    vec![
        Graph::line(2),
        Graph::line(10),
        Graph::ring(6),
        Graph::ring(13),
        Graph::ring_and_stub(3),
        Graph::ring_and_stub(6),
        Graph::two_cliques(4),
        Graph::clique(8),
        Graph::grid(4),
    ]
}

#[test]
fn cold_start_ends_within_an_interval_and_three_delays_for_each_hop() {
    for shape in small() {
        let (net, outcome) = started(&shape, 10);
        let bound = 5_000 + net.diameter() * 40 + 1_000;
        assert!(outcome.converged_ms <= bound, "{}: {outcome:?}, bound {bound} ms", shape.name);
    }
}

#[test]
fn after_each_link_failed_in_turn_all_connected_pairs_have_the_shortest_way_again() {
    for shape in small() {
        let (mut net, _) = started(&shape, 10);
        let mut worst = 0;
        for link in 0..net.links.len() {
            net.cut(link);
            worst = worst.max(settle(&mut net, 5_000).converged_ms);
            net.mend(link);
            settle(&mut net, 5_000);
        }
        println!("  each link in turn: at most {worst} ms");
        assert!(worst <= 1_500, "{}: {worst} ms", shape.name);
    }
}

#[test]
fn after_each_node_died_in_turn_nothing_counts_to_infinity() {
    for shape in small() {
        let (mut net, _) = started(&shape, 10);
        let (mut worst, mut changes) = (0, 0);
        for node in 0..net.len() {
            net.kill(node);
            let outcome = settle(&mut net, 5_000);
            worst = worst.max(outcome.converged_ms);
            changes = changes.max(outcome.changes);
            net.start(node);
            net.retry_all();
            settle(&mut net, 8_000);
        }
        println!("  each node in turn: at most {worst} ms, {changes} route changes");
        assert!(worst <= 1_500, "{}: {worst} ms", shape.name);
    }
}

#[test]
fn sprint_starts_and_heals_in_time() {
    let (mut net, cold) = started(&Graph::sprint(), 50);
    let bound = 5_000 + net.diameter() * 160 + 1_000;
    assert!(cold.converged_ms <= bound, "{cold:?}, bound {bound} ms");
    // The best connected node, and some links.
    for link in [0, 11, 40, 83] {
        net.cut(link);
        let failed = settle(&mut net, 6_000);
        println!("  link {link} failed: {failed:?}");
        assert!(failed.converged_ms <= 1_500);
        net.mend(link);
        println!("  link {link} healed: {:?}", settle(&mut net, 6_000));
    }
    net.kill(9);
    let failed = settle(&mut net, 6_000);
    println!("  node 9 (14 links) died: {failed:?}");
    assert!(failed.converged_ms <= 1_500);
}

#[test]
fn a_silent_death_is_noticed_within_the_dead_interval_and_a_fifth() {
    let (mut net, _) = started(&Graph::ring(6), 10);
    net.kill_unseen(2);
    let outcome = settle(&mut net, 60_000);
    println!("  without a signal: {} ms", outcome.converged_ms);
    assert!(outcome.converged_ms <= 36_000 && outcome.converged_ms >= 24_000);
}

#[test]
fn a_goodbye_is_as_good_as_a_signal() {
    let (mut net, _) = started(&Graph::ring(6), 10);
    net.stop(2);
    assert!(settle(&mut net, 2_000).converged_ms <= 500);
}

#[test]
fn loss_of_up_to_a_third_kills_nobody_and_tables_still_agree() {
    for loss in [10, 100, 300] {
        let mut net = RouterNetwork::new(&Graph::grid(4), Setting::new(10, SEED));
        net.loss = loss;
        net.run(Tick::from_ms(60_000), &mut |net| assert_eq!(net.looped(), None));
        if loss <= 100 {
            let lost =
                |node| net.notices(node).iter().any(|n| matches!(n, Notice::NeighbourDown(..)));
            assert!((0..net.len()).all(|node| !lost(node)), "a false death at {loss} of 1000");
        }
        net.cut(5);
        net.run(Tick::from_ms(95_000), &mut |net| assert_eq!(net.looped(), None));
        println!("loss {loss} of 1000: {} wrong after 33 s, {} packets", net.wrong(), net.packets);
        if loss <= 100 {
            assert_eq!(net.wrong(), 0);
        }
        net.loss = 0;
        settle(&mut net, 33_000);
    }
}

#[test]
fn two_halves_that_meet_again_agree_within_a_sync_period() {
    let (mut net, _) = started(&Graph::two_cliques(4), 10);
    let bridge = net.links.len() - 1;
    net.cut(bridge);
    settle(&mut net, 600_000);
    net.start(1);
    net.kill(6);
    settle(&mut net, 33_000);
    net.start(6);
    net.mend(bridge);
    settle(&mut net, 33_000);
}

#[test]
fn a_flapping_link_costs_a_bounded_number_of_advertisements() {
    let (mut net, _) = started(&Graph::grid(4), 10);
    let before: Vec<u64> = net.counters().iter().map(|c| c.adverts).collect();
    for flap in 0..100 {
        if flap % 2 == 1 {
            net.mend(5);
        } else {
            net.cut(5);
        }
        let until = net.now.plus_ms(3_000);
        net.run(until, &mut |net| assert_eq!(net.looped(), None));
    }
    let after = net.counters();
    let most = after.iter().zip(before).map(|(c, before)| c.adverts - before).max().unwrap();
    println!("100 flaps in 5 min: at most {most} advertisements of one node");
    assert!(most <= 100 * 6, "{most} advertisements");
    settle(&mut net, 33_000);
}

#[test]
fn a_router_that_starts_again_is_believed_and_its_old_words_are_not() {
    let (mut net, _) = started(&Graph::ring_and_stub(3), 10);
    // Its forwarder lived on: no signal, the next bootstrap time.
    net.kill_unseen(1);
    net.start(1);
    assert!(settle(&mut net, 8_000).converged_ms <= 6_000);
}

#[test]
fn idle_networks_are_quiet() {
    let (mut net, _) = started(&Graph::sprint(), 50);
    let packets = net.packets;
    let until = net.now.plus_ms(60_000);
    net.run(until, &mut |_| {});
    let rate = (net.packets - packets) as f64 / 60.0 * 5.0 / net.links.len() as f64;
    println!("idle: {rate:.2} packets for each link and 5 s");
    assert!(rate <= 2.5, "one hello each way, and a tenth sooner: {rate}");
}

fn prefix(uri: &str) -> onym_wire::Name {
    uri.parse().unwrap()
}

/// Runs until every node but `producer` has a way to `name` that leads to it in the end, or none has
/// one when there is no producer; milliseconds that this took.
fn until_routed(
    net: &mut RouterNetwork,
    name: &onym_wire::Name,
    producer: Option<usize>,
    ms: u64,
) -> u64 {
    let start = net.now;
    for passed in (0..ms).step_by(10) {
        let right = |node: usize| match producer {
            Some(producer) => node == producer || net.leads(node, name, producer),
            None => net.hops(node, name).is_empty(),
        };
        if (0..net.len()).all(right) {
            return passed;
        }
        net.run(start.plus_ms(passed + 10), &mut |_| {});
    }
    panic!("{name} is not routed as it should be after {ms} ms");
}

#[test]
fn a_line_of_three_routes_prefixes_within_five_seconds_of_its_start() {
    let mut net = RouterNetwork::new(&Graph::line(3), Setting::new(1, SEED));
    let name = prefix("/app/hello");
    net.with(0, |router, now| assert!(router.announce(now, &name, 300, 0)));
    let ms = until_routed(&mut net, &name, Some(0), 5_000);
    println!("line of three, prefix from cold start: {ms} ms");
    net.with(0, |router, now| router.withdraw(now, &name, 300));
    let ms = until_routed(&mut net, &name, None, 1_000);
    println!("  withdrawn: {ms} ms");
}

#[test]
fn a_producer_that_moves_is_reached_within_two_seconds() {
    let (mut net, _) = started(&Graph::sprint(), 50);
    let name = prefix("/app/moving");
    net.with(0, |router, now| assert!(router.announce(now, &name, 300, 0)));
    let ms = until_routed(&mut net, &name, Some(0), 2_000);
    net.with(0, |router, now| router.withdraw(now, &name, 300));
    net.with(41, |router, now| assert!(router.announce(now, &name, 300, 0)));
    let moved = until_routed(&mut net, &name, Some(41), 2_000);
    println!("sprint: announced everywhere {ms} ms, moved to the other end {moved} ms");
}

#[test]
fn a_prefix_of_two_exits_goes_to_the_nearer_one_and_outlives_it() {
    let (mut net, _) = started(&Graph::line(7), 10);
    let name = prefix("/app/both");
    for exit in [0, 6] {
        net.with(exit, |router, now| assert!(router.announce(now, &name, 300, 0)));
    }
    let until = net.now.plus_ms(2_000);
    net.run(until, &mut |_| {});
    assert!((1..=2).all(|node| net.leads(node, &name, 0)));
    assert!((4..=5).all(|node| net.leads(node, &name, 6)));
    assert_eq!(net.hops(3, &name).len(), 2, "equal costs: both faces");
    net.kill(0);
    until_routed_by(&mut net, &name, 6, 1..6);
}

/// Runs for `ms`; the longest time in ms for which best ways towards one of `names` closed a loop.
fn longest_loop(net: &mut RouterNetwork, names: &[onym_wire::Name], ms: u64) -> u64 {
    let mut since = vec![None; names.len()];
    let mut longest = 0;
    for passed in (0..ms).step_by(5) {
        net.pass(5);
        for (name, since) in names.iter().zip(&mut since) {
            if net.looping(name) == 0 {
                *since = None;
            } else {
                longest = longest.max(passed + 5 - *since.get_or_insert(passed));
            }
        }
    }
    longest
}

#[test]
fn ways_to_a_prefix_close_a_loop_no_longer_than_news_travel() {
    let (mut net, _) = started(&Graph::sprint(), 50);
    let name = prefix("/app/both");
    let bound = 2 * net.diameter() * (50 + 10);
    for exit in [0, 41] {
        net.with(exit, |router, now| assert!(router.announce(now, &name, 300, 0)));
    }
    net.pass(2_000);
    let names = [name];
    let mut worst = 0;
    for exit in [0, 41, 0, 41] {
        net.with(exit, |router, now| router.withdraw(now, &names[0], 300));
        worst = worst.max(longest_loop(&mut net, &names, 2_000));
        let other = 41 - exit;
        assert!((0..net.len()).all(|node| net.leads(node, &names[0], other)));
        net.with(exit, |router, now| assert!(router.announce(now, &names[0], 300, 0)));
        worst = worst.max(longest_loop(&mut net, &names, 2_000));
    }
    println!("sprint, a prefix moves between two exits: loops of {worst} ms, bound {bound} ms");
    assert!(worst <= bound);
}

fn until_routed_by(
    net: &mut RouterNetwork,
    name: &onym_wire::Name,
    exit: usize,
    mut nodes: std::ops::Range<usize>,
) {
    let until = net.now.plus_ms(2_000);
    net.run(until, &mut |_| {});
    assert!(nodes.all(|node| net.leads(node, name, exit)));
}

#[test]
fn halves_that_changed_apart_have_equal_prefix_tables_when_they_meet() {
    let (mut net, _) = started(&Graph::line(4), 10);
    let names: Vec<_> = (0..120).map(|i| prefix(&format!("/app/p{i}"))).collect();
    net.with(0, |router, now| assert!(names.iter().all(|n| router.announce(now, n, 300, 0))));
    let until = net.now.plus_ms(5_000);
    net.run(until, &mut |_| {});
    assert_eq!(net.remote(3), 120);
    net.cut(1);
    let until = net.now.plus_ms(60_000);
    net.run(until, &mut |_| {});
    net.with(0, |router, now| names[..110].iter().for_each(|n| router.withdraw(now, n, 300)));
    net.with(3, |router, now| assert!(router.announce(now, &prefix("/app/new"), 300, 0)));
    let until = net.now.plus_ms(540_000);
    net.run(until, &mut |_| {});
    assert!(names.iter().all(|name| net.hops(3, name).is_empty()), "cut off: no way is left");
    net.mend(1);
    let until = net.now.plus_ms(33_000);
    net.run(until, &mut |_| {});
    assert_eq!((net.remote(3), net.remote(2), net.remote(0)), (10, 11, 1));
    assert!(net.leads(3, &names[115], 0) && net.leads(0, &prefix("/app/new"), 3));
}

#[test]
fn a_router_that_starts_again_leaves_no_prefix_of_before() {
    let (mut net, _) = started(&Graph::line(3), 10);
    net.with(0, |router, now| assert!(router.announce(now, &prefix("/app/old"), 300, 0)));
    until_routed(&mut net, &prefix("/app/old"), Some(0), 2_000);
    net.kill(0);
    net.start(0);
    net.retry_all();
    net.with(0, |router, now| assert!(router.announce(now, &prefix("/app/new"), 300, 0)));
    until_routed(&mut net, &prefix("/app/new"), Some(0), 5_000);
    assert!((0..3).all(|node| net.hops(node, &prefix("/app/old")).is_empty()));
}

#[test]
fn a_late_router_takes_the_whole_table_from_a_snapshot() {
    let (mut net, _) = started(&Graph::line(3), 10);
    net.kill(2);
    let names: Vec<_> = (0..250).map(|i| prefix(&format!("/app/a/longer/name/{i}"))).collect();
    net.with(0, |router, now| assert!(names.iter().all(|n| router.announce(now, n, 300, 0))));
    let until = net.now.plus_ms(5_000);
    net.run(until, &mut |_| {});
    net.start(2);
    net.retry_all();
    let until = net.now.plus_ms(8_000);
    net.run(until, &mut |_| {});
    assert_eq!(net.remote(2), 250);
    assert!(names.iter().all(|name| net.leads(2, name, 0)));
}
