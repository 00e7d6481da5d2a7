//! Words for labels, over daemons and from the command line.

use crate::support::Place;
use crate::{ask_until, lines, ports, push_daemon, wait_graph};

#[test]
fn a_path_of_words_is_published_and_both_forms_are_shown() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    let path = "/sensors/roof/temperature";
    let _publisher = place.start(&["publish", path, "--text", "21.5", "--retain"]);
    ask_until("it is retained", || {
        place.json(&["explain", "--push", path])["here"]["retained"]["publications"] == 1
    });
    let explained = place.json(&["explain", "--push", path]);
    let id = "/7c874d9a3405a0f8/a3550b1ff0c47f8f/556575c1ce107955";
    assert_eq!((&explained["id"], &explained["path"]), (&id.into(), &path.into()));
    // By its words, by its labels, and by the scope.
    for (of, words) in [(path, true), (id, false), ("/sensors/roof/*", true)] {
        let told = place.run(&["subscribe", of, "--json", "--count", "1", "--timeout", "60"]);
        let data = lines(&told.out).into_iter().find(|line| line["event"] == "data").unwrap();
        assert_eq!((&data["id"], &data["text"]), (&id.into(), &"21.5".into()), "{of}");
        assert_eq!(data["path"].is_string(), words, "{of}: {data}");
    }
    let list = place.run(&["scope", "list", "/sensors"]).out;
    assert!(list.contains(&format!("item  {path} ({id}) domain-local")), "{list}");
    assert!(list.contains("scope /sensors (/7c874d9a3405a0f8) domain-local"), "{list}");
}

/// These two words have the same hash: the second one is refused, at the node that knows the first one
/// and at another one of the domain.
#[test]
fn another_word_with_the_same_label_is_refused_and_told() {
    let (first, second) = ("/x1/8yn0iYCKYHlIj4-BwPqk", "/x1/GReLUrM4wMqfg9yzV3KQ");
    let places = [Place::new(), Place::new()];
    let [a, b] = ports();
    let listen = [a, b].map(|port| format!("faces.udp.listen=127.0.0.1:{port}"));
    let link = [b, a].map(|port| format!("push.link=[{{face=\"udp4://127.0.0.1:{port}\"}}]"));
    let _first = push_daemon(&places[0], &["push.node=a", &listen[0], &link[0]]);
    let _second = push_daemon(&places[1], &["push.node=b", "push.roles=[]", &listen[1], &link[1]]);
    let _publisher = places[0].start(&["publish", first, "--text", "x", "--retain"]);
    wait_graph(&places[0], "it is published", |graph| {
        let all = graph["vertices"].as_array().into_iter().flatten();
        all.into_iter().any(|vertex| vertex["paths"][0] == first)
    });
    for place in &places {
        let refused = place.run(&["subscribe", second, "--timeout", "30"]);
        assert_eq!(refused.code, 4, "{refused:?}");
        assert!(refused.err.contains("another word has this label"), "{refused:?}");
        let told = place.run(&["subscribe", first, "--count", "1", "--timeout", "60"]);
        assert_eq!((told.code, &told.out[..]), (0, "x"), "{told:?}");
    }
}
