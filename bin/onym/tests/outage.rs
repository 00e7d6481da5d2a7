//! The daemon is killed with -9 while a file is fetched: clients say so, come back, register
//! again, and the file is whole.

#![allow(clippy::unwrap_used)]

mod support;

use onym_client::aio::Client;
use onym_client::serve::{Object, ServeOptions};
use onym_client::{ClientOptions, FetchOptions, RouteOptions};
use std::fs;
use std::path::Path;
use support::{Place, Running, noise, wait_until};

/// Octets of the half file that `onym get` has open, with a name or without.
fn half(dir: &Path, get: &Running) -> u64 {
    let open = fs::read_dir(format!("/proc/{}/fd", get.pid())).into_iter().flatten().flatten();
    // Only files of the place: a loader has libraries open while the program starts.
    let here = |f: &fs::DirEntry| fs::read_link(f.path()).is_ok_and(|to| to.starts_with(dir));
    let files = open.filter(here).filter_map(|f| fs::metadata(f.path()).ok());
    files.map(|m| m.len()).max().unwrap_or(0)
}

#[test]
fn a_fetch_survives_a_daemon_that_is_killed_and_started_again() {
    let place = Place::new();
    let content = noise(24 << 20, 7);
    fs::write(place.path("film"), &content).unwrap();
    let mut daemon = place.daemon(&[]);
    let mut put = place.put(&["/example/film", "film", "--key", key(&place)]);
    // One segment at a time, so that there is time to kill the node in the middle.
    let get = ["get", "/example/film", "-o", "copy", "--verify", "/alice", "--json"];
    let slow = ["--pipeline", "fixed", "--window", "1"];
    let mut get = place.start(&[&get[..], &slow[..]].concat());
    wait_until("the fetch to be under way", || half(place.dir(), &get) >= 1 << 20);

    daemon.kill();
    assert!(get.runs(), "the fetch ended before the node was killed: {}", get.out.text());
    get.wait_for("the connection to the node is lost");
    put.wait_for("the connection to the node is lost");
    assert!(!place.path("copy").exists(), "a half file has no name");
    let route = place.run(&["route", "list"]);
    assert_eq!(route.code, 3, "a new command finds no node: {}", route.err);

    let _daemon = place.daemon(&[]);
    put.wait_for("registered again");
    get.wait_for("connected to the node again");
    assert_eq!(get.end(), Some(0), "{}", get.err.text());
    assert!(fs::read(place.path("copy")).unwrap() == content, "the copy is the file");
    let report: serde_json::Value = serde_json::from_str(&get.out.text()).unwrap();
    assert_eq!((&report["bytes"], &report["unverified"]), (&content.len().into(), &0.into()));
    let routes = place.json(&["route", "list"]);
    assert_eq!(routes[0]["prefix"], "/example/film", "the new node has the route");
}

fn key(place: &Place) -> &'static str {
    assert_eq!(place.run(&["key", "new", "/alice"]).code, 0);
    "/alice"
}

#[test]
fn a_node_that_does_not_come_back_ends_the_servers_never_and_the_requests_soon() {
    let place = Place::new();
    let mut daemon = place.daemon(&[]);
    let mut server = place.start(&["ping-server", "/example"]);
    server.wait_for("ready: ");
    daemon.kill();
    server.wait_for("the connection to the node is lost");
    let ping = place.run(&["ping", "/example", "-c", "1"]);
    assert_eq!(ping.code, 3, "{}", ping.err);
    assert!(server.runs(), "a server waits for its node");
    // Another node, and nobody typed anything at the server.
    let _daemon = place.daemon(&[]);
    server.wait_for("connected to the node again");
    wait_until("the prefix to be registered again", || {
        place.json(&["route", "list"])[0]["prefix"] == "/example/ping"
    });
    assert_eq!(place.run(&["ping", "/example", "-c", "1"]).code, 0);
}

#[test]
fn sigterm_ends_the_daemon_well_and_its_socket_is_gone() {
    let place = Place::new();
    let mut daemon = place.daemon(&[]);
    let pid = rustix::process::Pid::from_raw(daemon.pid().cast_signed()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
    assert_eq!(daemon.end(), Some(0), "{}", daemon.err.text());
    assert!(!place.path("nfd.sock").exists());
}

#[tokio::test]
async fn the_async_client_comes_back_registers_again_and_its_fetch_completes() {
    let place = Place::new();
    let mut daemon = place.daemon(&[]);
    let open = || {
        let options = ClientOptions { node: Some(place.node()), ..ClientOptions::default() };
        Client::open(options).unwrap()
    };
    let (producer, consumer) = (open(), open());
    let name: onym_wire::Name = "/example/film".parse().unwrap();
    let content = noise(8 << 20, 9);
    let object = Object::new(name.clone(), content.clone(), ServeOptions::new(1)).unwrap();
    producer.respond(name.clone(), object).await.unwrap();
    producer.register(name.clone(), RouteOptions::default()).await.unwrap();
    let mut up = consumer.connection();
    let mut fetch = consumer.fetch(name, FetchOptions::default()).await.unwrap();
    let mut got = Vec::new();
    while got.len() < 1 << 20 {
        // Not read any further: the fetch stands still with most of the file to come.
        got.extend_from_slice(&fetch.next().await.expect("the fetch goes on"));
    }
    daemon.kill();
    tokio::time::timeout(support::PATIENCE, up.wait_for(|up| !up)).await.unwrap().unwrap();
    let _daemon = place.daemon(&[]);
    tokio::time::timeout(support::PATIENCE, up.wait_for(|up| *up)).await.unwrap().unwrap();
    let rest = async {
        while let Some(piece) = fetch.next().await {
            got.extend_from_slice(&piece);
        }
        fetch.end().await
    };
    let end = tokio::time::timeout(support::PATIENCE, rest).await.unwrap().unwrap();
    assert_eq!(end.bytes, content.len() as u64);
    assert!(got == content, "the copy is the file");
}
