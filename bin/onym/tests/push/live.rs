//! Publishers that come and go are told to who watches their item (P-75, P-78).

use super::two::{PATIENT, two_nodes_with};
use super::*;
use onym_client::push::live::{self, Change, Watch};
use onym_wire::push::Path;

const DOMAIN: Strategy = Strategy::DOMAIN_LOCAL;

/// The next change that a watcher hears.
fn next((app, watch): &mut (App, Watch)) -> Change {
    loop {
        let event = app.event(Some(support::PATIENCE)).unwrap().expect("a change");
        if let Some(change) = watch.change(&event) {
            return change;
        }
    }
}

#[test]
fn whoever_watches_an_item_hears_its_publishers_come_and_go_with_connection_and_node() {
    let (places, daemons) = two_nodes_with(PATIENT, &["push.lease_ms=3000"]);
    let [_first, mut second] = daemons;
    let open = |i: usize| {
        let mut app = App::open(Some(&places[i].node()), "test").unwrap();
        app.publish_scope(&scope(1), DOMAIN).unwrap();
        app
    };
    let path: Path = "/1/temperature".parse().unwrap();
    let publish = |i: usize| {
        let mut app = open(i);
        app.publish_item(&path.id, DOMAIN).unwrap();
        let token = live::announce(&mut app, &path, DOMAIN).unwrap();
        (app, token)
    };
    let watch = |i: usize| {
        let mut app = open(i);
        let watch = Watch::begin(&mut app, &path, DOMAIN).unwrap();
        (app, watch)
    };
    let ((there, far), (mut here, near)) = (publish(1), publish(0));
    // The second one of each node hears who is there, too.
    let mut watchers = [watch(0), watch(0), watch(1), watch(1)];
    for watcher in &mut watchers {
        let came = [next(watcher), next(watcher)];
        let wanted = [near, far].map(Change::Came);
        assert!(came == wanted || came == [wanted[1], wanted[0]], "{came:?}");
    }
    live::withdraw(&mut here, &path, DOMAIN).unwrap();
    let (fleeting, token) = publish(0);
    for watcher in &mut watchers {
        assert_eq!([next(watcher), next(watcher)], [Change::Went(near), Change::Came(token)]);
    }
    drop(fleeting);
    for watcher in &mut watchers {
        assert_eq!(next(watcher), Change::Went(token));
    }
    second.kill();
    for watcher in &mut watchers[..2] {
        assert_eq!(next(watcher), Change::Went(far));
        assert!(watcher.1.alive().is_empty() && watcher.1.beyond() == 0);
    }
    drop(there);
}

#[test]
fn a_subscriber_of_the_command_line_is_told_of_publishers_that_say_so() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a"]);
    let item = "/roof/temperature";
    let subscribe = ["subscribe", item, "--publishers", "--json"];
    let mut subscriber = place.start(&subscribe);
    let mut publisher = place.start(&["publish", item, "--text", "21.5", "--alive", "--keep"]);
    let events = |subscriber: &Running| {
        let told = lines(&subscriber.out.text());
        let of = |event: &Value| event["event"].as_str().unwrap().to_owned();
        (told.iter().map(of).collect::<Vec<_>>(), told)
    };
    wait_until("it is told, and gets what is published", || events(&subscriber).0.len() == 2);
    publisher.kill();
    wait_until("its end is told", || events(&subscriber).0.len() == 3);
    let (mut names, told) = events(&subscriber);
    assert_eq!(names.pop().as_deref(), Some("publisher-gone"));
    names.sort_unstable();
    assert_eq!(names, ["data", "publisher"]);
    let came = told.iter().find(|event| event["event"] == "publisher").unwrap();
    assert_eq!((&came["publisher"], &came["path"]), (&told[2]["publisher"], &item.into()));
    subscriber.kill();
    let wrong = place.run(&["subscribe", "/roof/*", "--publishers"]);
    assert_eq!(wrong.code, 2, "{}", wrong.err);
    let implicit = ["publish", item, "--text", "x", "--alive", "--strategy", "broadcast"];
    assert_eq!(place.run(&implicit).code, 2);
}
