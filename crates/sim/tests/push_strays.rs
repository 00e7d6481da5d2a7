//! Where publications go beside their tree on random networks: nowhere, or as often as the formula
//! of the filter says, and never to an application (spec/push.md, section 3).

mod push_random;

use onym_pubsub::Event;
use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::node::Config;
use onym_pubsub::topology::Keyed;
use onym_sim::PushNetwork;
use onym_tables::Rng;
use onym_tables::bloom::{Kind as Tags, Scheme, false_positive_rate};
use onym_wire::push::{Filter, Kind, Label, Role, Route, RouteBuf, Strategy};
use push_random::{PUBLISHER, SUBSCRIBER, id, random};
use std::collections::BTreeSet;
use std::time::Duration;

/// A network with the tree of one item after another.
struct Bench {
    net: PushNetwork,
    rng: Rng,
    /// Both directions of each link.
    links: Vec<(usize, usize)>,
    scheme: Scheme,
    publisher: usize,
    manager: usize,
    item: u64,
}

/// What was tested and matched beside trees.
#[derive(Debug, Default)]
struct Strays {
    /// Links and insides that were tested although they are not of the tree, each with its chance.
    expected: f64,
    /// Those that matched.
    hits: u64,
    /// The same of links that leave the tree only, of each item.
    beside: Vec<(f64, u64)>,
    forms: BTreeSet<u8>,
}

impl Bench {
    fn new(seed: u64, nodes: usize, change: impl Fn(&mut Config)) -> Self {
        let (mut net, mut rng, links) = random(seed, nodes, 2, |config| {
            change(config);
            config.forwarder.fill_max = 230;
        });
        let mut config = Config::new(Label::default(), 0, Role::default(), 1);
        change(&mut config);
        let scheme = config.forwarder.scheme;
        let is_manager = |n: &usize| net.node(*n).is_some_and(|node| node.topology.is_some());
        let manager = (0..nodes).find(is_manager).expect("a topology manager");
        let publisher = rng.below(nodes as u64) as usize;
        let links = links.into_iter().flat_map(|(a, b)| [(a, b), (b, a)]).collect();
        let (kind, strategy) = (Kind::PUBLISH_SCOPE, Strategy::DOMAIN_LOCAL);
        let request = Request { kind, id: id("/1"), prefix: id("/"), strategy };
        net.request(publisher, PUBLISHER, 0, &request);
        net.run_for(Duration::from_secs(1));
        net.event(publisher, PUBLISHER).expect("the status");
        Self { net, rng, links, scheme, publisher, manager, item: 1 }
    }

    fn crossed(&self) -> Vec<u64> {
        self.links.iter().map(|(a, b)| self.net.crossed(*a, *b).0).collect()
    }

    fn unwanted(&self) -> u64 {
        let nodes = (0..self.net.len()).filter_map(|n| self.net.node(n));
        nodes.map(|n| n.counters().unwanted).sum()
    }

    /// Publishes one more item, to so many receivers, once.
    fn publish(&mut self, receivers: usize, strays: &mut Strays) {
        self.item += 1;
        let (strategy, nodes) = (Strategy::DOMAIN_LOCAL, self.net.len() as u64);
        let label = format!("/{:x}", self.item);
        let ask = |kind| Request { kind, id: id(&label), prefix: id("/1"), strategy };
        self.net.request(self.publisher, PUBLISHER, 0, &ask(Kind::PUBLISH_ITEM));
        self.net.run_for(Duration::from_millis(200));
        let mut to = BTreeSet::new();
        while to.len() < receivers {
            let node = self.rng.below(nodes) as usize;
            if node != self.publisher && to.insert(node) {
                self.net.request(node, SUBSCRIBER, 0, &ask(Kind::SUBSCRIBE_ITEM));
            }
        }
        self.net.run_for(Duration::from_secs(1));
        for (node, app) in to.iter().map(|n| (*n, SUBSCRIBER)).chain([(self.publisher, PUBLISHER)])
        {
            let done = self.net.event(node, app);
            assert!(
                matches!(done, Some(Event::Status { status, .. }) if status.0 == 0),
                "{done:?}"
            );
        }
        let item = id(&format!("/1{label}"));
        assert_eq!(
            self.net.event(self.publisher, PUBLISHER),
            Some(Event::StartPublish(item.clone()))
        );
        let before = (self.crossed(), self.unwanted());
        let sent = self.net.publish(self.publisher, PUBLISHER, &Data::new(item, strategy, b"x"));
        assert!(sent.is_some_and(|sent| sent.is_ok()));
        self.net.run_for(Duration::from_millis(200));
        for node in 0..self.net.len() {
            let got = std::iter::from_fn(|| self.net.event(node, SUBSCRIBER)).count();
            assert_eq!(got, usize::from(to.contains(&node)), "item {label}, node {node}");
        }
        self.count(&to, before, strays);
    }

