//! Two shards that are full toward each other: at both are applications that publish to those of the
//! other one, and one that does not read.

use super::*;
use std::collections::BTreeMap;

const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;
/// Publications of each publisher: more octets than all queues and sockets on the way hold.
const COUNT: u32 = 20_000;
const LEN: usize = 1000;
/// Applications that publish, and subscribe to what the others publish.
const PUBLISHERS: u64 = 4;
/// All applications: the others only subscribe.
const APPS: u64 = 6;

/// The applications with their numbers, one behind the other at a shard each in turns.
fn apps(place: &Place) -> Vec<(u64, App)> {
    let open = |n| (n, App::open(Some(&place.node()), "test").unwrap());
    let mut apps: Vec<_> = (1..=APPS).map(open).collect();
    for (n, app) in apps.iter_mut().filter(|(n, _)| *n <= PUBLISHERS) {
        app.publish_scope(&scope(*n), STRATEGY).unwrap();
        app.publish_item(&item(*n), STRATEGY).unwrap();
    }
    for (n, app) in &mut apps {
        for other in (1..=PUBLISHERS).filter(|other| other != n) {
            app.subscribe_item(&item(other), STRATEGY).unwrap();
        }
    }
    for (n, app) in apps.iter_mut().filter(|(n, _)| *n <= PUBLISHERS) {
        let started = app.event(Some(support::PATIENCE)).unwrap();
        assert_eq!(started, Some(Event::StartPublish(item(*n))));
    }
    apps
}

/// Takes what the others published: each one's in its order, all of it or told as missed.
fn read(n: u64, app: &mut App) {
    let publishers = if n <= PUBLISHERS { PUBLISHERS - 1 } else { PUBLISHERS };
    let all = publishers * u64::from(COUNT);
    let (mut next, mut got, mut missed) = (BTreeMap::<Id, u32>::new(), 0, 0);
    while got + missed < all {
        match app.event(Some(support::PATIENCE)).unwrap() {
            Some(Event::Data { id, payload, .. }) => {
                assert_eq!(payload.len(), LEN);
                let number = u32::from_be_bytes(*payload.first_chunk().unwrap());
                let next = next.entry(id.clone()).or_default();
                assert!(number >= *next, "application {n}: {id} {number} after {next}");
                (*next, got) = (number + 1, got + 1);
            }
            Some(Event::Missed(count) | Event::Lost(count)) => missed += count,
            other => panic!("application {n}: {other:?} after {got} and {missed} missed"),
        }
    }
    assert_eq!(got + missed, all, "application {n}");
    assert!(n <= PUBLISHERS || missed > 0, "application {n}: nothing was full");
}

/// Publishers read only while they wait for room, and the others not before all is published: so much
/// is waited for as `push.hold_ms` says, and no shard waits for one that waits for it.
#[test]
fn two_shards_that_are_full_toward_each_other_go_on() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a", "push.hold_ms=50", "shards=2"]);
    let mut apps = apps(&place);
    std::thread::scope(|scope| {
        for (n, app) in apps.iter_mut().filter(|(n, _)| *n <= PUBLISHERS) {
            scope.spawn(move || {
                let mut payload = vec![7; LEN];
                for number in 0..COUNT {
                    payload[..4].copy_from_slice(&number.to_be_bytes());
                    app.publish(&item(*n), STRATEGY, &payload).unwrap();
                }
                app.drain().unwrap();
            });
        }
    });
    std::thread::scope(|scope| {
        for (n, app) in &mut apps {
            scope.spawn(move || read(*n, app));
        }
    });
}

/// Who publishes to a shard without room waits; who publishes to another one from the same shard does
/// not.
#[test]
fn a_full_shard_stops_only_who_publishes_to_it() {
    let place = Place::new();
    let _daemon = push_daemon(&place, &["push.node=a", "push.hold_ms=60000", "shards=2"]);
    // One behind the other, at a shard each in turns.
    let open = || App::open(Some(&place.node()), "test").unwrap();
    let (mut stopped, mut slow, mut going, _between, mut quick) =
        (open(), open(), open(), open(), open());
    for (n, publisher, subscriber) in [(1, &mut stopped, &mut slow), (2, &mut going, &mut quick)] {
        publisher.publish_scope(&scope(n), STRATEGY).unwrap();
        publisher.publish_item(&item(n), STRATEGY).unwrap();
        subscriber.subscribe_item(&item(n), STRATEGY).unwrap();
        let started = publisher.event(Some(support::PATIENCE)).unwrap();
        assert_eq!(started, Some(Event::StartPublish(item(n))));
    }
    // Both numbers in a publication; what is read is all of it, in order.
    let publish = |app: &mut App, n: u64, count: u32| {
        let mut payload = vec![7; LEN];
        for number in 0..count {
            payload[..4].copy_from_slice(&number.to_be_bytes());
            app.publish(&item(n), STRATEGY, &payload).unwrap();
        }
        app.drain().unwrap();
    };
    let read = |app: &mut App, count: u32| {
        for number in 0..count {
            match app.event(Some(support::PATIENCE)).unwrap() {
                Some(Event::Data { payload, .. }) => {
                    assert_eq!(payload.first_chunk(), Some(&number.to_be_bytes()));
                }
                other => panic!("{other:?} in place of {number}"),
            }
        }
    };
    let is_stopped = std::sync::atomic::AtomicBool::new(true);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            publish(&mut stopped, 1, COUNT);
            is_stopped.store(false, std::sync::atomic::Ordering::SeqCst);
        });
        scope.spawn(|| publish(&mut going, 2, COUNT));
        read(&mut quick, COUNT);
        assert!(is_stopped.load(std::sync::atomic::Ordering::SeqCst), "nothing was full");
        read(&mut slow, COUNT);
    });
}
