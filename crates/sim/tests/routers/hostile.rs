//! Neighbours that lie, shout, or have no key.

use super::{SEED, prefix, settle};
use onym_crypto::Signer;
use onym_crypto::signer::write_parameters;
use onym_route::codec::{AdvEntry, Delta, Hello, INFINITY};
use onym_route::names::sync_data;
use onym_sim::routers::{Graph, RouterNetwork, Setting, router_name};
use onym_tables::Tick;
use onym_wire::signature::SignatureInfo;
use onym_wire::{DataBuilder, InterestBuilder, Name, types};
use std::collections::BTreeSet;

const BOOT: u64 = 1_700_000_000;

#[test]
fn a_neighbour_without_a_key_changes_nothing() {
    let graph = Graph::grid(4);
    let strange = 5;
    let strangers = BTreeSet::from([strange]);
    let mut net = RouterNetwork::new(&graph, Setting { strangers, ..Setting::new(10, SEED) });
    let mut without = RouterNetwork::unstarted(&graph, Setting::new(10, SEED));
    (0..16).filter(|node| *node != strange).for_each(|node| without.start(node));
    for net in [&mut net, &mut without] {
        net.with(0, |router, now| assert!(router.announce(now, &prefix("/app"), 300, 5)));
    }
    // It says that it has everything, and repeats itself.
    net.with(strange, |router, now| {
        assert!(router.announce(now, &prefix("/app"), 300, 0));
        assert!(router.announce(now, &prefix("/other"), 300, 0));
    });
    net.pass(60_000);
    without.pass(60_000);
    for node in (0..16).filter(|node| *node != strange) {
        for other in 0..16 {
            assert_eq!(net.hops(node, &net.group(other)), without.hops(node, &net.group(other)));
        }
        assert_eq!(net.hops(node, &prefix("/app")), without.hops(node, &prefix("/app")));
        assert_eq!(
            (net.remote(node), without.remote(node)),
            (usize::from(node != 0), usize::from(node != 0))
        );
    }
    let refused: u64 = net.counters().iter().map(|c| c.refused).sum();
    println!("seed {SEED}: {refused} signatures refused in a minute");
    assert!(refused > 0);
}

/// Somebody who took the place of a router with its key, and says what no router says.
struct Liar {
    of: usize,
    boot: u64,
    /// The advertisement that the neighbours took last.
    seq: u64,
    said: u64,
}

impl Liar {
    /// In the place of `node`, whose last advertisement the neighbours have.
    fn in_place_of(net: &mut RouterNetwork, node: usize) -> Self {
        let mut of = None;
        net.with(node, |router, now| of = Some(router.view(now)));
        let view = of.unwrap();
        net.kill_unseen(node);
        Self { of: node, boot: view.boot, seq: view.seq, said: 0 }
    }

    /// A hello with the difference to the one before.
    fn hello(&mut self, now: Tick, entries: Vec<AdvEntry>) -> Vec<u8> {
        let router = router_name(0, self.of);
        let base = self.seq;
        self.seq += 1;
        self.said += 1;
        let delta = Some(Delta { base, entries, ..Delta::default() });
        let hello = Hello {
            router: router.clone(),
            boot: self.boot,
            seq: self.seq,
            delta,
            heard: Vec::new(),
            goodbye: false,
        };
        let mut content = Vec::new();
        hello.write(&mut content);
        let name = sync_data(router.as_ref());
        let info = SignatureInfo {
            // Later than what the router said.
            time: Some(self.boot * 1000 + now.0 / 1_000_000 + self.said),
            ..SignatureInfo::of_kind(types::SIGNATURE_DIGEST_SHA256)
        };
        let mut data = Vec::new();
        let builder = DataBuilder::new(name.as_ref(), &content);
        builder.write(&mut data, &info, |part| Ok::<_, ()>(onym_crypto::sha256(&[part]))).unwrap();
        let to = prefix("/localhop/net/32=DV/32=ADS/32=ACT");
        let nonce = Some(u32::try_from(self.said).unwrap().to_be_bytes());
        let mut interest = Vec::new();
        let builder = InterestBuilder { nonce, ..InterestBuilder::new(to.as_ref()) };
        write_parameters(&builder, &data, &mut interest);
        interest
    }
}

fn entry(destination: Name, next_hop: Name, cost: u64, seq: u64) -> AdvEntry {
    let (other_cost, seq) = (INFINITY, Some(seq));
    AdvEntry { destination, next_hop, cost, other_cost, seq, metric: None }
}

/// The links of `node`, each with the node at its other end.
fn ends(net: &RouterNetwork, node: usize) -> Vec<(usize, usize)> {
    let links = net.links.iter().enumerate();
    let end = |(link, state): (usize, &onym_sim::routers::LinkState)| match state.ends {
        (a, b) if a == node => Some((b, link)),
        (a, b) if b == node => Some((a, link)),
        _ => None,
    };
    links.filter_map(end).collect()
}

