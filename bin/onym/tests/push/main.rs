//! Publish/subscribe over daemons as a person types it: one node, and a domain of three.

#![allow(clippy::unwrap_used)]

mod caches;
mod call;
mod full;
mod late;
mod live;
mod order;
mod strategies;
#[path = "../support/mod.rs"]
mod support;
mod traced;
mod two;
mod words;

use onym_client::push::{App, Event};
use onym_frame::Buf;
use onym_wire::push::{Id, Strategy};
use serde_json::Value;
use std::time::Duration;
use support::{Place, Running, noise, wait_until};

/// A daemon with the push half on.
fn push_daemon(place: &Place, sets: &[&str]) -> Running {
    let mut all = vec!["push.enabled=true"];
    all.extend(sets);
    place.daemon(&all)
}

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// As `wait_until`, where each look is a process of its own: they must not be all the load.
fn ask_until(what: &str, mut done: impl FnMut() -> bool) {
    wait_until(what, || {
        let is_done = done();
        if !is_done {
            std::thread::sleep(Duration::from_millis(200));
        }
        is_done
    });
}

/// Waits until the push half of the node says what is wanted.
fn wait_graph(place: &Place, what: &str, done: impl Fn(&Value) -> bool) {
    ask_until(what, || done(&place.json(&["rendezvous", "graph"])));
}

#[test]
fn a_publication_reaches_every_subscriber_of_its_node_once() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    for strategy in ["node-local", "domain-local"] {
        let subscribe = [
            "subscribe",
            "/1/2",
            "--json",
            "--count",
            "2",
            "--timeout",
            "60",
            "--strategy",
            strategy,
        ];
        let mut subscribers = [place.start(&subscribe), place.start(&subscribe)];
        wait_graph(&place, "the subscription", |graph| {
            graph["vertices"].as_array().unwrap().iter().any(|v| v["subscribers"][0] == "000a")
        });
        ask_until("both applications are there", || {
            place.json(&["explain", "--push", "/1/2"])["here"]["subscribers"]
                .as_array()
                .is_some_and(|s| s.len() == 2)
        });
        for text in ["one", "two"] {
            let told = place.json(&[
                "publish",
                "/1/2",
                "--text",
                text,
                "--strategy",
                strategy,
                "--timeout",
                "60",
            ]);
            assert_eq!(told["local"], 2, "{told}");
        }
        for subscriber in &mut subscribers {
            assert_eq!(subscriber.end(), Some(0), "{}", subscriber.err.text());
            // What it wrote is read by a thread of the test, which may be behind its end.
            wait_until("its last line is read", || subscriber.out.text().contains("two"));
            let got: Vec<Value> = lines(&subscriber.out.text());
            let texts: Vec<&str> = got
                .iter()
                .filter(|e| e["event"] == "data")
                .map(|e| e["text"].as_str().unwrap())
                .collect();
            assert_eq!(texts, ["one", "two"], "{strategy}");
        }
        wait_graph(&place, "everything is taken back", |graph| graph["total"] == 0);
    }
}

/// Ports of this machine that nobody has.
fn ports<const N: usize>() -> [u16; N] {
    onym_sys::port::unused(N).unwrap().try_into().unwrap()
}

