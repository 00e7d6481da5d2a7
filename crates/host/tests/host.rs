//! Services over real sockets: links that are changed while traffic runs, connections that come
//! back, frames that are too long or malformed, mutual TLS.

#![allow(clippy::unwrap_used)]

use base64::Engine as _;
use onym_crypto::{KeyType, PrivateKey, Signer};
use onym_face::{CHUNK_LEN, Face, Incoming, Listener as _, tcp};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_host::{Host, Kind, Options, TlsFiles};
use onym_wire::data::{Data, DataBuilder};
use onym_wire::interest::{Interest, InterestBuilder};
use onym_wire::name::Name;
use serde_json::{Value, json};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// How long anything may take; generous, because machines are busy.
const PATIENCE: Duration = Duration::from_secs(60);

fn start(kind: Kind, listen: &[&str]) -> Host {
    let mut options = Options::new(kind);
    options.listen = listen.iter().map(|l| l.parse().unwrap()).collect();
    Host::start(options).unwrap()
}

fn call(host: &Host, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let mut stream = TcpStream::connect(host.control()).unwrap();
    exchange(&mut stream, method, path, body)
}

fn exchange(
    stream: &mut (impl std::io::Read + std::io::Write),
    method: &str,
    path: &str,
    body: &Value,
) -> (u16, Value) {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let length = body.len();
    write!(stream, "{method} {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\ncontent-type: application/json\r\ncontent-length: {length}\r\n\r\n{body}").unwrap();
    let mut text = String::new();
    // A peer that closes without a farewell has said everything all the same.
    let _ = stream.read_to_string(&mut text);
    let status = text.split(' ').nth(1).unwrap_or("0").parse().unwrap();
    let body = text.split_once("\r\n\r\n").map_or("", |t| t.1);
    (status, serde_json::from_str(body).unwrap_or(Value::Null))
}

/// A face in the hands of the test.
struct End {
    face: Box<dyn Face>,
    pool: BufPool,
    queue: TxQueue,
    frames: Vec<RxFrame>,
}

impl End {
    fn to(uri: &str) -> Self {
        let address = uri.strip_prefix("tcp4://").unwrap().parse().unwrap();
        Self::of(Box::new(tcp::connect(address).unwrap()))
    }

    fn of(face: Box<dyn Face>) -> Self {
        let pool = BufPool::new(CHUNK_LEN, 64);
        Self { face, pool, queue: TxQueue::new(64 << 20), frames: Vec::new() }
    }

    fn send(&mut self, frame: &[u8]) {
        self.queue.push(frame, None).unwrap();
        let end = Instant::now() + PATIENCE;
        while !self.queue.is_empty() {
            let _ = self.face.flush(&mut self.queue).unwrap();
            assert!(Instant::now() < end, "it takes nothing");
        }
    }

    /// The next frame; `None` when the far end closed.
    fn next(&mut self) -> Option<Vec<u8>> {
        let end = Instant::now() + PATIENCE;
        loop {
            if !self.frames.is_empty() {
                return Some(self.frames.remove(0).bytes.to_vec());
            }
            assert!(Instant::now() < end, "nothing came");
            if self.face.receive(&mut self.pool, 64, &mut self.frames).is_err()
                && self.frames.is_empty()
            {
                return None;
            }
            std::thread::yield_now();
        }
    }
}

fn interest(uri: &str, nonce: u32) -> Vec<u8> {
    let name: Name = uri.parse().unwrap();
    let mut wire = Vec::new();
    InterestBuilder { nonce: Some(nonce.to_be_bytes()), ..InterestBuilder::new(name.as_ref()) }
        .write(&mut wire);
    wire
}

