//! Two nodes over TCP, or one that has to keep its order: who waits, who is told, and that nothing
//! is overtaken.

use super::*;

/// On a loaded machine a subscriber may be slow for long.
pub(super) const PATIENT: u32 = 60_000;

/// Two nodes, the first one the rendezvous and the one that connects.
pub(super) fn two_nodes_over_tcp(hold_ms: u32) -> ([Place; 2], [Running; 2]) {
    two_nodes_with(hold_ms, &[])
}

pub(super) fn two_nodes_with(hold_ms: u32, sets: &[&str]) -> ([Place; 2], [Running; 2]) {
    let places = [Place::new(), Place::new()];
    let [port] = ports();
    let there = format!("push.link=[{{face=\"tcp4://127.0.0.1:{port}\"}}]");
    // The second one takes the connection, from whichever port it comes.
    let here = "push.link=[{face=\"tcp4://127.0.0.1:0\"}]";
    let listen = format!("faces.tcp.listen=127.0.0.1:{port}");
    let hold = format!("push.hold_ms={hold_ms}");
    let here = ["push.node=b", "push.roles=[]", &hold, &listen, here];
    let first = push_daemon(&places[0], &[&["push.node=a", &hold, &there], sets].concat());
    let second = push_daemon(&places[1], &[&here, sets].concat());
    ask_until("the second node knows the rendezvous", || {
        let status = places[1].json(&["rendezvous", "status"]);
        status["homes"].as_array().is_some_and(|homes| !homes.is_empty())
    });
    (places, [first, second])
}

/// A started publisher of item 1 at the first node, and three subscribers at the second one.
fn publisher_and_subscribers(places: &[Place; 2]) -> (App, [App; 3]) {
    let domain = Strategy::DOMAIN_LOCAL;
    let open = |i: usize| App::open(Some(&places[i].node()), "test").unwrap();
    let mut publisher = open(0);
    publisher.publish_scope(&scope(1), domain).unwrap();
    publisher.publish_item(&item(1), domain).unwrap();
    let mut subscribers = [(); 3].map(|()| open(1));
    for subscriber in &mut subscribers {
        subscriber.subscribe_item(&item(1), domain).unwrap();
    }
    let started = publisher.event(Some(support::PATIENCE)).unwrap();
    assert_eq!(started, Some(Event::StartPublish(item(1))));
    (publisher, subscribers)
}

#[test]
fn a_publisher_waits_for_subscribers_at_another_node_and_nobody_misses_anything() {
    let domain = Strategy::DOMAIN_LOCAL;
    let (places, _daemons) = two_nodes_over_tcp(PATIENT);
    let (mut publisher, subscribers) = publisher_and_subscribers(&places);
    // More than all queues and sockets on the way hold together.
    let (count, mut payload) = (60_000_u32, vec![7; 1000]);
    let publishing = std::thread::spawn(move || {
        for number in 0..count {
            payload[..4].copy_from_slice(&number.to_be_bytes());
            publisher.publish(&item(1), domain, &payload).unwrap();
        }
        publisher.drain().unwrap();
        // It closes at once: what it published arrives all the same (P-57).
    });
    let receive = |mut app: App| {
        std::thread::spawn(move || {
            for number in 0..count {
                match app.event(Some(support::PATIENCE)).unwrap() {
                    Some(Event::Data { payload, .. }) => {
                        assert_eq!(
                            (&payload[..4], payload.len()),
                            (&number.to_be_bytes()[..], 1000)
                        );
                    }
                    other => panic!("{other:?} instead of publication {number}"),
                }
            }
        })
    };
    let receiving = subscribers.map(receive);
    publishing.join().unwrap();
    receiving.into_iter().for_each(|thread| thread.join().unwrap());
}

#[test]
fn whatever_slow_subscribers_at_another_node_do_not_get_they_are_told() {
    let domain = Strategy::DOMAIN_LOCAL;
    let (places, _daemons) = two_nodes_over_tcp(20);
    let (mut publisher, subscribers) = publisher_and_subscribers(&places);
    // Nobody reads until all is published, which is more than all queues hold.
    let count = 40_000;
    for number in 0..count {
        let mut payload = [7; 1000];
        payload[..8].copy_from_slice(&u64::to_be_bytes(number));
        publisher.publish(&item(1), domain, &payload).unwrap();
    }
    publisher.drain().unwrap();
    for (at, mut app) in subscribers.into_iter().enumerate() {
        let (mut next, mut missed) = (0, 0);
        while next < count {
            match app.event(Some(support::PATIENCE)).unwrap() {
                Some(Event::Data { payload, .. }) => {
                    let number = u64::from_be_bytes(*payload.first_chunk().unwrap());
                    assert_eq!(number, next, "subscriber {at}");
                    next += 1;
                }
                Some(Event::Missed(number) | Event::Lost(number)) => {
                    (next, missed) = (next + number, missed + number);
                }
                other => panic!("{other:?} instead of publication {next}, subscriber {at}"),
            }
        }
        assert!(missed > 0, "subscriber {at}");
    }
}

