//! Late subscribers of a long publication beside late consumers of the same octets with pull, on the
//! same graphs: from where each was answered, and how many links the octets travelled.
//!
//! `cargo test --release -p onym-sim --test push_caches -- --nocapture` prints the figures.

#![allow(clippy::unwrap_used)]

use onym_crypto::{KeyType, PrivateKey};
use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event, Signing, Trusted};
use onym_sim::push::LinkConfig;
use onym_sim::{
    ChannelConfig, Consumer, ConsumerConfig, Network, NodeConfig, Producer, ProducerConfig,
    PushNetwork, Routing,
};
use onym_tables::Rng;
use onym_wire::lp::LpPacket;
use onym_wire::push::{Id, Kind, Role, Strategy};
use onym_wire::{Data as Answer, name::Name};
use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

const APP: AppId = AppId(1);
const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;
/// Octets of a segment, and how many of these there are.
const SEGMENT: usize = 1000;
const SEGMENTS: u64 = 20;
/// Time for each subscriber and consumer.
const TURN: Duration = Duration::from_secs(5);

/// A graph, the node that publishes, who wants it first, and who comes later, one after the other.
struct Case {
    nodes: usize,
    links: Vec<(usize, usize)>,
    publisher: usize,
    early: Vec<usize>,
    late: Vec<usize>,
}

/// Of late ones: the share that was answered without the publisher's node, and links that an octet
/// travelled for one of them.
#[derive(Debug, Clone, Copy, Default)]
struct Figure {
    by_caches: f64,
    links: f64,
}

impl Case {
    fn chain(nodes: usize) -> Self {
        let links = (1..nodes).map(|n| (n - 1, n)).collect();
        let late = (nodes / 2 + 1..nodes).chain(1..nodes / 2).collect();
        Self { nodes, links, publisher: 0, early: vec![nodes / 2], late }
    }

    /// A connected graph with some circles, one early subscriber and ten late ones.
    fn graph(seed: u64, nodes: usize) -> Self {
        let mut rng = Rng::new(seed);
        let mut links: Vec<_> = (1..nodes).map(|n| (rng.below(n as u64) as usize, n)).collect();
        while links.len() < nodes * 3 / 2 {
            let [a, b] = [0; 2].map(|_: u8| rng.below(nodes as u64) as usize);
            if a < b && !links.contains(&(a, b)) {
                links.push((a, b));
            }
        }
        let mut order: Vec<usize> = (0..nodes).collect();
        (0..nodes).for_each(|at| order.swap(at, rng.below(nodes as u64) as usize));
        let (publisher, early) = (order[0], vec![order[1]]);
        Self { nodes, links, publisher, early, late: order[2..12].to_vec() }
    }

    /// Links from the publisher to a node.
    fn distance(&self, to: usize) -> f64 {
        let mut far = vec![usize::MAX; self.nodes];
        far[self.publisher] = 0;
        for _ in 0..self.nodes {
            for (a, b) in &self.links {
                far[*b] = far[*b].min(far[*a].saturating_add(1));
                far[*a] = far[*a].min(far[*b].saturating_add(1));
            }
        }
        far[to] as f64
    }

    /// The links without any cache.
    fn without(&self) -> f64 {
        self.late.iter().map(|n| self.distance(*n)).sum::<f64>() / self.late.len() as f64
    }

    fn figure(&self, turns: impl Iterator<Item = (f64, bool)>) -> Figure {
        let count = self.late.len() as f64;
        turns.fold(Figure::default(), |sum, (links, is_by_cache)| Figure {
            by_caches: sum.by_caches + f64::from(u8::from(is_by_cache)) / count,
            links: sum.links + links / count,
        })
    }

    fn push(&self) -> Figure {
        let mut net = PushNetwork::new(7);
        for n in 0..self.nodes {
            let home = Role::RENDEZVOUS.and(Role::TOPOLOGY);
            let role = if n == self.early[0] { home } else { Role::default() };
            net.add_node(n as u64 + 1, role, |_| {});
        }
        self.links.iter().for_each(|(a, b)| _ = net.link(*a, *b, LinkConfig::default()));
        net.run_for(Duration::from_secs(4));
        ask(&mut net, self.publisher, Kind::PUBLISH_SCOPE, "/1", "/");
        ask(&mut net, self.publisher, Kind::PUBLISH_ITEM, "/2", "/1");
        self.early.iter().for_each(|n| ask(&mut net, *n, Kind::SUBSCRIBE_ITEM, "/2", "/1"));
        let payload = vec![7; SEGMENT * SEGMENTS as usize];
        let item = "/1/2".parse().unwrap();
        let data = Data { lifetime_ms: 3_600_000, ..Data::new(item, STRATEGY, &payload) };
        let frames = net.publish(self.publisher, APP, &data).unwrap().unwrap().frames as f64;
        net.run_for(TURN);
        // Frames over all links, and those that left the publisher's node.
        let crossed = |net: &PushNetwork| {
            let both = self.links.iter().flat_map(|(a, b)| [(*a, *b), (*b, *a)]);
            both.fold((0, 0), |(all, own), (from, to)| {
                let (frames, _) = net.crossed(from, to);
                (all + frames, own + u64::from(from == self.publisher) * frames)
            })
        };
        let turns = self.late.iter().map(|node| {
            let before = crossed(&net);
            ask(&mut net, *node, Kind::SUBSCRIBE_ITEM, "/2", "/1");
            assert_eq!(got(&mut net, *node, &payload), 1, "node {node} gets it once");
            let after = crossed(&net);
            ((after.0 - before.0) as f64 / frames, after.1 == before.1)
        });
        let turns: Vec<_> = turns.collect();
        self.figure(turns.into_iter())
    }

