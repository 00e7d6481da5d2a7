//! Trees go round loaded links (P-90).

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_tables::{FaceId, Rng};
use onym_wire::push::{Id, Kind, Label, Role, Strategy};
use std::collections::BTreeSet;
use std::time::Duration;

const PUBLISHER: AppId = AppId(1);
const SUBSCRIBER: AppId = AppId(2);
const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;

/// Nodes of which the first is rendezvous and topology manager, and these links, each of 1 Mbit/s, at
/// a cost.
fn network(seed: u64, links: &[(usize, usize, u16)]) -> PushNetwork {
    let mut net = PushNetwork::new(seed);
    let nodes = links.iter().map(|(a, b, _)| 1 + a.max(b)).max().unwrap_or(1);
    for n in 0..nodes.max(5) {
        let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(n as u64 + 1, role, |_| {});
    }
    for (a, b, cost) in links {
        net.link(*a, *b, LinkConfig { cost: *cost, capacity: 1000, ..LinkConfig::default() });
    }
    net.run_for(Duration::from_secs(3));
    net
}

/// The nodes are not told what their links carry.
fn forget_capacities(net: &mut PushNetwork, links: u32) {
    let now = net.now();
    for node in 0..net.len() {
        let running = net.node_mut(node).expect("it is up");
        (0..links).for_each(|n| running.link_capacity(now, FaceId(FaceId::FIRST.0 + n), 0));
    }
}

fn item(n: usize) -> Id {
    format!("/1/{n:x}").parse().expect("an identifier")
}

fn ask(net: &mut PushNetwork, node: usize, app: AppId, kind: Kind, id: &Id) {
    let prefix = Id::from_labels(id.parent());
    let child = Id::root(id.last().expect("it has a label"));
    net.request(node, app, 0, &Request { kind, id: child, prefix, strategy: STRATEGY });
}

/// Items of `publisher` with a subscriber, each published at so many kilobits per second from its
/// second on; what was sent and came of each, and in how many seconds trees moved after the first
/// minute.
struct Play {
    net: PushNetwork,
    items: Vec<Item>,
    late_moves: usize,
    /// Milliseconds that it runs, without those in which items begin.
    ms: u64,
}

struct Item {
    publisher: usize,
    rate: u64,
    from: u64,
    sent: u64,
    came: u64,
    due: u64,
}

const OCTETS: usize = 1000;

impl Play {
    fn new(net: PushNetwork, items: &[(usize, u64, u64)]) -> Self {
        let item = |(publisher, rate, from): &(usize, u64, u64)| Item {
            publisher: *publisher,
            rate: *rate,
            from: *from,
            sent: 0,
            came: 0,
            due: 0,
        };
        Self { net, items: items.iter().map(item).collect(), late_moves: 0, ms: 0 }
    }

    /// The links of all trees.
    fn trees(&self) -> BTreeSet<(Id, Vec<u32>)> {
        let manager = self.net.node(0).and_then(|node| node.topology.as_ref());
        let views = manager.map(|manager| manager.match_views(None, 1000)).unwrap_or_default();
        let trees = |ids: Vec<Id>, trees: Vec<onym_pubsub::topology::TreeView>| {
            trees.into_iter().map(move |tree| (ids[0].clone(), tree.links))
        };
        views.into_iter().flat_map(|view| trees(view.ids, view.trees)).collect()
    }

    fn start(&mut self, n: usize, subscriber: usize) {
        let publisher = self.items[n].publisher;
        ask(
            &mut self.net,
            publisher,
            PUBLISHER,
            Kind::PUBLISH_SCOPE,
            &Id::root(Label::from_u64(1)),
        );
        self.net.run_for(Duration::from_millis(30));
        ask(&mut self.net, publisher, PUBLISHER, Kind::PUBLISH_ITEM, &item(n + 16));
        ask(&mut self.net, subscriber, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, &item(n + 16));
        self.net.run_for(Duration::from_millis(70));
    }

    fn run(&mut self, subscriber: usize, seconds: u64) {
        let mut before = self.trees();
        let end = self.ms + seconds * 1000;
        while self.ms < end {
            let ms = self.ms;
            for n in 0..self.items.len() {
                let at = &self.items[n];
                if at.from * 1000 == ms {
                    self.start(n, subscriber);
                    self.items[n].due = ms;
                }
                self.publish(n, ms);
            }
            self.net.run_for(Duration::from_millis(1));
            self.take(subscriber);
            if ms.is_multiple_of(1000) {
                let trees = self.trees();
                let is_other = before != trees;
                self.late_moves += usize::from(is_other && ms > 60_000);
                before = trees;
            }
            self.ms += 1;
        }
        self.net.run_for(Duration::from_secs(2));
        self.take(subscriber);
    }

    fn publish(&mut self, n: usize, ms: u64) {
        let at = &mut self.items[n];
        if at.from * 1000 > ms || at.due > ms {
            return;
        }
        at.due += 8 * OCTETS as u64 / at.rate;
        let data = Data::new(item(n + 16), STRATEGY, &[7; OCTETS]);
        let publisher = at.publisher;
        if self.net.publish(publisher, PUBLISHER, &data).is_some_and(|sent| sent.is_ok()) {
            self.items[n].sent += 1;
        }
    }

    fn take(&mut self, subscriber: usize) {
        while let Some(event) = self.net.event(subscriber, SUBSCRIBER) {
            let Event::Data { id, .. } = event else { continue };
            let n = id.last().map_or(0, |label| label.to_u64()) as usize - 16;
            self.items[n].came += 1;
        }
    }

