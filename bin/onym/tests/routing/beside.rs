//! What stands beside a router: commands that announce, other routing programs and hubs that are told,
//! routes that were learned, the push half.

use crate::nodes::{INSECURE, QUICK, node, port, prefixes, reaches};
use crate::support::{Place, wait_until};
use onym_client::{Answer, ClientOptions, Incoming, RouteOptions, blocking::Client};
use onym_crypto::signer::write_digest_data;
use onym_wire::mgmt::{Block as _, ControlParameters, ControlResponse, parameters_of};
use onym_wire::{DataBuilder, Name};
use serde_json::Value;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A route of this origin by a face to nobody.
fn add(place: &Place, prefix: &str, origin: &str, cost: &str) {
    let via = format!("udp4://127.0.0.1:{}", port());
    let added =
        place.run(&["route", "add", prefix, "--via", &via, "--origin", origin, "--cost", cost]);
    assert_eq!(added.code, 0, "{added:?}");
}

#[test]
fn who_publishes_reads_whether_the_network_hears_of_it_and_why_not() {
    let alone = Place::new();
    let _daemon = alone.daemon(&[]);
    std::fs::write(alone.path("file"), b"x").unwrap();
    let mut put = alone.start(&["put", "/app/a", "file", "--announce"]);
    put.wait_for("/app/a is not announced: no router runs on this node");
    let sets = ["routing.insecure=true", "routing.announce=client"];
    let a = node("a", &[], &sets);
    let b = node("b", &[a.port], &sets);
    wait_until("each other", || reaches(&a, "/net/b", "/net/b") && reaches(&b, "/net/a", "/net/a"));
    std::fs::write(a.place.path("file"), b"told").unwrap();
    let mut put = a.place.start(&["put", "/app/quiet", "file"]);
    put.wait_for("/app/quiet is known on this node only");
    let mut put = a.place.start(&["put", "/app/told", "file", "--announce"]);
    put.wait_for("/app/told is announced by /net/a at cost 0; 1 routers are reached");
    wait_until("the prefix over there", || prefixes(&b).contains("/app/told from /net/a"));
    assert_eq!(b.place.run(&["get", "/app/told", "-o", "-"]).out, "told");
    assert!(!prefixes(&b).contains("/app/quiet"));
    drop(put);
    wait_until("its end", || !prefixes(&b).contains("/app/told"));
    let map = b.place.json(&["route", "map"]);
    assert_eq!((&map["router"], map["routers"].as_array().unwrap().len()), (&"/net/b".into(), 2));
    assert!(b.place.run(&["route", "map"]).out.contains("\"/net/b\" -- \"/net/a\" [style=solid"));
}

#[test]
fn what_prefix_announcements_taught_is_announced_but_not_what_leads_to_routers() {
    let sets = ["routing.insecure=true", "routing.announce=client"];
    let a = node("a", &[], &sets);
    let b = node("b", &[a.port], &sets);
    wait_until("each other", || reaches(&a, "/net/b", "/net/b") && reaches(&b, "/net/a", "/net/a"));
    add(&a.place, "/learned/far", "prefixann", "2048");
    wait_until("the learned prefix", || prefixes(&b).contains("/learned/far from /net/a (2048)"));
    // By the face to the other router: that one announces it, if anybody does.
    let face = b.place.json(&["route", "neighbours"])[0]["faces"][0].to_string();
    let args = ["route", "add", "/learned/near", "--via", &face, "--origin", "prefixann"];
    assert_eq!(b.place.run(&args).code, 0);
    add(&b.place, "/learned/after", "prefixann", "2048");
    wait_until("what was learned after it", || prefixes(&a).contains("/learned/after"));
    assert!(!prefixes(&a).contains("/learned/near"), "{}", prefixes(&a));
}