#[test]
fn a_liar_with_a_key_draws_what_it_can_and_leaves_nothing_behind() {
    let graph = Graph::grid(4);
    let evil = 5;
    let mut net = RouterNetwork::new(&graph, Setting::new(10, SEED));
    settle(&mut net, 8_000);
    let before: u64 = net.counters().iter().map(|c| c.deltas).sum();
    let victims = ends(&net, evil);
    let mut liar = Liar::in_place_of(&mut net, evil);
    // For half a minute: it is next to everybody, by numbers that nobody gave.
    for turn in 0..300 {
        let own = router_name(0, evil);
        let all = (0..16).filter(|node| *node != evil);
        let lies = all.map(|node| {
            let seq = ((BOOT + 1) << 16) + 100 + turn;
            entry(router_name(0, node), own.clone(), 0, seq)
        });
        let hello = liar.hello(net.now, lies.collect());
        for (node, link) in &victims {
            net.inject(*node, *link, &hello);
        }
        net.pass(100);
    }
    let counters = net.counters();
    let taken = counters.iter().map(|c| c.deltas).sum::<u64>() - before;
    let most = counters.iter().map(|c| c.adverts).max().unwrap();
    println!("seed {SEED}: a liar for 30 s: {taken} lies taken, {most} advertisements of one node");
    assert!(taken >= 300, "it is believed about its own ways: {taken}");
    assert!(most <= 30 * 12 + 30, "ten in a second, and bursts: {most}");
    // It falls silent. Nothing of what it said outlives it.
    settle(&mut net, 40_000);
}

#[test]
fn a_flood_of_updates_costs_a_bounded_part() {
    let graph = Graph::grid(4);
    let evil = 5;
    let mut net = RouterNetwork::new(&graph, Setting::new(10, SEED));
    settle(&mut net, 8_000);
    let (victim, link) = ends(&net, evil)[0];
    let mut liar = Liar::in_place_of(&mut net, evil);
    let before = net.counters();
    let seconds = 5;
    for turn in 0..seconds * 1000u64 {
        // A thousand a second, each of a hundred destinations that come and go.
        let made_up = |i: u64| router_name(0, 1000 + usize::try_from(i + turn % 7 * 50).unwrap());
        let own = router_name(0, evil);
        let entries = (0..100).map(|i| entry(made_up(i), own.clone(), 1 + turn % 9, 5 + turn));
        let hello = liar.hello(net.now, entries.collect());
        net.inject(victim, link, &hello);
        net.pass(1);
    }
    let after = net.counters();
    // Counters are in order of the living nodes.
    let at = victim - usize::from(victim > evil);
    let (deltas, adverts, flooded) = (
        after[at].deltas - before[at].deltas,
        after[at].adverts - before[at].adverts,
        after[at].flooded - before[at].flooded,
    );
    println!(
        "seed {SEED}: {} hellos of 100 destinations in {seconds} s: {deltas} taken, {flooded} \
         dropped, {adverts} advertisements",
        seconds * 1000
    );
    assert!(deltas > 0 && flooded > 0, "some are taken, and not all: {deltas}, {flooded}");
    // 100 destinations weigh seven checks: the burst, and what seconds allow.
    assert!(deltas <= 400 / 7 + seconds * 200 / 7 + 2, "{deltas}");
    assert!(adverts <= seconds * 10 + 30, "{adverts}");
    settle(&mut net, 40_000);
}

#[test]
fn a_flood_of_vectors_is_dropped_by_the_face_it_comes_from() {
    let mut net = RouterNetwork::new(&Graph::line(3), Setting::new(10, SEED));
    net.pass(8_000);
    let to = prefix("/net/32=DV/32=PFS/32=svs");
    let mut other = onym_sync::Svs::new(
        net.now,
        BOOT * 1000,
        onym_sync::SvsConfig::new(to, Some(router_name(0, 7)), BOOT, Signer::digest()),
        SEED,
    );
    for _ in 0..5_000 {
        other.publish(net.now);
        let vector = other.poll_transmit(net.now).unwrap();
        net.inject(0, 0, &vector);
        net.pass(1);
    }
    let flooded = net.counters()[0].flooded;
    println!("seed {SEED}: 5000 vectors in 5 s: {flooded} not looked at");
    assert!(flooded >= 5_000 - 400 - 5 * 200 - 10);
    // Others are heard: a prefix of the far end comes by the same face once there is room.
    net.with(2, |router, now| assert!(router.announce(now, &prefix("/app"), 300, 0)));
    net.pass(35_000);
    assert!(net.leads(0, &prefix("/app"), 2));
}