#[test]
fn a_domain_of_three_nodes_carries_files_to_both_subscribers() {
    // b in the middle is rendezvous and topology manager.
    let [a, b, c] = ports();
    let places = [Place::new(), Place::new(), Place::new()];
    let link = |port: u16| format!("{{face=\"udp4://127.0.0.1:{port}\"}}");
    let listen = |port: u16| format!("faces.udp.listen=127.0.0.1:{port}");
    let one = |to: u16| format!("push.link=[{}]", link(to));
    let none = "push.roles=[]";
    let key = "push.key=secret of the domain";
    let _a = push_daemon(&places[0], &["push.node=a", none, key, &listen(a), &one(b)]);
    let both = format!("push.link=[{}, {}]", link(a), link(c));
    let _b = push_daemon(&places[1], &["push.node=b", key, &listen(b), &both]);
    let _c = push_daemon(&places[2], &["push.node=c", none, key, &listen(c), &one(b)]);
    // Long enough to be cut into fragments, and not a multiple of anything.
    let content = noise(300_001, 7);
    std::fs::write(places[0].path("in"), &content).unwrap();
    let subscribe = ["subscribe", "/1/2", "-o", "out"];
    let told = ["subscribe", "/1/2", "-o", "out", "--json"];
    let subscribers = [places[1].start(&subscribe), places[2].start(&told)];
    wait_graph(&places[1], "both subscriptions are at the rendezvous", |graph| {
        let vertices = graph["vertices"].as_array().unwrap();
        vertices.iter().any(|v| v["subscribers"].as_array().is_some_and(|s| s.len() == 2))
    });
    let mut publish = places[0].start(&["publish", "/1/2", "in", "--keep", "--json"]);
    publish.wait_for("frames");
    for place in &places[1..] {
        wait_until("the file arrives as it was", || {
            std::fs::read(place.path("out")).is_ok_and(|out| out == content)
        });
    }
    // With --json and a file the line tells of the payload, which only the file has.
    wait_until("the line comes", || subscribers[1].out.text().contains("octets"));
    let text = subscribers[1].out.text();
    let line = lines(&text).into_iter().find(|l| l["event"] == "data").unwrap();
    assert_eq!((line["octets"].as_u64(), &line["hex"]), (Some(300_001), &Value::Null), "{line}");
    assert!(line["seconds"].as_f64().is_some_and(|s| s > 0.0), "{line}");
    let tree = places[1].json(&["topology", "tree", "/1/2"]);
    assert_eq!(tree[0]["trees"][0]["links"].as_array().unwrap().len(), 2, "{tree}");
    let dot = places[1].run(&["topology", "tree", "/1/2", "--dot"]).out;
    assert_eq!(dot.matches("color=red").count(), 2, "{dot}");
    let status = places[1].json(&["rendezvous", "status"]);
    assert_eq!(status["control"]["mac"], 0, "{status}");
    assert_eq!(status["links"].as_array().unwrap().len(), 2);
}

#[test]
fn what_is_refused_says_why_and_exits_so() {
    let place = Place::new();
    let mut daemon = place.daemon(&[]);
    let ended = place.run(&["rendezvous", "status"]);
    assert_eq!((ended.code, ended.err.contains("publish/subscribe")), (4, true), "{}", ended.err);
    daemon.kill();
    let _daemon = push_daemon(&place, &[]);
    let ended = place.run(&["publish", "/1/2", "--text", "x", "--timeout", "1"]);
    assert_eq!(ended.code, 5, "{}", ended.err);
    let ended = place.run(&["publish", "/ffffffffffffffff/2", "--text", "x"]);
    assert_eq!((ended.code, ended.err.contains("reserved")), (4, true), "{}", ended.err);
    let ended = place.run(&["publish", "1/2", "--text", "x"]);
    assert_eq!(ended.code, 2, "{}", ended.err);
    let _scope = place.start(&["scope", "publish", "/5"]);
    wait_graph(&place, "the scope", |graph| graph["total"] == 1);
    let dot = place.run(&["rendezvous", "graph", "--dot"]).out;
    assert!(dot.contains("\"/\" -> \"/0005\""), "{dot}");
    assert_eq!(place.run(&["rendezvous", "graph", "--svg"]).code, 2, "drawing is Graphviz's");
}

/// The identifier `/root/5`.
fn item(root: u64) -> Id {
    format!("/{root:x}/5").parse().unwrap()
}

/// The identifier `/root`.
fn scope(root: u64) -> Id {
    format!("/{root:x}").parse().unwrap()
}

#[test]
fn with_two_rendezvous_nodes_one_may_be_killed() {
    one_of_two_is_killed(&[], || {});
}

