//! Services as processes: the chain that does what a node does, started by hand.

#![allow(clippy::unwrap_used)]

mod support;

use serde_json::Value;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use support::{Place, Running, noise, wait_until};

/// A service with what it said when it was ready.
struct Service {
    running: Running,
    ready: Value,
}

impl Service {
    fn start(place: &Place, kind: &str, args: &[&str]) -> Self {
        let mut all = vec!["service", kind];
        all.extend(args);
        let mut running = place.start(&all);
        running.wait_for("ready {");
        let said = running.err.text();
        let line = said.lines().find_map(|l| l.strip_prefix("ready ")).unwrap().to_owned();
        Self { running, ready: serde_json::from_str(&line).unwrap() }
    }

    fn at(&self, label: &str) -> String {
        let all = self.ready["listeners"].as_array().unwrap();
        let one = all.iter().find(|l| l["label"] == label).unwrap();
        one["uri"].as_str().unwrap().to_owned()
    }

    fn control(&self) -> &str {
        self.ready["control"].as_str().unwrap().strip_prefix("http://").unwrap()
    }

    /// Status and body.
    fn call(&self, method: &str, path: &str, body: &str) -> (u16, Value) {
        http(self.control(), method, path, body, "")
    }

    fn stats(&self) -> Value {
        self.call("GET", "/v1/stats", "").1
    }
}

