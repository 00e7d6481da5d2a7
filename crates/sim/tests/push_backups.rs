//! Ways round lost links by the nodes before them (P-91).

mod push_item;

use onym_pubsub::Event;
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_tables::Rng;
use onym_tables::bloom::{Kind as Tags, Scheme};
use onym_wire::push::Role;
use push_item::{TWO_WAYS, matched, publish};
use std::collections::BTreeSet;
use std::time::Duration;

/// Nodes of which the first is rendezvous and topology manager, with flat filters of five ones for a
/// link, and links of 5 ms.
fn network(has_backups: bool, nodes: u64, links: &[(usize, usize, u16)]) -> PushNetwork {
    let mut net = PushNetwork::new(1);
    for n in 0..nodes {
        let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(n + 1, role, |config| {
            config.backups = has_backups;
            config.routing.may_stage = false;
            config.forwarder.scheme = Scheme { kind: Tags::Tags { k: 5, tables: 8 }, seed: 3 };
        });
    }
    let delay = Duration::from_millis(5);
    for (a, b, cost) in links {
        net.link(*a, *b, LinkConfig { cost: *cost, delay, ..LinkConfig::default() });
    }
    net.run_for(Duration::from_secs(3));
    net
}

/// The way round the link that dies leads back to the publisher's node.
fn gap(has_backups: bool, is_told: bool) -> (Duration, usize) {
    push_item::gap(&mut network(has_backups, 5, &TWO_WAYS), is_told)
}

/// Law: a node that knows a way round a link loses what was on the link, and not what comes until the
/// tree moved; of a silent link, what comes until a hello is missed.
#[test]
fn a_way_round_spares_the_round_trip() {
    let (with, without) = (gap(true, true), gap(false, true));
    assert!(without.0 >= Duration::from_millis(20) && without.1 >= 20, "{without:?}");
    assert!(with.0 <= Duration::from_millis(20) && with.1 <= 6, "{with:?}");
    let (with_silent, without_silent) = (gap(true, false), gap(false, false));
    assert!(without_silent.0 >= Duration::from_millis(2400), "{without_silent:?}");
    assert!(with_silent.0 <= Duration::from_millis(1550), "{with_silent:?}");
    assert!(with_silent.1 <= 1550, "{with_silent:?}");
}

/// What 20 publications did when a link of their tree was lost, before the tree moved.
#[derive(Debug, Default, Clone, Copy)]
struct Seen {
    /// Copies over links of neither the tree nor the way round.
    strays: u64,
    /// Copies over any link.
    copies: u64,
    /// Publications that came to a subscriber.
    came: u64,
}

impl std::ops::AddAssign for Seen {
    fn add_assign(&mut self, other: Self) {
        self.strays += other.strays;
        self.copies += other.copies;
        self.came += other.came;
    }
}

const NODES: usize = 40;

/// Links of a drawn network: each node has two to nodes before it.
fn drawn(seed: u64) -> Vec<(usize, usize, u16)> {
    let mut rng = Rng::new(seed);
    let mut below = |n: usize| usize::try_from(rng.below(n as u64)).unwrap_or(0);
    let links: BTreeSet<_> =
        (1..NODES).flat_map(|n| [(below(n), n, 1), (below(n), n, 1)]).collect();
    links.into_iter().collect()
}

fn seen(has_backups: bool, seed: u64, receivers: usize) -> Seen {
    let links = drawn(seed);
    let mut net = network(has_backups, NODES as u64, &links);
    let to: Vec<usize> = (1..NODES).rev().step_by(2).take(receivers).collect();
    matched(&mut net, 0, &to);
    let manager = net.node(0).and_then(|node| node.topology.as_ref()).expect("it is up");
    let tree = manager.match_views(None, 1)[0].trees[0].links.clone();
    let directed: Vec<(usize, usize)> =
        links.iter().flat_map(|(a, b, _)| [(*a, *b), (*b, *a)]).collect();
    let number = |net: &PushNetwork, (a, b)| net.link_number(a, b).expect("it was made");
    // A link of the tree that does not begin at the publisher.
    let is_inner = |link: &&(usize, usize)| link.0 != 0 && tree.contains(&number(&net, **link));
    let dead = *directed.iter().find(is_inner).expect("the tree is deeper than one link");
    let backups = net.node(dead.0).expect("it is up").dispatcher.backups();
    let way = backups.get(&number(&net, dead)).cloned().unwrap_or_default();
    let before: Vec<u64> = directed.iter().map(|(a, b)| net.crossed(*a, *b).0).collect();
    let copies = net.all_crossed();
    net.news = Some(Vec::new());
    net.link_down_told(net.link_between(dead.0, dead.1).expect("it was made"));
    // All leave before the publisher hears of it.
    (0..20).for_each(|_| publish(&mut net, 0));
    net.run_for(Duration::from_millis(500));
    let is_stray = |link: &(usize, usize)| {
        let number = number(&net, *link);
        !tree.contains(&number) && !way.contains(&number)
    };
    let strays = directed.iter().zip(before).filter(|(link, _)| is_stray(link));
    let news = net.news.as_ref().expect("it is kept");
    let came = news.iter().filter(|(.., event)| matches!(event, Event::Data { .. })).count();
    Seen {
        strays: strays.map(|((a, b), before)| net.crossed(*a, *b).0 - before).sum(),
        copies: net.all_crossed() - copies,
        came: came as u64,
    }
}

/// Law: with ways round, every publication comes to every subscriber, once; what they cost is copies
/// that nobody wants, which the fill limit and the hop limit bound.
#[test]
fn what_ways_round_cost_in_false_positives() {
    for receivers in [4, 8, 12] {
        let (mut with, mut without) = (Seen::default(), Seen::default());
        for seed in 1..=10 {
            with += seen(true, seed, receivers);
            without += seen(false, seed, receivers);
        }
        let all = 10 * 20 * receivers as u64;
        assert!(with.came == all && without.came < all, "{with:?} {without:?}");
        assert!(with.strays * 20 <= with.copies, "{with:?}");
        assert!(with.copies <= 3 * without.copies, "{with:?} {without:?}");
    }
}
