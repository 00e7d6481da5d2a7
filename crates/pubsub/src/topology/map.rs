//! The map of a domain: nodes and links as their link states tell, shortest paths, trees.

use onym_tables::KeyedMap;
use onym_wire::push::{Control, Label, Link, Role};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

/// What a node said of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeState {
    /// Number of its inside.
    pub inside: u32,
    /// What it does for the domain.
    pub role: Role,
    /// Its links.
    pub links: Vec<Link>,
    /// Its links to other domains, which stand in place of neighbours.
    pub exits: Vec<Link>,
}

impl NodeState {
    /// From a link-state message.
    #[must_use]
    pub fn of(message: &Control) -> Option<Self> {
        let inside = u32::try_from(message.item?).ok()?;
        let (links, exits) = (message.links.clone(), message.exits.clone());
        Some(Self { inside, role: message.role, links, exits })
    }
}

/// Distance of what cannot be reached.
const FAR: u64 = u64::MAX;
/// Shortest paths round loaded links that are kept at most; at the bound all are made anew.
const BENT_MAX: usize = 64;

/// A directed link: the node at its beginning, and its number.
pub type LinkId = (Label, u32);

/// Links that paths go round, and how many times their cost they count.
pub type Around = BTreeMap<LinkId, u32>;

/// Shortest paths from one node.
#[derive(Debug, Clone)]
struct Paths {
    distance: Vec<u64>,
    /// The node before and the number of the link from it.
    before: Vec<Option<(usize, u32)>>,
}

/// A link of a tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeLink {
    /// Links between the root and its beginning.
    pub depth: u32,
    /// Its number.
    pub number: u32,
    /// The number of the link the other way.
    pub reverse: u32,
    /// What it costs.
    pub cost: u32,
    /// Position of the node at its beginning.
    from: usize,
    /// Position of the node at its end.
    to: usize,
}

/// A tree from one node to several.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tree {
    /// Its links, near ones first.
    pub links: Vec<TreeLink>,
    /// Numbers of the insides of the nodes that it reaches, with their depth.
    pub insides: Vec<(u32, u32)>,
    /// Number of the inside of its root.
    pub root: u32,
    /// Nodes that cannot be reached.
    pub unreached: Vec<Label>,
}

impl Tree {
    /// Most links between the root and a receiver.
    #[must_use]
    pub fn depth(&self) -> u32 {
        self.insides.iter().map(|(_, depth)| *depth).max().unwrap_or(0)
    }
}

/// The map.
#[derive(Debug, Default)]
pub struct Map {
    nodes: BTreeMap<Label, NodeState>,
    /// Positions of the nodes, in their order.
    labels: Vec<Label>,
    /// Links by the position of their beginning: end, number, number of the reverse, cost.
    links: Vec<Vec<(usize, u32, u32, u32)>>,
    paths: KeyedMap<usize, Paths>,
    /// Those that go round loaded links.
    bent: KeyedMap<(usize, Around), Paths>,
}

impl Map {
    /// Takes what a node said; whether that changed anything.
    pub fn set(&mut self, node: Label, state: Option<NodeState>) -> bool {
        let before = match state.clone() {
            Some(state) => self.nodes.insert(node, state),
            None => self.nodes.remove(&node),
        };
        let is_changed = before != state;
        if is_changed {
            self.renew();
        }
        is_changed
    }

    /// The nodes with what they said.
    #[must_use]
    pub const fn nodes(&self) -> &BTreeMap<Label, NodeState> {
        &self.nodes
    }

    fn renew(&mut self) {
        self.paths.clear();
        self.bent.clear();
        self.labels = self.nodes.keys().copied().collect();
        self.links.clear();
        for (label, state) in &self.nodes {
            // A link counts when both ends know it: so either of them can take it away.
            let one = |link: &Link| {
                let to = self.labels.binary_search(&link.neighbour).ok()?;
                let back = &self.nodes.get(&link.neighbour)?.links;
                let reverse = back.iter().find(|l| l.neighbour == *label)?.number;
                Some((to, link.number, reverse, u32::from(link.cost)))
            };
            let mut links: Vec<_> = state.links.iter().filter_map(one).collect();
            links.sort_unstable();
            self.links.push(links);
        }
    }

    fn position(&self, node: Label) -> Option<usize> {
        self.labels.binary_search(&node).ok()
    }

    /// The links with these numbers, and the nodes at their ends.
    pub(super) fn links_with(&self, numbers: &BTreeSet<u32>) -> Vec<(LinkId, Label)> {
        let of = |(from, links): (&Label, &Vec<(usize, u32, u32, u32)>)| {
            let from = *from;
            let meant = links.iter().filter(|link| numbers.contains(&link.1));
            let each = meant.map(|link| ((from, link.1), self.labels[link.0]));
            each.collect::<Vec<_>>()
        };
        self.labels.iter().zip(&self.links).flat_map(of).collect()
    }