/// A request over a connection of its own; `headers` end in CR LF.
fn http(to: &str, method: &str, path: &str, body: &str, headers: &str) -> (u16, Value) {
    let mut stream = TcpStream::connect(to).unwrap();
    let length = body.len();
    write!(
        stream,
        "{method} {path} HTTP/1.1\r\nhost: {to}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {length}\r\n{headers}\r\n{body}"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let status = text.split(' ').nth(1).unwrap().parse().unwrap();
    let body = text.split_once("\r\n\r\n").unwrap().1;
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// The chain of the first preset: dispatcher, cache, backward router, name router.
struct Chain {
    nr: Service,
    br: Service,
    cs: Service,
    pd: Service,
}

fn chain(place: &Place, scheme: &str) -> Chain {
    let any = format!("{scheme}://127.0.0.1:0");
    let consumer = format!("consumer={any}");
    let producer = format!("producer={any},side=producer");
    let open = ["--set", "registration=open"];
    let nr = Service::start(
        place,
        "name-router",
        &[&["--listen", &consumer, "--listen", &producer][..], &open].concat(),
    );
    let br = Service::start(
        place,
        "backward-router",
        &["--listen", &any, "--face", &format!("BR-NR={}", nr.at("consumer"))],
    );
    let cs = Service::start(
        place,
        "content-store",
        &["--listen", &any, "--face", &format!("CS-BR={}", br.at("in"))],
    );
    let socket = format!("unix://{}", place.path("nfd.sock").display());
    let (up, down) =
        (format!("consumer_path={}", cs.at("in")), format!("producer_path={}", nr.at("producer")));
    let pd = Service::start(
        place,
        "packet-dispatcher",
        &["--listen", &socket, "--set", &up, "--set", &down],
    );
    for service in [&br, &cs] {
        wait_until("readiness", || service.call("GET", "/v1/ready", "").0 == 200);
    }
    Chain { nr, br, cs, pd }
}

fn carries_a_file(scheme: &str) {
    let place = Place::new();
    let chain = chain(&place, scheme);
    let content = noise(1_000_000, 7);
    fs::write(place.path("in"), &content).unwrap();
    let _put = place.put(&["/example/file", "in"]);
    let report = place.json(&["get", "/example/file", "-o", "out"]);
    assert!(fs::read(place.path("out")).unwrap() == content);
    assert_eq!(report["bytes"], 1_000_000);
    let routed = chain.nr.stats()["name_router"]["registrations"]["accepted"].as_u64();
    assert!(routed.unwrap() >= 1);
    // The second time it comes from the cache: the backward router hears nothing of it.
    let before = chain.br.stats()["backward_router"]["inserted"].as_u64().unwrap();
    place.json(&["get", "/example/file", "-o", "again"]);
    assert!(fs::read(place.path("again")).unwrap() == content);
    let after = chain.br.stats()["backward_router"]["inserted"].as_u64().unwrap();
    assert!(after - before < 10, "{before} and then {after}");
    assert!(chain.cs.stats()["content_store"]["hits"].as_u64().unwrap() >= 120);
    let sessions = chain.pd.call("GET", "/v1/sessions", "").1;
    assert!(!sessions["sessions"].as_array().unwrap().is_empty(), "{sessions}");
    // Every packet received has one verdict.
    for service in [&chain.nr, &chain.br, &chain.cs, &chain.pd] {
        let stats = service.stats();
        let sum: u64 =
            stats["verdicts"].as_object().unwrap().values().filter_map(Value::as_u64).sum();
        let received = &stats["received"];
        let all = ["interests", "data", "nacks"].map(|k| received[k].as_u64().unwrap());
        assert_eq!(sum, all.iter().sum::<u64>(), "{stats}");
    }
}

#[test]
fn the_chain_that_equals_a_node_carries_a_file_over_tcp() {
    carries_a_file("tcp4");
}

#[test]
fn the_chain_that_equals_a_node_carries_a_file_over_udp() {
    carries_a_file("udp4");
}

#[test]
fn a_service_answers_every_request_and_ends_when_told() {
    let place = Place::new();
    let mut cs = Service::start(&place, "content-store", &["--listen", "tcp4://127.0.0.1:0"]);
    let version = cs.call("GET", "/v1/version", "").1;
    assert_eq!((&version["kind"], &version["api"]), (&"content-store".into(), &"v1".into()));
    for (method, path, body, status) in [
        ("GET", "/v1/health", "", 200),
        ("GET", "/v1/ready", "", 200),
        ("GET", "/readyz", "", 200),
        ("GET", "/metrics", "", 200),
        ("GET", "/v1/service", "", 200),
        ("GET", "/nothing", "", 404),
        ("GET", "/v1/nothing", "", 404),
        ("GET", "/v1/rules", "", 404),
        ("POST", "/v1/stats", "", 405),
        ("PATCH", "/v1/config", "{", 400),
        ("PATCH", "/v1/config", "[]", 400),
        ("PATCH", "/v1/config", r#"{"nothing":1}"#, 422),
        ("PATCH", "/v1/config", r#"{"capacity":"many"}"#, 422),
        ("PATCH", "/v1/config", r#"{"capacity":10}"#, 200),
        ("PUT", "/v1/faces/x", r#"{"uri":"nonsense"}"#, 422),
        ("PUT", "/v1/faces/a b", r#"{"uri":"tcp4://127.0.0.1:9"}"#, 422),
        ("PATCH", "/v1/faces/none", r#"{"weight":2}"#, 404),
        ("PATCH", "/v1/faces", r#"{"faces":{"none":{"draining":true}}}"#, 404),
        ("PATCH", "/v1/faces", r#"{"draining":true}"#, 422),
        ("DELETE", "/v1/faces/none", "", 200),
        ("PUT", "/v1/freeze/left", "{}", 422),
        ("POST", "/v1/stop", "", 200),
    ] {
        let path = path.replace(' ', "%20");
        let (got, answer) = cs.call(method, &path, body);
        assert_eq!(got, status, "{method} {path} {body}: {answer}");
    }
    assert_eq!(cs.running.end(), Some(0));
}

#[test]
fn a_service_that_others_reach_wants_a_token() {
    let place = Place::new();
    let ended = place.run(&["service", "name-filter", "--control", "0.0.0.0:0"]);
    assert_eq!(ended.code, 2);
    assert!(ended.err.contains("--token-file"), "{}", ended.err);
    fs::write(place.path("token"), "0123456789abcdef\n").unwrap();
    let open = ["service", "name-filter", "--control", "0.0.0.0:0", "--token-file", "token"];
    let ended = place.run(&open);
    assert_eq!(ended.code, 2, "nor does a token travel in clear text unless that is said");
    assert!(ended.err.contains("--clear-text"), "{}", ended.err);
    let nf = Service::start(&place, "name-filter", &["--token-file", "token"]);
    assert_eq!(nf.call("GET", "/v1/stats", "").0, 401);
    assert_eq!(nf.call("GET", "/metrics", "").0, 401);
    assert_eq!(nf.call("GET", "/v1/ready", "").0, 200);
    let with = |token: &str| {
        let header = format!("authorization: Bearer {token}\r\n");
        http(nf.control(), "GET", "/v1/stats", "", &header).0
    };
    assert_eq!((with("0123456789abcdef"), with("0123456789abcdee")), (200, 401));
}

#[test]
fn what_is_wrong_at_the_start_is_said() {
    let place = Place::new();
    let cases: [(&[&str], i32, &str); 5] = [
        (&["nothing"], 2, "content-store"),
        (&["content-store", "--set", "capacity=x"], 2, "capacity"),
        (&["content-store", "--listen", "nowhere"], 2, "nowhere"),
        (&["content-store", "--set", "threads=2"], 2, "threads"),
        (&["content-store", "--listen", "tcp4://203.0.113.1:1"], 1, "203.0.113.1"),
    ];
    for (args, code, word) in cases {
        let all = [&["service"], args].concat();
        let ended = place.run(&all);
        assert_eq!(ended.code, code, "{args:?}: {}", ended.err);
        assert!(ended.err.contains(word), "{args:?}: {}", ended.err);
    }
}