fn data(name: &Name, len: usize) -> Vec<u8> {
    let content = vec![7; len];
    let mut wire = Vec::new();
    onym_crypto::signer::write_digest_data(&DataBuilder::new(name.as_ref(), &content), &mut wire);
    wire
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !done() {
        assert!(Instant::now() < end, "{what}: not within {PATIENCE:?}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

/// Two ends with a service between them.
fn between(host: &Host) -> (End, End) {
    (End::to(host.listener("in").unwrap()), End::to(host.listener("out").unwrap()))
}

const BOTH: [&str; 2] = ["in=tcp4://127.0.0.1:0", "out=tcp4://127.0.0.1:0,side=producer"];

/// Defect 15 of the reference code: a fixed buffer of 32 KiB, and going on octet by octet.
#[test]
fn the_longest_packet_passes_and_a_malformed_one_closes_its_stream() {
    let host = start(Kind::ContentStore, &BOTH);
    let (mut consumer, mut producer) = between(&host);
    wait_until("both faces", || {
        call(&host, "GET", "/v1/faces", &Value::Null).1["faces"].as_array().unwrap().len() == 2
    });
    for n in 0..20 {
        consumer.send(&interest(&format!("/a/{n}"), n));
        let asked = producer.next().unwrap();
        let name = Interest::parse(&asked).unwrap().name.to_name();
        let mut longest = data(&name, 8700);
        let room = 8800 - longest.len();
        longest = data(&name, 8700 + room);
        assert_eq!(longest.len(), 8800);
        producer.send(&longest);
        assert!(consumer.next().unwrap() == longest);
    }
    consumer.send(&[6, 3, 1, 2, 3]);
    assert_eq!(consumer.next(), None, "the stream is closed");
    let stats = call(&host, "GET", "/v1/stats", &Value::Null).1;
    assert_eq!(stats["dropped"]["malformed"], 1);
}

#[test]
fn a_created_face_is_connected_again_and_says_so() {
    let far = start(Kind::NameFilter, &BOTH);
    let uri = far.listener("in").unwrap().to_owned();
    let near = start(Kind::NameFilter, &["in=tcp4://127.0.0.1:0"]);
    let body = json!({ "uri": uri, "wait_ms": 10_000 });
    let (status, made) = call(&near, "PUT", "/v1/faces/link", &body);
    assert_eq!((status, &made["face"]["state"]), (201, &json!("up")), "{made}");
    let (status, again) = call(&near, "PUT", "/v1/faces/link", &body);
    assert_eq!((status, &again["changed"]), (200, &json!(false)));
    let (status, other) =
        call(&near, "PUT", "/v1/faces/link", &json!({ "uri": "tcp4://127.0.0.1:9" }));
    assert_eq!((status, &other["error"]["code"]), (409, &json!("face_differs")));
    drop(far);
    wait_until("the loss is seen", || call(&near, "GET", "/v1/ready", &Value::Null).0 == 503);
    let mut options = Options::new(Kind::NameFilter);
    options.listen.push(format!("in={uri}").parse().unwrap());
    let _far = Host::start(options).unwrap();
    wait_until("the connection is back", || call(&near, "GET", "/v1/ready", &Value::Null).0 == 200);
    let events = call(&near, "GET", "/v1/events", &Value::Null).1;
    let kinds: Vec<&str> =
        events["events"].as_array().unwrap().iter().map(|e| e["kind"].as_str().unwrap()).collect();
    assert_eq!(kinds, ["face_up", "face_down", "face_up"]);
    let removed =
        |host: &Host| call(host, "DELETE", "/v1/faces/link", &Value::Null).1["changed"].clone();
    assert_eq!((removed(&near), removed(&near)), (json!(true), json!(false)));
}

/// The second insertion strategy of the paper, by counters: nothing is lost.
#[test]
fn a_service_is_put_into_a_live_link_while_its_side_is_frozen_and_no_packet_is_lost() {
    let last = start(Kind::ContentStore, &BOTH);
    let first = start(Kind::StrategyForwarder, &["in=tcp4://127.0.0.1:0"]);
    let link = json!({ "uri": last.listener("in").unwrap(), "wait_ms": 10_000 });
    assert_eq!(call(&first, "PUT", "/v1/faces/direct", &link).0, 201);
    let mut consumer = End::to(first.listener("in").unwrap());
    let mut producer = End::to(last.listener("out").unwrap());
    wait_until("the consumer's face", || {
        let faces = call(&first, "GET", "/v1/faces", &Value::Null).1;
        faces["faces"].as_array().unwrap().len() == 2
    });
    wait_until("the producer's face", || {
        let faces = call(&last, "GET", "/v1/faces", &Value::Null).1;
        faces["faces"].as_array().unwrap().len() == 2
    });
    assert_eq!(call(&first, "PUT", "/v1/freeze/producer", &json!({})).1["frozen"], true);
    for n in 0..100 {
        consumer.send(&interest(&format!("/a/{n}"), n));
    }
    wait_until("all are kept", || {
        call(&first, "GET", "/v1/freeze/producer", &Value::Null).1["packets"] == 100
    });
    let middle = start(Kind::NameFilter, &["in=tcp4://127.0.0.1:0"]);
    assert_eq!(call(&middle, "PUT", "/v1/faces/up", &link).1["face"]["state"], "up");
    let link = json!({ "uri": middle.listener("in").unwrap(), "wait_ms": 10_000 });
    assert_eq!(call(&first, "PUT", "/v1/faces/by", &link).1["face"]["state"], "up");
    assert_eq!(call(&first, "DELETE", "/v1/faces/direct", &Value::Null).1["changed"], true);
    let ended = call(&first, "DELETE", "/v1/freeze/producer", &Value::Null).1;
    assert_eq!((&ended["sent"], &ended["dropped"]), (&json!(100), &json!(0)));
    for n in 0..100 {
        let asked = producer.next().unwrap();
        let name = Interest::parse(&asked).unwrap().name.to_name();
        assert_eq!(name.to_string(), format!("/a/{n}"), "in order");
        producer.send(&data(&name, 100));
        let got = consumer.next().unwrap();
        assert_eq!(Data::parse(&got).unwrap().name.to_name(), name);
    }
    let through = call(&middle, "GET", "/v1/stats", &Value::Null).1;
    assert_eq!(through["verdicts"]["forwarded"], 200);
}

#[test]
fn an_event_wakes_who_waits_for_it() {
    let host = start(Kind::NameFilter, &BOTH);
    let control = host.control();
    let waiting = std::thread::spawn(move || {
        let mut stream = TcpStream::connect(control).unwrap();
        exchange(&mut stream, "GET", "/v1/events?after=0&wait_ms=30000", &Value::Null).1
    });
    let _end = End::to(host.listener("in").unwrap());
    let told = waiting.join().unwrap();
    assert_eq!(told["events"][0]["kind"], "face_up");
}

fn with(kind: Kind, listen: &[&str], config: Value) -> Host {
    let mut options = Options::new(kind);
    options.listen = listen.iter().map(|l| l.parse().unwrap()).collect();
    let Value::Object(config) = config else { panic!("{config}") };
    options.config = config;
    Host::start(options).unwrap()
}

#[test]
fn a_verifier_of_several_threads_lets_exactly_the_good_pass() {
    const COUNT: u64 = 300;
    let host = with(Kind::SignatureVerifier, &BOTH, json!({ "threads": 3 }));
    let (mut consumer, mut producer) = between(&host);
    let key = PrivateKey::generate(KeyType::Ecdsa).unwrap();
    let spki = base64::engine::general_purpose::STANDARD.encode(key.spki());
    let signer = Signer::key(key, "/a/KEY/1".parse().unwrap());
    let keys = json!({ "add": [{ "name": "/a/KEY/1", "spki": spki }] });
    assert_eq!(call(&host, "POST", "/v1/keys", &keys).0, 200);
    consumer.send(&interest("/a", 1));
    producer.next().unwrap();
    for n in 0..COUNT {
        let name: Name = format!("/a/{n}").parse().unwrap();
        let mut wire = Vec::new();
        signer.sign_data(&DataBuilder::new(name.as_ref(), &[7; 500]), &mut wire).unwrap();
        if n % 3 == 0 {
            // In the content.
            let middle = wire.len() / 2;
            wire[middle] ^= 1;
        }
        producer.send(&wire);
    }
    let good: Vec<String> = (0..COUNT).filter(|n| n % 3 != 0).map(|n| format!("/a/{n}")).collect();
    let mut came: Vec<String> = good
        .iter()
        .map(|_| Data::parse(&consumer.next().unwrap()).unwrap().name.to_string())
        .collect();
    // The threads end in any order.
    let mut wanted = good;
    came.sort();
    wanted.sort();
    assert_eq!(came, wanted);
    // Those that are to be dropped may still be looked at by another thread.
    let counted = |what: &str| {
        call(&host, "GET", "/v1/stats", &Value::Null).1["signature_verifier"][what].as_u64()
    };
    wait_until("all are judged", || counted("invalid") >= Some(COUNT / 3));
    assert_eq!((counted("valid"), counted("invalid")), (Some(COUNT / 3 * 2), Some(COUNT / 3)));
}

#[test]
fn a_dispatcher_of_several_threads_gives_each_client_its_own_answers() {
    let mut upstream = tcp::TcpListener::bind("127.0.0.1:0".parse().unwrap()).unwrap();
    let path = json!({ "consumer_path": upstream.local_uri().to_string(), "threads": 2 });
    let host = with(Kind::PacketDispatcher, &["in=tcp4://127.0.0.1:0"], path);
    let mut clients: Vec<End> = (0..4).map(|_| End::to(host.listener("in").unwrap())).collect();
    let sessions = || call(&host, "GET", "/v1/sessions", &Value::Null).1["sessions"].clone();
    wait_until("a path for each client", || {
        let all = sessions();
        let all = all.as_array().unwrap();
        all.len() == 4 && all.iter().all(|s| s["state"] == "up")
    });
    let mut threads: Vec<u64> =
        sessions().as_array().unwrap().iter().map(|s| s["thread"].as_u64().unwrap()).collect();
    threads.sort_unstable();
    assert_eq!(threads, [0, 0, 1, 1]);
    let mut arrived = Vec::new();
    wait_until("a connection for each client", || {
        upstream.accept(&mut BufPool::new(CHUNK_LEN, 1), 4, &mut arrived).unwrap();
        arrived.len() == 4
    });
    let face = |arrived| match arrived {
        Incoming::Face(face) => End::of(face),
        Incoming::Frame { .. } => panic!("a connection is a face"),
    };
    let mut producers: Vec<End> = arrived.into_iter().map(face).collect();
    for round in 0..10 {
        for (n, client) in (0..).zip(&mut clients) {
            client.send(&interest(&format!("/c/{n}/{round}"), round * 4 + n));
        }
        for producer in &mut producers {
            let asked = producer.next().unwrap();
            producer.send(&data(&Interest::parse(&asked).unwrap().name.to_name(), 100));
        }
        for (n, client) in (0..).zip(&mut clients) {
            let answer = client.next().unwrap();
            assert_eq!(Data::parse(&answer).unwrap().name.to_string(), format!("/c/{n}/{round}"));
        }
    }
}

fn openssl(dir: &Path, args: &[&str]) {
    let out = Command::new("openssl").args(args).current_dir(dir).output().unwrap();
    assert!(out.status.success(), "{args:?}: {}", String::from_utf8_lossy(&out.stderr));
}

/// A CA and a certificate that it signed, for `localhost`; and one that nobody signed.
fn certificates(dir: &Path) {
    for (name, subject) in [("ca", "/CN=ca"), ("stranger", "/CN=localhost")] {
        let (key, cert) = (format!("{name}.key"), format!("{name}.pem"));
        openssl(
            dir,
            &[
                "req",
                "-x509",
                "-newkey",
                "ec",
                "-pkeyopt",
                "ec_paramgen_curve:P-256",
                "-nodes",
                "-keyout",
                &key,
                "-out",
                &cert,
                "-days",
                "3",
                "-subj",
                subject,
            ],
        );
    }
    openssl(
        dir,
        &[
            "req",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
            "-keyout",
            "own.key",
            "-out",
            "own.csr",
            "-subj",
            "/CN=localhost",
        ],
    );
    std::fs::write(dir.join("ext"), "subjectAltName=DNS:localhost\nbasicConstraints=CA:FALSE\n")
        .unwrap();
    openssl(
        dir,
        &[
            "x509",
            "-req",
            "-in",
            "own.csr",
            "-CA",
            "ca.pem",
            "-CAkey",
            "ca.key",
            "-CAcreateserial",
            "-out",
            "own.pem",
            "-days",
            "3",
            "-extfile",
            "ext",
        ],
    );
}

fn client(dir: &Path, own: Option<&str>) -> rustls::ClientConfig {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let mut roots = rustls::RootCertStore::empty();
    roots.add(CertificateDer::from_pem_file(dir.join("ca.pem")).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    match own {
        None => config.with_no_client_auth(),
        Some(name) => {
            let chain =
                vec![CertificateDer::from_pem_file(dir.join(format!("{name}.pem"))).unwrap()];
            let key = PrivateKeyDer::from_pem_file(dir.join(format!("{name}.key"))).unwrap();
            config.with_client_auth_cert(chain, key).unwrap()
        }
    }
}

#[test]
fn mutual_tls_lets_in_who_has_a_certificate_of_the_ca_and_nobody_else() {
    let dir = tempfile::tempdir().unwrap();
    if Command::new("openssl").arg("version").output().is_err() {
        eprintln!("skipped: openssl is not here");
        return;
    }
    certificates(dir.path());
    let mut options = Options::new(Kind::NameFilter);
    let file = |name: &str| dir.path().join(name);
    options.tls =
        Some(TlsFiles { certificate: file("own.pem"), key: file("own.key"), ca: file("ca.pem") });
    let host = Host::start(options).unwrap();
    let ask = |own: Option<&str>| {
        let config = Arc::new(client(dir.path(), own));
        let name = "localhost".try_into().unwrap();
        let mut tls = rustls::ClientConnection::new(config, name).unwrap();
        let mut stream = TcpStream::connect(host.control()).unwrap();
        let mut both = rustls::Stream::new(&mut tls, &mut stream);
        if both
            .write_all(b"GET /v1/version HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n")
            .is_err()
        {
            return String::new();
        }
        let mut text = String::new();
        let _ = both.read_to_string(&mut text);
        text
    };
    assert!(ask(Some("own")).starts_with("HTTP/1.1 200"));
    assert_eq!((ask(None), ask(Some("stranger"))), (String::new(), String::new()));
}
