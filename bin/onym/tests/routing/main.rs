//! Daemons that route for each other, over loopback.

#![allow(clippy::unwrap_used)]

mod beside;
mod ndnd;
mod nodes;
#[path = "../support/mod.rs"]
mod support;

use nodes::{INSECURE, Node, PATIENT, QUICK, node, port, prefixes, reaches, took};
use std::time::{Duration, Instant};
use support::{Place, wait_until};

#[test]
fn a_line_of_three_finds_its_ways_and_loses_and_finds_another_one() {
    let start = Instant::now();
    let mut b = node("b", &[], PATIENT);
    let a = node("a", &[b.port], PATIENT);
    let c = node("c", &[b.port], PATIENT);
    wait_until("ends that reach each other", || {
        reaches(&a, "/net/c", "/net/b") && reaches(&c, "/net/a", "/net/b")
    });
    let line = start.elapsed();
    println!("three daemons started and in step: {line:?}");
    assert!(line < Duration::from_secs(15), "{line:?}");
    // Content registered at one end is fetched at the other.
    std::fs::write(a.place.path("file"), b"over two hops").unwrap();
    let _put = a.place.start(&["put", "/app/file", "file"]);
    let announced = took("the prefix", || prefixes(&c).contains("/app/file"));
    println!("announced and routed: {announced:?}");
    assert_eq!(c.place.run(&["get", "/app/file", "-o", "-"]).out, "over two hops");
    let explained = c.place.run(&["route", "explain", "/app/file"]).out;
    assert!(explained.contains("by /net/b at cost 2: the shortest way"), "{explained}");
    // Another way, then the middle dies.
    let _d = node("d", &[a.port, c.port], PATIENT);
    let both = |node: &Node| node.place.run(&["route", "table"]).out.contains("/net/d (2)");
    wait_until("an equal way", || both(&c));
    let shared = c.place.run(&["strategy", "list"]).out;
    assert!(shared.contains("equal~flow"), "equal ways share what there is: {shared}");
    b.daemon.kill();
    let other = took("the other way", || reaches(&c, "/net/a", "/net/d"));
    println!("the middle was killed; the other way is taken after {other:?}");
    // The next hello is refused, and no probe answered: nobody waits for the dead interval.
    assert!(other < Duration::from_secs(10), "{other:?} of the dead interval of 30 s");
    assert_eq!(c.place.run(&["get", "/app/file", "-o", "-"]).out, "over two hops");
}

#[test]
fn a_producer_that_moves_is_reached_within_two_seconds() {
    let a = node("a", &[], INSECURE);
    let b = node("b", &[a.port], INSECURE);
    wait_until("each other", || reaches(&a, "/net/b", "/net/b") && reaches(&b, "/net/a", "/net/a"));
    for place in [&a.place, &b.place] {
        std::fs::write(place.path("file"), b"moving").unwrap();
    }
    let put = a.place.start(&["put", "/app/moving", "file"]);
    wait_until("its first place", || prefixes(&b).contains("/app/moving from /net/a"));
    drop(put);
    let mut put = b.place.start(&["put", "/app/moving", "file"]);
    put.wait_for("/app/moving");
    let moved =
        took("its new place", || prefixes(&a).contains("/app/moving from /net/b (0) by face"));
    println!("moved and reachable after {moved:?}");
    assert!(moved < Duration::from_secs(2), "{moved:?}");
    assert_eq!(a.place.run(&["get", "/app/moving", "-o", "-"]).out, "moving");
}

#[test]
fn routers_with_keys_believe_their_network_and_nobody_else() {
    let a = node("a", &[], &[]);
    let folder = a.place.path("routing");
    wait_until("keys of the network", || folder.join("router.cert").exists());
    let second = Place::new();
    let keys = second.path("keys");
    std::fs::create_dir(&keys).unwrap();
    for file in ["network.cert", "network.key"] {
        std::fs::copy(folder.join(file), keys.join(file)).unwrap();
    }
    let with = format!("routing.folder={}", keys.display());
    let b = node("b", &[a.port], &[&with]);
    let stranger = node("s", &[a.port], &[]);
    wait_until("each other", || reaches(&a, "/net/b", "/net/b") && reaches(&b, "/net/a", "/net/a"));
    let refused = |node: &Node| node.daemon.err.text().contains("refused: ");
    // The stranger is never answered: it is no neighbour.
    wait_until("the stranger's refusal", || refused(&a));
    let doctor = a.place.run(&["doctor"]).out;
    let told = doctor.contains("routing, keys") && doctor.contains("what /net/s says is refused");
    assert!(told && doctor.contains("the certificate /net/KEY/"), "{doctor}");
    assert!(!reaches(&a, "/net/s", "/net/s") && !reaches(&stranger, "/net/a", "/net/a"));
}

