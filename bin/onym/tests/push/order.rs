//! The order law over threads: what one publisher publishes to one item arrives in order or is told
//! as missed, with publications of every length, several publishers, and several shards.

use super::*;
use std::collections::BTreeMap;

/// Publications of each publisher to each of its items.
const COUNT: u32 = 400;
const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;

fn item(publisher: u32, item: u32) -> Id {
    format!("/{publisher:x}/{item:x}").parse().unwrap()
}

/// A length that hardly repeats: short, of many fragments, and longer than a message.
fn length(seed: u32) -> usize {
    let drawn = seed.wrapping_mul(2_654_435_761) >> 8;
    let most = [60, 1200, 8000, 60_000][(drawn % 4) as usize];
    8 + (drawn as usize / 4) % most
}

fn open(place: &Place) -> App {
    App::open(Some(&place.node()), "test").unwrap()
}

/// Publishes to two items in turns.
fn publish(mut app: App, publisher: u32) -> App {
    for number in 0..COUNT {
        for at in 1..=2 {
            let mut payload = number.to_be_bytes().to_vec();
            payload.resize(length(publisher * 100_000 + number * 2 + at), 7);
            app.publish(&item(publisher, at), STRATEGY, &payload).unwrap();
        }
        if number % 13 == 0 {
            app.drain().unwrap();
        }
    }
    app.drain().unwrap();
    app
}

/// Takes everything; each item's publications in their order.
fn subscribe(app: &mut App, what: &str) {
    let mut next: BTreeMap<Id, u32> = BTreeMap::new();
    let mut left = 2 * 2 * COUNT;
    while left > 0 {
        match app.event(Some(support::PATIENCE)).unwrap() {
            Some(Event::Data { id, payload, .. }) if payload.len() >= 8 => {
                let number = u32::from_be_bytes(*payload.first_chunk().unwrap());
                let next = next.entry(id.clone()).or_default();
                assert_eq!(number, *next, "{what}: {id}");
                (*next, left) = (*next + 1, left - 1);
            }
            // What the publishers found out about the way with.
            Some(Event::Data { .. }) => {}
            other => panic!("{what}: {other:?}, {next:?}"),
        }
    }
}

/// Two nodes over TCP, with so many shards each.
fn law_holds(shards: u32) {
    let places = [Place::new(), Place::new()];
    let [port] = ports();
    let there = format!("push.link=[{{face=\"tcp4://127.0.0.1:{port}\"}}]");
    let here = "push.link=[{face=\"tcp4://127.0.0.1:0\"}]";
    let listen = format!("faces.tcp.listen=127.0.0.1:{port}");
    // On a loaded machine a subscriber may be slow for long.
    let (hold, shards) = ("push.hold_ms=60000", format!("shards={shards}"));
    let _first = push_daemon(&places[0], &["push.node=a", hold, &shards, &there]);
    let second = ["push.node=b", "push.roles=[]", hold, &shards, &listen, here];
    let _second = push_daemon(&places[1], &second);
    ask_until("the second node knows the rendezvous", || {
        let status = places[1].json(&["rendezvous", "status"]);
        status["homes"].as_array().is_some_and(|homes| !homes.is_empty())
    });
    let mut publishers = [1, 2].map(|publisher| {
        let mut app = open(&places[0]);
        let root = format!("/{publisher:x}").parse().unwrap();
        app.publish_scope(&root, STRATEGY).unwrap();
        (1..=2).for_each(|at| app.publish_item(&item(publisher, at), STRATEGY).unwrap());
        app
    });
    let mut subscribers = [&places[0], &places[0], &places[1], &places[1]].map(open);
    for subscriber in &mut subscribers {
        for (publisher, at) in [(1, 1), (1, 2), (2, 1), (2, 2)] {
            subscriber.subscribe_item(&item(publisher, at), STRATEGY).unwrap();
        }
    }
    for (publisher, app) in (1..).zip(&mut publishers) {
        for at in 1..=2 {
            let id = item(publisher, at);
            ask_until("the way to the other node is there", || {
                let told = places[0].json(&["explain", "--push", &id.to_string()]);
                told["here"]["route"].is_object()
            });
        }
        while app.event(Some(Duration::from_millis(1))).unwrap().is_some() {}
    }
    let publishing =
        (1..).zip(publishers).map(|(n, app)| std::thread::spawn(move || publish(app, n)));
    let publishing: Vec<_> = publishing.collect();
    std::thread::scope(|scope| {
        for (at, subscriber) in subscribers.iter_mut().enumerate() {
            let what = format!("{shards}, subscriber {at}");
            scope.spawn(move || subscribe(subscriber, &what));
        }
    });
    publishing.into_iter().for_each(|thread| drop(thread.join().unwrap()));
}

#[test]
fn publications_of_any_length_arrive_in_order_with_one_shard() {
    law_holds(1);
}

#[test]
fn publications_of_any_length_arrive_in_order_with_several_shards() {
    law_holds(2);
}
