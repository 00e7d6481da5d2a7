//! Long publications cross domains whole, whatever is lost on the way, within a domain or between
//! two (spec/push.md, P-64 and P-65).

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_tables::Rng;
use onym_wire::push::{Id, Kind, Label, Role, Strategy};
use std::time::Duration;

const PUBLISHER: AppId = AppId(1);
const SUBSCRIBER: AppId = AppId(2);
const STRATEGY: Strategy = Strategy::INTER_DOMAIN;

fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

/// Domains in a chain, each a chain of nodes; nodes by domain.
struct Domains {
    net: PushNetwork,
    nodes: Vec<Vec<usize>>,
}

impl Domains {
    /// So many nodes in each domain; its first node is its rendezvous, and the first and the last
    /// one are topology managers where there are `managers` of them.
    fn new(seed: u64, sizes: &[usize], managers: usize, link: LinkConfig) -> Self {
        let mut net = PushNetwork::new(seed);
        let mut nodes: Vec<Vec<usize>> = Vec::new();
        let mut label = 0;
        for (d, size) in sizes.iter().enumerate() {
            let mut own = Vec::new();
            for n in 0..*size {
                label += 1;
                let rendezvous = if n == 0 { Role::RENDEZVOUS } else { Role::default() };
                let is_manager = n == 0 || (managers > 1 && n + 1 == *size);
                let manager = if is_manager { Role::TOPOLOGY } else { Role::default() };
                own.push(net.add_node(label, rendezvous.and(manager), |config| {
                    config.domain = Some(Label::from_u64(0xD0 + d as u64));
                }));
            }
            for pair in own.windows(2) {
                net.link(pair[0], pair[1], link);
            }
            if let (Some(last), Some(first)) = (nodes.last().and_then(|n| n.last()), own.first()) {
                net.link(*last, *first, link);
            }
            nodes.push(own);
        }
        net.run_for(Duration::from_secs(20));
        Self { net, nodes }
    }

    fn ask(&mut self, node: usize, app: AppId, kind: Kind, child: &str, prefix: &str) {
        let request = Request { kind, id: id(child), prefix: id(prefix), strategy: STRATEGY };
        self.net.request(node, app, 0, &request);
    }

    /// The first node publishes, and these subscribe.
    fn matched(&mut self, subscribers: &[usize]) {
        self.ask(0, PUBLISHER, Kind::PUBLISH_SCOPE, "/1", "/");
        self.net.run_for(Duration::from_secs(2));
        self.ask(0, PUBLISHER, Kind::PUBLISH_ITEM, "/2", "/1");
        self.net.run_for(Duration::from_secs(20));
        for node in subscribers {
            self.ask(*node, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, "/2", "/1");
        }
        self.net.run_for(Duration::from_secs(20));
        while self.net.event(0, PUBLISHER).is_some() {}
        for node in subscribers {
            let status = self.net.event(*node, SUBSCRIBER);
            assert!(matches!(status, Some(Event::Status { .. })), "node {node}: {status:?}");
        }
    }

    /// Publishes so many octets; each of these gets them once, and hears of nothing missed.
    fn travels(&mut self, seed: u64, len: usize, subscribers: &[usize]) {
        let payload: Vec<u8> = (0..len).map(|i| (i / 7 % 251) as u8).collect();
        let data = Data::new(id("/1/2"), STRATEGY, &payload);
        let sent = self.net.publish(0, PUBLISHER, &data).expect("up").expect("started");
        assert!(sent.frames > 1, "it does not fit one frame");
        let mut got = vec![0; subscribers.len()];
        let is_done = self.net.run_until(Duration::from_secs(30), |net| {
            for (node, got) in subscribers.iter().zip(&mut got) {
                if let Some(event) = net.event(*node, SUBSCRIBER) {
                    let Event::Data { payload: came, .. } = event else {
                        panic!("seed {seed}, node {node}: {event:?}")
                    };
                    assert!(came[..] == payload[..], "seed {seed}, node {node}");
                    *got += 1;
                }
            }
            got.iter().all(|n| *n == 1)
        });
        assert!(is_done, "seed {seed}: {subscribers:?} got {got:?}");
        // Nothing comes once more as long as repairs may be asked for.
        self.net.run_for(Duration::from_secs(15));
        for node in subscribers {
            assert_eq!(self.net.event(*node, SUBSCRIBER), None, "seed {seed}, node {node}");
            let counters = self.net.node(*node).expect("up").counters();
            assert_eq!((counters.incomplete, counters.missing), (0, 0), "seed {seed}, node {node}");
        }
    }

    /// Messages of this kind that nodes of a domain took.
    fn taken(&self, domain: usize, kind: Kind) -> u64 {
        let nodes = self.nodes[domain].iter().filter_map(|n| self.net.node(*n));
        nodes.map(|n| n.taken(kind)).sum()
    }

    fn repaired(&self) -> u64 {
        self.net.node(0).expect("up").counters().repaired
    }

    /// Messages between domains that were refused.
    fn refused(&self) -> u64 {
        let nodes = self.nodes.iter().flatten().filter_map(|n| self.net.node(*n));
        let managers = nodes.filter_map(|n| n.topology.as_ref());
        managers.map(|t| t.federation().map_or(0, |f| f.refused)).sum()
    }
}

