//! The inter-domain strategy over daemons: two domains of two nodes each.

#![allow(clippy::unwrap_used)]

mod support;

use support::{Place, Running, noise, wait_until};

#[test]
fn a_file_crosses_from_one_domain_to_another() {
    let ports = onym_sys::port::unused(4).unwrap();
    let places = [(); 4].map(|()| Place::new());
    // Nodes 0 and 1 are domain d0, nodes 2 and 3 are domain d1; 1 and 2 have the link between.
    let face = |to: usize| format!("face=\"udp4://127.0.0.1:{}\"", ports[to]);
    let links = [
        format!("[{{{}}}]", face(1)),
        format!("[{{{}}}, {{{}, domain=\"d1\"}}]", face(0), face(2)),
        format!("[{{{}}}, {{{}, domain=\"d0\"}}]", face(3), face(1)),
        format!("[{{{}}}]", face(2)),
    ];
    let daemons: Vec<_> = (0..4)
        .map(|i| {
            let roles = if i == 0 || i == 3 { "[\"rendezvous\", \"topology\"]" } else { "[]" };
            let domain = i / 2;
            places[i].daemon(&[
                "push.enabled=true",
                "push.domain_key=between",
                &format!("push.key=inside {domain}"),
                &format!("push.domain=d{domain}"),
                &format!("push.node=\"{}\"", i + 1),
                &format!("push.roles={roles}"),
                &format!("push.link={}", links[i]),
                &format!("faces.udp.listen=127.0.0.1:{}", ports[i]),
            ])
        })
        .collect();
    let content = noise(50_001, 9);
    std::fs::write(places[0].path("in"), &content).unwrap();
    let strategy = ["--strategy", "inter-domain"];
    let publish = [&["publish", "/1/2", "in", "--keep"], &strategy[..]].concat();
    let _publish = places[0].start(&publish);
    wait_until("the scope is known in the other domain", || {
        let graph = places[3].json(&["rendezvous", "graph"]);
        graph["vertices"].as_array().unwrap().iter().any(|v| v["ids"][0] == "/0001/0002")
    });
    let subscribe = [&["subscribe", "/1/2", "-o", "out"], &strategy[..]].concat();
    let _subscribers = [places[3].start(&subscribe), places[2].start(&subscribe)];
    // Who subscribes while others do already gets what is published then: the first one it is.
    wait_until("the file arrives in the other domain", || {
        places[2..].iter().any(|p| std::fs::read(p.path("out")).is_ok_and(|out| out == content))
    });
    let map = places[0].json(&["topology", "map"]);
    assert_eq!(map["domains"][0]["domain"], "00d1", "{map}");
    assert_eq!(map["domains"][0]["path"][0], "00d0", "{map}");
    let status = places[1].json(&["rendezvous", "status"]);
    assert_eq!(status["control"]["mac"], 0, "{status}");
    drop(daemons);
}

/// Two domains, each with an anchor of its own. A node of d1 speaks for d1 and for no other domain.
const TWO_DOMAINS: &str = "\
#K: \"KEY\"/_/_/_
#root0: \"net0\"/#K
#root1: \"net1\"/#K
#node0: \"net0\"/_node/#K <= #root0
#node1: \"net1\"/_node/#K <= #root1
#from0: \"push-control\"/\"domains\"/\"%00%00%00%00%00%00%00%D0\" <= #node0
#from1: \"push-control\"/\"domains\"/\"%00%00%00%00%00%00%00%D1\" <= #node1
#item: \"push\"/_scope/_item <= #node0 | #node1
";

