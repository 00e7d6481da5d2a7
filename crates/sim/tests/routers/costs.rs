//! Links whose cost is measured.

use super::SEED;
use onym_route::CostBy;
use onym_sim::routers::{Graph, RouterNetwork, Setting};
use onym_tables::Tick;
use std::time::Duration;

const BY: CostBy = CostBy { rtt: Duration::from_millis(10), loss_percent: 10 };

/// A ring of four whose links are measured, half a minute old; nothing closes a loop.
fn ring() -> RouterNetwork {
    let setting = Setting { cost_by: BY, ..Setting::new(1, SEED) };
    let mut net = RouterNetwork::new(&Graph::ring(4), setting);
    run(&mut net, 30);
    net
}

fn run(net: &mut RouterNetwork, seconds: u64) {
    let until = net.now.plus_ms(seconds * 1000);
    net.run(until, &mut |net| assert_eq!(net.looped(), None, "at {:?}", net.now));
}

fn changes(net: &RouterNetwork) -> u64 {
    net.counters().iter().map(|c| c.cost_changes).sum()
}

/// Neighbours by which node 0 reaches node 2, best first.
fn ways(net: &RouterNetwork) -> Vec<usize> {
    let mut ways = net.hops(0, &net.group(2));
    ways.sort_by_key(|(_, cost)| *cost);
    ways.into_iter().map(|(next, _)| next).collect()
}

#[test]
fn a_slow_or_lossy_link_is_gone_around_and_taken_again_when_it_is_well() {
    let mut net = ring();
    let mut both = ways(&net);
    both.sort_unstable();
    assert_eq!(both, [1, 3], "equal costs: both are used");
    for (slower_ms, loss) in [(40, 0), (0, 400)] {
        (net.links[0].slower_ms, net.links[0].loss) = (slower_ms, loss);
        run(&mut net, 90);
        assert_eq!(
            ways(&net)[0],
            3,
            "{slower_ms} ms, {loss} of 1000: {:?}",
            net.hops(0, &net.group(2))
        );
        (net.links[0].slower_ms, net.links[0].loss) = (0, 0);
        run(&mut net, 180);
        let hops = net.hops(0, &net.group(2));
        assert!(hops.len() == 2 && hops[0].1 == hops[1].1, "well again: {hops:?}");
    }
    println!("seed {SEED}: {} changes of costs at eight ends", changes(&net));
}

#[test]
fn times_that_swing_around_a_boundary_change_no_cost() {
    let mut net = ring();
    let before = changes(&net);
    for turn in 0..150 {
        net.links[0].slower_ms = if turn % 2 == 0 { 0 } else { 5 };
        run(&mut net, 2);
    }
    let swung = changes(&net) - before;
    println!("seed {SEED}: 300 s of times between 2 and 12 ms by units of 10: {swung} changes");
    assert!(swung <= 2, "{swung}");
}

#[test]
fn probes_are_a_bounded_load() {
    let mut net = ring();
    let (before, start) = (net.counters().iter().map(|c| c.probes).sum::<u64>(), net.now);
    run(&mut net, 60);
    let sent = net.counters().iter().map(|c| c.probes).sum::<u64>() - before;
    assert!(
        net.now > Tick(start.0) && sent <= 8 * 61,
        "one a second at each of eight ends: {sent}"
    );
}