#[test]
fn with_two_rendezvous_nodes_and_etcd_one_may_be_killed_and_the_other_owns_all() {
    let folder = tempfile::tempdir().unwrap();
    let Some(local) = onym_etcd::testing::Local::start(folder.path()) else { return };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let etcd = onym_etcd::Etcd::new(&[local.url()], None, support::PATIENCE).unwrap();
    let list = |under: &str| {
        let listing = runtime.block_on(etcd.list(&format!("onym/push/{under}/"), 100)).unwrap();
        listing.entries
    };
    let etcd_set = format!("push.etcd=[\"{}\"]", local.url());
    one_of_two_is_killed(&[&etcd_set, "push.etcd_lease_ms=2000"], || {
        ask_until("the lease of the other one ended", || {
            let homes = list("homes");
            homes.len() == 1 && homes[0].key.ends_with("/0000000000000004")
        });
        ask_until("all scopes belong to the one that is left", || {
            let scopes = list("scopes");
            let values = scopes.iter().map(|e| serde_json::from_slice::<Value>(&e.value).unwrap());
            let is_right = |v: Value| {
                v["owner"] == "0000000000000004" && v["publishers"][0] == "0000000000000002"
            };
            scopes.len() == 8 && values.into_iter().all(is_right)
        });
        assert_eq!(list("epochs").len(), 2);
    });
}

/// Four nodes, two of them rendezvous and topology manager, with `more` settings; one of the two is
/// killed, and `and_then` must hold while the rest runs.
fn one_of_two_is_killed(more: &[&str], and_then: impl FnOnce()) {
    let (domain, roots) = (Strategy::DOMAIN_LOCAL, 1..=8);
    let [a, b, c, d] = ports();
    let places = [(); 4].map(|()| Place::new());
    let start = |i: usize, roles: &str, own: u16, links: &[u16]| {
        let links: Vec<String> =
            links.iter().map(|port| format!("{{face=\"udp4://127.0.0.1:{port}\"}}")).collect();
        let (node, roles) = (format!("push.node=\"{}\"", i + 1), format!("push.roles={roles}"));
        let listen = format!("faces.udp.listen=127.0.0.1:{own}");
        let link = format!("push.link=[{}]", links.join(", "));
        let own = [&*node, &roles, "push.lease_ms=2000", "faces.reconnect_max_ms=1000"];
        let all: Vec<&str> =
            own.into_iter().chain([&*listen, &link]).chain(more.iter().copied()).collect();
        push_daemon(&places[i], &all)
    };
    let both = "[\"rendezvous\", \"topology\"]";
    let mut first = start(0, both, a, &[b]);
    let _b = start(1, "[]", b, &[a, c, d]);
    let _c = start(2, "[]", c, &[b, d]);
    let _d = start(3, both, d, &[b, c]);
    for place in &places {
        ask_until("both are known everywhere", || {
            let status = place.json(&["rendezvous", "status"]);
            status["homes"].as_array().is_some_and(|homes| homes.len() == 2)
        });
    }
    let open = |i: usize| App::open(Some(&places[i].node()), "test").unwrap();
    let (mut publisher, mut subscriber) = (open(1), open(2));
    for root in roots.clone() {
        publisher.publish_scope(&scope(root), domain).unwrap();
        publisher.publish_item(&item(root), domain).unwrap();
        subscriber.subscribe_item(&item(root), domain).unwrap();
    }
    let mut started = std::collections::BTreeSet::new();
    while started.len() < 8 {
        match publisher.event(Some(support::PATIENCE)).unwrap() {
            Some(Event::StartPublish(id)) => started.insert(id),
            other => panic!("{other:?}"),
        };
    }
    // Both have a part of the roots: else this shows nothing.
    for place in [&places[0], &places[3]] {
        let total = place.json(&["rendezvous", "graph"])["total"].as_u64().unwrap();
        assert!((1..16).contains(&total), "{total} of 16");
    }
    first.kill();
    let mut late = open(3);
    for root in roots {
        wait_until("the other rendezvous knows the scope", || {
            late.subscribe_item(&item(root), domain).is_ok()
        });
        let payload = root.to_be_bytes();
        wait_until("the publication comes", || {
            publisher.publish(&item(root), domain, &payload).unwrap();
            publisher.drain().unwrap();
            let payload = Buf::copy_from(&payload);
            let wanted = Some(Event::Data { id: item(root), payload, came_by: None });
            late.event(Some(Duration::from_millis(100))).unwrap() == wanted
        });
        // What was published while it was not known yet comes no more.
        while late.event(Some(Duration::from_millis(50))).unwrap().is_some() {}
    }
    wait_graph(&places[3], "the other rendezvous has all", |graph| graph["total"] == 16);
    // Its host said so at once, and it answered nothing (P-86).
    let doubts = &places[1].json(&["rendezvous", "status"])["control"]["doubts"];
    assert!(doubts.as_u64().is_some_and(|doubts| doubts > 0), "{doubts}");
    and_then();
}

