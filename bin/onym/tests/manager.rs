//! The manager with real services as processes, and clients that know nothing of it.

#![allow(clippy::unwrap_used)]

mod support;

use onym_sys::port::unused;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fs;
use std::net::TcpListener;
use std::process::Command;
use support::managed::Managed;
use support::{Place, noise, wait_until};

fn kill(pid: &str) {
    assert!(Command::new("kill").args(["-9", pid]).status().unwrap().success(), "kill {pid}");
}

#[test]
fn a_described_chain_carries_a_file_and_goes_on_while_functions_come_and_go() {
    let managed = Managed::new();
    managed.apply_chain();
    let content = noise(1_000_000, 3);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    managed.fetches("/example/file", &content);
    for (strategy, name) in
        [("make-before-break", "nf0"), ("break-and-buffer", "nf1"), ("break-and-drop", "nf2")]
    {
        let done =
            managed.net(&["insert", "br", "nr", name, "name-filter", "--strategy", strategy]);
        assert_eq!(done["counters"]["lost"], 0, "{strategy}: {done}");
        managed.fetches("/example/file", &content);
        managed.net(&["remove", name, "--strategy", strategy]);
        managed.fetches("/example/file", &content);
    }
    let again = managed.net(&["apply", "network.toml"]);
    assert_eq!(again["steps"].as_array().unwrap().len(), 0, "{again}");
    managed.net(&["down"]);
    assert!(managed.net(&["show"])["functions"].as_object().unwrap().is_empty());
}

#[test]
fn services_forward_on_without_their_manager_and_are_adopted_when_it_comes_back() {
    let mut managed = Managed::new();
    managed.apply_chain();
    let content = noise(300_000, 5);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    let names = ["pd", "cs", "br", "nr"];
    let before: Vec<String> = names.iter().map(|n| managed.pid(n)).collect();
    managed.manager.take().unwrap().kill();
    managed.fetches("/example/file", &content);
    managed.start();
    managed.wait_settled();
    let after: Vec<String> = names.iter().map(|n| managed.pid(n)).collect();
    assert_eq!(after, before, "nothing was started again");
    managed.fetches("/example/file", &content);
}

#[test]
fn a_transfer_completes_whichever_service_is_killed_in_its_midst() {
    let managed = Managed::new();
    managed.apply_chain();
    let content = noise(2_000_000, 9);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in"]);
    for victim in ["cs", "br", "nr"] {
        let _ = fs::remove_file(managed.place.path("out"));
        let mut get = managed.place.start(&["get", "/example/file", "-o", "out"]);
        let old = managed.pid(victim);
        kill(&old);
        wait_until("its replacement", || {
            let new = managed.pid(victim);
            !new.is_empty() && new != old
        });
        managed.wait_settled();
        assert_eq!(get.end(), Some(0), "{victim}: {}", get.err.text());
        assert!(fs::read(managed.place.path("out")).unwrap() == content, "{victim}");
    }
}

/// Twenty victims in a random order, each function as often as the others: one that ended more than
/// five times in a minute is started with growing pauses, which is right, and slow here.
fn victims(seed: u64) -> Vec<&'static str> {
    let mut victims: Vec<&str> = ["pd", "cs", "br", "nr"].repeat(5);
    let draws = noise(victims.len() * 8, seed);
    for (last, draw) in (0..victims.len()).rev().zip(draws.chunks(8)) {
        let draw = u64::from_le_bytes(draw.try_into().unwrap());
        victims.swap(last, usize::try_from(draw % (last as u64 + 1)).unwrap());
    }
    victims
}

/// The names of the functions and the links of a network as it runs.
fn graph(view: &Value) -> (Vec<String>, Vec<String>) {
    let names = view["functions"].as_object().unwrap().keys().cloned().collect();
    let of = |link: &Value| {
        ["from", "to", "side", "transport"].map(|key| link[key].to_string()).join(" ")
    };
    let mut links: Vec<String> = view["links"].as_array().unwrap().iter().map(of).collect();
    links.sort();
    (names, links)
}