    /// Numbers and costs of all links that both ends know.
    pub(super) fn costs(&self) -> BTreeSet<(u32, u32)> {
        self.links.iter().flatten().map(|l| (l.1, l.3)).collect()
    }

    /// Number of the inside of the node at this position.
    fn inside(&self, at: usize) -> u32 {
        self.labels.get(at).and_then(|l| self.nodes.get(l)).map_or(0, |n| n.inside)
    }

    fn paths(&mut self, from: usize, around: &Around) -> &Paths {
        let links = &self.links;
        if around.is_empty() {
            return self.paths.entry(from).or_insert_with(|| shortest(links, from, |_, _| 1));
        }
        if self.bent.len() >= BENT_MAX {
            self.bent.clear();
        }
        let labels = &self.labels;
        let times = |at: usize, number| around.get(&(labels[at], number)).copied().unwrap_or(1);
        let key = (from, around.clone());
        self.bent.entry(key).or_insert_with(|| shortest(links, from, times))
    }

    /// Cost of the way from one node to another.
    pub fn distance(&mut self, from: Label, to: Label) -> Option<u64> {
        self.distance_around(from, to, &Around::new())
    }

    /// The same, of the way that goes round these links.
    pub fn distance_around(&mut self, from: Label, to: Label, around: &Around) -> Option<u64> {
        let (from, to) = (self.position(from)?, self.position(to)?);
        Some(self.paths(from, around).distance[to]).filter(|d| *d != FAR)
    }

    /// The link of a tree, as it is named in the whole domain.
    #[must_use]
    pub fn id_of(&self, link: &TreeLink) -> LinkId {
        (self.labels.get(link.from).copied().unwrap_or_default(), link.number)
    }

    /// What leaves each node of a tree: its label, the number of the link by which the tree comes
    /// in (`None` at the root), and the number that leaves, of a link or of the inside.
    pub(super) fn crossings(&self, tree: &Tree) -> Vec<(Label, Option<u32>, u32)> {
        let come: BTreeMap<usize, u32> = tree.links.iter().map(|l| (l.to, l.number)).collect();
        // The link as the node itself knows it: its own direction, over the same face.
        let own: BTreeMap<usize, u32> = tree.links.iter().map(|l| (l.to, l.reverse)).collect();
        let label = |at: usize| self.labels.get(at).copied().unwrap_or_default();
        let links = tree.links.iter().map(|l| (label(l.from), own.get(&l.from).copied(), l.number));
        let insides = tree.insides.iter().filter_map(|(number, _)| {
            let at = come.keys().find(|at| self.inside(**at) == *number)?;
            Some((label(*at), own.get(at).copied(), *number))
        });
        links.chain(insides).collect()
    }

    /// The tree of shortest paths from one node to others; `None` when the node is unknown.
    pub fn tree(&mut self, from: Label, to: &[Label]) -> Option<Tree> {
        self.tree_around(from, to, &Around::new())
    }

    /// The same, of paths that go round these links.
    pub fn tree_around(&mut self, from: Label, to: &[Label], around: &Around) -> Option<Tree> {
        let root = self.position(from)?;
        let mut tree = Tree { root: self.inside(root), ..Tree::default() };
        let targets: Vec<(Label, Option<usize>)> =
            to.iter().map(|t| (*t, self.position(*t))).collect();
        let paths = self.paths(root, around).clone();
        let mut seen: BTreeSet<TreeLink> = BTreeSet::new();
        for (label, at) in targets {
            let Some(at) = at.filter(|at| paths.distance[*at] != FAR) else {
                tree.unreached.push(label);
                continue;
            };
            let way = self.way(&paths, at);
            let depth = u32::try_from(way.len()).unwrap_or(u32::MAX);
            tree.insides.push((self.inside(at), depth));
            seen.extend(way);
        }
        tree.links = seen.into_iter().collect();
        Some(tree)
    }

    /// The links from the root of `paths` to the node at `at`.
    fn way(&self, paths: &Paths, mut at: usize) -> Vec<TreeLink> {
        let mut way = Vec::new();
        while let Some((before, number)) = paths.before[at] {
            let link = self.links[before].iter().find(|l| l.1 == number);
            let (reverse, cost) = link.map_or((0, 0), |l| (l.2, l.3));
            way.push(TreeLink { depth: 0, number, reverse, cost, from: before, to: at });
            at = before;
        }
        way.reverse();
        for (depth, link) in (0..).zip(&mut way) {
            link.depth = depth;
        }
        way
    }