#[test]
fn a_publication_of_2_mb_reaches_every_domain_whole_and_once_whatever_is_lost() {
    for seed in 0..12 {
        let mut rng = Rng::new(seed);
        let count = 2 + (seed % 2) as usize;
        let sizes: Vec<usize> = (0..count).map(|_| 2 + rng.below(3) as usize).collect();
        let managers = 1 + rng.below(2) as usize;
        let delay = Duration::from_millis(1 + rng.below(15));
        let loss_ppm = u32::try_from(rng.below(60_000)).unwrap();
        let link = LinkConfig { delay, loss_ppm, ..LinkConfig::default() };
        eprintln!("seed {seed}: {sizes:?} {managers} {link:?}");
        let mut domains = Domains::new(seed, &sizes, managers, link);
        // One beside the publisher, and two in every other domain.
        let mut subscribers = vec![domains.nodes[0][1]];
        for own in &domains.nodes[1..] {
            subscribers.extend([own[0], own[own.len() - 1]]);
        }
        domains.matched(&subscribers);
        domains.travels(seed, 2 << 20, &subscribers);
        if loss_ppm > 1000 {
            assert!(domains.repaired() > 0, "seed {seed}");
            assert!(domains.taken(0, Kind::DOMAIN_IN) > 0);
        }
        assert_eq!(domains.refused(), 0, "seed {seed}: a request that nobody forged");
    }
}

#[test]
fn nodes_of_a_domain_that_miss_the_same_ask_another_domain_once() {
    // Only the link between the domains loses: everybody behind it misses the same.
    let mut domains = Domains::new(3, &[2, 6], 1, LinkConfig::default());
    let subscribers = domains.nodes[1].clone();
    domains.matched(&subscribers);
    let between = domains.net.link_between(domains.nodes[0][1], domains.nodes[1][0]);
    domains.net.set_loss(between.expect("a link"), 50_000);
    domains.travels(3, 2 << 20, &subscribers);
    let asked: u64 = subscribers
        .iter()
        .map(|n| domains.net.node(*n).expect("up").counters().repairs_asked)
        .sum();
    // What crosses is counted where it is handed to the publisher.
    let crossed = domains.net.node(0).expect("up").taken(Kind::REPAIR);
    assert!(crossed > 0 && crossed * 3 < asked, "{crossed} of {asked}");
}

#[test]
fn who_asks_in_vain_gives_up_and_tells_it() {
    let mut domains = Domains::new(4, &[2, 2], 1, LinkConfig::default());
    let last = domains.nodes[1][1];
    domains.matched(&[last]);
    let payload = vec![7; 400_000];
    let data = Data::new(id("/1/2"), STRATEGY, &payload);
    domains.net.publish(0, PUBLISHER, &data).expect("up").expect("started");
    domains.net.run_for(Duration::from_micros(2500));
    let between = domains.net.link_between(domains.nodes[0][1], domains.nodes[1][0]);
    domains.net.link_down(between.expect("a link"));
    let mut event = None;
    let before = domains.net.now();
    domains.net.run_until(Duration::from_secs(10), |net| {
        event = net.event(last, SUBSCRIBER);
        event.is_some()
    });
    assert!(matches!(event, Some(Event::Missed(1))), "it got something else");
    // 50 ms, 200 after the first request, 400 after 15 more.
    let took = domains.net.now().since(before);
    assert!((6250..6300).contains(&took.as_millis()), "{took:?}");
    let counters = domains.net.node(last).expect("up").counters();
    assert_eq!((counters.repairs_asked, counters.incomplete), (16, 1));
}

/// A message that is lost between two domains is sent again after a fifth of a second; the round that
/// says everything comes every four (P-80).
#[test]
fn what_is_lost_between_domains_costs_a_round_trip_and_not_a_round() {
    const ITEMS: u64 = 8;
    let mut waits = Vec::new();
    for seed in 0..6 {
        let delay = Duration::from_millis(5);
        let link = LinkConfig { delay, loss_ppm: 150_000, ..LinkConfig::default() };
        // Each domain is one node: nothing is lost but between domains.
        let mut domains = Domains::new(seed, &[1, 1, 1], 1, link);
        domains.ask(0, PUBLISHER, Kind::PUBLISH_SCOPE, "/1", "/");
        domains.net.run_for(Duration::from_secs(10));
        for item in 0..ITEMS {
            domains.ask(0, PUBLISHER, Kind::PUBLISH_ITEM, &format!("/{item:x}"), "/1");
        }
        domains.net.run_for(Duration::from_secs(10));
        for item in 0..ITEMS {
            while domains.net.event(0, PUBLISHER).is_some() {}
            // Somewhere between two rounds.
            domains.net.run_for(Duration::from_millis(1100 + 37 * item));
            domains.ask(2, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, &format!("/{item:x}"), "/1");
            let begun = domains.net.now();
            let started = Event::StartPublish(id(&format!("/1/{item:x}")));
            let is_done = domains.net.run_until(Duration::from_secs(30), |net| {
                std::iter::from_fn(|| net.event(0, PUBLISHER)).any(|event| event == started)
            });
            assert!(is_done, "seed {seed}: {started:?}");
            waits.push(domains.net.now().since(begun).as_millis());
        }
    }
    waits.sort_unstable();
    let slow = waits.iter().filter(|ms| **ms > 1000).count();
    eprintln!("{slow} of {} took more than a second: {waits:?}", waits.len());
    assert!(slow * 20 <= waits.len() && waits.last().is_some_and(|ms| *ms < 3000), "{waits:?}");
}