#[test]
fn what_is_published_right_before_the_connection_ends_arrives() {
    let domain = Strategy::DOMAIN_LOCAL;
    let (places, _daemons) = two_nodes_over_tcp(PATIENT);
    let open = |i: usize| App::open(Some(&places[i].node()), "test").unwrap();
    let mut subscriber = open(1);
    for root in 1..=20_u64 {
        let mut publisher = open(0);
        publisher.publish_scope(&scope(root), domain).unwrap();
        publisher.publish_item(&item(root), domain).unwrap();
        subscriber.subscribe_item(&item(root), domain).unwrap();
        let started = publisher.event(Some(support::PATIENCE)).unwrap();
        assert_eq!(started, Some(Event::StartPublish(item(root))));
        publisher.publish(&item(root), domain, &root.to_be_bytes()).unwrap();
        publisher.drain().unwrap();
        drop(publisher);
        let payload = Buf::copy_from(&root.to_be_bytes());
        let wanted = Some(Event::Data { id: item(root), payload, came_by: None });
        assert_eq!(subscriber.event(Some(support::PATIENCE)).unwrap(), wanted);
    }
}

#[test]
fn what_a_shard_does_itself_overtakes_nothing_that_goes_to_the_thread() {
    for shards in ["shards=1", "shards=2"] {
        let place = Place::new();
        let _daemon = push_daemon(&place, &["push.node=a", shards]);
        let open = || App::open(Some(&place.node()), "test").unwrap();
        let (mut publisher, mut subscriber) = (open(), open());
        // Under the first strategy a publication goes to the thread, under the second one it is done
        // in place when it may be.
        let items =
            [(1, Strategy::NODE_LOCAL), (2, Strategy::DOMAIN_LOCAL)].map(|(n, s)| (item(n), s));
        for (root, (item, strategy)) in (1..).zip(&items) {
            publisher.publish_scope(&scope(root), *strategy).unwrap();
            publisher.publish_item(item, *strategy).unwrap();
            subscriber.subscribe_item(item, *strategy).unwrap();
            let started = publisher.event(Some(support::PATIENCE)).unwrap();
            assert_eq!(started, Some(Event::StartPublish(item.clone())));
        }
        let count = 20_000_u32;
        for number in 0..count {
            // Runs of different lengths, each handed over at once.
            let (item, strategy) = &items[usize::from(number % 97 < number % 13)];
            publisher.publish(item, *strategy, &number.to_be_bytes()).unwrap();
            if number % 31 == 0 {
                publisher.drain().unwrap();
            }
        }
        publisher.drain().unwrap();
        for number in 0..count {
            match subscriber.event(Some(support::PATIENCE)).unwrap() {
                Some(Event::Data { payload, .. }) => assert_eq!(&*payload, number.to_be_bytes()),
                other => panic!("{other:?} instead of publication {number}, {shards}"),
            }
        }
    }
}

#[test]
fn long_publications_that_are_not_copied_and_short_ones_stay_in_order_over_two_nodes() {
    let (places, _daemons) = two_nodes_over_tcp(PATIENT);
    let open = |place: &Place| App::open(Some(&place.node()), "test").unwrap();
    let mut publisher = open(&places[0]);
    // Several at the other node, and one beside the publisher.
    let mut subscribers = [&places[1], &places[1], &places[0]].map(open);
    let (item, strategy) = (item(1), Strategy::DOMAIN_LOCAL);
    publisher.publish_scope(&scope(1), strategy).unwrap();
    publisher.publish_item(&item, strategy).unwrap();
    for subscriber in &mut subscribers {
        subscriber.subscribe_item(&item, strategy).unwrap();
    }
    ask_until("the publisher's node has a way to the other", || {
        publisher.publish(&item, strategy, b"probe").unwrap();
        publisher.drain().unwrap();
        let patience = Some(Duration::from_millis(1));
        subscribers.iter_mut().all(|s| matches!(s.event(patience), Ok(Some(Event::Data { .. }))))
    });
    let count = 5000_u32;
    let payload_of = |number: u32| {
        let length = [4, 1024, 1025, 6000][(number % 97 % 4) as usize];
        number.to_be_bytes().into_iter().cycle().take(length).collect::<Vec<u8>>()
    };
    let sender = std::thread::spawn(move || {
        for number in 0..count {
            publisher.publish(&item, strategy, &payload_of(number)).unwrap();
            if number % 31 == 0 {
                publisher.drain().unwrap();
            }
        }
        publisher.drain().unwrap();
        publisher
    });
    std::thread::scope(|scope| {
        for (at, subscriber) in subscribers.iter_mut().enumerate() {
            scope.spawn(move || {
                let mut number = 0;
                while number < count {
                    let came = subscriber.event(Some(support::PATIENCE)).unwrap();
                    let Some(Event::Data { payload, .. }) = came else {
                        panic!("{came:?} instead of publication {number} at subscriber {at}")
                    };
                    if &*payload == b"probe" {
                        continue;
                    }
                    let first = payload.first_chunk().map(|first| u32::from_be_bytes(*first));
                    assert_eq!(first, Some(number), "at subscriber {at}");
                    assert!(*payload == payload_of(number), "{number} at subscriber {at}");
                    number += 1;
                }
            });
        }
    });
    drop(sender.join().unwrap());
}

