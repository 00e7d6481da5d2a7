//! The gateway between push and pull over daemons: content of each half reaches the other.

#![allow(clippy::unwrap_used)]

mod support;

use support::{Place, Running, noise, wait_until};

/// The item `/1/2` by name.
const NAME: &str = "/g/%00%00%00%00%00%00%00%02";

/// Two daemons with a link of the push half; the first has the gateway, rendezvous and topology
/// manager.
fn domain() -> ([Place; 2], [Running; 2]) {
    let ports = onym_sys::port::unused(2).unwrap();
    let places = [Place::new(), Place::new()];
    let start = |own: usize, sets: &[&str]| {
        let listen = format!("faces.udp.listen=127.0.0.1:{}", ports[own]);
        let link = format!("push.link=[{{face=\"udp4://127.0.0.1:{}\"}}]", ports[1 - own]);
        let mut all = vec!["push.enabled=true", &listen, &link];
        all.extend(sets);
        places[own].daemon(&all)
    };
    let map = "gateway.map=[{prefix=\"/g\", scope=\"/1\"}]";
    let daemons = [
        start(0, &["push.node=a", map, "gateway.poll_ms=200", "gateway.routes_ms=200"]),
        start(1, &["push.node=b", "push.roles=[]"]),
    ];
    (places, daemons)
}

#[test]
fn a_publication_of_another_node_is_fetched_by_name() {
    let (places, _daemons) = domain();
    let content = noise(100_001, 3);
    std::fs::write(places[1].path("in"), &content).unwrap();
    let _publish = places[1].start(&["publish", "/1/2", "in", "--keep"]);
    wait_until("the file is fetched", || places[0].run(&["get", NAME, "-o", "out"]).code == 0);
    assert_eq!(std::fs::read(places[0].path("out")).unwrap(), content);
    // Signed by the gateway, which shows its certificate.
    let told = places[0].json(&["peek", "/g/KEY", "--prefix"]);
    assert!(told["name"].as_str().unwrap().starts_with("/g/KEY/"), "{told}");
}

#[test]
fn a_producer_feeds_subscribers_of_another_node_with_each_version() {
    let (places, _daemons) = domain();
    std::fs::write(places[0].path("one"), noise(100_001, 5)).unwrap();
    std::fs::write(places[0].path("two"), noise(50_001, 6)).unwrap();
    let mut put = places[0].put(&[NAME, "one"]);
    let mut subscribe = places[1].start(&["subscribe", "/1/2", "-o", "out"]);
    let mut content = Vec::new();
    let mut arrives = |what: &str, file: &str| {
        content.extend(std::fs::read(places[0].path(file)).unwrap());
        wait_until(what, || std::fs::read(places[1].path("out")).is_ok_and(|out| out == content));
    };
    arrives("the first version", "one");
    put.kill();
    let _put = places[0].put(&[NAME, "two"]);
    arrives("the second version, once", "two");
    assert!(subscribe.runs());
}

#[test]
fn a_gateway_without_a_push_half_is_refused() {
    let place = Place::new();
    let map = "gateway.map=[{prefix=\"/g\", scope=\"/1\"}]";
    let ended = place.run(&["daemon", "--set", map]);
    assert_eq!((ended.code, ended.err.contains("push.enabled")), (2, true), "{}", ended.err);
}
