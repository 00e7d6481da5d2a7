//! Every strategy from Rust and from the command line over two nodes, and what subscribers are told
//! of it (P-74). The Rust half is the example of the client library.

use super::two::{PATIENT, two_nodes_over_tcp};
use super::*;
use onym_wire::push::{Filter, RouteBuf};

#[allow(dead_code)]
#[path = "../../../../crates/client/examples/strategies.rs"]
mod example;

/// What comes to another node, in its order.
const FAR: [Strategy; 5] = [
    Strategy::DOMAIN_LOCAL,
    Strategy::LINK_LOCAL,
    Strategy::BROADCAST,
    Strategy::IMPLICIT,
    Strategy::ALGORITHMIC_DOMAIN,
];

/// What comes to applications of the publisher's node: what is for a neighbour does not.
const NEAR: [Strategy; 5] = [
    Strategy::DOMAIN_LOCAL,
    Strategy::BROADCAST,
    Strategy::IMPLICIT,
    Strategy::ALGORITHMIC_DOMAIN,
    Strategy::ALGORITHMIC_LOCAL,
];

#[test]
fn a_subscriber_is_told_by_which_strategy_each_publication_came() {
    let (places, _daemons) = two_nodes_over_tcp(PATIENT);
    let node = |at: usize| places[at].node();
    let mut listeners = [(0, NEAR), (1, FAR)]
        .map(|(at, wanted)| (example::subscribe(Some(&node(at))).unwrap(), wanted));
    let mut shown = places[1].start(&[
        "subscribe",
        "/7/8",
        "--strategy",
        "implicit",
        "--json",
        "--count",
        "8",
        "--timeout",
        "60",
    ]);
    ask_until("the command subscribed", || {
        places[1].json(&["explain", "--push", "/7/8"])["here"]["subscribers"]
            .as_array()
            .is_some_and(|all| all.len() == 2)
    });
    let mut publisher = example::start(Some(&node(0))).unwrap();
    let (table, filter) = way(&places[0]);
    let route = RouteBuf::flat(table, &filter);
    let told = example::publish(&mut publisher, "b".parse().unwrap(), &route).unwrap();
    let left: Vec<bool> = told.iter().map(|(frames, _)| *frames > 0).collect();
    assert_eq!(left, [true, true, true, true, true, false], "{told:?}");
    for (app, wanted) in &mut listeners {
        for strategy in *wanted {
            let (text, came_by) = example::next(app).unwrap().unwrap();
            assert_eq!(came_by, strategy, "{text}");
        }
    }
    // The same from the command line.
    let (table, filter) = (table.to_string(), filter.to_string());
    for more in [
        &["--strategy", "link-local", "--to", "b"][..],
        &["--strategy", "broadcast"],
        &["--strategy", "implicit", "--table", &table, "--filter", &filter],
        &["--strategy", "algorithmic-domain", "--about", "/1/3"],
    ] {
        let told = places[0].json(&[&["publish", "/7/8", "--text", "by hand"], more].concat());
        assert_eq!(told["frames"], 1, "{more:?}: {told}");
    }
    wait_until("the command got eight", || !shown.runs());
    let strategies = lines(&shown.out.text()).into_iter().filter(|line| line["event"] == "data");
    let strategies: Vec<String> =
        strategies.map(|line| line["strategy"].as_str().unwrap().to_owned()).collect();
    let once: Vec<String> = FAR[1..].iter().map(ToString::to_string).collect();
    assert_eq!(strategies, [once.clone(), once].concat());
}

/// Table and filter of the tree of the example's item.
fn way(place: &Place) -> (u8, Filter) {
    let tree = place.json(&["topology", "tree", "/1/2"]);
    let route = &tree[0]["trees"][0]["route"];
    let table = route["table"].as_u64().and_then(|table| u8::try_from(table).ok());
    let text = route["filter"].as_str();
    (table.unwrap(), text.unwrap_or_else(|| panic!("{tree}")).parse().unwrap())
}