/// Somebody who takes commands under `/localhost/nlsr`, as NLSR does.
fn nlsr(place: &Place, heard: &Arc<Mutex<Vec<String>>>) -> Client {
    let options = ClientOptions { node: Some(place.node()), ..ClientOptions::default() };
    let mut client = Client::open(options).unwrap();
    let heard = Arc::clone(heard);
    let respond = move |incoming: &Incoming, out: &mut Vec<u8>| {
        let interest = incoming.interest();
        let verb = interest.name.get(3).map(|c| String::from_utf8_lossy(c.value).into_owned());
        let parameters = interest.name.get(4).and_then(|c| parameters_of(c).ok());
        let (Some(verb), Some(parameters)) = (verb, parameters) else { return Answer::Nothing };
        let (name, cost) = (parameters.name.clone().unwrap(), parameters.cost.unwrap_or(0));
        heard.lock().unwrap().push(format!("{verb} {name} {cost}"));
        let mut content = Vec::new();
        ControlResponse::ok(ControlParameters { face_id: Some(1), ..parameters })
            .write(&mut content);
        write_digest_data(&DataBuilder::new(interest.name, &content), out);
        Answer::Written
    };
    let prefix: Name = "/localhost/nlsr".parse().unwrap();
    client.respond(prefix.clone(), Box::new(respond)).unwrap();
    client.register(prefix, RouteOptions::default()).unwrap();
    client
}

#[test]
fn nlsr_is_told_of_client_routes_their_costs_and_their_end() {
    let place = Place::new();
    let _daemon = place.daemon(&["rib.tell_nlsr=true"]);
    add(&place, "/before", "client", "4");
    add(&place, "/quiet", "static", "0");
    let heard = Arc::new(Mutex::new(Vec::new()));
    let mut client = nlsr(&place, &heard);
    let serving = {
        let heard = Arc::clone(&heard);
        std::thread::spawn(move || {
            let is_over = || heard.lock().unwrap().iter().any(|h: &String| h == "over");
            client.run(Duration::from_millis(50), &mut || is_over(), &mut |_| {}).unwrap();
        })
    };
    let told = |what: &str| heard.lock().unwrap().iter().any(|h| h == what);
    wait_until("a route of before NLSR began", || told("register /before 4"));
    add(&place, "/after", "client", "0");
    wait_until("a new route", || told("register /after 0"));
    let list = place.json(&["route", "list", "--prefix", "/before"]);
    let face = list[0]["face"].to_string();
    let add = ["route", "add", "/before", "--via", &face, "--origin", "client", "--cost", "9"];
    assert_eq!(place.run(&add).code, 0);
    wait_until("another cost", || told("register /before 9"));
    assert_eq!(
        place.run(&["route", "remove", "/before", "--via", &face, "--origin", "client"]).code,
        0
    );
    wait_until("its end", || told("unregister /before 0"));
    assert!(!heard.lock().unwrap().iter().any(|h| h.contains("/quiet")));
    heard.lock().unwrap().push("over".to_owned());
    serving.join().unwrap();
}

