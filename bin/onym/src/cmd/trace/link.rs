//! The links of the tree of a publication.

use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// A link that a trace crossed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub(crate) struct Link {
    /// The node that sends.
    pub(crate) from: String,
    /// Its face.
    pub(crate) face: u32,
    pub(crate) uri: String,
    /// The node at the other end.
    pub(crate) to: String,
    /// Half of what the way there and back takes longer than that to the node before.
    pub(crate) delay_ms: f64,
    /// Copies of a publication that it carries.
    pub(crate) copies: u64,
}

impl Link {
    pub(crate) fn text(&self) -> String {
        let Self { from, face, uri, to, delay_ms, copies } = self;
        let copies = match copies {
            1 => "1 copy".to_owned(),
            n => format!("{n} copies"),
        };
        format!("{from} > {to}  {delay_ms:.3} ms  {copies}  (face {face} {uri})")
    }
}

/// The same links with their copies: a node passes on what it gets, as often as it gets it. The first
/// link begins at the publisher's node; what comes back to a node by a loop is not counted again.
pub(crate) fn counted(mut links: Vec<Link>) -> Vec<Link> {
    let Some(root) = links.first().map(|link| link.from.clone()) else { return links };
    let (order, closes_loop) = walk(&root, &links);
    let mut copies = BTreeMap::from([(root, 1_u64)]);
    for at in order {
        let here = copies.get(&links[at].from).copied().unwrap_or(0);
        links[at].copies = here;
        if !closes_loop[at] {
            let there = copies.entry(links[at].to.clone()).or_default();
            *there = there.saturating_add(here);
        }
    }
    links
}

/// The links that are reached from `root`, those to a node before those from it, and for each link
/// whether it leads back to where the walk came by.
fn walk(root: &str, links: &[Link]) -> (Vec<usize>, Vec<bool>) {
    let mut out: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (at, link) in links.iter().enumerate() {
        out.entry(&link.from).or_default().push(at);
    }
    let of = |node: &str| out.get(node).map_or(&[][..], Vec::as_slice);
    let (mut left, mut closes_loop) = (Vec::new(), vec![false; links.len()]);
    // Nodes on the way from the root, each with how many of its links were followed.
    let (mut way, mut seen) = (vec![(root, 0)], BTreeSet::from([root]));
    while let Some((node, followed)) = way.last_mut() {
        let node = *node;
        let Some(at) = of(node).get(*followed).copied() else {
            left.push(node);
            way.pop();
            continue;
        };
        *followed += 1;
        let to = links[at].to.as_str();
        if seen.insert(to) {
            way.push((to, 0));
        } else {
            closes_loop[at] = way.iter().any(|(on_way, _)| *on_way == to);
        }
    }
    (left.iter().rev().flat_map(|node| of(node)).copied().collect(), closes_loop)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn links(ends: &[(&str, &str)]) -> Vec<u64> {
        let link = |(from, to): &(&str, &str)| Link {
            from: (*from).to_owned(),
            face: 256,
            uri: String::new(),
            to: (*to).to_owned(),
            delay_ms: 0.0,
            copies: 0,
        };
        counted(ends.iter().map(link).collect()).iter().map(|link| link.copies).collect()
    }

    #[test]
    fn behind_where_two_ways_join_there_are_two_copies() {
        assert_eq!(links(&[("a", "b"), ("b", "c"), ("a", "d")]), [1, 1, 1]);
        let joined = [("a", "b"), ("b", "d"), ("d", "e"), ("a", "c"), ("c", "d")];
        assert_eq!(links(&joined), [1, 1, 2, 1, 1]);
        assert_eq!(links(&[("a", "b"), ("b", "c"), ("c", "b")]), [1, 1, 1], "a loop ends");
        assert!(links(&[]).is_empty());
    }
}