#[test]
fn twenty_random_kills_in_a_row_end_with_the_graph_as_declared() {
    let managed = Managed::new();
    managed.apply_chain();
    managed.wait_settled();
    let declared = graph(&managed.net(&["show"]));
    let content = noise(3_000_000, 17);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/file", "in", "--segment-size", "1000"]);
    let seed = u64::from(std::process::id()) * 0x9e37_79b9 + 1;
    eprintln!("seed {seed:#x}");
    let (mut transfer, mut killed) = (None, BTreeSet::new());
    for (turn, victim) in victims(seed).into_iter().enumerate() {
        if turn == 10 {
            // From here on a transfer is under way: one segment at a time, none of them in a cache.
            managed.wait_settled();
            let words = ["get", "/example/file", "-o", "out", "--pipeline", "fixed"];
            let start = || managed.place.start(&[&words[..], &["--window", "1"]].concat());
            let mut get = start();
            wait_until("the transfer is in its midst", || {
                if !get.runs() {
                    get = start(); // The producer was not back yet.
                }
                let view = managed.net(&["show"]);
                view["functions"]["nr"]["stats"]["sent"]["data"].as_u64() > Some(50)
            });
            transfer = Some(get);
        }
        let mut old = String::new();
        wait_until("the victim runs", || {
            old = managed.pid(victim);
            !old.is_empty() && killed.insert(old.clone())
        });
        if let Some(get) = transfer.as_mut().filter(|_| turn == 10) {
            assert!(get.runs(), "it is killed while the transfer goes on");
        }
        kill(&old);
        // Every third blow falls while the one before is being mended.
        if turn % 3 != 0 {
            wait_until("its replacement", || {
                let new = managed.pid(victim);
                !new.is_empty() && new != old
            });
        }
    }
    managed.wait_settled();
    let mut get = transfer.unwrap();
    assert_eq!(get.end(), Some(0), "{}", get.err.text());
    assert!(fs::read(managed.place.path("out")).unwrap() == content);
    let view = managed.net(&["show"]);
    assert_eq!(graph(&view), declared);
    let mut wanted: Vec<String> = declared.0.iter().map(|name| managed.pid(name)).collect();
    wanted.sort();
    assert_eq!(managed.alive(), wanted, "and nothing else runs");
    managed.fetches("/example/file", &content);
}

