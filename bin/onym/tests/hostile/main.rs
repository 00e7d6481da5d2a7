//! A node, a manager and files that put terminal commands into every text they may choose: nothing
//! of it reaches the terminal, whatever command prints it.

#![allow(clippy::unwrap_used)]
#![recursion_limit = "512"]

#[path = "../support/mod.rs"]
mod support;

mod node;

use node::{HOSTILE, Mood, Node};
use std::collections::BTreeSet;
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use support::Place;

/// Each command with what it is given; NODE, MANAGER and FILE are replaced. More rows of a command
/// are more cases.
const CASES: &[(&str, &[&str])] = &[
    ("access grant", &["/a/NAC/b", "FILE"]),
    ("access key", &["/nobody"]),
    ("access list", &[]),
    ("access revoke", &["/a/NAC/b", "/nobody"]),
    ("access serve", &["/a/NAC/b"]),
    ("answer", &["/1/2", "--timeout", "1", "--text", "x"]),
    ("backup", &["onym.backup", "--config", "FILE"]),
    ("bench", &["/a", "--duration", "1"]),
    ("call", &["/1/2", "--text", "x", "--timeout", "1", "-o", "out.call"]),
    ("cert authority", &["/nobody"]),
    ("cert export", &["/nobody"]),
    ("cert install", &["FILE"]),
    ("cert issue", &["FILE", "--signer", "/nobody"]),
    ("cert list", &[]),
    ("cert renew", &["FILE"]),
    ("cert request", &["FILE", "--for", "/nobody"]),
    ("cert revoke", &["FILE"]),
    ("cert self-sign", &["/nobody"]),
    ("cert serve", &["/nobody"]),
    ("cert show", &["FILE"]),
    ("cert status", &[]),
    ("chat", &["/a", "--as", "/nobody"]),
    ("check-config", &["FILE"]),
    ("console", &["--listen", "127.0.0.1:0"]),
    ("cs config", &["--capacity", "7"]),
    ("cs disk", &[]),
    ("cs erase", &["/a"]),
    ("cs info", &[]),
    ("cs keep", &["cs.keep"]),
    ("cp", &["/a", "out"]),
    ("cp", &["/a", "out", "--recursive"]),
    ("daemon", &["--config", "FILE"]),
    ("dissect", &["FILE"]),
    ("doctor", &[]),
    ("doctor", &["--live"]),
    ("dump", &["--count", "1"]),
    ("explain", &["/a"]),
    ("explain", &["--push", "/1/2"]),
    ("explain", &["--across", "/a"]),
    ("face create", &["udp4://192.0.2.1:6363"]),
    ("face destroy", &["263"]),
    ("face list", &[]),
    ("face list", &["--scheme", "udp4"]),
    ("face show", &["263"]),
    ("face update", &["263", "--mtu", "1400"]),
    ("fib list", &[]),
    ("gateway http", &["--listen", "127.0.0.1:0"]),
    ("gateway mqtt", &["--listen", "127.0.0.1:0"]),
    ("gateway origin", &["http://127.0.0.1:1", "/a"]),
    ("get", &["/a", "-o", "out"]),
    ("get", &["/a", "-o", "out", "--range", "0-9"]),
    ("get", &["/a/v=1", "-o", "out", "--verify", "FILE"]),
    ("get", &["/a/v=1", "-o", "out", "--trust", "FILE"]),
    ("hub find", &[]),
    ("hub serve", &["udp4://192.0.2.1:6363"]),
    ("import", &["FILE"]),
    ("key default", &["/nobody"]),
    ("key delete", &["/nobody"]),
    ("key export", &["/nobody", "-o", "key.out"]),
    ("key import", &["FILE"]),
    ("key list", &[]),
    ("key lock", &["/nobody"]),
    ("key new", &["/somebody"]),
    ("key protect", &["/nobody"]),
    ("key unlock", &["/nobody"]),
    ("load", &["FILE"]),
    ("log", &[]),
    ("log", &["--filter", "debug"]),
    ("ls", &["/a"]),
    ("ls", &["/a", "--long"]),
    ("manager", &["--listen", "FILE"]),
    ("manager", &["--driver", "kubernetes", "--image", "i", "--networks", "--kubeconfig", "FILE"]),
    ("mount", &["/a", "nowhere"]),
    ("net apply", &["FILE"]),
    ("net check", &["FILE"]),
    ("net deploy", &["a", "cs"]),
    ("net down", &[]),
    ("net events", &[]),
    ("net export", &[]),
    ("net insert", &["cs", "br", "signature-verifier", "sv"]),
    ("net link", &["a", "b"]),
    ("net openapi", &[]),
    ("net page", &[]),
    ("net plan", &["FILE"]),
    ("net preset", &["nfd"]),
    ("net preset", &[]),
    ("net remove", &["sv"]),
    ("net scale", &["br", "2"]),
    ("net show", &[]),
    ("net trace", &["/a"]),
    ("net unlink", &["a", "b"]),
    ("network init", &["/a/b/c/d", "--folder", "network"]),
    ("network invite", &["/a/b", "--neighbour", "FILE", "--folder", "network"]),
    ("network join", &["FILE", "--folder", "network"]),
    ("network renew", &["--folder", "network"]),
    ("nfdc", &["face", "list"]),
    ("nfdc", &["face", "create", "udp4://192.0.2.1"]),
    ("nfdc", &["status", "report"]),
    ("nfdc", &["status", "report", "xml"]),
    ("peek", &["/a", "--verbose"]),
    ("ping", &["/a", "-c", "2", "-i", "1"]),
    ("ping-server", &["/a"]),
    ("pit config", &["--kernel"]),
    ("pit erase", &["/a", "--kernel"]),
    ("pit info", &["--kernel"]),
    ("pit list", &["--kernel"]),
    ("poke", &["/a", "FILE", "--timeout", "200"]),
    ("publish", &["/1/2", "--text", "x", "--timeout", "1"]),
    ("put", &["/a", "FILE"]),
    ("rendezvous graph", &[]),
    ("rendezvous graph", &["--dot"]),
    ("rendezvous status", &[]),
    ("repo add", &["FILE", "--store", "repo.add", "--as", "/a"]),
    ("repo delete", &["/r", "/a", "--start", "0"]),
    ("repo gc", &["--store", "repo.none"]),
    ("repo get", &["/a", "--store", "repo.none"]),
    ("repo insert", &["/r", "/a", "--start", "0"]),
    ("repo jobs", &["--store", "repo.none"]),
    ("repo list", &["--store", "repo.none"]),
    ("repo remove", &["/a", "--store", "repo.none"]),
    ("repo run", &["--store", "repo.run", "--name", "/r"]),
    ("repo stats", &["--store", "repo.none"]),
    ("repo verify", &["--store", "repo.none"]),
    ("restore", &["FILE"]),
    ("route add", &["/a", "--via", "263"]),
    ("route add", &["/a", "--via", "udp4://192.0.2.1:6363"]),
    ("route explain", &["/a"]),
    ("route hold", &["/a/b"]),
    ("route list", &[]),
    ("route lsdb", &[]),
    ("route map", &[]),
    ("route neighbours", &[]),
    ("route prefixes", &[]),
    ("route release", &["/a/b"]),
    ("route remove", &["/a", "--via", "263"]),
    ("route run", &["/a/b/c/d", "--insecure"]),
    ("route status", &[]),
    ("route table", &[]),
    ("scope list", &[]),
    ("scope publish", &["/1"]),
    ("serve", &[".", "/a"]),
    ("service", &["br", "--config", "FILE"]),
    ("sim", &["FILE"]),
    ("status", &["--all"]),
    ("strategy list", &[]),
    ("strategy set", &["/a", "multicast"]),
    ("strategy show", &["/a"]),
    ("strategy unset", &["/a"]),
    ("subscribe", &["/1/2", "--count", "1", "--timeout", "1", "-o", "out"]),
    ("sync", &["/a", "out.sync"]),
    ("top", &["--once"]),
    ("top", &["--why"]),
    ("topology deploy", &["FILE", "-o", "out.d"]),
    ("topology map", &[]),
    ("topology map", &["--dot"]),
    ("topology tree", &["/1/2"]),
    ("trace", &["/a", "--timeout", "50"]),
    ("trust check", &["--schema", "FILE", "/a", "/b"]),
    ("trust compile", &["FILE"]),
    ("trust explain", &["--schema", "FILE", "/a"]),
    ("trust lint", &["FILE"]),
    ("video", &[".", "/a"]),
    ("video", &[".", "/a", "--publish", "x=/1/2"]),
];

