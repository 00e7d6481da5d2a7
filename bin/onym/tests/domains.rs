//! The inter-domain strategy over daemons: two domains of two nodes each.

#![allow(clippy::unwrap_used)]

mod support;

use support::{Place, noise, wait_until};

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
