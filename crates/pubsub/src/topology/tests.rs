use super::map::{Map, NodeState};
use super::*;
use onym_tables::Rng;
use onym_tables::bloom::{Kind as Tags, Scheme, false_positive_rate, stage_has};
use onym_wire::push::Link;

fn node(n: usize) -> Label {
    Label::from_u64(n as u64 + 1)
}

/// A scale-free graph: each new node has two links to nodes chosen by their links.
fn scale_free(rng: &mut Rng, nodes: usize) -> Map {
    let mut ends = vec![0, 1];
    let mut links = vec![(0, 1)];
    for n in 2..nodes {
        let mut to = Vec::new();
        while to.len() < 2 {
            let end = ends[rng.below(ends.len() as u64) as usize];
            if end != n && !to.contains(&end) {
                to.push(end);
            }
        }
        for end in to {
            links.push((n, end));
            ends.extend([n, end]);
        }
    }
    let mut states: Vec<NodeState> = (0..nodes as u32)
        .map(|inside| NodeState {
            inside,
            role: Role::default(),
            links: Vec::new(),
            exits: Vec::new(),
        })
        .collect();
    let mut number = nodes as u32;
    for (a, b) in links {
        for (from, to) in [(a, b), (b, a)] {
            states[from].links.push(Link { neighbour: node(to), number, cost: 1 });
            number += 1;
        }
    }
    let mut map = Map::default();
    for (n, state) in states.into_iter().enumerate() {
        map.set(node(n), Some(state));
    }
    map
}

fn draw(rng: &mut Rng, map: &mut Map, nodes: usize, receivers: usize) -> (Label, Tree) {
    let root = node(rng.below(nodes as u64) as usize);
    let mut to = BTreeSet::new();
    while to.len() < receivers {
        let n = node(rng.below(nodes as u64) as usize);
        if n != root {
            to.insert(n);
        }
    }
    let to: Vec<Label> = to.into_iter().collect();
    let tree = map.tree(root, &to).unwrap();
    assert!(tree.unreached.is_empty());
    (root, tree)
}

fn tags(tables: u8, may_stage: bool, only_stages: bool) -> Routing {
    let scheme = Scheme { kind: Tags::Tags { k: 5, tables }, seed: 5 };
    Routing { scheme, may_stage, only_stages, ..Routing::default() }
}

/// Links beside the tree that a flat route matches, those looked at, and those expected.
fn false_positives(routing: &Routing, seed: u64, receivers: usize) -> (usize, usize, f64) {
    let mut rng = Rng::new(seed);
    let mut map = scale_free(&mut rng, 100);
    let (mut hits, mut looked, mut expected) = (0, 0, 0.0);
    for _ in 0..150 {
        let (root, tree) = draw(&mut rng, &mut map, 100, receivers);
        let Some(route) = routing.route(&map, root, &tree) else { continue };
        let Route::Flat { table, filter } = route.as_ref() else { panic!("not flat") };
        let beside = map.beside(&tree, root);
        looked += beside.len();
        let fill = f64::from(filter.ones()) / 256.0;
        expected += false_positive_rate(fill, 5) * beside.len() as f64;
        hits +=
            beside.iter().filter(|(_, n)| filter.contains(&routing.scheme.tag(*n, table))).count();
    }
    (hits, looked, expected)
}

#[test]
fn false_positives_beside_a_tree_agree_with_the_formula() {
    for (receivers, seed) in [(5, 1), (10, 2), (14, 3)] {
        let (hits, looked, expected) = false_positives(&tags(1, false, false), seed, receivers);
        let tolerance = 0.25 * expected + 3.0 * expected.sqrt() + 2.0;
        assert!(
            (hits as f64 - expected).abs() < tolerance,
            "{receivers} receivers: {hits} of {looked}, expected {expected:.1}"
        );
    }
}

#[test]
fn the_best_of_eight_tables_has_fewer_false_positives() {
    let (one, ..) = false_positives(&tags(1, false, false), 7, 10);
    let (eight, ..) = false_positives(&tags(8, false, false), 7, 10);
    assert!(eight * 3 < one, "{eight} with eight tables, {one} with one");
}

#[test]
fn stages_match_nothing_beside_the_tree_and_are_small() {
    // Mean bits of the design's own simulation, for these numbers of receivers.
    for (receivers, bits) in [(2, 18), (5, 47), (10, 105), (15, 173), (20, 237), (30, 379)] {
        let mut rng = Rng::new(receivers as u64);
        let mut map = scale_free(&mut rng, 100);
        let routing = tags(8, true, true);
        let mut sum = 0;
        for _ in 0..20 {
            let (root, tree) = draw(&mut rng, &mut map, 100, receivers);
            let route = routing.route(&map, root, &tree).unwrap();
            let Route::Stages(stages) = route.as_ref() else { panic!("no stages") };
            assert_eq!(u32::from(stages.count()), tree.depth() + 1);
            sum += stages.bits();
            let has = |depth: u32, number| {
                let index = u8::try_from(depth).unwrap();
                stages
                    .get(index)
                    .is_some_and(|s| stage_has(&s, index, routing.scheme.stage_tag(number)))
            };
            assert!(tree.links.iter().all(|l| has(l.depth, l.number)));
            assert!(tree.insides.iter().all(|(n, depth)| has(*depth, *n)));
            assert!(!map.beside(&tree, root).iter().any(|(depth, n)| has(*depth, *n)));
        }
        let mean = sum / 20;
        assert!(mean <= bits * 3 / 2, "{receivers} receivers: {mean} bits instead of {bits}");
    }
}

#[test]
fn single_bits_are_exact_while_there_are_at_most_256_numbers() {
    let mut rng = Rng::new(9);
    let mut map = scale_free(&mut rng, 42);
    for receivers in [1, 10, 41] {
        let (root, tree) = draw(&mut rng, &mut map, 42, receivers);
        let routing = Routing::default();
        let route = routing.route(&map, root, &tree).unwrap();
        let Route::Flat { filter, .. } = route.as_ref() else { panic!("not flat") };
        let beside = map.beside(&tree, root);
        assert!(!beside.iter().any(|(_, n)| filter.contains(&routing.scheme.tag(*n, 0))));
    }
}

#[test]
fn the_way_back_leads_from_every_receiver_to_the_root_only() {
    let mut rng = Rng::new(4);
    let mut map = scale_free(&mut rng, 42);
    let (root, tree) = draw(&mut rng, &mut map, 42, 8);
    let routing = Routing::default();
    let reply = routing.reply(&tree).unwrap();
    let Route::Flat { filter, .. } = reply.as_ref() else { panic!("not flat") };
    let has = |n| filter.contains(&routing.scheme.tag(n, 0));
    assert!(tree.links.iter().all(|l| has(l.reverse) && !has(l.number)));
    assert!(has(tree.root) && tree.insides.iter().all(|(n, _)| !has(*n)));
    assert!(map.distance(root, root) == Some(0));
}
