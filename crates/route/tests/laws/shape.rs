//! Networks by their links.

/// Links of a network of `nodes` nodes.
#[derive(Debug, Clone)]
pub(crate) struct Shape {
    pub(crate) name: String,
    pub(crate) nodes: usize,
    pub(crate) links: Vec<(usize, usize)>,
}

fn shape(name: String, nodes: usize, links: Vec<(usize, usize)>) -> Shape {
    Shape { name, nodes, links }
}

pub(crate) fn line(n: usize) -> Shape {
    shape(format!("line {n}"), n, (1..n).map(|i| (i - 1, i)).collect())
}

pub(crate) fn ring(n: usize) -> Shape {
    shape(format!("ring {n}"), n, (0..n).map(|i| (i, (i + 1) % n)).collect())
}

pub(crate) fn grid(side: usize) -> Shape {
    let mut links = Vec::new();
    for y in 0..side {
        for x in 0..side {
            let at = y * side + x;
            if x + 1 < side {
                links.push((at, at + 1));
            }
            if y + 1 < side {
                links.push((at, at + side));
            }
        }
    }
    shape(format!("grid {side} x {side}"), side * side, links)
}

pub(crate) fn clique(n: usize) -> Shape {
    let links = (0..n).flat_map(|a| (a + 1..n).map(move |b| (a, b))).collect();
    shape(format!("clique {n}"), n, links)
}

/// A ring with a stub behind node 0: the classic of counting to infinity.
pub(crate) fn ring_and_stub(n: usize) -> Shape {
    let mut with = ring(n);
    with.links.push((0, n));
    shape(format!("ring {n} and a stub"), n + 1, with.links)
}

/// Two cliques of `n` joined by one link, the last.
pub(crate) fn two_cliques(n: usize) -> Shape {
    let mut links = clique(n).links;
    links.extend(clique(n).links.iter().map(|(a, b)| (a + n, b + n)));
    links.push((0, n));
    shape(format!("two cliques of {n}"), 2 * n, links)
}

/// The sprint network: 52 routers, 84 links, diameter 7.
pub(crate) fn sprint() -> Shape {
    shape("sprint".to_owned(), 52, SPRINT.to_vec())
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
