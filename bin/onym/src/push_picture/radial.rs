//! A map as rings around its root: what hangs on a node lies behind it, so a large network is as
//! high as it is wide, and its tree has few crossings.

use super::{GAP, MARGIN, Picture, Place, size};
use std::collections::VecDeque;
use std::f64::consts::TAU;

/// The way by which each vertex is reached, and the part of the circle that it has.
struct Spokes {
    /// Vertices in the order in which they are reached, with their distance.
    order: Vec<(usize, usize)>,
    /// Middle of each vertex's part of the circle, in radians.
    angles: Vec<f64>,
}

/// Where the vertices of a map lie.
pub(super) fn layout(picture: &Picture) -> Vec<Place> {
    let mut places = picture.sizes();
    let spokes = spokes(picture);
    let widest = places.iter().map(|p| p.half_width).fold(0.0, f64::max);
    let mut radius = 0.0;
    let rings = spokes.order.iter().map(|(_, ring)| ring + 1).max().unwrap_or(0);
    for ring in 0..rings {
        let mut on: Vec<usize> =
            spokes.order.iter().filter(|(_, r)| *r == ring).map(|(at, _)| *at).collect();
        on.sort_by(|a, b| spokes.angles[*a].total_cmp(&spokes.angles[*b]));
        if ring > 0 {
            radius = f64::max(radius + 2.0 * widest + GAP, needed(&on, &spokes.angles, &places));
        }
        for at in on {
            let (sin, cos) = spokes.angles[at].sin_cos();
            (places[at].x, places[at].y) = (radius * cos, radius * sin);
        }
    }
    let edge = |end: fn(&Place) -> f64| places.iter().map(end).fold(f64::MAX, f64::min);
    let (left, top) = (edge(|p| p.x - p.half_width), edge(|p| p.y - p.half_height));
    for place in &mut places {
        (place.x, place.y) = (place.x - left + MARGIN, place.y - top + MARGIN);
    }
    places
}

/// The radius at which neighbours on a ring have room beside each other.
fn needed(on: &[usize], angles: &[f64], places: &[Place]) -> f64 {
    let pairs = on.iter().zip(on.iter().skip(1).chain(on.first()));
    let radius = |(a, b): (&usize, &usize)| {
        let apart = (angles[*b] - angles[*a]).rem_euclid(TAU);
        let half = |at: usize| places[at].half_width.max(places[at].half_height);
        // A box in any direction from the other one: its diagonal is enough.
        let room = (half(*a) + half(*b)) * std::f64::consts::SQRT_2;
        if a == b { 0.0 } else { room / (2.0 * (apart / 2.0).sin()).max(1e-9) }
    };
    pairs.map(radius).fold(0.0, f64::max)
}

/// The shortest ways from the root, over links of the tree first; the circle is shared out by the
/// number of ends behind each vertex.
fn spokes(picture: &Picture) -> Spokes {
    let count = picture.vertices.len();
    let mut children = vec![Vec::new(); count];
    let mut order = Vec::new();
    let mut ways: Vec<Vec<(bool, usize)>> = vec![Vec::new(); count];
    for edge in &picture.edges {
        ways[edge.from].push((!edge.is_thick, edge.to));
    }
    ways.iter_mut().for_each(|ways| ways.sort_unstable());
    let mut is_seen = vec![false; count];
    let mut queue: VecDeque<(usize, usize)> =
        (picture.root < count).then_some((picture.root, 0)).into_iter().collect();
    queue.iter().for_each(|(root, _)| is_seen[*root] = true);
    while let Some((at, ring)) = queue.pop_front() {
        order.push((at, ring));
        for (_, to) in &ways[at] {
            if !std::mem::replace(&mut is_seen[*to], true) {
                children[at].push(*to);
                queue.push_back((*to, ring + 1));
            }
        }
    }
    // What is out of reach is on a ring of its own.
    let last = order.iter().map(|(_, ring)| ring + 1).max().unwrap_or(0);
    let lost: Vec<usize> = (0..count).filter(|at| !is_seen[*at]).collect();
    order.extend(lost.iter().map(|at| (*at, last)));
    let mut ends = vec![0.0; count];
    for (at, _) in order.iter().rev() {
        let behind: f64 = children[*at].iter().map(|child| ends[*child]).sum();
        ends[*at] = f64::max(behind, 1.0);
    }
    let mut angles = vec![0.0; count];
    let mut start = vec![0.0; count];
    let all = ends.get(picture.root).copied().unwrap_or(1.0);
    for (at, _) in &order {
        angles[*at] = start[*at] + ends[*at] / all * TAU / 2.0;
        let mut next = start[*at];
        for child in &children[*at] {
            start[*child] = next;
            next += ends[*child] / all * TAU;
        }
    }
    for (number, at) in lost.iter().enumerate() {
        angles[*at] = size(number) / size(lost.len()) * TAU;
    }
    Spokes { order, angles }
}
