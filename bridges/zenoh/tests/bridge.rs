//! Peers of Zenoh and applications of Onym hear each other. ONYM names the program `onym`.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing)]

use std::collections::BTreeSet;
use std::fs::{File, read_to_string};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use zenoh::pubsub::Subscriber;
use zenoh::{Config, Session, Wait};

const PATIENCE: Duration = Duration::from_secs(30);

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + PATIENCE;
    while !is_so() {
        assert!(Instant::now() < end, "{what}: did not come in time");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// A program that ends with the test, and the file with what it says.
struct Program {
    child: Child,
    said: PathBuf,
    errors: PathBuf,
}

impl Program {
    fn start(folder: &Path, name: &str, command: &mut Command) -> Self {
        let (said, errors) = (folder.join(name), folder.join(format!("{name}.errors")));
        let (out, err) = (File::create(&said).unwrap(), File::create(&errors).unwrap());
        let child = command.stdout(out).stderr(err).stdin(Stdio::null()).spawn().unwrap();
        Self { child, said, errors }
    }

    fn said(&self) -> String {
        read_to_string(&self.said).unwrap()
    }

    fn says(&self, text: &str) {
        let is_in = |file: &Path| read_to_string(file).unwrap().contains(text);
        until(&format!("{text} in {}", self.said.display()), || {
            is_in(&self.said) || is_in(&self.errors)
        });
    }

    /// What it said by the time that it ended as it was asked to.
    fn ends(mut self) -> String {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").arg(pid).status().unwrap().success());
        assert!(self.child.wait().unwrap().success(), "{}", self.said());
        self.said()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        let _ = (self.child.kill(), self.child.wait());
    }
}

/// A node and what is beside it.
struct Domain {
    folder: TempDir,
    _node: Program,
}

impl Domain {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let socket = format!("faces.unix.path={:?}", folder.path().join("node.sock"));
        let sets = [
            &socket[..],
            "faces.tcp.listen=[]",
            "faces.udp.listen=[]",
            "faces.websocket.listen=[]",
            "push.enabled=true",
            "push.roles=[\"rendezvous\", \"topology\"]",
        ];
        let mut command = Command::new(onym());
        command.arg("daemon").args(sets.iter().flat_map(|set| ["--set", set]));
        let node = Program::start(folder.path(), "node", &mut command);
        node.says("ready");
        Self { folder, _node: node }
    }

    fn uri(&self) -> String {
        format!("unix://{}", self.folder.path().join("node.sock").display())
    }

    fn run(&self, name: &str, words: &[&str]) -> Program {
        let mut command = Command::new(onym());
        Program::start(self.folder.path(), name, command.args(["--node", &self.uri()]).args(words))
    }

    /// Publishes once somebody is subscribed.
    fn publish(&self, item: &str, text: &str) {
        let mut command = Command::new(onym());
        command.args(["--node", &self.uri(), "publish", item, "--text", text, "--timeout", "30"]);
        assert!(command.stdout(Stdio::null()).status().unwrap().success());
    }

    fn bridge(&self, name: &str, to: &Peer, words: &[&str]) -> Program {
        let mut command = Command::new(env!("CARGO_BIN_EXE_onym-zenoh"));
        command.args(["--node", &self.uri(), "--no-scouting", "--connect", &to.at]).args(words);
        let bridge = Program::start(self.folder.path(), name, &mut command);
        bridge.says("ready");
        bridge
    }
}

fn onym() -> PathBuf {
    std::env::var_os("ONYM").expect("ONYM names the program onym").into()
}

/// A peer of Zenoh as anybody writes one.
struct Peer {
    session: Session,
    at: String,
}

type Heard = Arc<Mutex<Vec<(String, String)>>>;

impl Peer {
    fn new() -> Self {
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let at = format!("tcp/{}", free.local_addr().unwrap());
        drop(free);
        let mut config = Config::default();
        for (key, value) in [
            ("mode", "\"peer\"".to_owned()),
            ("listen/endpoints", format!("[{at:?}]")),
            ("scouting/multicast/enabled", "false".to_owned()),
        ] {
            config.insert_json5(key, &value).unwrap();
        }
        Self { session: zenoh::open(config).wait().unwrap(), at }
    }

