//! The links of the tree of a publication.

use serde::Serialize;
use std::collections::BTreeMap;

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
    let mut known = BTreeMap::from([(root, 1)]);
    let mut path = Vec::new();
    let copies: Vec<u64> =
        links.iter().map(|link| copies_at(&link.from, &links, &mut path, &mut known)).collect();
    for (link, copies) in links.iter_mut().zip(copies) {
        link.copies = copies;
    }
    links
}

/// Copies that a node gets.
fn copies_at<'a>(
    node: &'a str,
    links: &'a [Link],
    path: &mut Vec<&'a str>,
    known: &mut BTreeMap<String, u64>,
) -> u64 {
    if let Some(copies) = known.get(node) {
        return *copies;
    }
    path.push(node);
    let mut copies = 0_u64;
    for link in links.iter().filter(|link| link.to == node) {
        if !path.contains(&link.from.as_str()) {
            copies = copies.saturating_add(copies_at(&link.from, links, path, known));
        }
    }
    path.pop();
    known.insert(node.to_owned(), copies);
    copies
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
