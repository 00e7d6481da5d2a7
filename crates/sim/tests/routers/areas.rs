//! Areas: networks of their own that are joined at borders.

use super::{SEED, longest_loop, prefix};
use onym_route::{Export, Summary};
use onym_sim::routers::{Graph, RouterNetwork, Setting, network_name};
use onym_wire::Name;

const DELAY_MS: u64 = 10;

/// Areas hide behind one summary each; the core tells all summaries to each area.
fn summaries(count: usize) -> Vec<Export> {
    let core = network_name(0);
    let both = (1..=count).flat_map(|area| {
        let summary = Summary { prefix: site(area), cost: 0, always: false };
        let up = Export {
            from: network_name(area),
            to: core.clone(),
            summaries: vec![summary],
            others: false,
        };
        [up, Export::all(core.clone(), network_name(area))]
    });
    both.collect()
}

fn site(area: usize) -> Name {
    prefix(&format!("/site/a{area}"))
}

/// The prefix that `node` announces, where areas have `size` routers.
fn of(node: usize, size: usize) -> Name {
    prefix(&format!("/site/a{}/n{node}", node / size + 1))
}

fn network(count: usize, size: usize, exports: Vec<Export>) -> RouterNetwork {
    let setting = Setting { exports, ..Setting::new(DELAY_MS, SEED) };
    let mut net = RouterNetwork::new(&Graph::areas(count, size, SEED), setting);
    for node in 0..net.len() {
        net.with(node, |router, now| assert!(router.announce(now, &of(node, size), 300, 0)));
    }
    net
}

/// Pairs of nodes and prefixes of living nodes that are not reached.
fn unreached(net: &RouterNetwork, size: usize, dead: Option<usize>) -> Vec<(usize, usize)> {
    let living = || (0..net.len()).filter(move |node| Some(*node) != dead);
    let pairs = living().flat_map(|from| living().map(move |to| (from, to)));
    pairs.filter(|(from, to)| !net.leads(*from, &of(*to, size), *to)).collect()
}

#[test]
fn areas_reach_each_other_by_a_summary_of_each() {
    let (count, size) = (4, 8);
    let mut net = network(count, size, summaries(count));
    net.pass(15_000);
    assert_eq!(unreached(&net, size, None), []);
    let most = (0..net.len()).map(|node| net.remote(node)).max().unwrap();
    println!(
        "{count} areas of {size}: {} prefixes, a node holds {most} at most, {} packets, {} octets",
        net.len(),
        net.packets,
        net.octets
    );
    // Its own area, the summaries, and at a border both networks' views of them.
    assert!(most <= size + 2 * (count + 2), "{most}");
    let nobody = prefix("/site/a2/nobody");
    assert_eq!(net.looping(&nobody), 0);
    let borders = [size, size + size / 2];
    for node in 0..net.len() {
        let end = net.end_of(node, &nobody).unwrap();
        let inside = (size..2 * size).contains(&node);
        assert!(if inside { end == node } else { borders.contains(&end) }, "{node} ends at {end}");
    }
}

#[test]
fn an_area_outlives_one_of_its_borders_and_takes_it_back() {
    let (count, size) = (3, 6);
    let mut net = network(count, size, summaries(count));
    net.pass(15_000);
    let names: Vec<Name> = (1..net.len()).map(|node| of(node, size)).collect();
    let bound = 2 * net.diameter() * (DELAY_MS + 10);
    net.kill(0);
    let looped = longest_loop(&mut net, &names, 2_000);
    assert_eq!(unreached(&net, size, Some(0)), []);
    net.start(0);
    net.retry_all();
    net.with(0, |router, now| assert!(router.announce(now, &of(0, size), 300, 0)));
    let back = longest_loop(&mut net, &names, 10_000);
    assert_eq!(unreached(&net, size, None), []);
    println!("border died and came back: loops of {looped} and {back} ms, bound {bound} ms");
    assert!(looped.max(back) <= bound);
}

