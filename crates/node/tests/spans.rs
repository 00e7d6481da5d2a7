//! Spans over nodes: their numbers travel with the Interest, end at a boundary, and reach a collector.

#![allow(clippy::unwrap_used)]

mod support;

use onym_node::NodeHandle;
use onym_wire::interest::InterestBuilder;
use onym_wire::lp::{LpHeader, LpPacket, TraceContext};
use onym_wire::mgmt::Scope;
use serde_json::Value;
use std::io::{BufRead, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use support::{App, DEADLINE, interest_wire, name, start, tcp_app, until, with};

/// A collector: what is posted to it, with the status that it answered.
struct Collector {
    address: SocketAddr,
    posted: Receiver<(&'static str, Value)>,
    /// What it answers from now on.
    status: Arc<Mutex<&'static str>>,
}

impl Collector {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (tell, posted) = channel();
        let status = Arc::new(Mutex::new("200 OK"));
        let answers = Arc::clone(&status);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (tell, answers) = (tell.clone(), Arc::clone(&answers));
                std::thread::spawn(move || serve(socket.unwrap(), &answers, &tell));
            }
        });
        Self { address, posted, status }
    }

    fn answers(&self, status: &'static str) {
        *self.status.lock().unwrap() = status;
    }

    fn setting(&self) -> String {
        format!("telemetry.collector=http://{}", self.address)
    }

    /// The next spans that it takes: the name of the node, and each.
    fn spans(&self) -> Vec<(String, Value)> {
        let (mut status, mut posted) = ("", Value::Null);
        while status != "200 OK" {
            (status, posted) = self.posted.recv_timeout(DEADLINE).expect("before the deadline");
        }
        let mut found = Vec::new();
        for resource in posted["resourceSpans"].as_array().unwrap() {
            let node = attribute(&resource["resource"], "service.instance.id").to_owned();
            for span in resource["scopeSpans"][0]["spans"].as_array().unwrap() {
                found.push((node.clone(), span.clone()));
            }
        }
        found
    }

    fn spans_of(&self, count: usize) -> Vec<(String, Value)> {
        let mut found = Vec::new();
        while found.len() < count {
            found.extend(self.spans());
        }
        found
    }
}

/// A connection is kept for several requests.
fn serve(socket: TcpStream, answers: &Mutex<&'static str>, tell: &Sender<(&'static str, Value)>) {
    let mut socket = BufReader::new(socket);
    while let Some((path, body)) = request(&mut socket) {
        assert_eq!(path, "/v1/traces");
        let status = *answers.lock().unwrap();
        let head = format!("HTTP/1.1 {status}\r\ncontent-length: 2\r\n\r\n{{}}");
        socket.get_mut().write_all(head.as_bytes()).unwrap();
        if tell.send((status, body)).is_err() {
            return;
        }
    }
}

fn request(socket: &mut impl BufRead) -> Option<(String, Value)> {
    let (mut first, mut len) = (String::new(), 0);
    socket.read_line(&mut first).ok().filter(|octets| *octets > 0)?;
    loop {
        let mut line = String::new();
        socket.read_line(&mut line).ok()?;
        if line == "\r\n" {
            break;
        }
        let (key, value) = line.split_once(": ")?;
        if key.eq_ignore_ascii_case("content-length") {
            len = value.trim().parse().unwrap();
        }
        if key.eq_ignore_ascii_case("content-type") {
            assert_eq!(value.trim(), "application/json");
        }
    }
    let mut body = vec![0; len];
    socket.read_exact(&mut body).ok()?;
    let path = first.split(' ').nth(1)?.to_owned();
    Some((path, serde_json::from_slice(&body).unwrap()))
}

fn attribute<'a>(of: &'a Value, key: &str) -> &'a str {
    let found = of["attributes"].as_array().unwrap().iter().find(|a| a["key"] == key);
    let value = &found.unwrap_or_else(|| panic!("{key}: {of}"))["value"];
    value["stringValue"].as_str().or_else(|| value["intValue"].as_str()).unwrap()
}

