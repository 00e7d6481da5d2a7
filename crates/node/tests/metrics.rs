//! `/metrics`: text that Prometheus takes, with the counters of the node.

#![allow(clippy::unwrap_used)]

#[path = "../../metrics/tests/selectors/mod.rs"]
mod selectors;
mod support;

use onym_crypto::{Certificate, KeyType, PrivateKey};
use onym_metrics::{Program, catalogue::ALL};
use onym_wire::mgmt::Scope;
use std::collections::{BTreeSet, HashMap, HashSet};
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use support::{App, name, start, unix_ms, with};

fn get(address: SocketAddr, path: &str) -> (String, String) {
    let mut socket = TcpStream::connect(address).unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    socket.write_all(request.as_bytes()).unwrap();
    let mut text = String::new();
    socket.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    (head.to_owned(), body.to_owned())
}

/// Samples by name and labels, after every rule of the text format that could be broken.
fn samples(text: &str) -> HashMap<String, f64> {
    let (mut helped, mut typed) = (HashSet::new(), HashSet::new());
    let mut found = HashMap::new();
    let mut family = String::new();
    let text = text.strip_suffix("# EOF\n").unwrap();
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            let (name, help) = rest.split_once(' ').unwrap();
            assert!(helped.insert(name.to_owned()), "{name} twice");
            assert!(!help.is_empty());
        } else if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').unwrap();
            assert!(typed.insert(name.to_owned()), "{name} twice");
            let suffix = match kind {
                "counter" => "_total",
                "info" => "_info",
                "gauge" => "",
                _ => panic!("{line}"),
            };
            family = format!("{name}{suffix}");
        } else if !line.starts_with("# UNIT ") {
            let (series, value) = line.rsplit_once(' ').unwrap();
            let name = series.split('{').next().unwrap();
            assert_eq!(name, family, "samples of a family stand together");
            let value: f64 = value.parse().unwrap();
            assert!(found.insert(series.to_owned(), value).is_none(), "{series} twice");
        }
    }
    found
}

#[test]
fn the_counters_are_there_in_the_form_of_prometheus() {
    // A trust anchor, so that what is told of trust is there, too.
    let key = PrivateKey::generate(KeyType::Ed25519).unwrap();
    let anchor = Certificate::self_signed(name("/net/KEY/1").as_ref(), &key, unix_ms()).unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), anchor.to_text()).unwrap();
    let anchors = format!("rib.localhop_anchors=[{:?}]", file.path());
    let sets = ["metrics.listen=127.0.0.1:0", "push.enabled=true", "rib.localhop=true", &anchors];
    let node = start(with(2, &sets));
    let (_, consumer) = node.attach(Scope::Local).unwrap();
    let (id, producer) = node.attach(Scope::Local).unwrap();
    node.route("/a", id, 0).unwrap();
    let (mut consumer, mut producer) = (App::new(consumer), App::new(producer));
    consumer.interest("/a/b");
    producer.take_interest();
    producer.data("/a/b", b"x");
    consumer.take_data();
    consumer.interest("/a/b");
    consumer.take_data();
    consumer.interest("/none");
    consumer.take_nack();
    let (head, body) = get(node.bound().metrics[0], "/metrics");
    assert!(
        head.starts_with("HTTP/1.1 200")
            && head.contains("application/openmetrics-text; version=1.0.0"),
        "{head}"
    );
    let found = samples(&body);
    let interests = |verdict: &str| {
        found[&format!("onym_packets_total{{verdict=\"{verdict}\",kind=\"interest\"}}")]
    };
    assert_eq!((interests("forwarded"), interests("cs_hit"), interests("no_route")), (1., 1., 1.));
    assert_eq!(found["onym_packets_total{verdict=\"satisfied\",kind=\"data\"}"], 1.0);
    assert_eq!(found["onym_faces"], 2.0);
    assert_eq!(found["onym_cs_entries"], 1.0);
    let received = format!("onym_face_received_packets_total{{face=\"{}\",kind=\"data\"}}", id.0);
    assert_eq!(found[&received], 1.0);
    assert_eq!(found["onym_pit_satisfied_interests_total"], 1.0);
    assert_eq!(found["onym_cs_lookups_total{result=\"hit\"}"], 1.0);
    let names: BTreeSet<&str> = found.keys().map(|s| s.split('{').next().unwrap()).collect();
    let of_node = ALL.iter().filter(|metric| metric.programs.contains(&Program::Node));
    assert_eq!(names, of_node.map(|metric| metric.name).collect(), "those of docs/metrics.md");
    dashboard_and_alerts_find_their_series(&found);
    assert!(get(node.bound().metrics[0], "/other").0.starts_with("HTTP/1.1 404"));
}

/// Law: each query of the dashboard and each alert rule finds a series on the page of a running node,
/// with each value of a label that it asks for. Those of a router are on pages of nodes with one.
fn dashboard_and_alerts_find_their_series(found: &HashMap<String, f64>) {
    let has = |name: &str, label: Option<&str>| {
        found.keys().any(|series| {
            let is_of =
                series.strip_prefix(name).is_some_and(|r| r.is_empty() || r.starts_with('{'));
            is_of && label.is_none_or(|label| series.contains(label))
        })
    };
    for expression in selectors::expressions() {
        for selector in selectors::selectors(&expression) {
            let name = &selector.name;
            if name.starts_with("onym_route_") {
                continue;
            }
            assert!(has(name, None), "{name}: {expression}");
            for (label, values) in &selector.matchers {
                for value in values {
                    let label = format!("{label}=\"{value}\"");
                    assert!(has(name, Some(&label)), "{name}{{{label}}}: {expression}");
                }
            }
        }
    }
}

#[test]
fn a_node_whose_threads_answer_is_alive_and_ready() {
    let node = start(with(2, &["metrics.listen=127.0.0.1:0", "push.enabled=true"]));
    for path in ["/healthz", "/readyz"] {
        let (head, body) = get(node.bound().metrics[0], path);
        assert!(head.starts_with("HTTP/1.1 200") && body == "ok\n", "{path}: {head} {body}");
    }
}

#[test]
fn without_an_address_there_is_no_server() {
    assert!(start(with(1, &[])).bound().metrics.is_empty());
}

#[test]
fn clients_that_say_nothing_keep_nobody_waiting() {
    let node = start(with(1, &["metrics.listen=127.0.0.1:0"]));
    let address = node.bound().metrics[0];
    let connect = |_| TcpStream::connect(address).unwrap();
    let idle: Vec<_> = (0..3 * onym_http::server::CONNECTIONS_MAX).map(connect).collect();
    for _ in 0..3 {
        assert!(get(address, "/metrics").0.starts_with("HTTP/1.1 200"));
    }
    drop(idle);
}

#[test]
fn a_page_of_elsewhere_reads_nothing_on_loopback() {
    let node = start(with(1, &["metrics.listen=127.0.0.1:0"]));
    let address = node.bound().metrics[0];
    for head in
        ["Host: evil.example".to_owned(), format!("Host: {address}\r\nOrigin: http://evil.example")]
    {
        let mut socket = TcpStream::connect(address).unwrap();
        let request = format!("GET /metrics HTTP/1.1\r\n{head}\r\nConnection: close\r\n\r\n");
        socket.write_all(request.as_bytes()).unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        assert!(text.starts_with("HTTP/1.1 403") && !text.contains("onym_packets"), "{text}");
    }
}