/// Law: what a domain says to another one is obeyed when a key that the rules of `push.trust` let
/// speak for that domain signed it, whoever has the secret between the domains.
#[test]
fn domains_that_trust_keys_obey_each_other_and_nobody_who_poses_as_a_third() {
    let ports = onym_sys::port::unused(3).unwrap();
    let places = [(); 3].map(|()| Place::new());
    let shared = places[0].path("certificates");
    std::fs::create_dir(&shared).unwrap();
    let run = |place: &Place, args: &[&str]| {
        let ended = place.run(args);
        assert_eq!(ended.code, 0, "{args:?}: {}", ended.err);
    };
    for root in ["/net0", "/net1"] {
        run(&places[0], &["key", "new", root]);
        run(&places[0], &["cert", "export", root, "-o", &format!("{}.cert", &root[1..])]);
    }
    std::fs::write(places[0].path("domains.lvs"), TWO_DOMAINS).unwrap();
    // The last one has a good key of d1 and says that it is d2.
    let identities = ["/net0/a", "/net1/b", "/net1/c"];
    for (place, identity) in places.iter().zip(identities) {
        let request = shared.join(format!("{}.cert", &identity[6..])).display().to_string();
        run(place, &["key", "new", identity]);
        run(place, &["cert", "export", identity, "-o", &request]);
        let root = &identity[..5];
        run(&places[0], &["cert", "issue", &request, "--signer", root, "-o", &request]);
    }
    let anchors = ["net0.cert", "net1.cert"].map(|file| places[0].path(file));
    let schema = places[0].path("domains.lvs");
    let face = |to: usize| format!("{{face=\"udp4://127.0.0.1:{}\", domain=\"d{to}\"}}", ports[to]);
    let links =
        [format!("[{}, {}]", face(1), face(2)), format!("[{}]", face(0)), format!("[{}]", face(0))];
    let _daemons: Vec<_> = (0..3)
        .map(|i| {
            places[i].daemon(&[
                "push.enabled=true",
                "push.domain_key=between",
                "push.roles=[\"rendezvous\", \"topology\"]",
                &format!("trust=[{{name=\"push\", schema={schema:?}, anchors={anchors:?}}}]"),
                "push.trust=push",
                "push.trust_control=true",
                &format!("push.publishers=[{shared:?}]"),
                &format!("push.sign_key={}", identities[i]),
                &format!("push.domain=d{i}"),
                &format!("push.node=\"{}\"", i + 1),
                &format!("push.link={}", links[i]),
                &format!("faces.udp.listen=127.0.0.1:{}", ports[i]),
            ])
        })
        .collect();
    let content = noise(20_001, 11);
    std::fs::write(places[0].path("in"), &content).unwrap();
    let strategy = ["--strategy", "inter-domain"];
    let _publish = places[0].start(&[&["publish", "/1/2", "in", "--keep"], &strategy[..]].concat());
    wait_until("the scope is known in the other domain", || {
        let graph = places[1].json(&["rendezvous", "graph"]);
        graph["vertices"].as_array().unwrap().iter().any(|v| v["ids"][0] == "/0001/0002")
    });
    let subscribe = [&["subscribe", "/1/2", "-o", "out"], &strategy[..]].concat();
    let _subscribe = places[1].start(&subscribe);
    wait_until("the file arrives in the other domain", || {
        std::fs::read(places[1].path("out")).is_ok_and(|out| out == content)
    });
    wait_until("what the third one says is counted", || {
        let status = places[0].json(&["rendezvous", "status"]);
        status["control"]["signature"].as_u64() > Some(0)
    });
    let map = places[0].json(&["topology", "map"])["domains"].to_string();
    assert!(map.contains("\"00d1\"") && !map.contains("00d2"), "{map}");
    let status = places[1].json(&["rendezvous", "status"]);
    assert_eq!(status["control"]["signature"], 0, "{status}");
}

/// Law: the key that `onym topology deploy` makes is in what each node is given: such nodes are one
/// domain, and a node without it, or with another one, stays outside.
#[test]
fn nodes_of_a_deployed_domain_know_each_other_by_its_key() {
    let place = Place::new();
    let ports = onym_sys::port::unused(2).unwrap();
    let description = format!(
        "[[node]]\nname = \"a\"\naddress = \"127.0.0.1:{}\"\nroles = [\"rendezvous\", \"topology\"]\n\
         [[node]]\nname = \"b\"\naddress = \"127.0.0.1:{}\"\n[[link]]\na = \"a\"\nb = \"b\"\n",
        ports[0], ports[1]
    );
    std::fs::write(place.path("domain.toml"), description).unwrap();
    let deployed = place.run(&["topology", "deploy", "domain.toml", "-o", "out"]);
    assert_eq!(deployed.code, 0, "{}", deployed.err);
    let key = std::fs::read_to_string(place.path("out/domain.key")).unwrap();
    let config = std::fs::read_to_string(place.path("out/b.toml")).unwrap();
    let is_key = |line: &&str| line.starts_with("key = ") && line.contains(key.trim());
    assert_eq!(config.lines().filter(is_key).count(), 1, "{config}");

    let daemon = |name: &str, more: &[&str]| {
        let socket = format!("faces.unix.path={}", place.path(&format!("{name}.sock")).display());
        let config = format!("out/{name}.toml");
        let mut command = place.command(&["daemon", "--config", &config, "--set", &socket]);
        for set in ["faces.tcp.listen=", "faces.websocket.listen=", "shards=1"].iter().chain(more) {
            command.args(["--set", set]);
        }
        let mut daemon = Running::start(&mut command);
        daemon.wait_for("ready\n");
        daemon
    };
    let at = |name: &str, args: &[&str]| {
        let node = format!("unix://{}", place.path(&format!("{name}.sock")).display());
        place.json(&[args, &["--node", &node]].concat())
    };
    let _a = daemon("a", &[]);
    let refused = || at("a", &["rendezvous", "status"])["control"]["mac"].as_u64().unwrap();
    let known = || at("a", &["topology", "map"])["nodes"].as_array().unwrap().len();
    for (said, word) in [("push.key=", "no key"), ("push.key=another one", "another key")] {
        let before = refused();
        let mut b = daemon("b", &[said]);
        wait_until(word, || refused() > before + 2);
        assert_eq!(known(), 1, "{word}");
        b.kill();
    }
    let _b = daemon("b", &[]);
    wait_until("the nodes know each other", || known() == 2);
    let a = format!("unix://{}", place.path("a.sock").display());
    let map =
        place.run(&["topology", "map", "--dot", "--names", "out/domain.json", "--node", &a]).out;
    for name in ["a", "b"] {
        let is_called = map.contains(&format!("label=\"{name}\"")) // no role
            || map.contains(&format!("label=\"{name}\\n"));
        assert!(is_called, "{name} has its name of the file: {map}");
    }
    let node = format!("unix://{}", place.path("b.sock").display());
    let mut publish = place.start(&["scope", "publish", "/1", "--node", &node]);
    wait_until("the rendezvous knows what is published at the other node", || {
        let graph = at("a", &["rendezvous", "graph"]);
        graph["vertices"].as_array().unwrap().iter().any(|v| v["ids"][0] == "/0001")
    });
    assert!(publish.runs() || publish.end() == Some(0));
}
