//! Networks as large as a test may be; larger ones: `cargo run --release -p onym-sim --example routers`.

use super::{SEED, prefix, settle};
use onym_sim::routers::{Graph, RouterNetwork, Setting};
use onym_wire::Name;

#[test]
fn a_map_of_the_size_of_rocketfuels_starts_and_heals() {
    // 87 routers, 161 links: AS 1755.
    let graph = Graph::random(87, 161, 60, SEED);
    let mut net = RouterNetwork::new(&graph, Setting::new(10, SEED));
    let diameter = net.diameter();
    let cold = settle(&mut net, 10_000);
    println!("{}, diameter {diameter}: {cold:?}", graph.name);
    assert!(cold.converged_ms <= 5_000 + diameter * 40 + 1_000);
    let busiest = (0..graph.len())
        .max_by_key(|node| {
            net.links.iter().filter(|l| l.ends.0 == *node || l.ends.1 == *node).count()
        })
        .unwrap();
    net.kill(busiest);
    let failed = settle(&mut net, 6_000);
    println!("  the best connected router, {busiest}, died: {failed:?}");
    assert!(failed.converged_ms <= 1_500);
}

#[test]
fn thousands_of_prefixes_travel_in_few_publications_and_come_and_go() {
    let mut net = RouterNetwork::new(&Graph::grid(3), Setting::new(1, SEED));
    settle(&mut net, 8_000);
    let names: Vec<Name> = (0..5_000).map(|i| prefix(&format!("/many/p{i}"))).collect();
    let before = net.packets;
    net.with(0, |router, now| assert!(names.iter().all(|n| router.announce(now, n, 300, 0))));
    net.pass(5_000);
    assert!((1..9).all(|node| net.remote(node) == 5_000));
    let packets = net.packets - before;
    println!("5000 prefixes in a grid of nine: {packets} packets");
    assert!(packets < 5_000, "{packets}");
    // Its neighbour dies: other ways at once. Then all go.
    net.kill(1);
    settle(&mut net, 3_000);
    assert!(names.iter().step_by(97).all(|name| net.leads(2, name, 0)));
    net.with(0, |router, now| names.iter().for_each(|n| router.withdraw(now, n, 300)));
    net.pass(5_000);
    assert!((2..9).all(|node| net.remote(node) == 0));
}