#[test]
fn the_only_rendezvous_may_be_killed_and_no_subscription_is_lost() {
    let domain = Strategy::DOMAIN_LOCAL;
    let ports: [u16; 3] = ports();
    let places = [(); 3].map(|()| Place::new());
    // Each has a link to both others; the middle one is rendezvous and topology manager.
    let start = |i: usize| {
        let others = ports.iter().enumerate().filter(|(other, _)| *other != i);
        let links: Vec<String> =
            others.map(|(_, port)| format!("{{face=\"udp4://127.0.0.1:{port}\"}}")).collect();
        let roles = if i == 1 { "[\"rendezvous\", \"topology\"]" } else { "[]" };
        push_daemon(
            &places[i],
            &[
                &format!("push.node=\"{}\"", i + 1),
                &format!("push.roles={roles}"),
                "push.lease_ms=2000",
                &format!("push.state={}", places[i].path("push.redb").display()),
                "faces.reconnect_max_ms=1000",
                &format!("faces.udp.listen=127.0.0.1:{}", ports[i]),
                &format!("push.link=[{}]", links.join(", ")),
            ],
        )
    };
    let (_a, mut middle, _c) = (start(0), start(1), start(2));
    for place in &places {
        ask_until("the rendezvous is known", || {
            place.json(&["rendezvous", "status"])["homes"][0]["node"] == "0002"
        });
    }
    let open = |i: usize| App::open(Some(&places[i].node()), "test").unwrap();
    let (mut publisher, mut subscriber) = (open(0), open(2));
    publisher.publish_scope(&scope(1), domain).unwrap();
    publisher.publish_item(&item(1), domain).unwrap();
    subscriber.subscribe_item(&item(1), domain).unwrap();
    let started = publisher.event(Some(support::PATIENCE)).unwrap();
    assert_eq!(started, Some(Event::StartPublish(item(1))));
    let mut arrives = |text: &str| {
        let payload = Buf::copy_from(text.as_bytes());
        let wanted = Some(Event::Data { id: item(1), payload, came_by: None });
        wait_until("the publication arrives", || {
            publisher.publish(&item(1), domain, text.as_bytes()).unwrap();
            publisher.drain().unwrap();
            subscriber.event(Some(Duration::from_millis(200))).unwrap() == wanted
        });
        while subscriber.event(Some(Duration::from_millis(50))).unwrap().is_some() {}
    };
    arrives("with it");
    middle.kill();
    arrives("without it");
    // Alone, where nobody can tell it anything, it knows the scope from before.
    let mut lonely = push_daemon(
        &places[1],
        &[
            "push.node=\"2\"",
            "push.lease_ms=600000",
            &format!("push.state={}", places[1].path("push.redb").display()),
        ],
    );
    wait_graph(&places[1], "the scope is there", |graph| {
        let vertices = graph["vertices"].as_array().unwrap();
        vertices.len() == 1
            && vertices[0]["scope"] == true
            && vertices[0]["publishers"][0] == "0001"
    });
    lonely.kill();
    let _middle = start(1);
    wait_graph(&places[1], "everything is asserted again", |graph| {
        graph["vertices"].as_array().unwrap().iter().any(|v| {
            v["publishers"][0] == "0001" && v["subscribers"][0] == "0003" && v["scope"] == false
        })
    });
    arrives("with it again");
}

