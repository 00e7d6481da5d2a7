//! `onym trace --push`: the tree of an item, node by node.

use super::*;

/// Nodes in a line over TCP, the first one the rendezvous, with names for traces.
fn line(from: &[&str]) -> (Vec<Place>, Vec<Running>) {
    let [p, q] = ports();
    let there = |port| format!("push.link=[{{face=\"tcp4://127.0.0.1:{port}\"}}]");
    let both =
        format!("push.link=[{{face=\"tcp4://127.0.0.1:0\"}},{{face=\"tcp4://127.0.0.1:{q}\"}}]");
    let listen = |port| format!("faces.tcp.listen=127.0.0.1:{port}");
    let (first, p, q) = (there(p), listen(p), listen(q));
    let nodes: [Vec<&str>; 3] = [
        vec!["push.node=a", &first],
        vec!["push.node=b", "push.roles=[]", &p, &both],
        vec!["push.node=c", "push.roles=[]", &q, "push.link=[{face=\"tcp4://127.0.0.1:0\"}]"],
    ];
    let places: Vec<Place> = nodes.iter().map(|_| Place::new()).collect();
    let start = |((place, sets), (name, from)): ((&Place, &Vec<&str>), (&str, &&str))| {
        let (name, from) = (format!("trace.name=/site/{name}"), format!("trace.from={from}"));
        push_daemon(place, &[&sets[..], &[&name, &from, "faces.tcp.local=[]"]].concat())
    };
    let each = places.iter().zip(&nodes).zip(["a", "b", "c"].into_iter().zip(from));
    let daemons = each.map(start).collect();
    ask_until("the last node knows the rendezvous", || {
        let status = places[2].json(&["rendezvous", "status"]);
        status["homes"].as_array().is_some_and(|homes| !homes.is_empty())
    });
    (places, daemons)
}

/// A publisher at the first node, a subscriber at each of the others.
fn item_of_all(places: &[Place]) -> (App, [App; 2]) {
    let domain = Strategy::DOMAIN_LOCAL;
    let open = |i: usize| App::open(Some(&places[i].node()), "test").unwrap();
    let mut publisher = open(0);
    publisher.publish_scope(&scope(1), domain).unwrap();
    publisher.publish_item(&item(1), domain).unwrap();
    let mut subscribers = [open(1), open(2)];
    for subscriber in &mut subscribers {
        subscriber.subscribe_item(&item(1), domain).unwrap();
    }
    let started = publisher.event(Some(support::PATIENCE)).unwrap();
    assert_eq!(started, Some(Event::StartPublish(item(1))));
    (publisher, subscribers)
}

/// Law: the tree that a publication takes is followed to its leaves, each link with delay and copies;
/// nothing is published by it, and nothing is counted.
#[test]
fn the_tree_of_an_item_is_followed_with_its_links() {
    let (places, _daemons) = line(&["local,127.0.0.0/8"; 3]);
    let _apps = item_of_all(&places);
    let id = item(1).to_string();
    let trace = |i: usize| {
        let told = places[i].run(&["trace", "--push", &id, "--json"]);
        (told.code, lines(&told.out))
    };
    ask_until("the tree has both", || trace(0).1.last().unwrap()["links"][1].is_object());
    let before = places[1].json(&["rendezvous", "status"])["received"].clone();
    let (code, told) = trace(0);
    assert_eq!(code, 0, "{told:?}");
    let hops: Vec<_> = told.iter().filter(|line| line["event"] == "hop").collect();
    let of = |i: usize| (hops[i]["node"].as_str().unwrap(), hops[i]["subscribers"].as_u64());
    assert_eq!(
        [of(0), of(1), of(2)],
        [("/site/a", Some(0)), ("/site/b", Some(1)), ("/site/c", Some(1))]
    );
    assert_eq!(hops[2]["verdict"], "push_delivered");
    let links = told.last().unwrap()["links"].as_array().unwrap();
    let ends = |i: usize| (links[i]["from"].as_str(), links[i]["to"].as_str());
    assert_eq!(ends(0), (Some("/site/a"), Some("/site/b")));
    assert_eq!(ends(1), (Some("/site/b"), Some("/site/c")));
    for link in links {
        assert_eq!(link["copies"], 1);
        assert!(link["delay_ms"].as_f64().unwrap() >= 0.0, "{link}");
    }
    let after = places[1].json(&["rendezvous", "status"])["received"].clone();
    let beats = after.as_u64().unwrap() - before.as_u64().unwrap();
    assert!(beats < 50, "nothing but hellos of the links: {beats}");
    // Elsewhere nobody publishes it.
    let (code, told) = trace(2);
    assert_eq!(code, 5);
    let end = &told.last().unwrap()["ends"][0];
    assert!(end["sentence"].as_str().unwrap().contains("the node of its publisher"), "{end}");
    let text = places[0].run(&["trace", "--push", &id]).out;
    assert!(text.contains("/site/a > /site/b") && text.contains("1 copy"), "{text}");
}

/// Law: a node that does not let its neighbour trace tells nothing, nor does one behind it.
#[test]
fn a_node_that_does_not_let_trace_ends_the_tree() {
    let (places, _daemons) = line(&["local", "local", "local,127.0.0.0/8"]);
    let _apps = item_of_all(&places);
    let id = item(1).to_string();
    let told = places[0].run(&["trace", "--push", &id, "--timeout", "300", "--json"]);
    let told = lines(&told.out);
    assert_eq!(told.iter().filter(|line| line["event"] == "hop").count(), 1, "{told:?}");
    let ends = &told.last().unwrap()["ends"];
    assert_eq!((&ends[0]["end"], &ends[0]["after"]), (&"silent".into(), &"/site/a".into()));
}
