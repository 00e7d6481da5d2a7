//! The map as far as one router sees it: itself, its neighbours, and behind whom others are.

use super::{number, rows, text};
use serde::Serialize;
use serde_json::Value;
use std::fmt::Write as _;

/// Routers and links, for programs.
#[derive(Debug, Serialize)]
pub(super) struct Map {
    /// The router that sees it.
    router: String,
    network: String,
    routers: Vec<Router>,
    links: Vec<Link>,
}

#[derive(Debug, Serialize)]
struct Router {
    name: String,
    /// Cost of the best way to it; 0 for the one that sees it.
    cost: u64,
    /// The neighbours that lead to it, best first.
    by: Vec<String>,
    /// Prefixes that it announces.
    prefixes: u64,
}

#[derive(Debug, Serialize)]
struct Link {
    from: String,
    to: String,
    cost: u64,
    /// Whether it is one link, and not a way of several.
    is_direct: bool,
    /// Whether the ways by it are used: the neighbour hears this router.
    is_used: bool,
}

impl Map {
    pub(super) fn of(view: &Value) -> Self {
        let own = text(view, "router").to_owned();
        let announced = |router: &str| {
            let exits = rows(&view["prefixes"]).flat_map(|prefix| rows(&prefix["exits"]));
            exits.filter(|exit| exit[0] == router).count() as u64
        };
        let mut routers = vec![Router {
            name: own.clone(),
            cost: 0,
            by: Vec::new(),
            prefixes: rows(&view["local_prefixes"]).count() as u64,
        }];
        let mut links = Vec::new();
        for n in rows(&view["neighbours"]) {
            links.push(Link {
                from: own.clone(),
                to: text(n, "router").to_owned(),
                cost: number(n, "cost"),
                is_direct: true,
                is_used: n["usable"] == true,
            });
        }
        for d in rows(&view["destinations"]) {
            let name = text(d, "router").to_owned();
            let hops = rows(&d["hops"]).filter_map(|hop| Some(hop[0].as_str()?.to_owned()));
            let by: Vec<String> = hops.collect();
            let cost = number(d, "cost");
            if let Some(first) = by.first().filter(|by| **by != name) {
                let (from, to) = (first.clone(), name.clone());
                links.push(Link { from, to, cost, is_direct: false, is_used: true });
            }
            routers.push(Router { prefixes: announced(&name), name, cost, by });
        }
        let network = text(view, "network").to_owned();
        Self { router: own, network, routers, links }
    }

    /// For Graphviz.
    pub(super) fn dot(&self) -> String {
        let quoted = |text: &str| format!("{text:?}");
        let mut out = format!("graph routing {{\n  {} [shape=box];\n", quoted(&self.router));
        for link in &self.links {
            let style = match (link.is_direct, link.is_used) {
                (true, true) => "solid",
                (true, false) => "dotted",
                (false, _) => "dashed",
            };
            let (from, to) = (quoted(&link.from), quoted(&link.to));
            let _ = writeln!(out, "  {from} -- {to} [style={style}, label={}];", link.cost);
        }
        out.push('}');
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_map_has_every_router_once_and_tells_links_from_ways() {
        let view = json!({
            "router": "/net/a", "network": "/net", "local_prefixes": [["/x", 0]],
            "neighbours": [{"router": "/net/b", "cost": 2, "usable": true},
                           {"router": "/net/d", "cost": 1, "usable": false}],
            "destinations": [{"router": "/net/b", "cost": 2, "hops": [["/net/b", 2]]},
                             {"router": "/net/c", "cost": 5, "hops": [["/net/b", 5]]}],
            "prefixes": [{"prefix": "/y", "exits": [["/net/c", 0], ["/net/b", 1]]}],
        });
        let map = Map::of(&view);
        let shown = serde_json::to_value(&map).unwrap();
        assert_eq!(shown["routers"].as_array().unwrap().len(), 3);
        assert_eq!(shown["routers"][2]["prefixes"], 1);
        let dot = map.dot();
        assert!(dot.contains("\"/net/a\" -- \"/net/b\" [style=solid, label=2];"), "{dot}");
        assert!(dot.contains("\"/net/b\" -- \"/net/c\" [style=dashed, label=5];"), "{dot}");
        assert!(dot.contains("\"/net/a\" -- \"/net/d\" [style=dotted, label=1];"), "{dot}");
    }
}