    /// Counts what of the last publication was tested and matched beside its tree.
    fn count(&self, to: &BTreeSet<usize>, before: (Vec<u64>, u64), strays: &mut Strays) {
        let came: Vec<u64> =
            self.crossed().iter().zip(&before.0).map(|(after, before)| after - before).collect();
        let item = id(&format!("/1/{:x}", self.item));
        let manager = self.net.node(self.manager).and_then(|n| n.topology.as_ref());
        let view = manager.expect("the manager").match_views(Some(&item), 1).remove(0);
        let tree = &view.trees[0];
        let members: BTreeSet<u32> =
            tree.links.iter().copied().chain(to.iter().map(|n| self.net.inside(*n))).collect();
        let route = tree.route.as_ref().expect("a route");
        strays.forms.insert(route.octets()[0]);
        let chance = |number| self.chance(route, &members, number);
        let number = |(a, b): (usize, usize)| self.net.link_number(a, b).expect("a link");
        let (mut expected, mut hits) = (0.0, 0);
        let mut beside = (0.0, 0);
        for node in 0..self.net.len() {
            let ways = || self.links.iter().zip(&came);
            let arrived: u64 = ways().filter(|(l, _)| l.1 == node).map(|(_, n)| n).sum();
            let own = u64::from(node == self.publisher);
            let is_of_tree =
                own == 1 || ways().any(|(l, _)| l.1 == node && members.contains(&number(*l)));
            for (link, left) in ways().filter(|(l, _)| l.0 == node) {
                if members.contains(&number(*link)) {
                    continue;
                }
                let back: u64 = ways().filter(|(l, _)| **l == (link.1, node)).map(|(_, n)| n).sum();
                let tests = (arrived + own - back) as f64 * chance(number(*link));
                (expected, hits) = (expected + tests, hits + left);
                if is_of_tree {
                    beside = (beside.0 + tests, beside.1 + left);
                }
            }
            if !to.contains(&node) {
                expected += arrived as f64 * chance(self.net.inside(node));
            }
        }
        // What a filter brings to a node without subscribers is counted there.
        let unwanted = self.unwanted() - before.1;
        strays.expected += expected;
        strays.hits += hits + unwanted;
        strays.beside.push((beside.0, beside.1 + unwanted));
    }

    /// The chance that a link or an inside which is no member matches.
    fn chance(&self, route: &RouteBuf, members: &BTreeSet<u32>, number: u32) -> f64 {
        let share = |filter: Filter| f64::from(filter.ones()) / 256.0;
        match route.as_ref() {
            Route::Flat { table, filter } => {
                let ones = self.scheme.tag(number, table).ones();
                if ones > 1 {
                    return false_positive_rate(share(filter), ones);
                }
                // Nobody else has this bit but tags of several.
                let mut others = Filter::EMPTY;
                let tags = members.iter().map(|n| self.scheme.tag(*n, table));
                tags.filter(|tag| tag.ones() > 1).for_each(|tag| others.add(&tag));
                share(others)
            }
            Route::Keyed { filter, .. } => false_positive_rate(share(filter), 5),
            Route::Stages(_) => 0.0,
            other => panic!("{other:?}"),
        }
    }
}

fn agrees(hits: u64, expected: f64, what: &str) {
    let tolerance = 0.25 * expected + 3.0 * expected.sqrt() + 2.0;
    assert!((hits as f64 - expected).abs() < tolerance, "{what}: {hits}, expected {expected:.1}");
}

fn strays(seed: u64, nodes: usize, receivers: usize, change: impl Fn(&mut Config)) -> Strays {
    let mut bench = Bench::new(seed, nodes, change);
    let mut strays = Strays::default();
    (0..10).for_each(|_| bench.publish(receivers, &mut strays));
    strays
}

fn five(tables: u8) -> impl Fn(&mut Config) {
    move |config| {
        config.forwarder.scheme = Scheme { kind: Tags::Tags { k: 5, tables }, seed: 3 };
        config.routing.may_stage = false;
    }
}

#[test]
fn single_bits_bring_nothing_beside_the_tree_while_there_are_enough_of_them() {
    let seen = strays(31, 50, 12, |config| config.routing.may_stage = false);
    assert_eq!((seen.hits, seen.forms.len()), (0, 1), "seed 31");
    assert!(seen.expected.abs() < f64::EPSILON);
}

#[test]
fn beyond_256_numbers_bits_stray_as_the_formula_says() {
    let seen = strays(32, 120, 10, |config| config.routing.may_stage = false);
    assert!(seen.hits > 20, "seed 32: {}", seen.hits);
    agrees(seen.hits, seen.expected, "seed 32");
}

#[test]
fn five_bits_in_one_table_stray_as_the_formula_says() {
    let seen = strays(33, 200, 10, five(1));
    assert!(seen.hits > 20, "seed 33: {}", seen.hits);
    agrees(seen.hits, seen.expected, "seed 33");
}

#[test]
fn the_best_of_eight_tables_strays_as_the_least_of_eight_draws() {
    let seen = strays(34, 120, 10, five(8));
    let least: f64 = seen.beside.iter().map(|(mean, _)| least_of(8, *mean)).sum();
    let hits = seen.beside.iter().map(|(_, hits)| hits).sum();
    agrees(hits, least, "seed 34, beside the tree");
    assert!((seen.hits as f64) < seen.expected, "seed 34: {} of {}", seen.hits, seen.expected);
}

/// The mean of the least of so many draws of Poisson numbers with this mean.
fn least_of(draws: i32, mean: f64) -> f64 {
    let (mut chance, mut at_least, mut sum) = ((-mean).exp(), 1.0, 0.0);
    for number in 1..200 {
        at_least -= chance;
        sum += f64::max(at_least, 0.0).powi(draws);
        chance *= mean / f64::from(number);
    }
    sum
}

#[test]
fn keyed_tags_stray_as_the_formula_says() {
    let keyed = Keyed { master: [7, 8], epoch: 1, k: 5 };
    let seen = strays(35, 200, 10, |config| {
        five(8)(config);
        config.routing.keyed = Some(keyed);
    });
    assert_eq!(seen.forms, [2].into(), "seed 35");
    assert!(seen.hits > 20, "seed 35: {}", seen.hits);
    agrees(seen.hits, seen.expected, "seed 35");
}

#[test]
fn stages_bring_nothing_beside_the_tree() {
    let seen = strays(36, 120, 25, |config| {
        five(8)(config);
        (config.routing.may_stage, config.routing.only_stages) = (true, true);
    });
    assert_eq!((seen.hits, seen.forms), (0, [3].into()), "seed 36");
}
