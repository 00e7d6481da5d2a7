//! Routes, propagated centrally (paper, section 4.1): from the prefixes that producers registered
//! at each router to the routes that every router must have.
//!
//! Declarative and idempotent: `want(Y, link) = union of registered(X) for all X ≠ Y reachable
//! along the Interest graph from where the link goes, without passing Y again`. One walk for each
//! link of a router: O(routers × links × (functions + links)).

use crate::network::{Ends, Network, Side};
use std::collections::{BTreeMap, BTreeSet};

/// Prefixes by router.
pub type Registered = BTreeMap<String, BTreeSet<String>>;

/// The routes of one router: prefixes by the label of the face they lead to.
pub type Routes = BTreeMap<String, BTreeSet<String>>;

/// The routes that each router must have, by router.
///
/// Links of the producer side are walked from the router to who registers there; their prefixes
/// are registered by that neighbour's own producers, so no route of ours is put on them.
#[must_use]
pub fn wanted(network: &Network, registered: &Registered) -> BTreeMap<String, Routes> {
    let mut next: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for ends in network.links.keys() {
        let (from, to) = ends.interests();
        next.entry(from).or_default().insert(to);
    }
    let routers = network.functions.iter().filter(|(_, f)| f.kind.has_routes());
    let mut all = BTreeMap::new();
    for (router, _) in routers {
        let mut routes = Routes::new();
        for (ends, _) in network.out_of(router).filter(|(e, _)| e.side == Side::Consumer) {
            let prefixes = behind(router, ends, &next, registered);
            if !prefixes.is_empty() {
                routes.insert(ends.label(), prefixes);
            }
        }
        all.insert(router.clone(), routes);
    }
    all
}

fn behind(
    router: &str,
    ends: &Ends,
    next: &BTreeMap<&str, BTreeSet<&str>>,
    registered: &Registered,
) -> BTreeSet<String> {
    let mut seen = BTreeSet::from([router, ends.to.as_str()]);
    let mut wave = vec![ends.to.as_str()];
    let mut prefixes = BTreeSet::new();
    while let Some(at) = wave.pop() {
        prefixes.extend(registered.get(at).into_iter().flatten().cloned());
        for &step in next.get(at).into_iter().flatten() {
            if seen.insert(step) {
                wave.push(step);
            }
        }
    }
    prefixes
}

/// Routes to add and to remove, as (face label, prefix).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Change {
    /// What is missing.
    pub add: Vec<(String, String)>,
    /// What is there and must not be.
    pub remove: Vec<(String, String)>,
}

/// What it takes to get from one table to another.
#[must_use]
pub fn difference(have: &Routes, want: &Routes) -> Change {
    let flat = |routes: &Routes| -> BTreeSet<(String, String)> {
        routes
            .iter()
            .flat_map(|(face, set)| set.iter().map(move |p| (face.clone(), p.clone())))
            .collect()
    };
    let (have, want) = (flat(have), flat(want));
    Change {
        add: want.difference(&have).cloned().collect(),
        remove: have.difference(&want).cloned().collect(),
    }
}

