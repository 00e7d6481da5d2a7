//! Blackboards through the node: publisher and subscribers know only the item.

#![allow(clippy::unwrap_used)]

mod support;

use onym_board::{BoardError, Config, Publisher, Reception};
use onym_client::push::App;
use onym_wire::push::{Id, Strategy};
use std::time::Instant;
use support::{PATIENCE, Place};

#[test]
fn subscribers_of_a_node_local_item_read_in_place_what_is_published_on_its_blackboard() {
    let place = Place::new();
    let mut daemon = place.daemon(&["push.enabled=true"]);
    let id = item();
    let local = Strategy::NODE_LOCAL;
    let open = || App::open(Some(&place.node()), "test").unwrap();
    let (mut publishing, mut stranger) = (open(), open());
    publishing.publish_scope(&"/1".parse().unwrap(), local).unwrap();
    publishing.publish_item(&id, local).unwrap();
    let subscribers: Vec<_> = (0..3)
        .map(|_| {
            let mut app = open();
            app.subscribe_item(&id, local).unwrap();
            std::thread::spawn(move || app.want_board(&item(), PATIENCE).unwrap())
        })
        .collect();
    let refused = |result: Result<_, BoardError>| {
        assert!(matches!(result, Err(BoardError::Refused(_))), "{result:?}");
    };
    refused(stranger.offer_board(&id).map(|_| ()));
    refused(stranger.want_board(&id, PATIENCE).map(|_| ()));
    // Subscribed, but not node-locally.
    let other: Id = "/5".parse().unwrap();
    stranger.subscribe_scope(&other, Strategy::DOMAIN_LOCAL).unwrap();
    refused(stranger.want_board(&other, PATIENCE).map(|_| ()));
    let offer = publishing.offer_board(&id).unwrap();
    let config = Config { payload_max: 100_000, depth: 15, subscribers_max: 8 };
    let mut publisher = Publisher::new(&config).unwrap();
    let end = Instant::now() + PATIENCE;
    while publisher.subscribers() < 3 {
        assert!(Instant::now() < end, "{} of 3 came", publisher.subscribers());
        offer.admit(&mut publisher).unwrap();
        std::thread::yield_now();
    }
    // What was joined needs no node.
    daemon.kill();
    let payload = support::noise(100_000, 4);
    publisher.publish(&payload).unwrap();
    for subscriber in subscribers {
        match subscriber.join().unwrap().receive_within(PATIENCE).unwrap() {
            Some(Reception::Item(item)) => assert_eq!(item.to_vec(), payload),
            other => panic!("{other:?}"),
        }
    }
}

/// The item.
fn item() -> Id {
    "/1/2".parse().unwrap()
}