#[test]
fn a_node_that_trusts_somebody_delivers_only_what_is_signed_so() {
    let domain = Strategy::DOMAIN_LOCAL;
    let ports: [u16; 3] = ports();
    let places = [(); 3].map(|()| Place::new());
    assert_eq!(places[0].run(&["key", "new", "/alice"]).code, 0);
    let exported = places[0].run(&["cert", "export", "/alice", "-o", "alice.ndncert"]);
    assert_eq!(exported.code, 0, "{}", exported.err);
    let alice = places[0].path("alice.ndncert");
    let rules = "#K: \"KEY\"/_/_/_\n#alice: \"alice\"/#K\n#item: \"push\"/_/_ <= #alice\n";
    std::fs::write(places[1].path("push.lvs"), rules).unwrap();
    let entry = format!(
        "trust=[{{name=\"push\", schema={:?}, anchors=[{alice:?}]}}]",
        places[1].path("push.lvs"),
    );
    let publishers = format!("push.publishers=[{alice:?}]");
    // The middle one receives; the first one signs, the last one does not.
    let keys: [&[&str]; 3] =
        [&["push.sign_key=/alice"], &[&entry, &publishers, "push.trust=push"], &[]];
    let start = |i: usize| {
        let others = if i == 1 { vec![0, 2] } else { vec![1] };
        let link = |other: &usize| format!("{{face=\"udp4://127.0.0.1:{}\"}}", ports[*other]);
        let links: Vec<String> = others.iter().map(link).collect();
        let roles = if i == 1 { "[\"rendezvous\", \"topology\"]" } else { "[]" };
        let own = [
            format!("push.node=\"{}\"", i + 1),
            format!("push.roles={roles}"),
            format!("faces.udp.listen=127.0.0.1:{}", ports[i]),
            format!("push.link=[{}]", links.join(", ")),
        ];
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        push_daemon(&places[i], &[&own[..], keys[i]].concat())
    };
    let _daemons = [start(0), start(1), start(2)];
    for place in &places {
        ask_until("the rendezvous is known", || {
            place.json(&["rendezvous", "status"])["homes"][0]["node"] == "0002"
        });
    }
    let open = |i: usize| App::open(Some(&places[i].node()), "test").unwrap();
    let (mut signing, mut other, mut subscriber) = (open(0), open(2), open(1));
    for (app, root) in [(&mut signing, 1), (&mut other, 2)] {
        app.publish_scope(&scope(root), domain).unwrap();
        app.publish_item(&item(root), domain).unwrap();
        subscriber.subscribe_item(&item(root), domain).unwrap();
        let started = app.event(Some(support::PATIENCE)).unwrap();
        assert_eq!(started, Some(Event::StartPublish(item(root))));
    }
    ask_until("what is not signed is counted", || {
        other.publish(&item(2), domain, b"x").unwrap();
        other.drain().unwrap();
        places[1].json(&["rendezvous", "status"])["control"]["signature"].as_u64() > Some(0)
    });
    // Longer than a frame: each fragment is signed.
    let payload = noise(5000, 1);
    signing.publish(&item(1), domain, &payload).unwrap();
    signing.drain().unwrap();
    let got = subscriber.event(Some(support::PATIENCE)).unwrap();
    let payload = Buf::copy_from(&payload);
    assert_eq!(got, Some(Event::Data { id: item(1), payload, came_by: None }));
}

/// Nodes whose keys `/net` vouches for are a domain; what another one says is obeyed by none.
const DOMAIN: &str = "\
#K: \"KEY\"/_/_/_
#root: \"net\"/#K
#node: \"net\"/n/#K <= #root
#control: \"push-control\"/_part/_label <= #node
#item: \"push\"/_/_ <= #node
";