    /// Links that a copy of a frame on `tree` may be tested against and that are not of it, by the
    /// depth of their beginning; for a receiver's inside likewise.
    pub(super) fn beside(&self, tree: &Tree, root: Label) -> Vec<(u32, u32)> {
        let Some(root) = self.position(root) else { return Vec::new() };
        let mut at: BTreeMap<usize, (u32, Option<usize>)> = BTreeMap::from([(root, (0, None))]);
        for link in &tree.links {
            at.insert(link.to, (link.depth + 1, Some(link.from)));
        }
        let of_tree: BTreeSet<u32> = tree.links.iter().map(|l| l.number).collect();
        let insides: BTreeSet<u32> = tree.insides.iter().map(|i| i.0).collect();
        let mut beside = Vec::new();
        for (node, (depth, from)) in at {
            for (to, number, ..) in &self.links[node] {
                if !of_tree.contains(number) && Some(*to) != from {
                    beside.push((depth, *number));
                }
            }
            let inside = self.inside(node);
            if from.is_some() && !insides.contains(&inside) {
                beside.push((depth, inside));
            }
        }
        beside
    }
}

/// Dijkstra; of equal ways the one over the smaller node, so that every node finds the same tree.
/// A link counts its cost as many times as `times` says.
fn shortest(
    links: &[Vec<(usize, u32, u32, u32)>],
    from: usize,
    times: impl Fn(usize, u32) -> u32,
) -> Paths {
    let mut paths = Paths { distance: vec![FAR; links.len()], before: vec![None; links.len()] };
    let mut heap = BinaryHeap::from([Reverse((0, from))]);
    if let Some(distance) = paths.distance.get_mut(from) {
        *distance = 0;
    }
    while let Some(Reverse((distance, at))) = heap.pop() {
        if distance > paths.distance[at] {
            continue;
        }
        for (to, number, _, cost) in &links[at] {
            let cost = u64::from(*cost) * u64::from(times(at, *number));
            let further = distance.saturating_add(cost);
            let known = paths.distance[*to];
            let is_smaller = paths.before[*to].is_some_and(|(before, _)| at < before);
            if further < known || (further == known && is_smaller) {
                paths.before[*to] = Some((at, *number));
                if further < known {
                    paths.distance[*to] = further;
                    heap.push(Reverse((further, *to)));
                }
            }
        }
    }
    paths
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(n: u64) -> Label {
        Label::from_u64(n)
    }

    /// A map of these two-way links; the links of node `n` have the numbers from 100 `n` on, its
    /// inside has the number `n`.
    fn map(links: &[(u64, u64)]) -> Map {
        let mut map = Map::default();
        let mut of: BTreeMap<u64, Vec<Link>> = BTreeMap::new();
        for (a, b) in links {
            for (from, to) in [(*a, *b), (*b, *a)] {
                let all = of.entry(from).or_default();
                let number = u32::try_from(from * 100).unwrap() + u32::try_from(all.len()).unwrap();
                all.push(Link { neighbour: node(to), number, cost: 1 });
            }
        }
        for (n, links) in of {
            let inside = u32::try_from(n).unwrap();
            map.set(
                node(n),
                Some(NodeState { inside, role: Role::default(), links, exits: Vec::new() }),
            );
        }
        map
    }

    #[test]
    fn a_tree_is_the_union_of_shortest_paths() {
        let mut m = map(&[(1, 2), (2, 3), (3, 4), (2, 5), (1, 6), (6, 4)]);
        let tree = m.tree(node(1), &[node(3), node(5), node(4), node(9)]).unwrap();
        let numbers: Vec<(u32, u32)> = tree.links.iter().map(|l| (l.depth, l.number)).collect();
        assert_eq!(numbers, [(0, 100), (0, 101), (1, 201), (1, 202), (1, 601)]);
        assert_eq!(tree.insides, [(3, 2), (5, 2), (4, 2)]);
        assert_eq!(tree.unreached, [node(9)]);
        assert_eq!(tree.depth(), 2);
        assert_eq!(m.distance(node(1), node(4)), Some(2));
    }

    #[test]
    fn a_link_that_one_end_does_not_know_is_none() {
        let mut m = map(&[(1, 2), (2, 3)]);
        let mut state = m.nodes()[&node(3)].clone();
        state.links.clear();
        assert!(m.set(node(3), Some(state.clone())));
        assert!(!m.set(node(3), Some(state)), "the same again changes nothing");
        assert_eq!(m.distance(node(1), node(3)), None);
        assert_eq!(m.distance(node(1), node(2)), Some(1));
        m.set(node(2), None);
        assert_eq!(m.distance(node(1), node(2)), None);
    }

    #[test]
    fn what_lies_beside_a_tree_is_known() {
        let mut m = map(&[(1, 2), (2, 3), (2, 4)]);
        let tree = m.tree(node(1), &[node(3)]).unwrap();
        // The other link and the inside of node 2, and nothing back to where the frame came from.
        assert_eq!(m.beside(&tree, node(1)), [(1, 202), (1, 2)]);
    }
}