#[test]
fn after_the_kill_of_a_node_between_a_subscriber_is_told_that_cause_and_not_that_it_is_slow() {
    let domain = Strategy::DOMAIN_LOCAL;
    let ports: [u16; 3] = ports();
    let places = [(); 3].map(|()| Place::new());
    // A line; the publisher's node is the rendezvous.
    let start = |i: usize| {
        let near = (0..3).filter(|other| i.abs_diff(*other) == 1);
        let links: Vec<String> =
            near.map(|n| format!("{{face=\"udp4://127.0.0.1:{}\"}}", ports[n])).collect();
        let roles = if i == 0 { "[\"rendezvous\", \"topology\"]" } else { "[]" };
        let sets = [
            format!("push.node=\"{}\"", i + 1),
            format!("push.roles={roles}"),
            "push.lease_ms=20000".to_owned(),
            "faces.reconnect_max_ms=500".to_owned(),
            format!("faces.udp.listen=127.0.0.1:{}", ports[i]),
            format!("push.link=[{}]", links.join(", ")),
        ];
        push_daemon(&places[i], &sets.each_ref().map(String::as_str))
    };
    let (_first, mut between, _last) = (start(0), start(1), start(2));
    let mut publisher = App::open(Some(&places[0].node()), "test").unwrap();
    publisher.publish_scope(&scope(1), domain).unwrap();
    publisher.publish_item(&item(1), domain).unwrap();
    let subscriber = places[2].start(&["subscribe", &item(1).to_string(), "--lines"]);
    let mut publish = |text: &str| {
        // Refused while nobody is reached.
        let _ = publisher.publish(&item(1), domain, text.as_bytes());
        while let Ok(Some(_)) = publisher.event(Some(Duration::from_millis(20))) {}
    };
    wait_until("publications arrive", || {
        publish("before");
        subscriber.out.text().contains("before")
    });
    between.kill();
    for _ in 0..20 {
        publish("lost");
    }
    let _again = start(1);
    wait_until("publications arrive again, and the loss is told", || {
        publish("after");
        let told = subscriber.err.text();
        assert!(!told.contains("too slow"), "{told}");
        subscriber.out.text().contains("after") && told.contains("lost on the way here")
    });
}

#[test]
fn a_node_that_is_no_rendezvous_says_where_to_ask_for_what_is_published() {
    let (places, _daemons) = two_nodes_over_tcp(PATIENT);
    let (_publisher, _subscribers) = publisher_and_subscribers(&places);
    let known = places[0].run(&["scope", "list"]).out;
    assert!(known.contains(&item(1).to_string()), "{known}");
    for command in [&["scope", "list"][..], &["rendezvous", "graph"]] {
        let said = places[1].run(command).out;
        assert!(said.contains("known to 000a: ask there with --node"), "{command:?}: {said}");
        assert!(!said.contains("nothing is published"), "{command:?}: {said}");
    }
}

/// What is retained is many times what may wait for an application, and its publisher does not stop:
/// whoever subscribes late and reads gets all of it, whether at the publisher's node or at another
/// one, in order and before what is new (P-73).
#[test]
fn a_long_history_comes_as_fast_as_its_subscriber_reads() {
    const COUNT: u32 = 1200;
    const MORE: u32 = 100;
    let domain = Strategy::DOMAIN_LOCAL;
    let sets = ["push.app_queue_bytes_max=400000", "shards=2"];
    let (places, _daemons) = two_nodes_with(PATIENT, &sets);
    let open = |i: usize| App::open(Some(&places[i].node()), "test").unwrap();
    let mut publisher = open(0);
    publisher.publish_scope(&scope(1), domain).unwrap();
    publisher.publish_item(&item(1), domain).unwrap();
    publisher.retain(&item(1), (COUNT + MORE).into()).unwrap();
    let mut payload = vec![7; 3000];
    let mut publish = |publisher: &mut App, number: u32| {
        payload[..4].copy_from_slice(&number.to_be_bytes());
        publisher.publish(&item(1), domain, &payload).unwrap();
    };
    (0..COUNT).for_each(|number| publish(&mut publisher, number));
    publisher.drain().unwrap();
    let mut apps = [open(0), open(1), open(0), open(1)];
    for app in &mut apps {
        app.subscribe_item(&item(1), domain).unwrap();
    }
    (COUNT..COUNT + MORE).for_each(|number| publish(&mut publisher, number));
    publisher.drain().unwrap();
    // One after the other: those that do not read yet hold nobody up.
    let begun = std::time::Instant::now();
    for (at, app) in apps.iter_mut().enumerate() {
        for number in 0..COUNT + MORE {
            match app.event(Some(support::PATIENCE)).unwrap() {
                Some(Event::Data { payload, .. }) => {
                    assert_eq!(payload[..4], number.to_be_bytes(), "subscriber {at}");
                }
                other => panic!("{other:?} instead of publication {number}, subscriber {at}"),
            }
        }
    }
    assert!(begun.elapsed() < Duration::from_millis(PATIENT.into()), "somebody held them up");
}