#[test]
fn a_domain_that_trusts_keys_obeys_no_node_whose_key_nobody_vouches_for() {
    let domain = Strategy::DOMAIN_LOCAL;
    let ports: [u16; 3] = ports();
    let places = [(); 3].map(|()| Place::new());
    let run = |place: &Place, args: &[&str]| {
        let ended = place.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
    };
    let shared = places[0].path("certificates");
    std::fs::create_dir(&shared).unwrap();
    std::fs::write(places[0].path("domain.lvs"), DOMAIN).unwrap();
    run(&places[0], &["key", "new", "/net"]);
    run(&places[0], &["cert", "export", "/net", "-o", "root.cert"]);
    // The last one signs for itself, as a node of the domain.
    for (place, identity, is_vouched) in
        [(0, "/net/a", true), (1, "/net/b", true), (2, "/net/b", false)]
    {
        let request = shared.join(format!("{place}.cert")).display().to_string();
        run(&places[place], &["key", "new", identity]);
        run(&places[place], &["cert", "export", identity, "-o", &request]);
        let issue = ["cert", "issue", &request, "--signer", "/net", "-o", &request];
        if is_vouched {
            run(&places[0], &issue);
        }
    }
    let entry = format!(
        "trust=[{{name=\"push\", schema={:?}, anchors=[{:?}]}}]",
        places[0].path("domain.lvs"),
        places[0].path("root.cert"),
    );
    let publishers = format!("push.publishers=[{shared:?}]");
    let start = |i: usize| {
        let others = if i == 0 { vec![1, 2] } else { vec![0] };
        let link = |other: &usize| format!("{{face=\"udp4://127.0.0.1:{}\"}}", ports[*other]);
        let links: Vec<String> = others.iter().map(link).collect();
        let own = [
            format!("push.node=\"{}\"", i + 1),
            format!("push.roles={}", if i == 0 { "[\"rendezvous\", \"topology\"]" } else { "[]" }),
            format!("faces.udp.listen=127.0.0.1:{}", ports[i]),
            format!("push.link=[{}]", links.join(", ")),
            format!("push.sign_key={}", if i == 0 { "/net/a" } else { "/net/b" }),
        ];
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let trust = [entry.as_str(), &publishers, "push.trust=push", "push.trust_control=true"];
        push_daemon(&places[i], &[&own[..], &trust[..]].concat())
    };
    let _daemons = [start(0), start(1), start(2)];
    ask_until("the rendezvous is known", || {
        places[1].json(&["rendezvous", "status"])["homes"][0]["node"] == "0001"
    });
    let open = |i: usize| App::open(Some(&places[i].node()), "test").unwrap();
    let (mut publisher, mut subscriber) = (open(1), open(0));
    publisher.publish_scope(&scope(1), domain).unwrap();
    publisher.publish_item(&item(1), domain).unwrap();
    subscriber.subscribe_item(&item(1), domain).unwrap();
    let started = publisher.event(Some(support::PATIENCE)).unwrap();
    assert_eq!(started, Some(Event::StartPublish(item(1))));
    publisher.publish(&item(1), domain, b"hello").unwrap();
    publisher.drain().unwrap();
    let got = subscriber.event(Some(support::PATIENCE)).unwrap();
    let Some(Event::Data { id, payload, .. }) = got else { panic!("{got:?}") };
    assert_eq!((id, &payload[..]), (item(1), &b"hello"[..]));
    ask_until("what the stranger says is counted", || {
        places[0].json(&["rendezvous", "status"])["control"]["signature"].as_u64() > Some(0)
    });
    let seen = places[0].json(&["topology", "map"]).to_string();
    assert!(seen.contains("0002") && !seen.contains("0003"), "{seen}");
}

#[test]
fn a_publication_for_a_group_is_read_by_its_members_and_by_nobody_else() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    for args in [
        &["key", "new", "/alice"][..],
        &["cert", "export", "/alice", "-o", "alice.ndncert"],
        &["access", "key", "/alice", "-o", "alice.card"],
        &["access", "grant", "/alice/NAC/friends", "alice.card"],
    ] {
        let ended = place.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
    }
    let mut serve = place.start(&["access", "serve"]);
    serve.wait_for("ready: ");
    let subscribe = ["subscribe", "/1/2", "--count", "1", "--timeout", "60"];
    let trusting = [&subscribe[..], &["--anchor", "alice.ndncert"]].concat();
    let mut member = place.start(&trusting);
    let mut command = place.command(&trusting);
    command.env("ONYM_KEYSTORE", place.path("nobody"));
    let mut stranger = Running::start(&mut command);
    let mut raw = place.start(&subscribe);
    ask_until("the three subscribers", || {
        let here = &place.json(&["explain", "--push", "/1/2"])["here"]["subscribers"];
        here.as_array().is_some_and(|all| all.len() == 3)
    });
    // One that is not encrypted is left out by who trusts.
    let sealed = ["--key", "/alice", "--for", "/alice/NAC/friends"];
    let publish = ["publish", "/1/2", "--text", "for friends", "--timeout", "60"];
    let published = place.run(&[&publish[..], &sealed].concat());
    assert_eq!(published.code, 0, "{}", published.err);
    assert_eq!(member.end(), Some(0), "{}", member.err.text());
    assert_eq!(member.out.text(), "for friends\n");
    assert_eq!(raw.end(), Some(0), "{}", raw.err.text());
    assert!(!raw.out.text().contains("for friends"), "it is on the wire");
    stranger.wait_for("no key of this reader is a member's");
    assert!(stranger.out.text().is_empty());
}