/// The commands without subcommands, from the reference that the parser writes.
fn leaves(place: &Place) -> BTreeSet<String> {
    let reference = place.run(&["man", "--markdown"]).out;
    let all: BTreeSet<String> =
        reference.lines().filter_map(|l| l.strip_prefix("## onym ")).map(str::to_owned).collect();
    let is_group = |one: &String| all.iter().any(|other| other.starts_with(&format!("{one} ")));
    all.iter().filter(|one| !is_group(one)).cloned().collect()
}

/// What a terminal must not get from outside.
fn harmful(text: &str) -> Option<char> {
    text.chars().find(|c| {
        (c.is_control() && !matches!(c, '\n' | '\t'))
            || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
    })
}

/// Runs a command for at most a few seconds; what it wrote on both sides.
fn output(command: &mut Command) -> [String; 2] {
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut pipes: Vec<_> = vec![];
    let (mut out, mut err) = (child.stdout.take().unwrap(), child.stderr.take().unwrap());
    pipes.push(thread::spawn(move || {
        let mut all = Vec::new();
        let _ = out.read_to_end(&mut all);
        all
    }));
    pipes.push(thread::spawn(move || {
        let mut all = Vec::new();
        let _ = err.read_to_end(&mut all);
        all
    }));
    let until = Instant::now() + Duration::from_secs(12);
    while child.try_wait().unwrap().is_none() && Instant::now() < until {
        thread::sleep(Duration::from_millis(5));
    }
    let _ = child.kill();
    let _ = child.wait();
    let said: Vec<_> = pipes.into_iter().map(|pipe| pipe.join().unwrap()).collect();
    [0, 1].map(|side| String::from_utf8_lossy(&said[side]).into_owned())
}

