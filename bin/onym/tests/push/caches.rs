//! Long publications with a lifetime in the caches of daemons: a late subscriber behind a chain gets a
//! file whose publisher is gone.

use super::*;

/// Daemons in a row over UDP; the second one is rendezvous and topology manager.
fn chain<const N: usize>() -> ([Place; N], [Option<Running>; N]) {
    let ports: [u16; N] = ports();
    let places = [(); N].map(|()| Place::new());
    let link = |port: u16| format!("{{face=\"udp4://127.0.0.1:{port}\"}}");
    let daemons = std::array::from_fn(|at| {
        let before = at.checked_sub(1).map(|at| ports[at]);
        let beside = before.into_iter().chain(ports.get(at + 1).copied()).map(link);
        let links = format!("push.link=[{}]", beside.collect::<Vec<_>>().join(", "));
        let listen = format!("faces.udp.listen=127.0.0.1:{}", ports[at]);
        let node = format!("push.node={:x}", at + 10);
        let mut all = vec![&*node, "push.key=domain", &links, &listen];
        all.extend((at != 1).then_some("push.roles=[]"));
        Some(push_daemon(&places[at], &all))
    });
    (places, daemons)
}

fn cache(place: &Place, what: &str) -> u64 {
    place.json(&["rendezvous", "status"])["cache"][what].as_u64().unwrap()
}

/// The file is published at the first node and wanted at the third one; then the first one is killed,
/// and somebody at the fourth one wants it, and then somebody at the second one.
fn a_late_subscriber_gets_it(strategy: &str) {
    let (places, mut daemons) = chain::<4>();
    let content = noise(1_500_001, 9);
    std::fs::write(places[0].path("in"), &content).unwrap();
    let came = |place: &Place, name: &str| {
        wait_until("the file arrives as it was", || {
            std::fs::read(place.path(name)).is_ok_and(|out| out == content)
        });
    };
    let subscribe = |name| ["subscribe", "/1/2", "-o", name, "--strategy", strategy];
    let _early = places[2].start(&subscribe("early"));
    wait_graph(&places[1], "the subscription is at the rendezvous", |graph| {
        let vertices = graph["vertices"].as_array().unwrap();
        vertices.iter().any(|v| v["subscribers"][0] == "000c")
    });
    let publish = ["publish", "/1/2", "in", "--lifetime", "600", "--strategy", strategy];
    let told = places[0].run(&[&publish[..], &["--timeout", "60"]].concat());
    assert_eq!(told.code, 0, "{told:?}");
    came(&places[2], "early");
    for place in &places[..3] {
        ask_until("it is in the caches on the way", || cache(place, "publications") == 1);
    }
    daemons[0] = None;
    let _late = places[3].start(&subscribe("late"));
    came(&places[3], "late");
    assert_eq!((cache(&places[2], "sent"), cache(&places[1], "sent")), (1, 0));
    let _own = places[1].start(&subscribe("own"));
    came(&places[1], "own");
    assert_eq!((cache(&places[1], "told"), cache(&places[2], "sent")), (1, 1));
    let page = places[1].run(&["rendezvous", "status"]).out;
    assert!(page.contains("cache\n"), "{page}");
}

#[test]
fn a_late_subscriber_gets_a_file_from_the_nearest_cache_though_its_publisher_is_killed() {
    a_late_subscriber_gets_it("domain-local");
}

#[test]
fn what_is_for_several_domains_is_cached_too() {
    a_late_subscriber_gets_it("inter-domain");
}

#[test]
fn a_node_alone_keeps_a_file_for_who_comes_when_its_publisher_has_gone() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    let content = noise(1_500_001, 9);
    std::fs::write(place.path("in"), &content).unwrap();
    let _early = place.start(&["subscribe", "/1/2", "-o", "early"]);
    let publish = ["publish", "/1/2", "in", "--lifetime", "600", "--timeout", "60", "--json"];
    let told = place.run(&publish);
    assert_eq!(told.code, 0, "{told:?}");
    assert!(told.out.contains("\"frames\":0"), "{told:?}");
    let _late = place.start(&["subscribe", "/1/2", "-o", "late"]);
    for name in ["early", "late"] {
        wait_until("the file arrives as it was", || {
            std::fs::read(place.path(name)).is_ok_and(|out| out == content)
        });
    }
    assert_eq!((cache(&place, "publications"), cache(&place, "told")), (1, 1));
}

#[test]
fn a_lifetime_is_for_what_caches_keep() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    let publish = ["publish", "/1/2", "--text", "x", "--lifetime", "9", "--strategy", "broadcast"];
    let told = place.run(&publish);
    assert_eq!(told.code, 2, "{told:?}");
    assert!(told.err.contains("--lifetime does not go with --strategy broadcast"), "{told:?}");
}
