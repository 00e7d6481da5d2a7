//! The gateway between push and pull over daemons: content of each half reaches the other.

#![allow(clippy::unwrap_used)]

mod support;

use support::{Place, Running, noise, wait_until};

/// The item `/1/2` by name.
const NAME: &str = "/g/%00%00%00%00%00%00%00%02";

/// Two daemons with a link of the push half; the first has the gateway, rendezvous and topology
/// manager.
fn domain() -> ([Place; 2], [Running; 2]) {
    domain_with(|_| Vec::new())
}

/// As [`domain`], with more settings of the first daemon, which `sets` makes at its place.
fn domain_with(sets: impl Fn(&Place) -> Vec<String>) -> ([Place; 2], [Running; 2]) {
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
    let more = sets(&places[0]);
    let mut first = vec!["push.node=a", map, "gateway.poll_ms=200", "gateway.routes_ms=200"];
    first.extend(more.iter().map(String::as_str));
    let daemons = [start(0, &first), start(1, &["push.node=b", "push.roles=[]"])];
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

/// Items are published for producers whom `/r` vouches for.
const RULES: &str = "\
#root: \"r\"/#KEY
#user: \"r\"/u/#KEY <= #root
#item: \"g\"/label <= #user
#KEY: \"KEY\"/_/_/_
";

#[test]
fn a_gateway_publishes_what_the_rules_let_its_producer_sign_and_nothing_else() {
    let done = |place: &Place, args: &[&str]| {
        let ended = place.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
    };
    let (places, mut daemons) = domain_with(|place| {
        std::fs::write(place.path("rules.lvs"), RULES).unwrap();
        for identity in ["/r", "/r/x", "/r/y"] {
            done(place, &["key", "new", identity]);
        }
        done(place, &["cert", "export", "/r", "-o", "root.cert"]);
        done(place, &["cert", "export", "/r/x", "-o", "x.req"]);
        done(place, &["cert", "issue", "x.req", "--signer", "/r", "-o", "x.cert"]);
        done(place, &["cert", "install", "x.cert"]);
        let path = |file: &str| format!("{:?}", place.path(file).display().to_string());
        let (rules, anchor) = (path("rules.lvs"), path("root.cert"));
        let entry =
            format!("trust=[{{name=\"g\", schema={rules}, objects=true, anchors=[{anchor}]}}]");
        vec![entry, "gateway.trust=g".into()]
    });
    let (forged, right) = (noise(20_001, 7), noise(30_001, 8));
    std::fs::write(places[0].path("forged"), &forged).unwrap();
    std::fs::write(places[0].path("right"), &right).unwrap();
    let mut serve = places[0].start(&["cert", "serve"]);
    serve.wait_for("ready: ");
    let _subscribe = places[1].start(&["subscribe", "/1/2", "-o", "out"]);
    // The name is as the rules have it; nobody whom they know vouches for the key.
    let mut put = places[0].put(&[NAME, "forged", "--key", "/r/y"]);
    daemons[0].wait_for("a version of a producer is not published");
    put.kill();
    let _put = places[0].put(&[NAME, "right", "--key", "/r/x"]);
    wait_until("what the rules allow arrives", || {
        std::fs::read(places[1].path("out")).is_ok_and(|out| out.len() >= right.len())
    });
    assert_eq!(std::fs::read(places[1].path("out")).unwrap(), right, "and nothing else");
}

#[test]
fn a_gateway_without_a_push_half_is_refused() {
    let place = Place::new();
    let map = "gateway.map=[{prefix=\"/g\", scope=\"/1\"}]";
    let ended = place.run(&["daemon", "--set", map]);
    assert_eq!((ended.code, ended.err.contains("push.enabled")), (2, true), "{}", ended.err);
}
