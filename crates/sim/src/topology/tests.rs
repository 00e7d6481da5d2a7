use super::*;
use std::time::Duration;

mod scenarios;

const TEXT: &str = "
# three nodes in a row
[links]
a:b delay=10ms rate=50mbit loss=0.1 queue=100
b:c delay=2.5ms mtu=1500
node b cs=0 pit=10
producer c /data size=1200 fresh=10s
consumer a /data count=50 window=8 start=1s
consumer b /data count=5 catalogue=10 zipf=0.8
strategy /data multicast
routes downhill
";

#[test]
fn a_topology_is_read_with_units() {
    let topology: Topology = TEXT.parse().unwrap();
    assert_eq!(topology.nodes().collect::<Vec<_>>(), ["a", "b", "c"]);
    let link = topology.links[0].config;
    assert_eq!(link.delay, Duration::from_millis(10));
    assert_eq!((link.rate_bps, link.queue_max, link.loss), (Some(50_000_000), 100, 0.001));
    assert_eq!(topology.links[1].config.mtu, Some(1500));
    assert_eq!(topology.nodes[1].1.cs_packets_max, 0);
    assert_eq!(topology.apps.len(), 3);
    assert_eq!(topology.routing, Routing::Downhill);
    assert!(topology.build(1).is_ok());
}

#[test]
fn a_wrong_line_is_told_with_what_is_allowed() {
    for (text, expected) in [
        ("x", "line 1: \"x\" is not a line of a topology"),
        ("\na:b dealy=1ms", "line 2: unknown key \"dealy\": delay"),
        ("a:b delay=1", "is not a time"),
        ("a:b delay", "expected key=value"),
        ("a:a", "cannot be linked to itself"),
        ("a:b loss=101", "is not a loss"),
        ("a:b rate=fast", "is not a rate"),
        ("a:b rate=0mbit", "is not a rate"),
        ("a:b mtu=1", "less than 64"),
        ("a b:c", "is not a line of a topology"),
        ("a?:b", "is not a node name"),
        ("producer a", "expected: producer NODE PREFIX"),
        ("producer a /x size=9000", "more than 8192"),
        ("consumer a /%zz", "must be followed by two"),
        ("consumer a /x window=0", "less than 1"),
        ("routes around", "expected: routes"),
        ("strategy /", "expected: strategy"),
    ] {
        let error = text.parse::<Topology>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn a_file_of_mini_ndn_is_a_topology() {
    let text = "
[nodes]
hub: _ network=/world router=/hub.Router/ angle=0.5 radius=1
a: _
b:
[links]
a:hub delay=5ms bw=100
b:hub delay=10ms loss=1
";
    let topology: Topology = text.parse().unwrap();
    assert_eq!(topology.nodes().collect::<Vec<_>>(), ["hub", "a", "b"]);
    assert_eq!(topology.links.len(), 2);
    let error = "hub: _ cs=5".parse::<Topology>().unwrap_err().to_string();
    assert!(error.contains("unknown key \"cs\": network"), "{error}");
}

#[test]
fn an_unknown_strategy_is_told_with_its_line() {
    let topology: Topology = "a:b\nstrategy / best-guess".parse().unwrap();
    assert_eq!(topology.build(1).unwrap_err().line, 2);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let run = |seed| {
        let mut network = TEXT.parse::<Topology>().unwrap().build(seed).unwrap();
        network.run(Duration::from_secs(60), 1_000_000);
        crate::Report::of(&network)
    };
    assert_eq!(run(3), run(3));
    assert!(run(3).is_done);
}
