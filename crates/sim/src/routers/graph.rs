//! Networks of routers by their links.

use onym_tables::Rng;

/// Routers and links, all in one network of routing or in several.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    /// For people.
    pub name: String,
    /// For each router the networks that it is in: one, at a border several.
    pub nodes: Vec<Vec<usize>>,
    /// Links, and the network that each is of.
    pub links: Vec<(usize, usize, usize)>,
    /// How many networks of routing there are.
    pub networks: usize,
}

impl Graph {
    /// `nodes` routers in one network.
    #[must_use]
    pub fn flat(name: String, nodes: usize, links: &[(usize, usize)]) -> Self {
        let links = links.iter().map(|(a, b)| (*a, *b, 0)).collect();
        Self { name, nodes: vec![vec![0]; nodes], links, networks: 1 }
    }

    /// One after the other.
    #[must_use]
    pub fn line(n: usize) -> Self {
        Self::flat(format!("line {n}"), n, &pairs_of_line(n))
    }

    /// A line whose ends are linked.
    #[must_use]
    pub fn ring(n: usize) -> Self {
        Self::flat(format!("ring {n}"), n, &pairs_of_ring(n))
    }

    /// So many rows as columns.
    #[must_use]
    pub fn grid(side: usize) -> Self {
        let nodes = side * side;
        let right = (0..nodes).filter(|n| n % side + 1 < side).map(|n| (n, n + 1));
        let below = (0..nodes).filter(|n| n + side < nodes).map(|n| (n, n + side));
        let links: Vec<_> = right.chain(below).collect();
        Self::flat(format!("grid {side} x {side}"), nodes, &links)
    }

    /// Everybody linked to everybody.
    #[must_use]
    pub fn clique(n: usize) -> Self {
        Self::flat(format!("clique {n}"), n, &pairs_of_clique(0, n))
    }

    /// A ring with a stub behind the first router: the classic of counting to infinity.
    #[must_use]
    pub fn ring_and_stub(n: usize) -> Self {
        let mut links = pairs_of_ring(n);
        links.push((0, n));
        Self::flat(format!("ring {n} and a stub"), n + 1, &links)
    }

    /// Two cliques of `n` joined by one link, the last.
    #[must_use]
    pub fn two_cliques(n: usize) -> Self {
        let mut links = pairs_of_clique(0, n);
        links.extend(pairs_of_clique(n, n));
        links.push((0, n));
        Self::flat(format!("two cliques of {n}"), 2 * n, &links)
    }

    /// Mini-NDN's sprint network: 52 routers, 84 links, diameter 7.
    #[must_use]
    pub fn sprint() -> Self {
        Self::flat("sprint".to_owned(), 52, &SPRINT)
    }

    /// Connected, `links` links, ends chosen at random, `busy` of a hundred among the busiest: 0 gives
    /// even degrees, 60 about those of the Rocketfuel maps.
    #[must_use]
    pub fn random(nodes: usize, links: usize, busy: u64, seed: u64) -> Self {
        let pairs = random_pairs(0, nodes, links, busy, seed);
        Self::flat(format!("random {nodes} routers {links} links"), nodes, &pairs)
    }

    /// `count` networks of `size` routers with as many links again by half, each joined to a core
    /// network at two borders. The borders are all that the core has.
    #[must_use]
    pub fn areas(count: usize, size: usize, seed: u64) -> Self {
        let (mut nodes, mut links) = (Vec::new(), Vec::new());
        for area in 0..count {
            let first = area * size;
            nodes.extend((0..size).map(|_| vec![area + 1]));
            let pairs = random_pairs(first, size, size * 3 / 2, 0, seed ^ area as u64);
            links.extend(pairs.into_iter().map(|(a, b)| (a, b, area + 1)));
            for border in [first, first + size / 2] {
                if let Some(networks) = nodes.get_mut(border) {
                    networks.push(0);
                }
            }
        }
        let borders: Vec<usize> =
            (0..nodes.len()).filter(|n| nodes.get(*n).is_some_and(|n| n.len() > 1)).collect();
        let at = |i: usize| borders.get(i).copied().unwrap_or_default();
        let core = random_pairs(0, borders.len(), borders.len() * 3 / 2, 0, !seed);
        links.extend(core.into_iter().map(|(a, b)| (at(a), at(b), 0)));
        let name = format!("{count} areas of {size} routers");
        Self { name, nodes, links, networks: count + 1 }
    }

    /// How many routers there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.nodes.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }
}

fn pairs_of_line(n: usize) -> Vec<(usize, usize)> {
    (1..n).map(|i| (i - 1, i)).collect()
}

fn pairs_of_ring(n: usize) -> Vec<(usize, usize)> {
    (0..n).map(|i| (i, (i + 1) % n)).collect()
}

fn pairs_of_clique(first: usize, n: usize) -> Vec<(usize, usize)> {
    (0..n).flat_map(|a| (a + 1..n).map(move |b| (first + a, first + b))).collect()
}

fn random_pairs(
    first: usize,
    nodes: usize,
    links: usize,
    busy: u64,
    seed: u64,
) -> Vec<(usize, usize)> {
    let mut rng = Rng::new(seed);
    let mut pairs: Vec<(usize, usize)> = Vec::with_capacity(links);
    let mut below = |n: usize| usize::try_from(rng.below(n.max(1) as u64)).unwrap_or_default();
    // The end of a link of before is chosen the more often, the more links it has.
    let mut choose = |pairs: &[(usize, usize)], most: usize| {
        let by_degree = below(100) < usize::try_from(busy).unwrap_or(100) && !pairs.is_empty();
        if by_degree {
            pairs.get(below(pairs.len())).map_or(0, |pair| pair.0.min(pair.1))
        } else {
            below(most)
        }
    };
    for node in 1..nodes {
        let other = choose(&pairs, node);
        pairs.push((other, node));
    }
    let mut tries = 0;
    while pairs.len() < links && tries < links * 20 {
        tries += 1;
        let (a, b) = (choose(&pairs, nodes), choose(&[], nodes));
        let pair = (a.min(b), a.max(b));
        if a != b && !pairs.contains(&pair) {
            pairs.push(pair);
        }
    }
    pairs.into_iter().map(|(a, b)| (first + a, first + b)).collect()
}

#[rustfmt::skip]
const SPRINT: [(usize, usize); 84] = [
    (0, 6), (0, 16), (1, 7), (1, 12), (1, 21), (1, 32), (1, 33), (1, 39), (1, 50), (2, 36),
    (3, 9), (3, 12), (3, 27), (3, 28), (3, 36), (4, 46), (5, 42), (6, 23), (8, 9), (8, 13),
    (8, 47), (9, 10), (9, 12), (9, 19), (9, 20), (9, 22), (9, 27), (9, 35), (9, 39), (9, 40),
    (9, 42), (9, 43), (9, 45), (11, 16), (11, 23), (11, 24), (11, 44), (12, 13), (12, 20),
    (12, 21), (12, 28), (12, 31), (12, 38), (14, 23), (15, 16), (15, 26), (15, 30), (17, 27),
    (18, 48), (19, 27), (19, 35), (20, 22), (20, 31), (20, 40), (23, 30), (23, 49), (24, 27),
    (24, 36), (24, 49), (25, 28), (26, 30), (27, 31), (27, 36), (27, 42), (29, 39), (31, 35),
    (31, 36), (31, 42), (31, 45), (31, 49), (33, 45), (34, 45), (36, 37), (36, 39), (36, 49),
    (36, 51), (39, 45), (39, 46), (39, 47), (39, 48), (40, 47), (41, 48), (45, 48), (47, 48),
];