    fn pull(&self) -> Figure {
        let mut net = Network::new(7);
        (0..self.nodes).for_each(|n| _ = net.node_add(&n.to_string(), NodeConfig::default()));
        let channel = ChannelConfig { delay: Duration::from_millis(1), ..Default::default() };
        self.links.iter().for_each(|(a, b)| _ = net.link_add(*a, *b, channel));
        let prefix: Name = "/file".parse().unwrap();
        let config = ProducerConfig {
            prefix: prefix.clone(),
            size: SEGMENT,
            freshness_ms: 3_600_000,
            answers: true,
        };
        let producer = net.app_add(self.publisher, Box::new(Producer::new(config)));
        net.route_to(prefix.as_ref(), producer, Routing::Shortest);
        let order: Vec<usize> = self.early.iter().chain(&self.late).copied().collect();
        for (turn, node) in (0..).zip(&order) {
            let start = TURN * turn;
            let config =
                ConsumerConfig { count: SEGMENTS, start, ..ConsumerConfig::new(prefix.clone()) };
            net.app_add(*node, Box::new(Consumer::new(config)));
        }
        // By turn.
        let crossed = Rc::new(RefCell::new(vec![(0, 0); order.len()]));
        net.tap({
            let (crossed, publisher) = (Rc::clone(&crossed), self.publisher);
            move |crossing| {
                let Ok(packet) = LpPacket::parse(crossing.frame) else { return };
                if packet.fragment.is_some_and(|fragment| Answer::parse(fragment).is_ok()) {
                    let turn = (crossing.now.0 / TURN.as_nanos() as u64) as usize;
                    let (all, own) = &mut crossed.borrow_mut()[turn];
                    *all += 1;
                    *own += u64::from(crossing.node == publisher);
                }
            }
        });
        net.run(TURN * (order.len() as u32 + 1), 10_000_000);
        assert!(net.is_done());
        let crossed = crossed.borrow();
        let late = crossed[self.early.len()..].iter();
        self.figure(late.map(|(all, own)| (f64::from(*all) / SEGMENTS as f64, *own == 0)))
    }
}

fn ask(net: &mut PushNetwork, node: usize, kind: Kind, id: &str, prefix: &str) {
    let [id, prefix]: [Id; 2] = [id, prefix].map(|text| text.parse().unwrap());
    net.request(node, APP, 0, &Request { kind, id, prefix, strategy: STRATEGY });
    net.run_for(TURN);
}

/// How often a node got the publication, and nothing else.
fn got(net: &mut PushNetwork, node: usize, payload: &[u8]) -> usize {
    let mut count = 0;
    while let Some(event) = net.event(node, APP) {
        if let Event::Data { payload: came, .. } = event {
            assert!(came[..] == *payload);
            count += 1;
        }
    }
    count
}

fn show(what: &str, of: Figure) {
    println!("{what:22} by caches {:.3}, links {:.2}", of.by_caches, of.links);
}

#[test]
fn on_a_chain_every_late_subscriber_is_answered_by_the_next_cache() {
    let case = Case::chain(11);
    let (push, pull) = (case.push(), case.pull());
    println!("chain of 11, without caches {:.2} links", case.without());
    show("chain, push", push);
    show("chain, pull", pull);
    assert!((push.by_caches - 1.0).abs() < 1e-9);
    // Behind the early subscriber one link each, before it none.
    assert!((push.links - 5.0 / 9.0).abs() < 1e-9, "{push:?}");
    assert!(push.links <= pull.links + 1e-9, "{pull:?}");
}

#[test]
fn on_graphs_late_subscribers_are_answered_from_nearer_than_with_pull() {
    let (mut push, mut pull, mut without) = (Figure::default(), Figure::default(), 0.0);
    let seeds = 1..=8_u64;
    let count = seeds.clone().count() as f64;
    let add = |sum: &mut Figure, of: Figure| {
        sum.by_caches += of.by_caches / count;
        sum.links += of.links / count;
    };
    for seed in seeds {
        let case = Case::graph(seed, 30);
        add(&mut push, case.push());
        add(&mut pull, case.pull());
        without += case.without() / count;
    }
    println!("graphs of 30, without caches {without:.2} links");
    show("graphs, push", push);
    show("graphs, pull", pull);
    assert!(push.by_caches >= pull.by_caches && push.links <= pull.links, "{push:?} {pull:?}");
    assert!(push.links < without);
}