#[test]
fn prefixes_that_cross_borders_one_by_one_follow_what_happens_inside() {
    let (count, size) = (3, 6);
    let mut net = network(count, size, Vec::new());
    net.pass(15_000);
    assert_eq!(unreached(&net, size, None), []);
    let name = of(7, size);
    let names = [name.clone()];
    let bound = 2 * net.diameter() * (DELAY_MS + 10);
    net.with(7, |router, now| router.withdraw(now, &name, 300));
    let looped = longest_loop(&mut net, &names, 2_000);
    for node in 0..net.len() {
        assert!(net.hops(node, &name).is_empty(), "{node} still has a way");
    }
    println!("withdrawn in one of three areas: loops of {looped} ms, bound {bound} ms");
    assert!(looped <= bound);
    // It moves to another area.
    net.with(13, |router, now| assert!(router.announce(now, &name, 300, 0)));
    net.pass(2_000);
    assert!((0..net.len()).all(|node| net.leads(node, &name, 13)));
}

/// Three networks in a ring: A with node 0, B with 2, C with 4; borders 1, 3 and 5.
fn ring_of_networks() -> RouterNetwork {
    let graph = Graph {
        name: "ring of three networks".to_owned(),
        nodes: vec![vec![1], vec![1, 2], vec![2], vec![2, 3], vec![3], vec![3, 1]],
        links: vec![(0, 1, 1), (1, 2, 2), (2, 3, 2), (3, 4, 3), (4, 5, 3), (5, 0, 1)],
        networks: 4,
    };
    RouterNetwork::new(&graph, Setting::new(DELAY_MS, SEED))
}

#[test]
fn nothing_keeps_itself_alive_around_a_ring_of_networks() {
    let mut net = ring_of_networks();
    let name = prefix("/app");
    net.with(0, |router, now| assert!(router.announce(now, &name, 300, 0)));
    net.pass(10_000);
    assert!((0..net.len()).all(|node| net.leads(node, &name, 0)));
    net.with(0, |router, now| router.withdraw(now, &name, 300));
    net.pass(1_000);
    assert!((0..net.len()).all(|node| net.hops(node, &name).is_empty()));
    let packets = net.packets;
    net.pass(60_000);
    println!("ring of networks, withdrawn: {} packets in a minute", net.packets - packets);
    assert!(net.packets - packets < 1_000, "nothing counts on");
}

#[test]
fn a_border_that_is_cut_off_inside_is_reached_around_by_other_networks() {
    let mut net = ring_of_networks();
    let name = prefix("/app");
    net.with(0, |router, now| assert!(router.announce(now, &name, 300, 0)));
    net.pass(10_000);
    // The link between 0 and 1: node 1 has only the way around now.
    net.cut(0);
    let bound = 2 * net.diameter() * (DELAY_MS + 10);
    let looped = longest_loop(&mut net, std::slice::from_ref(&name), 2_000);
    println!("the way around three networks: loops of {looped} ms, bound {bound} ms");
    assert!((0..net.len()).all(|node| net.leads(node, &name, 0)));
    assert!(looped <= bound);
}

#[test]
fn a_default_route_stands_for_everything_and_leads_nowhere_twice() {
    let (count, size) = (2, 6);
    let core = network_name(0);
    let exports = (1..=count).flat_map(|area| {
        let all = Summary { prefix: prefix("/site"), cost: 0, always: true };
        let down = Export {
            from: core.clone(),
            to: network_name(area),
            summaries: vec![all],
            others: false,
        };
        [Export::all(network_name(area), core.clone()), down]
    });
    let mut net = network(count, size, exports.collect());
    net.pass(15_000);
    assert_eq!(unreached(&net, size, None), []);
    let inside = net.remote(1);
    assert_eq!(inside, size, "its own area but itself, and the default route");
    assert_eq!(net.looping(&prefix("/site/nobody")), 0);
}

#[test]
fn what_a_router_says_beyond_the_export_of_its_area_is_not_heard_in_others() {
    let (count, size) = (3, 6);
    let mut net = network(count, size, summaries(count));
    net.pass(15_000);
    let liar = 4;
    let others = size..net.len();
    let lies = ["/", "/site", "/site/a2", "/site/a2/n7", "/other"].map(prefix);
    let seen = |net: &RouterNetwork, node: usize| {
        (net.remote(node), lies.clone().map(|lie| net.hops(node, &lie)))
    };
    let before: Vec<_> = others.clone().map(|node| seen(&net, node)).collect();
    for lie in &lies {
        net.with(liar, |router, now| assert!(router.announce(now, lie, 300, 0)));
    }
    net.pass(35_000);
    assert!(net.leads(5, &lies[4], liar), "its own area believes it");
    for (node, before) in others.zip(before) {
        assert_eq!(seen(&net, node), before, "node {node}");
    }
}