    fn put(&self, key: &str, text: &str) {
        self.session.put(key, text).wait().unwrap();
    }

    /// The keys and texts that answer a get, in order.
    fn gets(&self, keys: &str) -> Vec<(String, String)> {
        let replies = self.session.get(keys).wait().unwrap();
        let mut all = Vec::new();
        while let Ok(reply) = replies.recv() {
            let sample = reply.into_result().unwrap();
            let text = sample.payload().try_to_string().unwrap().into_owned();
            all.push((sample.key_expr().to_string(), text));
        }
        all.sort();
        all
    }

    /// The keys and texts that come.
    fn hears(&self, keys: &str) -> (Subscriber<()>, Heard) {
        let heard = Heard::default();
        let of = Arc::clone(&heard);
        let take = move |sample: zenoh::sample::Sample| {
            let text = sample.payload().try_to_string().unwrap().into_owned();
            of.lock().unwrap().push((sample.key_expr().to_string(), text));
        };
        let subscriber = self.session.declare_subscriber(keys).callback(take).wait().unwrap();
        (subscriber, heard)
    }
}

fn has(heard: &Heard, key: &str, text: &str) -> bool {
    heard.lock().unwrap().contains(&(key.to_owned(), text.to_owned()))
}

#[test]
fn what_a_peer_puts_comes_to_applications_and_the_other_way() {
    let (domain, peer) = (Domain::new(), Peer::new());
    let bridge = domain.bridge("bridge", &peer, &["--prefix", "plant", "--key", "lamp"]);
    let roof = domain.run("roof", &["subscribe", "/zenoh/sensors/roof/~value", "--lines"]);
    until("the first value", || {
        peer.put("plant/sensors/roof", "21.5");
        roof.said().contains("21.5")
    });
    // Beside the prefix nothing crosses.
    peer.put("plants/sensors/roof", "beside");
    peer.put("plant/sensors/roof", "last");
    roof.says("last");
    assert!(!roof.said().contains("beside"));
    let ((_exactly, exact), (_widely, wild)) = (peer.hears("plant/lamp"), peer.hears("plant/*"));
    domain.publish("/zenoh/lamp/~value", "on");
    until("a publication", || [&exact, &wild].iter().all(|heard| has(heard, "plant/lamp", "on")));
    assert_ends(bridge, ", 1 to Zenoh,");
}

#[test]
fn a_get_is_answered_by_what_is_retained_of_each_topic_that_it_matches() {
    let (domain, peer) = (Domain::new(), Peer::new());
    let words = ["lamp", "door", "door/lock", "never"].map(|key| ["--key", key]).concat();
    let words = [&["--prefix", "plant"][..], &words[..]].concat();
    let bridge = domain.bridge("bridge", &peer, &words);
    let retain = |name: &str, item: &str, text: &str| {
        domain.run(name, &["publish", item, "--retain", "--text", text])
    };
    let _lamp = retain("lamp", "/zenoh/lamp/~value", "on");
    let _door = retain("door", "/zenoh/door/~retained", "shut");
    let _lock = retain("lock", "/zenoh/door/lock/~value", "locked");
    let pair = |key: &str, text: &str| (key.to_owned(), text.to_owned());
    let all =
        [pair("plant/door", "shut"), pair("plant/door/lock", "locked"), pair("plant/lamp", "on")];
    // They are there when they are.
    until("what is retained", || peer.gets("plant/**") == all);
    // The bridge is subscribed to one of them already, and to others it is not.
    let (_subscriber, _) = peer.hears("plant/lamp");
    assert_eq!(peer.gets("plant/lamp"), all[2..]);
    assert_eq!(peer.gets("plant/*"), [all[0].clone(), all[2].clone()]);
    assert_eq!(peer.gets("**/lock"), all[1..2]);
    // Nothing is retained, or no topic matches, or it is beside the prefix.
    for key in ["plant/never", "plant/none", "plants/lamp", "plant"] {
        assert!(peer.gets(key).is_empty(), "{key}");
    }
    let said = bridge.ends();
    assert!(!said.contains(" 0 answers to queries") && said.contains(" 0 refused,"), "{said}");
}