/// A chain of four: the first one publishes, and signs or not, the third one subscribes first and the
/// last one later. How often each of these got it, and what the caches in between hold.
fn signed(does_sign: bool, who_checks: &[usize]) -> ([usize; 2], [usize; 3]) {
    let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
    let trusted = Trusted::new([key.public_key().unwrap()]);
    let mut net = PushNetwork::new(3);
    for n in 0..4 {
        let home = Role::RENDEZVOUS.and(Role::TOPOLOGY);
        let role = if n == 1 { home } else { Role::default() };
        let (key, trusted) = (key.clone(), trusted.clone());
        net.add_node(n as u64 + 1, role, |config| {
            config.signing = (n == 0 && does_sign).then(|| Signing::new(key.clone()).unwrap());
            config.trusted = who_checks.contains(&n).then(|| trusted.clone());
        });
    }
    (1..4).for_each(|n| _ = net.link(n - 1, n, LinkConfig::default()));
    net.run_for(Duration::from_secs(4));
    ask(&mut net, 0, Kind::PUBLISH_SCOPE, "/1", "/");
    ask(&mut net, 0, Kind::PUBLISH_ITEM, "/2", "/1");
    ask(&mut net, 2, Kind::SUBSCRIBE_ITEM, "/2", "/1");
    let payload = vec![7; 20_000];
    let data =
        Data { lifetime_ms: 60_000, ..Data::new("/1/2".parse().unwrap(), STRATEGY, &payload) };
    net.publish(0, APP, &data).unwrap().unwrap();
    net.run_for(TURN);
    let kept = [1, 2, 3].map(|n| net.node(n).unwrap().dispatcher.cache().publications);
    net.crash(0);
    ask(&mut net, 3, Kind::SUBSCRIBE_ITEM, "/2", "/1");
    ([2, 3].map(|n| got(&mut net, n, &payload)), kept)
}

#[test]
fn what_a_cache_sends_has_the_signature_of_its_publisher_and_is_checked_by_it() {
    assert_eq!(signed(true, &[1, 2, 3]), ([1, 1], [1, 1, 0]));
    // Caches that check nothing hold what is not signed; who checks does not take it from them.
    assert_eq!(signed(false, &[3]), ([1, 0], [1, 1, 0]));
    // On the way it is checked, too.
    assert_eq!(signed(false, &[1]), ([1, 1], [0, 1, 0]));
}

/// How one subscriber fares behind a cache and three links that lose a twentieth, when the publisher
/// is killed as soon as the cache has the publication whole, or is not: times that it came, and that it
/// was told as missed.
fn behind_loss(seed: u64, lifetime_ms: u64, is_killed: bool) -> (usize, u64) {
    let mut net = PushNetwork::new(seed);
    for n in 0..5 {
        let home = Role::RENDEZVOUS.and(Role::TOPOLOGY);
        net.add_node(n + 1, if n == 1 { home } else { Role::default() }, |_| {});
    }
    for n in 1..5 {
        let loss_ppm = if n == 1 { 0 } else { 50_000 };
        net.link(n - 1, n, LinkConfig { loss_ppm, ..LinkConfig::default() });
    }
    net.run_for(Duration::from_secs(4));
    ask(&mut net, 0, Kind::PUBLISH_SCOPE, "/1", "/");
    ask(&mut net, 0, Kind::PUBLISH_ITEM, "/2", "/1");
    ask(&mut net, 4, Kind::SUBSCRIBE_ITEM, "/2", "/1");
    while net.event(4, APP).is_some() {}
    let payload = vec![7; 200_000];
    let data = Data { lifetime_ms, ..Data::new("/1/2".parse().unwrap(), STRATEGY, &payload) };
    net.publish(0, APP, &data).unwrap().unwrap();
    net.run_for(Duration::from_millis(20));
    let is_held = net.node(1).unwrap().dispatcher.cache().publications == 1;
    assert_eq!(is_held, lifetime_ms > 0);
    if is_killed {
        net.crash(0);
    }
    net.run_for(Duration::from_secs(20));
    let (mut came, mut missed) = (0, 0);
    while let Some(event) = net.event(4, APP) {
        match event {
            Event::Data { payload: got, .. } => {
                assert!(got[..] == payload[..]);
                came += 1;
            }
            Event::Missed(count) => missed += count,
            other => panic!("{other:?}"),
        }
    }
    (came, missed)
}

#[test]
fn what_its_publisher_does_not_repair_any_more_a_cache_does() {
    let sum = |lifetime_ms, is_killed| {
        let each = (1..=20).map(|seed| behind_loss(seed, lifetime_ms, is_killed));
        each.fold((0, 0), |(came, missed), (a, b)| (came + a, missed + b))
    };
    let (without, with) = (sum(0, true), sum(60_000, true));
    println!("of 20, publisher killed: whole without caches {}, with {}", without.0, with.0);
    assert_eq!((without, with), ((0, 20), (20, 0)), "each comes once, or is told");
    assert_eq!(sum(60_000, false), (20, 0));
}