    fn sent(&self) -> u64 {
        self.items.iter().map(|item| item.sent).sum()
    }

    fn lost(&self) -> u64 {
        self.sent() - self.items.iter().map(|item| item.came).sum::<u64>()
    }
}

/// Two ways from 1 to 4, of which one costs twice the other.
const TWO_WAYS: [(usize, usize, u16); 5] = [(0, 1, 1), (1, 2, 1), (2, 4, 1), (1, 3, 2), (3, 4, 2)];

/// Law: of items that begin one after the other, which the shortest way cannot carry together, each
/// finds a way that can.
#[test]
fn a_new_tree_goes_round_what_is_loaded() {
    let items: Vec<_> = (0..4).map(|n| (1, 300, 15 * n)).collect();
    let mut with = Play::new(network(1, &TWO_WAYS), &items);
    with.run(4, 120);
    let mut net = network(1, &TWO_WAYS);
    forget_capacities(&mut net, 3);
    let mut without = Play::new(net, &items);
    without.run(4, 120);
    assert_eq!(with.lost(), 0, "of {}", with.sent());
    assert!(without.lost() * 10 > without.sent(), "{} of {}", without.lost(), without.sent());
}

/// Law: of items that begin together, some leave the loaded way within seconds; then all come, and
/// nothing moves any more.
#[test]
fn trees_that_are_there_share_the_ways() {
    let items: Vec<_> = (0..4).map(|n| (1, 300, n / 4)).collect();
    let mut play = Play::new(network(2, &TWO_WAYS), &items);
    play.run(4, 10);
    let lost = play.lost();
    assert!(lost < 100, "{lost} before some moved");
    play.run(4, 110);
    assert_eq!(play.lost(), lost, "lost after that");
    assert_eq!(play.late_moves, 0);
}

/// Law: trees do not go to and fro: of items of any rates on three ways, drawn by seeds, which fit,
/// moves end.
#[test]
fn moves_end() {
    let ways = [(0, 1, 1), (1, 2, 1), (2, 5, 1), (1, 3, 2), (3, 5, 2), (1, 4, 3), (4, 5, 2)];
    for seed in 1..=4 {
        let mut rng = Rng::new(seed);
        let items: Vec<_> = (0..10).map(|_| (1, 40 + rng.below(260), rng.below(20))).collect();
        let mut play = Play::new(network(seed, &ways), &items);
        play.run(5, 180);
        assert!(play.late_moves <= 3, "seed {seed}: {} moves", play.late_moves);
    }
}

/// Law: a node whose link is full and empty by turns, as it says, moves trees ever more rarely.
#[test]
fn a_node_that_states_any_loads_moves_little() {
    let mut net = network(3, &TWO_WAYS[..2]);
    let links = &TWO_WAYS[2..];
    for (a, b, cost) in links {
        net.link(*a, *b, LinkConfig { cost: *cost, ..LinkConfig::default() });
    }
    let items: Vec<_> = (0..4).map(|_| (1, 50, 0)).collect();
    let mut play = Play::new(net, &items);
    play.run(4, 3);
    let (liar, link) = (2, FaceId(FaceId::FIRST.0 + 1));
    let (mut octets, mut moves, mut before) = (0, 0, play.trees());
    for second in 0..3600 {
        // By turns of 15 s.
        octets += if second / 15 % 2 == 0 { 1 << 30 } else { 0 };
        let now = play.net.now();
        let liar = play.net.node_mut(liar).expect("it is up");
        liar.link_capacity(now, link, 1000);
        liar.link_sent(now, link, octets);
        play.net.run_for(Duration::from_secs(1));
        let trees = play.trees();
        moves += trees.difference(&before).count();
        before = trees;
    }
    assert!((1..=60).contains(&moves), "{moves} moves of 4 trees in an hour of 240 turns");
}

/// Law: of two publishers of an item the one behind a loaded link loses its subscribers to the other,
/// who is stopped again when nothing is loaded any more; each time one of them serves.
#[test]
fn publishers_share_subscribers_by_load() {
    // 1 and 2 publish for 5: 1 over 3, and 2 over 4, at twice the cost.
    let links = [(0, 1, 9), (0, 2, 9), (1, 3, 1), (3, 5, 1), (2, 4, 2), (4, 5, 2)];
    let mut play = Play::new(network(4, &links), &[(1, 50, 0), (1, 800, 2), (2, 50, 1 << 40)]);
    play.run(5, 1);
    ask(&mut play.net, 2, PUBLISHER, Kind::PUBLISH_SCOPE, &"/1".parse().expect("an identifier"));
    play.net.run_for(Duration::from_millis(100));
    ask(&mut play.net, 2, PUBLISHER, Kind::PUBLISH_ITEM, &item(16));
    let servers = |play: &Play| {
        let manager = play.net.node(0).and_then(|node| node.topology.as_ref());
        let views = manager.map(|m| m.match_views(Some(&item(16)), 1)).unwrap_or_default();
        let trees = views.into_iter().flat_map(|view| view.trees);
        trees.map(|tree| tree.publisher.to_u64() - 1).collect::<Vec<_>>()
    };
    play.run(5, 1);
    assert_eq!(servers(&play), [1], "the nearer one");
    play.run(5, 20);
    assert_eq!(servers(&play), [2], "the one behind less");
    play.items[1].due = u64::MAX;
    play.run(5, 60);
    assert_eq!(servers(&play), [1], "the nearer one again");
}