/// The prefixes that cover `name`, in URIs: `/a` covers `/a` and `/a/b`, not `/ab`.
#[must_use]
pub fn covers(prefix: &str, name: &str) -> bool {
    let prefix = prefix.trim_end_matches('/');
    name.strip_prefix(prefix).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The functions that an Interest for `name` would cross, as edges, from `start` on.
#[must_use]
pub fn trace(
    network: &Network,
    registered: &Registered,
    start: &str,
    name: &str,
) -> Vec<(String, String)> {
    let wanted = wanted(network, registered);
    let mut edges = Vec::new();
    let mut seen = BTreeSet::from([start.to_owned()]);
    let mut wave = vec![start.to_owned()];
    while let Some(at) = wave.pop() {
        let routes = wanted.get(&at);
        for ends in network.links.keys() {
            let (from, to) = ends.interests();
            if from != at {
                continue;
            }
            // A router follows its routes; what answers it from its producer side was registered.
            let taken = match routes {
                Some(routes) if ends.side == Side::Consumer => {
                    routes.get(&ends.label()).is_some_and(|set| set.iter().any(|p| covers(p, name)))
                }
                _ => true,
            };
            if taken {
                edges.push((from.to_owned(), to.to_owned()));
                if seen.insert(to.to_owned()) {
                    wave.push(to.to_owned());
                }
            }
        }
    }
    edges
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kind::Kind;
    use crate::network::{Function, Transport};

    fn network(routers: &[&str], others: &[(&str, Kind)], links: &[Ends]) -> Network {
        let mut network = Network::default();
        for name in routers {
            network.functions.insert((*name).into(), Function::new(Kind::NameRouter));
        }
        for (name, kind) in others {
            network.functions.insert((*name).into(), Function::new(*kind));
        }
        for ends in links {
            network.link(ends.clone(), Transport::Tcp);
        }
        network
    }

    fn registered(rows: &[(&str, &str)]) -> Registered {
        let mut all = Registered::new();
        for (router, prefix) in rows {
            all.entry((*router).into()).or_default().insert((*prefix).into());
        }
        all
    }

    #[test]
    fn a_registration_reaches_every_router_that_can_reach_it_and_no_other() {
        let network = network(
            &["a", "b", "c"],
            &[("br", Kind::BackwardRouter)],
            &[Ends::consumer("a", "br"), Ends::consumer("br", "b"), Ends::consumer("b", "c")],
        );
        let wanted = wanted(&network, &registered(&[("c", "/p"), ("a", "/q")]));
        assert_eq!(wanted["a"], Routes::from([("br".into(), BTreeSet::from(["/p".to_owned()]))]));
        assert_eq!(wanted["b"], Routes::from([("c".into(), BTreeSet::from(["/p".to_owned()]))]));
        assert_eq!(wanted["c"], Routes::new(), "c opened no link: nothing leads on from it");
    }

    #[test]
    fn a_link_that_leads_back_through_the_router_itself_gets_no_route() {
        let network = network(
            &["a", "b"],
            &[("br", Kind::BackwardRouter)],
            &[Ends::consumer("a", "b"), Ends::consumer("b", "br"), Ends::consumer("br", "a")],
        );
        let wanted = wanted(&network, &registered(&[("a", "/p")]));
        assert_eq!(wanted["a"], Routes::new());
        assert_eq!(wanted["b"], Routes::from([("br".into(), BTreeSet::from(["/p".to_owned()]))]));
    }

    #[test]
    fn links_of_the_producer_side_are_walked_the_way_interests_go() {
        // a -> r, and q is behind r's producer side: what is registered at q is not r's to route
        // by a link of its own, but a reaches it through r.
        let network = network(
            &["a", "r"],
            &[("cs", Kind::ContentStore)],
            &[Ends::consumer("a", "r"), Ends::producer("cs", "r")],
        );
        let wanted = wanted(&network, &registered(&[("r", "/p")]));
        assert_eq!(wanted["a"], Routes::from([("r".into(), BTreeSet::from(["/p".to_owned()]))]));
        assert_eq!(wanted["r"], Routes::new());
    }

    #[test]
    fn removing_one_prefix_leaves_the_other_prefixes_of_the_same_face() {
        let have = Routes::from([("x".into(), BTreeSet::from(["/a".into(), "/b".into()]))]);
        let want = Routes::from([("x".into(), BTreeSet::from(["/b".into()]))]);
        let change = difference(&have, &want);
        assert_eq!(change.add, []);
        assert_eq!(change.remove, [("x".to_owned(), "/a".to_owned())]);
    }

    #[test]
    fn a_prefix_covers_names_by_whole_components() {
        assert!(covers("/a", "/a/b") && covers("/", "/a") && covers("/a/b", "/a/b"));
        assert!(!covers("/a", "/ab") && !covers("/a/b", "/a"));
    }

    #[test]
    fn a_ring_of_forty_routers_is_answered_at_once() {
        // All simple paths of a dense graph cannot be walked; the set of first hops can.
        let names: Vec<String> = (0..40).map(|n| format!("r{n}")).collect();
        let all: Vec<&str> = names.iter().map(String::as_str).collect();
        let mut links = Vec::new();
        for a in &all {
            for b in all.iter().filter(|b| *b != a) {
                links.push(Ends::consumer(a, b));
            }
        }
        let network = network(&all, &[], &links);
        let wanted = wanted(&network, &registered(&[("r0", "/p")]));
        assert_eq!(wanted["r1"].len(), 39, "every neighbour reaches r0 without r1");
    }
}