#[test]
fn a_hub_is_told_of_the_identity_above_a_client_route_and_leads_back() {
    let (hub, leaf) = (Place::new(), Place::new());
    assert_eq!(leaf.run(&["key", "new", "/alice"]).code, 0);
    let exported = leaf.run(&["cert", "export", "/alice", "-o", "alice.ndncert"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let at = port();
    let listen = format!("faces.udp.listen=127.0.0.1:{at}");
    let anchor = format!("rib.localhop_anchors=[\"{}\"]", leaf.path("alice.ndncert").display());
    let _hub = hub.daemon(&[&listen, "faces.udp.multicast=[]", "rib.localhop=true", &anchor]);
    let own = format!("faces.udp.listen=127.0.0.1:{}", port());
    let leaf_daemon = leaf.daemon(&[&own, "faces.udp.multicast=[]", "rib.tell_hub=true"]);
    let uri = format!("udp4://127.0.0.1:{at}");
    std::fs::write(leaf.path("file"), b"behind a leaf").unwrap();
    let _put = leaf.put(&["/alice/film", "file", "--announce"]);
    let added = leaf.run(&["route", "add", "/localhop/nfd", "--via", &uri, "--origin", "autoconf"]);
    assert_eq!(added.code, 0, "{added:?}");
    wait_until("the identity at the hub", || {
        let said = leaf_daemon.err.text();
        let routes = hub.run(&["route", "list", "--prefix", "/alice"]).out;
        assert!(!said.contains("refuses to register"), "{said}");
        routes.contains("/alice ")
    });
    assert_eq!(hub.run(&["get", "/alice/film", "-o", "-"]).out, "behind a leaf");
}

#[test]
fn neighbours_of_routing_are_links_of_the_push_half() {
    let mut push = QUICK.to_vec();
    push.extend(["push.enabled=true", "push.key=secret"]);
    let a = node("a", &[], &[&push[..], &["push.node=a"]].concat());
    let mut b = node("b", &[a.port], &[&push[..], &["push.node=b", "push.roles=[]"]].concat());
    wait_until("the rendezvous, which is a link away", || {
        let status = b.place.json(&["rendezvous", "status"]);
        status["homes"].as_array().is_some_and(|homes| !homes.is_empty())
    });
    let links = |node: &str| {
        let map = a.place.json(&["topology", "map"]);
        let nodes = map["nodes"].as_array().cloned().unwrap_or_default();
        let of = nodes.iter().filter(|n| n["node"].as_str().is_some_and(|id| id.ends_with(node)));
        of.flat_map(|n| n["links"].as_array().cloned().unwrap_or_default()).count()
    };
    wait_until("both directions in the map of the push half", || {
        links("a") == 1 && links("b") == 1
    });
    b.daemon.kill();
    wait_until("no link any more", || links("a") == 0);
}

/// Law: a node shows its state by its name, from wherever routing leads to it, to the keys that its
/// configuration lists; to others nothing, and without the key of the configuration to nobody.
#[test]
fn a_node_shows_its_state_by_its_name_to_those_who_may_see_it() {
    let asker = Place::new();
    for identity in ["/friend", "/stranger"] {
        assert_eq!(asker.run(&["key", "new", identity]).code, 0);
    }
    let exported = asker.run(&["cert", "export", "/friend", "-o", "friend.ndncert"]);
    assert_eq!(exported.code, 0, "{exported:?}");
    let to = format!("management.shown_to=[\"{}\"]", asker.path("friend.ndncert").display());
    let c = node("c", &[], &[INSECURE, &[to.as_str()]].concat());
    let b = node("b", &[c.port], INSECURE);
    let a = node("a", &[b.port], INSECURE);
    wait_until("the name of the state", || prefixes(&a).contains("/net/c/32=status from /net/c"));
    let via = a.place.node();
    let ask = |of: &str, key: &str| {
        asker.run(&["--node", &via, "status", "--of", of, "--key", key, "--json"])
    };
    let mut told = ask("/net/c", "/friend");
    wait_until("the way to it", || {
        told = ask("/net/c", "/friend");
        told.code == 0
    });
    let told: Value = serde_json::from_str(&told.out).unwrap();
    assert_eq!(told["node"], "/net/c", "{told}");
    assert_eq!(told["neighbours"][0]["router"], "/net/b", "{told}");
    assert!(told["links"][0]["remote"].as_str().unwrap().starts_with("udp4://127."), "{told}");
    let refused = ask("/net/c", "/stranger");
    assert_eq!(refused.code, 4, "{refused:?}");
    assert!(refused.err.contains("/net/c does not show its state to this key"), "{refused:?}");
    let nobody = ask("/net/b", "/friend");
    assert_eq!(nobody.code, 5, "{nobody:?}");
    assert!(nobody.err.contains("it shows its state to nobody"), "{nobody:?}");
}