/// Two nodes, the first of which sends `/a` to the second one over TCP; a consumer at the first, a
/// producer at the second.
fn line(setting: &str, first: &[&str], second: &[&str]) -> [(NodeHandle, App); 2] {
    let base = [
        setting,
        "telemetry.sample=0",
        "telemetry.name=b",
        "faces.tcp.local=[]",
        "faces.tcp.listen=127.0.0.1:0",
    ];
    let b = start(with(1, &[&base[..], second].concat()));
    let route = format!(r#"route=[{{ prefix = "/a", via = "tcp4://{}" }}]"#, b.bound().tcp[0]);
    let base = [setting, "telemetry.sample=1", "telemetry.name=a", "faces.tcp.local=[]", &route];
    let a = start(with(2, &[&base[..], first].concat()));
    let (_, consumer) = a.attach(Scope::Local).unwrap();
    let (id, producer) = b.attach(Scope::Local).unwrap();
    b.route("/a", id, 0).unwrap();
    until("the link is up", || {
        a.faces().unwrap().iter().any(|f| f.up && f.remote_uri.starts_with("tcp"))
    });
    [(a, App::new(consumer)), (b, App::new(producer))]
}

const TRUSTED: &str = "telemetry.trusted=local,127.0.0.0/8";

/// Law: one trace over both nodes, each span the child of that of the node before, inside of it in time;
/// the face, the verdict and the end are told.
#[test]
fn an_interest_is_one_trace_over_two_nodes() {
    let collector = Collector::start();
    let [(a, mut consumer), (b, mut producer)] = line(&collector.setting(), &[TRUSTED], &[TRUSTED]);
    consumer.interest("/a/b");
    let frame = producer.frame();
    let lp = LpPacket::parse(&frame).unwrap();
    let context = lp.trace_context.and_then(TraceContext::parse).expect("the producer sees it");
    producer.data_with_token("/a/b", b"x", lp.pit_token.unwrap());
    consumer.take_data();
    let spans = collector.spans_of(2);
    let of = |node: &str| &spans.iter().find(|(n, _)| n == node).unwrap().1;
    let (first, second) = (of("a"), of("b"));
    assert_eq!(first["traceId"], format!("{:032x}", context.trace));
    assert_eq!(second["traceId"], first["traceId"]);
    assert_eq!(second["spanId"], format!("{:016x}", context.span));
    assert_eq!(second["parentSpanId"], first["spanId"]);
    assert!(first.get("parentSpanId").is_none(), "{first}");
    for span in [first, second] {
        assert_eq!(attribute(span, "ndn.name"), "/a/b");
        assert_eq!(attribute(span, "onym.verdict"), "forwarded");
        assert_eq!(attribute(span, "onym.end"), "data");
        assert_eq!(span["status"], serde_json::json!({}));
    }
    let time = |span: &Value, key: &str| span[key].as_str().unwrap().parse::<u64>().unwrap();
    let lasted = |span| time(span, "endTimeUnixNano") - time(span, "startTimeUnixNano");
    assert!(lasted(first) >= lasted(second), "{first} {second}");
    // Counted when the answer of the collector is read.
    until("they are counted", || a.snapshot().unwrap().exported.exported >= 1);
    drop(b);
}

/// A collector of the OpenTelemetry project, and what it wrote of the spans that it got.
struct Otelcol {
    address: SocketAddr,
    child: Child,
    written: Arc<Mutex<String>>,
    _folder: tempfile::TempDir,
}

impl Otelcol {
    fn start() -> Self {
        let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let config = folder.path().join("config.yaml");
        let text = format!(
            "receivers: {{otlp: {{protocols: {{http: {{endpoint: \"{address}\"}}}}}}}}\n\
             exporters: {{debug: {{verbosity: detailed}}}}\n\
             service:\n  telemetry: {{metrics: {{level: none}}}}\n  \
             pipelines: {{traces: {{receivers: [otlp], exporters: [debug]}}}}\n"
        );
        std::fs::write(&config, text).unwrap();
        let config = format!("--config=file:{}", config.display());
        let mut command =
            Command::new(std::env::var_os("OTELCOL").expect("make otel-test sets it"));
        let command = command.arg(config).stdin(Stdio::null()).stdout(Stdio::null());
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let (written, errors) = (Arc::<Mutex<String>>::default(), child.stderr.take().unwrap());
        let text = Arc::clone(&written);
        std::thread::spawn(move || {
            for line in BufReader::new(errors).lines().map_while(Result::ok) {
                *text.lock().unwrap() += &format!("{}\n", line.trim());
            }
        });
        let started = Self { address, child, written, _folder: folder };
        until("it listens", || TcpStream::connect(address).is_ok());
        started
    }

    /// What stands behind `key` in what it wrote, in order.
    fn told(&self, key: &str) -> Vec<String> {
        let written = self.written.lock().unwrap();
        let values = written.lines().filter_map(|line| line.strip_prefix(key));
        values.map(|value| value.trim_start_matches([' ', ':']).to_owned()).collect()
    }
}

impl Drop for Otelcol {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Law: the collector of the OpenTelemetry project reads what two nodes post as one trace.
#[test]
#[ignore = "needs the program of a collector: make otel-test"]
fn the_collector_of_opentelemetry_reads_a_trace_over_two_nodes() {
    let collector = Otelcol::start();
    let setting = format!("telemetry.collector=http://{}", collector.address);
    let [(_a, mut consumer), (_b, mut producer)] = line(&setting, &[TRUSTED], &[TRUSTED]);
    consumer.interest("/a/b%20c");
    let frame = producer.frame();
    let lp = LpPacket::parse(&frame).unwrap();
    let context = TraceContext::parse(lp.trace_context.unwrap()).unwrap();
    producer.data_with_token("/a/b%20c", b"x", lp.pit_token.unwrap());
    until("both spans are written", || collector.told("Status message").len() == 2);
    assert_eq!(collector.told("Trace ID"), vec![format!("{:032x}", context.trace); 2]);
    let (ids, parents) = (collector.told("ID "), collector.told("Parent ID"));
    let second = ids.iter().position(|id| *id == format!("{:016x}", context.span)).unwrap();
    assert_eq!((&parents[second], &parents[1 - second][..]), (&ids[1 - second], ""));
    assert_eq!(collector.told("Status code"), ["Unset"; 2]);
    until("the attributes of both are written", || collector.told("-> onym.end").len() == 2);
    for (key, value) in [
        ("-> ndn.name", "Str(/a/b%20c)"),
        ("-> onym.verdict", "Str(forwarded)"),
        ("-> onym.end", "Str(data)"),
        ("-> service.name", "Str(onym)"),
    ] {
        assert_eq!(collector.told(key), [value; 2], "{key}");
    }
}

/// Law: a node that does not trust a neighbour neither tells it of a trace nor takes one from it.
#[test]
fn at_a_boundary_the_context_is_dropped() {
    let collector = Collector::start();
    for (first, second) in
        [(TRUSTED, "telemetry.trusted=local"), ("telemetry.trusted=local", TRUSTED)]
    {
        let [(_a, mut consumer), (b, mut producer)] =
            line(&collector.setting(), &[first], &[second]);
        consumer.interest("/a/b");
        let frame = producer.frame();
        let lp = LpPacket::parse(&frame).unwrap();
        assert!(lp.trace_context.is_none());
        producer.data_with_token("/a/b", b"x", lp.pit_token.unwrap());
        let spans = collector.spans();
        assert!(spans.iter().all(|(node, _)| node == "a"), "{spans:?}");
        assert_eq!(b.snapshot().unwrap().shards[0].spans.begun, 0);
    }
}

/// Law: with no collector the field ends here, too, and is no reason to drop anything.
#[test]
fn a_node_without_telemetry_passes_no_context_on() {
    let node = start(with(1, &["faces.tcp.listen=127.0.0.1:0"]));
    let (id, producer) = node.attach(Scope::Local).unwrap();
    node.route("/a", id, 0).unwrap();
    let (mut stranger, mut producer) = (tcp_app(&node), App::new(producer));
    let octets = TraceContext { trace: 1, span: 2 }.to_octets();
    let header = LpHeader { trace_context: Some(&octets), ..LpHeader::default() };
    stranger.send_lp(&header, &interest_wire("/a/b", 1));
    let frame = producer.frame();
    assert!(LpPacket::parse(&frame).unwrap().trace_context.is_none());
}

/// Law: what is refused, dropped, or not answered is a span with an error that says which.
#[test]
fn a_span_says_how_its_interest_failed() {
    let collector = Collector::start();
    let sets = [&collector.setting()[..], "telemetry.sample=1"];
    let node = start(with(1, &sets));
    let (_, consumer) = node.attach(Scope::Local).unwrap();
    let (id, producer) = node.attach(Scope::Local).unwrap();
    node.route("/a", id, 0).unwrap();
    let (mut consumer, mut producer) = (App::new(consumer), App::new(producer));
    consumer.interest("/none");
    consumer.take_nack();
    consumer.interest("/a/nack");
    producer.nack_next();
    consumer.take_nack();
    let (late, mut wire) = (name("/a/late"), Vec::new());
    let (nonce, lifetime_ms) = (Some([9; 4]), Some(50));
    InterestBuilder { nonce, lifetime_ms, ..InterestBuilder::new(late.as_ref()) }.write(&mut wire);
    consumer.send(&wire);
    let spans = collector.spans_of(3);
    let told = |name: &str| {
        let (_, span) = spans.iter().find(|(_, s)| attribute(s, "ndn.name") == name).unwrap();
        assert_eq!(span["status"]["code"], 2);
        (attribute(span, "onym.verdict").to_owned(), attribute(span, "onym.end").to_owned())
    };
    assert_eq!(told("/none"), ("no_route".into(), "decided".into()));
    assert_eq!(told("/a/nack"), ("forwarded".into(), "nack".into()));
    assert_eq!(told("/a/late"), ("forwarded".into(), "unanswered".into()));
}

/// Law: a collector that is busy gets the spans later; what it refuses for good is counted, and the
/// node goes on.
#[test]
fn a_collector_that_says_no_is_asked_again_or_counted() {
    let collector = Collector::start();
    collector.answers("503 Busy");
    let node = start(with(1, &[&collector.setting()[..], "telemetry.sample=1"]));
    let (_, consumer) = node.attach(Scope::Local).unwrap();
    let mut consumer = App::new(consumer);
    consumer.interest("/none/1");
    consumer.take_nack();
    assert_eq!(collector.posted.recv_timeout(DEADLINE).unwrap().0, "503 Busy");
    collector.answers("200 OK");
    let (_, span) = &collector.spans_of(1)[0];
    assert_eq!(attribute(span, "ndn.name"), "/none/1");
    collector.answers("400 Bad");
    consumer.interest("/none/2");
    consumer.take_nack();
    until("it is counted", || node.snapshot().unwrap().exported.refused == 1);
    assert_eq!(node.snapshot().unwrap().exported.lost, 0);
}