#[test]
fn what_cannot_be_done_says_why_and_leaves_nothing_behind() {
    let managed = Managed::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let text = format!(
        "network = \"t\"\nlinks = [\"br -> nr\"]\nfunctions.nr.kind = \"NR\"\nfunctions.br.kind = \"BR\"\nfunctions.br.listen = \"tcp4://127.0.0.1:{port}\"\n"
    );
    fs::write(managed.place.path("taken.toml"), text).unwrap();
    let ended = managed.place.run(&["net", "--manager", &managed.url, "apply", "taken.toml"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(
        ended.err.contains("start br") && ended.err.contains(&port.to_string()),
        "{}",
        ended.err
    );
    let view = managed.net(&["show"]);
    assert!(view["functions"].as_object().unwrap().is_empty(), "{view}");
    fs::write(managed.place.path("bad.toml"), "links = [\"a -> b\"]\nfunctions.a.kind = \"CS\"")
        .unwrap();
    let ended = managed.place.run(&["net", "--manager", &managed.url, "apply", "bad.toml"]);
    assert_eq!(ended.code, 4);
    assert!(ended.err.contains("line 1: link a -> b"), "{}", ended.err);
    let ended = managed.place.run(&["net", "--manager", "http://127.0.0.1:1", "show"]);
    assert_eq!(ended.code, 3);
    let ended = managed.place.run(&["manager", "--listen", "0.0.0.0:0"]);
    assert_eq!(ended.code, 2, "nothing listens beyond loopback without a token");
    let engine = ["manager", "--listen", "127.0.0.1:0", "--state", "other", "--driver", "docker"];
    let ended = managed.place.run(&[&engine[..], &["--docker-socket", "no.sock"]].concat());
    assert_eq!(ended.code, 1, "an engine that is not there");
    assert!(
        ended.err.contains("cannot be reached") && ended.err.contains("no.sock"),
        "{}",
        ended.err
    );
}

#[test]
fn an_unmodified_client_fetches_a_file_through_each_preset() {
    let managed = Managed::new();
    let content = noise(200_000, 11);
    fs::write(managed.place.path("in"), &content).unwrap();
    for preset in ["nfd", "minimal", "interlinked", "scaling", "poisoning"] {
        let mut text = managed.place.run(&["net", "preset", preset, "--print"]).out;
        let ports = unused(4).unwrap();
        for (was, is) in ["6362", "6363", "6372", "6373"].iter().zip(&ports) {
            text = text.replace(&format!(":{was}\""), &format!(":{is}\""));
        }
        managed.apply(&text);
        // The consumer of one router and the producer of the other, where there are two.
        let consumer = if preset == "nfd" { &ports[1] } else { &ports[0] };
        let producer = if preset == "interlinked" { &ports[3] } else { &ports[1] };
        let (asks, answers) =
            (format!("tcp4://127.0.0.1:{consumer}"), format!("tcp4://127.0.0.1:{producer}"));
        let name = format!("/example/{preset}");
        let _put = managed.place.put(&[&name, "in", "--node", &answers]);
        let _ = fs::remove_file(managed.place.path("out"));
        wait_until(&format!("{preset}: the file"), || {
            managed.place.run(&["get", &name, "-o", "out", "--node", &asks]).code == 0
        });
        assert!(fs::read(managed.place.path("out")).unwrap() == content, "{preset}");
        managed.net(&["down"]);
    }
}

/// The forwarder taken apart whole: a strategy of a node chooses between producers.
const WHOLE: &str = r#"network = "whole"
links = ["pd -> cs -> br -> nr -> sf", "pd => sf"]
[functions.pd]
kind = "packet-dispatcher"
listen = "NODE"
[functions.cs]
kind = "content-store"
[functions.br]
kind = "backward-router"
config = { retransmission = "strategy" }
[functions.nr]
kind = "name-router"
config = { registration = "open", match = "longest", strategy_forwarder = "sf" }
[functions.sf]
kind = "strategy-forwarder"
config = { route_strategies = { "/" = "best-route" } }
"#;

#[test]
fn between_processes_the_cheapest_producer_is_asked_and_the_next_one_when_it_is_gone() {
    let managed = Managed::new();
    managed.apply(&WHOLE.replace("NODE", &managed.place.node()));
    managed.wait_settled();
    let contents = [noise(50_000, 21), noise(50_000, 23)];
    for (file, content) in ["far", "near"].iter().zip(&contents) {
        fs::write(managed.place.path(file), content).unwrap();
    }
    let _far = managed.place.put(&["/example/file", "far", "--cost", "10"]);
    let near = managed.place.put(&["/example/file", "near", "--cost", "1"]);
    // Both serve the name, each a version of its own: without costs either may answer.
    for _ in 0..5 {
        managed.fetches("/example/file", &contents[1]);
    }
    drop(near);
    wait_until("the other producer is asked", || {
        let ended = managed.place.run(&["get", "/example/file", "-o", "out"]);
        ended.code == 0 && fs::read(managed.place.path("out")).is_ok_and(|got| got == contents[0])
    });
}

#[test]
fn one_command_makes_a_network_and_an_unmodified_client_fetches_a_file_through_it() {
    let ports = unused(2).unwrap();
    let text = onym_manager::presets::find("minimal").unwrap();
    let text = text.replace(":6362", &format!(":{}", ports[0]));
    let file = std::env::temp_dir().join(format!("onym-{}.toml", ports[0]));
    fs::write(&file, text.replace(":6363", &format!(":{}", ports[1]))).unwrap();
    let mut managed = Managed::with(&["--network", file.to_str().unwrap()]);
    fs::remove_file(&file).unwrap();
    let (asks, answers) =
        (format!("tcp4://127.0.0.1:{}", ports[0]), format!("tcp4://127.0.0.1:{}", ports[1]));
    let content = noise(200_000, 13);
    fs::write(managed.place.path("in"), &content).unwrap();
    let _put = managed.place.put(&["/example/one", "in", "--node", &answers]);
    wait_until("the file", || {
        managed.place.run(&["get", "/example/one", "-o", "out", "--node", &asks]).code == 0
    });
    assert!(fs::read(managed.place.path("out")).unwrap() == content);
    // What is wanted already stays: the second start with another network changes nothing.
    managed.manager.take().unwrap().kill();
    managed.start_with(&["--network", "nfd"]);
    assert_eq!(managed.net(&["show"])["network"], "minimal");
    managed.net(&["down"]);
    let other = ["manager", "--listen", "127.0.0.1:0", "--state", "other", "--network"];
    let ended = managed.place.run(&[&other[..], &["no-such"]].concat());
    assert_eq!(ended.code, 2, "{}", ended.err);
    assert!(ended.err.contains("no preset") && ended.err.contains("minimal"), "{}", ended.err);
    fs::write(managed.place.path("bad.toml"), "links = [\"a -> b\"]\nfunctions.a.kind = \"CS\"")
        .unwrap();
    let ended = managed.place.run(&[&other[..], &["bad.toml"]].concat());
    assert_eq!(ended.code, 4, "{}", ended.err);
    assert!(ended.err.contains("line 1: link a -> b"), "{}", ended.err);
}

#[test]
fn words_have_one_order_and_presets_are_listed_without_a_manager() {
    let place = Place::new();
    let listed = place.run(&["net", "--manager", "http://127.0.0.1:1", "preset"]);
    assert_eq!(listed.code, 0, "{}", listed.err);
    for (name, _, _) in onym_manager::presets::PRESETS {
        assert!(listed.out.contains(name), "{name}: {}", listed.out);
    }
    drop(place);
    let managed = Managed::new();
    managed.apply("network = \"n\"\nlinks = [\"a -> b\"]\nfunctions.a.kind = \"CS\"\nfunctions.b.kind = \"CS\"\n");
    managed.net(&["insert", "a", "b", "nf", "name-filter"]);
    managed.net(&["deploy", "other", "name-filter"]);
    let net =
        |words: &[&str]| managed.place.run(&[&["net", "--manager", &managed.url], words].concat());
    let ended = net(&["insert", "nf", "b", "name-filter", "nf2"]);
    assert_ne!(ended.code, 0, "a kind before a name");
    let ended = net(&["deploy", "name-filter", "name-filter"]);
    assert!(ended.code == 4 && ended.err.contains("word of a kind"), "{}", ended.err);
}

#[test]
fn a_description_that_came_out_empty_stops_nothing() {
    let managed = Managed::new();
    managed.apply_chain();
    let net =
        |words: &[&str]| managed.place.run(&[&["net", "--manager", &managed.url], words].concat());
    let count = || managed.net(&["show"])["functions"].as_object().unwrap().len();
    for text in ["", "network = \"nfd\"\n", "functions.br.kind = \"BR\"\n"] {
        fs::write(managed.place.path("n.toml"), text).unwrap();
        let ended = net(&["apply", "n.toml", "--yes"]);
        assert_eq!((ended.code, count()), (4, 4), "{text}: {}{}", ended.out, ended.err);
    }
    fs::write(managed.place.path("n.toml"), "network = \"nfd\"\nfunctions.br.kind = \"BR\"\n")
        .unwrap();
    let ended = net(&["apply", "n.toml"]);
    assert_eq!((ended.code, count()), (4, 4), "{}{}", ended.out, ended.err);
    assert!(ended.err.contains("3 of 4") && ended.err.contains("--yes"), "{}", ended.err);
    let ended = net(&["apply", "n.toml", "--yes"]);
    assert_eq!((ended.code, count()), (0, 1), "{}{}", ended.out, ended.err);
}

#[test]
fn an_apply_that_must_fail_costs_no_outage() {
    let managed = Managed::new();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let own = unused(1).unwrap()[0];
    let of = |port: u16| {
        format!(
            "network = \"n\"\nlinks = [\"br -> nr\"]\nfunctions.nr.kind = \"NR\"\nfunctions.br.kind = \"BR\"\nfunctions.br.listen = \"tcp4://127.0.0.1:{port}\"\n"
        )
    };
    managed.apply(&of(own));
    managed.wait_settled();
    let before = (managed.pid("br"), managed.pid("nr"));
    let port = taken.local_addr().unwrap().port();
    fs::write(managed.place.path("n.toml"), of(port)).unwrap();
    let ended = managed.place.run(&["net", "--manager", &managed.url, "apply", "n.toml"]);
    assert_eq!(ended.code, 1, "{}", ended.err);
    assert!(
        ended.err.contains("start br") && ended.err.contains(&port.to_string()),
        "{}",
        ended.err
    );
    assert_eq!((managed.pid("br"), managed.pid("nr")), before, "nothing was stopped");
    std::net::TcpStream::connect(("127.0.0.1", own)).unwrap();
    // One network in the place of another one, at the same port, is no conflict.
    let other = of(own).replace("br", "b2").replace("nr", "n2");
    fs::write(managed.place.path("n.toml"), other).unwrap();
    let ended = managed.place.run(&["net", "--manager", &managed.url, "apply", "n.toml", "--yes"]);
    assert_eq!(ended.code, 0, "{}", ended.err);
    managed.wait_settled();
}