/// A manager that answers every request with the same hostile JSON.
fn manager(mood: Mood) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            thread::spawn(move || {
                let mut stream = stream;
                let mut request = [0; 16 << 10];
                while stream.read(&mut request).is_ok_and(|n| n > 0) {
                    let (line, body) = match mood {
                        Mood::Grants => ("200 OK", node::json()),
                        Mood::Refuses => (
                            "409 Conflict",
                            serde_json::json!({ "error": HOSTILE, "message": HOSTILE, "what": HOSTILE }),
                        ),
                    };
                    let body = body.to_string();
                    let head = format!(
                        "HTTP/1.1 {line}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
                        body.len()
                    );
                    let _ = stream.write_all(&[head.as_bytes(), body.as_bytes()].concat());
                }
            });
        }
    });
    url
}

fn run(place: &Place, mood: Mood) -> Vec<String> {
    let _node = Node::start(&place.path("nfd.sock"), mood);
    let manager = manager(mood);
    fs::write(place.path("hostile.txt"), format!("[{HOSTILE}]\n{HOSTILE} = \"{HOSTILE}\"\n"))
        .unwrap();
    let (manager, next) = (&manager, &AtomicUsize::new(0));
    // Some wait for what never comes: they wait side by side.
    thread::scope(|scope| {
        let each = || {
            let mut reached = Vec::new();
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                let Some(case) = CASES.get(at / 2) else { return reached };
                reached.extend(try_case(place, manager, mood, case, at % 2 == 1));
            }
        };
        let parts: Vec<_> = (0..PARTS).map(|_| scope.spawn(each)).collect();
        parts.into_iter().flat_map(|part| part.join().unwrap()).collect()
    })
}

/// Cases at the same time.
const PARTS: usize = 24;

/// One case as text or as JSON; its form, when it had hostile text in it, made plain.
fn try_case(
    place: &Place,
    manager: &str,
    mood: Mood,
    (command, args): &(&str, &[&str]),
    json: bool,
) -> Option<String> {
    let words = command.split(' ').chain(args.iter().map(|a| match *a {
        "FILE" => "hostile.txt",
        other => other,
    }));
    let mut all: Vec<&str> = words.collect();
    if json {
        all.push("--json");
    }
    let [out, err] = output(place.command(&all).env("ONYM_MANAGER", manager));
    // Content that was asked for goes to standard output as it is.
    let is_content = *command == "peek" && !json;
    let out = if is_content { err } else { out + &err };
    assert_eq!(harmful(&out), None, "{all:?}, {mood:?}: {out:?}");
    let is_reached = out.contains("\\x1b]0;owned") || out.contains("\\u001b]0;owned");
    is_reached.then(|| format!("{command} {json}"))
}

#[test]
fn every_command_is_among_the_cases() {
    let place = Place::new();
    let cases: BTreeSet<String> = CASES.iter().map(|(command, _)| (*command).to_owned()).collect();
    assert_eq!(leaves(&place), cases, "each command needs a case");
}

#[test]
fn nothing_that_a_node_says_when_it_grants_reaches_the_terminal_raw() {
    let reached = run(&Place::new(), Mood::Grants);
    // The texts did come: this test could fail.
    for command in ["face create", "face list", "face show", "log", "status", "explain"] {
        let is_there = reached.iter().any(|r| r == &format!("{command} false"));
        assert!(is_there, "{command} printed no text of the node: {reached:?}");
    }
}

#[test]
fn nothing_that_a_node_says_when_it_refuses_reaches_the_terminal_raw() {
    let reached = run(&Place::new(), Mood::Refuses);
    for command in ["face create", "cs erase", "strategy set", "net show"] {
        let is_there = reached.iter().any(|r| r == &format!("{command} false"));
        assert!(is_there, "{command} printed no text of the node: {reached:?}");
    }
}

#[test]
fn a_sentence_of_the_node_stays_in_its_line() {
    let place = Place::new();
    let _node = Node::start(&place.path("nfd.sock"), Mood::Refuses);
    let ended = place.run(&["strategy", "set", "/a", "multicast"]);
    assert_eq!(ended.code, 4, "{}", ended.err);
    let lines: Vec<&str> = ended.err.lines().collect();
    assert!(lines.iter().all(|l| !l.starts_with("forged")), "{}", ended.err);
}
