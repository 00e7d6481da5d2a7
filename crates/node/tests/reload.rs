//! A configuration read again while the node runs.

#![allow(clippy::unwrap_used)]

mod support;

use onym_node::NodeHandle;
use onym_node::config::Config;
use onym_wire::mgmt::Scope;
use support::{App, quiet, start, until, with};

fn parse(more: &str) -> Config {
    let text = format!(
        "shards = 2\n[faces]\nunix.path = \"\"\nudp.listen = [\"127.0.0.1:0\"]\ntcp.listen = []\n\
         websocket.listen = []\n{more}"
    );
    Config::parse(&text, "test").unwrap()
}

#[test]
fn faces_and_routes_of_the_configuration_come_and_go() {
    let node = start(parse(""));
    assert!(node.faces().unwrap().is_empty());
    let face = "[[face]]\nuri = \"udp4://127.0.0.1:9\"\n";
    let route = "[[route]]\nprefix = \"/a\"\nvia = \"udp4://127.0.0.1:9\"\n";
    let changes = node.reload(parse(&format!("{face}{route}"))).unwrap();
    assert_eq!((changes.live, changes.restart), (vec!["face".into(), "route".into()], vec![]));
    let faces = node.faces().unwrap();
    assert_eq!(faces.len(), 1);
    assert_eq!(node.snapshot().unwrap().shards[1].fib_entries, 4);
    node.reload(parse(face)).unwrap();
    assert_eq!(node.faces().unwrap()[0].id, faces[0].id, "a face that stays is the same");
    assert_eq!(node.snapshot().unwrap().shards[1].fib_entries, 3);
    node.reload(parse("")).unwrap();
    assert!(node.faces().unwrap().is_empty());
}

/// Law: of more routes than the FIB holds some are refused, and the others are there, in every shard;
/// what is taken out makes room.
#[test]
fn of_more_routes_than_the_fib_holds_the_others_are_there() {
    let face = "[fib]\nroutes_max = 300\n[[face]]\nuri = \"udp4://127.0.0.1:9\"\n";
    let routes = |from: u32, to: u32| -> String {
        let route = |n| format!("[[route]]\nprefix = \"/{n}\"\nvia = \"udp4://127.0.0.1:9\"\n");
        (from..to).map(route).collect()
    };
    let config = |from, to| parse(&[face, &routes(from, to)].concat());
    let node = start(config(0, 700));
    let entries = || {
        let shards = node.snapshot().unwrap().shards;
        shards.iter().map(|shard| shard.fib_entries).collect::<Vec<_>>()
    };
    let leads =
        |prefix: &str| node.explain(prefix).unwrap()["fib_prefix"] == serde_json::json!(prefix);
    assert_eq!(entries(), [300, 300]);
    assert!(leads("/0") && leads("/290") && !leads("/699"));
    node.reload(config(500, 700)).unwrap();
    assert!(leads("/500") && leads("/699") && !leads("/0"));
    assert_eq!(entries(), [203, 203]);
}

/// Law: a route over a face of the configuration that has yet to connect is there as soon as the face is,
/// at a start and after a reload; one that was taken out meanwhile is not.
#[test]
fn a_route_waits_for_its_face() {
    let other = start(with(1, &["faces.tcp.listen=127.0.0.1:0"]));
    let via = format!("tcp4://{}", other.bound().tcp[0]);
    let face = format!("[[face]]\nuri = \"{via}\"\npersistency = \"persistent\"\n");
    let route = |prefix| format!("[[route]]\nprefix = \"{prefix}\"\nvia = \"{via}\"\n");
    let leads = |node: &NodeHandle, prefix: &str| {
        node.explain(prefix).unwrap()["fib_prefix"] == serde_json::json!(prefix)
    };
    let node = start(parse(&[&face[..], &route("/a"), &route("/b")].concat()));
    until("both routes of the start", || leads(&node, "/a") && leads(&node, "/b"));
    let late = start(parse(""));
    late.reload(parse(&[&face[..], &route("/a")].concat())).unwrap();
    late.reload(parse(&[&face[..], &route("/b")].concat())).unwrap();
    until("the route of the reload", || leads(&late, "/b"));
    assert!(!leads(&late, "/a"));
}

#[test]
fn strategies_and_the_content_store_follow() {
    let node = start(quiet(2));
    let (_, consumer) = node.attach(Scope::Local).unwrap();
    let (id, producer) = node.attach(Scope::Local).unwrap();
    let (mut consumer, mut producer) = (App::new(consumer), App::new(producer));
    node.route("/a", id, 0).unwrap();
    let exchange = |consumer: &mut App, producer: &mut App, text: &str| {
        consumer.interest(text);
        producer.take_interest();
        producer.data(text, b"x");
        consumer.take_data();
    };
    exchange(&mut consumer, &mut producer, "/a/1");
    assert_eq!(node.snapshot().unwrap().sum(|s| s.cs_entries), 1);
    let mut config = quiet(2);
    config.cs.packets_max = 0;
    config.strategy.insert("/a".into(), "multicast".into());
    let changes = node.reload(config.clone()).unwrap();
    assert_eq!(changes.live, ["cs.packets_max", "strategy"]);
    assert_eq!(node.snapshot().unwrap().sum(|s| s.cs_entries), 0);
    exchange(&mut consumer, &mut producer, "/a/1");
    assert_eq!(node.explain("/a").unwrap()["strategy"], "/localhost/nfd/strategy/multicast/v=5");
    config.strategy.clear();
    node.reload(config).unwrap();
    assert_eq!(node.explain("/a").unwrap()["strategy"], "/localhost/nfd/strategy/best-route/v=5");
}

#[test]
fn what_waits_for_a_restart_is_named_each_time_and_stays_as_it_runs() {
    let node = start(quiet(2));
    let mut config = quiet(3);
    config.pit.entries_max = 1000;
    config.cs.packets_max = 10;
    for _ in 0..2 {
        let changes = node.reload(config.clone()).unwrap();
        assert_eq!(changes.restart, ["pit.entries_max", "shards"]);
    }
    let status = node.status().unwrap();
    assert_eq!(status["shards"], 2);
    assert_eq!(status["pit"]["entries_max"], quiet(2).pit.entries_max);
    assert_eq!(status["cs"]["packets_max"], 10);
}

#[test]
fn a_wrong_configuration_changes_nothing() {
    let node = start(quiet(1));
    let mut config = quiet(1);
    config.cs.packets_max = 7;
    config.faces.udp.mtu = 3;
    let error = node.reload(config).unwrap_err().to_string();
    assert!(error.contains("faces.udp.mtu") && error.contains("64 to 8800"), "{error}");
    assert_eq!(node.status().unwrap()["cs"]["packets_max"], quiet(1).cs.packets_max);
}
