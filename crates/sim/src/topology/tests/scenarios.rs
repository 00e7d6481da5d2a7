//! TOML scenarios and generated networks.

use crate::topology::{Scenario, Shape, Workload};
use crate::{ChannelConfig, ConsumerConfig, Ended, NodeConfig, ProducerConfig, Report, Topology};
use std::time::Duration;

const VIDEO: &str = include_str!("../../../examples/video.toml");

fn run(scenario: &Scenario) -> Report {
    let mut network = scenario.topology.build(scenario.seed).unwrap();
    network.run(scenario.duration, 10_000_000);
    network.check().unwrap();
    Report::of(&network)
}

#[test]
fn the_example_serves_its_second_viewer_from_the_cache() {
    let report = run(&VIDEO.parse().unwrap());
    assert!(report.is_done);
    let edge = report.nodes.iter().find(|node| node.name == "edge").unwrap();
    assert_eq!(edge.counters.cs_hits, 500);
    let [_, alice, bob] = &report.apps[..] else { panic!("three applications") };
    assert_eq!((alice.stats.data, bob.stats.data), (500, 500));
    assert!(bob.stats.latency_p50 < alice.stats.latency_p50);
    let down: u64 = report.links.iter().map(|link| link.counters.down).sum();
    assert!(down > 0, "the link to the studio was down for a while");
}

#[test]
fn the_same_scenario_and_seed_give_the_same_run_and_another_seed_another() {
    let with = |seed| run(&Scenario::parse(VIDEO, Some(seed)).unwrap());
    assert_eq!(with(3), with(3));
    assert_ne!(with(3), with(4));
}

#[test]
fn a_wrong_scenario_is_told_with_its_place_and_what_is_allowed() {
    let link = "[[link]]\nbetween = [\"a\", \"b\"]\n";
    for (text, expected) in [
        ("sede = 1".to_owned(), "unknown field `sede`, expected one of"),
        (format!("{link}dealy = \"1ms\""), "unknown field `dealy`"),
        (format!("{link}delay = \"1\""), "link number 1, delay: \"1\" is not a time"),
        (format!("{link}loss = \"101%\""), "link number 1, loss"),
        (format!("{link}down = [[\"2s\", \"1s\"]]"), "2s is not before 1s"),
        ("[[link]]\nbetween = [\"a\", \"a\"]".to_owned(), "cannot be linked to itself"),
        ("[links]\nrate = \"fast\"".to_owned(), "links: rate: \"fast\" is not a rate"),
        ("[[producer]]\nnode = \"x\"\nprefix = \"/\"".to_owned(), "\"x\" is no node"),
        (format!("{link}[[consumer]]\nnode = \"a\"\nprefix = \"/\"\nwindow = 0"), "less than 1"),
        (format!("{link}[[consumer]]\nnode = \"a\"\nprefix = \"/\"\nzipf = 1.0"), "only goes with"),
        (
            format!("{link}[[producer]]\nnode = \"a\"\nprefix = \"/%z\"\n"),
            "producer number 1, prefix",
        ),
        ("generate = \"cube:3\"".to_owned(), "generate: expected: line:N"),
        ("duration = \"long\"".to_owned(), "duration: \"long\" is not a time"),
        ("routes = \"any\"".to_owned(), "routes: expected: routes shortest"),
    ] {
        let error = text.parse::<Scenario>().unwrap_err().to_string();
        assert!(error.contains(expected), "{text:?}: {error}");
    }
}

#[test]
fn a_strategy_that_does_not_exist_is_told_without_a_line() {
    let scenario: Scenario =
        "[strategy]\n\"/\" = \"guess\"\n[[node]]\nname = \"a\"".parse().unwrap();
    let error = scenario.topology.build(1).unwrap_err().to_string();
    assert!(error.starts_with("strategy \"guess\""), "{error}");
}

#[test]
fn shapes_have_their_nodes_and_links() {
    for (text, nodes, links) in [
        ("line:5", 5, 4),
        ("line:1", 1, 0),
        ("ring:6", 6, 6),
        ("star:4", 4, 3),
        ("mesh:5", 5, 10),
        ("grid:3x4", 12, 17),
        ("tree:2x3", 7, 6),
        ("tree:1x4", 4, 3),
    ] {
        let shape: Shape = text.parse().unwrap();
        let topology = shape.topology(ChannelConfig::default(), 1);
        assert_eq!((topology.nodes().count(), topology.links_len()), (nodes, links), "{text}");
    }
    for text in ["line", "line:0", "ring:2", "mesh:1000", "grid:3", "grid:1000x1000", "tree:9x99"] {
        assert!(text.parse::<Shape>().is_err(), "{text}");
    }
}

#[test]
fn every_shape_carries_its_workload_to_every_consumer() {
    for text in ["line:4", "ring:5", "star:5", "mesh:4", "grid:3x3", "tree:3x3", "random:12"] {
        let config = ChannelConfig { delay: Duration::from_millis(2), ..ChannelConfig::default() };
        let shape: Shape = text.parse().unwrap();
        let mut topology: Topology = shape.topology(config, 9);
        let prefix: onym_wire::Name = "/data".parse().unwrap();
        let workload = Workload {
            producer: ProducerConfig {
                prefix: prefix.clone(),
                size: 100,
                freshness_ms: 0,
                answers: true,
            },
            consumer: ConsumerConfig { count: 20, ..ConsumerConfig::new(prefix) },
            consumers: 3,
            node: NodeConfig::default(),
        };
        workload.put_on(&mut topology);
        let mut network = topology.build(9).unwrap();
        assert_eq!(network.run(Duration::from_secs(600), 1_000_000), Ended::Quiet, "{text}");
        network.check().unwrap();
        let report = Report::of(&network);
        let data: u64 = report.apps.iter().skip(1).map(|app| app.stats.data).sum();
        assert_eq!(data, 60, "{text}");
    }
}