#[test]
fn queries_and_values_beyond_the_bounds_are_refused_and_the_rest_is_answered() {
    let (domain, peer) = (Domain::new(), Peer::new());
    let bridge =
        domain.bridge("bridge", &peer, &["--key", "lamp", "--key", "door", "--queue-max", "100"]);
    let _lamp =
        domain.run("lamp", &["publish", "/zenoh/lamp/~retained", "--retain", "--text", "on"]);
    let long = "x".repeat(101);
    let door = ["publish", "/zenoh/door/~retained", "--retain", "--text", &long];
    let _door = domain.run("door", &door);
    let on = [("lamp".to_owned(), "on".to_owned())];
    until("what is retained", || peer.gets("*") == on);
    // More at once than may be under way.
    let asked: Vec<_> = (0..600).map(|_| peer.session.get("door").wait().unwrap()).collect();
    let refused = asked.iter().filter(|of| of.recv().is_ok_and(|reply| reply.result().is_err()));
    assert!(refused.count() >= 600 - 2 * 256);
    assert_eq!(peer.gets("*"), on);
    assert!(!bridge.ends().contains(" 0 refused,"));
}

/// A bridge tells so at its end.
fn assert_ends(bridge: Program, counts: &str) {
    let said = bridge.ends();
    let last = said.lines().last().map(|line| format!(", {line}")).unwrap_or_default();
    assert!(last.contains(counts), "{said}");
}

#[test]
fn two_networks_of_zenoh_hear_each_other_by_wildcards_and_nothing_goes_round() {
    let (domain, one, two) = (Domain::new(), Peer::new(), Peer::new());
    let first = domain.bridge("first", &one, &["--key", "lamp"]);
    let again = domain.bridge("again", &one, &["--key", "lamp"]);
    let other = domain.bridge("other", &two, &[]);
    let (_here, here) = one.hears("**");
    // One network by way of the domain to another, by a topic that a bridge says it has.
    until("from one network to another", || {
        two.put("a/b", "over");
        has(&here, "a/b", "over")
    });
    // What two bridges put in one network neither takes back.
    let lamp = domain.run("lamp", &["subscribe", "/zenoh/lamp/~value", "--lines"]);
    let mut number = 0;
    until("by both bridges", || {
        number += 1;
        domain.publish("/zenoh/lamp/~value", &number.to_string());
        let heard = here.lock().unwrap();
        (1..=number).any(|text: i32| {
            heard.iter().filter(|(key, of)| key == "lamp" && *of == text.to_string()).count() == 2
        })
    });
    for bridge in [first, again] {
        assert_ends(bridge, ", 0 values from Zenoh,");
    }
    assert_ends(other, ", 0 to Zenoh,");
    let said = lamp.said();
    let texts: BTreeSet<&str> = said.lines().collect();
    assert_eq!(said.lines().count(), texts.len(), "{said}");
}

#[test]
fn values_and_topics_beyond_the_bounds_are_refused_and_the_rest_goes_on() {
    let (domain, peer) = (Domain::new(), Peer::new());
    let words = ["--packet-max", "100", "--topics-max", "2"];
    let bridge = domain.bridge("bridge", &peer, &words);
    let heard = domain.run("heard", &["subscribe", "/zenoh/water/~value", "--lines"]);
    until("the first value", || {
        peer.put("water", "first");
        heard.said().contains("first")
    });
    peer.put("water", &"long".repeat(100));
    peer.put(&"x".repeat(65), "a chunk that is no word");
    peer.session.delete("water").wait().unwrap();
    for key in ["b", "c", "d"] {
        peer.put(key, key);
    }
    peer.put("water", "last");
    heard.says("last");
    assert!(!heard.said().contains("long"));
    assert_ends(bridge, ", 5 refused,");
}