#[test]
fn a_neighbour_held_down_stays_down_over_a_restart_until_it_is_released() {
    let b = node("b", &[], QUICK);
    let mut a = node("a", &[b.port], QUICK);
    let both = |a: &Node| reaches(a, "/net/b", "/net/b") && reaches(&b, "/net/a", "/net/a");
    wait_until("each other", || both(&a));
    let other = a.place.run(&["route", "hold", "/net/b", "--folder", "/nowhere"]);
    assert!(other.code != 0 && other.err.contains(&a.folder()), "{other:?}");
    let held = a.place.run(&["route", "hold", "/net/b", "--folder", &a.folder()]);
    assert!(held.out.contains("/net/b is held down"), "{held:?}");
    assert!(!reaches(&a, "/net/b", "/net/b"));
    let gone = took("the other end to know", || !reaches(&b, "/net/a", "/net/a"));
    println!("the other end knows after {gone:?}");
    a.again();
    // Its link is made and its neighbour heard, and nothing follows.
    let hellos = |a: &Node| a.status()["counters"]["hellos"].as_u64().unwrap_or(0);
    wait_until("a hello after the restart", || hellos(&a) > 0);
    assert_eq!(a.status()["neighbours"], 0);
    assert_eq!(a.status()["held"][0], "/net/b");
    let released = a.place.run(&["route", "release", "/net/b", "--folder", &a.folder()]);
    assert!(released.out.contains("/net/b is heard again"), "{released:?}");
    wait_until("each other again", || both(&a));
}

#[test]
fn the_metrics_page_of_a_node_has_its_router() {
    use std::io::{Read as _, Write as _};
    let b = node("b", &[], INSECURE);
    let http = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let listen = format!("metrics.listen={http}");
    let a = node("a", &[b.port], &["routing.insecure=true", &listen]);
    wait_until("each other", || reaches(&a, "/net/b", "/net/b"));
    let page = || {
        let mut socket = std::net::TcpStream::connect(http).unwrap();
        write!(socket, "GET /metrics HTTP/1.1\r\nHost: {http}\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut text = String::new();
        socket.read_to_string(&mut text).unwrap();
        text
    };
    wait_until("the neighbour on the page", || {
        page().contains("onym_route_neighbours{state=\"used\"} 1\n")
    });
    assert!(page().contains("onym_route_routers 1\n"));
}

/// `onym route run` knows its forwarder by management only, as it knows NFD and ndnd.
#[test]
fn a_router_of_its_own_removes_its_stale_routes_and_leaves_those_of_others() {
    let (place, at) = (Place::new(), port());
    let listen = format!("faces.udp.listen=127.0.0.1:{at}");
    let _daemon = place.daemon(&[&listen, "faces.udp.multicast=[]"]);
    let add = |prefix: &str, more: &[&str]| {
        let uri = format!("udp4://127.0.0.1:{}", port());
        let mut args = vec!["route", "add", prefix, "--via", &uri, "--origin", "nlsr"];
        args.extend(more);
        let added = place.run(&args);
        assert_eq!(added.code, 0, "{added:?}");
    };
    add("/of/nlsr", &["--expires", "3600000"]);
    add("/of/an/earlier/run", &[]);
    let keys = place.path("own");
    let folder = keys.display().to_string();
    let args = ["route", "run", "/net", "--router", "/net/own", "--insecure", "--folder", &folder];
    let _router = place.start(&args);
    let routes = || place.run(&["route", "list"]).out;
    wait_until("the stale route to go", || !routes().contains("/of/an/earlier/run"));
    assert!(routes().contains("/of/nlsr"), "{}", routes());
    let b = node("b", &[at], INSECURE);
    wait_until("a neighbour", || reaches(&b, "/net/own", "/net/own"));
    let explained = place.run(&["route", "explain", "/net/b"]).out;
    assert!(explained.contains("a router at cost 1"), "{explained}");
    assert!(routes().contains("/of/nlsr"), "{}", routes());
}
