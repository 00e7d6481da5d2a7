//! What crosses between two shards and the push thread, with lanes that are full most of the time.

use onym_model::{App, Said, start};
use onym_wire::push::{Id, Kind};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::sync::mpsc::channel;
use shuttle::{Config, Runner, thread};

/// A scope for each publisher, with its item.
fn scope(n: u8) -> Id {
    format!("/{n}").parse().expect("an identifier")
}

fn child() -> Id {
    "/7".parse().expect("an identifier")
}

fn item(n: u8) -> Id {
    format!("/{n}/7").parse().expect("an identifier")
}

fn root() -> Id {
    "/".parse().expect("an identifier")
}

/// Publishes the item of a scope of its own.
fn open(app: &mut App, n: u8) {
    app.ask(Kind::PUBLISH_SCOPE, &scope(n), &root());
    app.ask(Kind::PUBLISH_ITEM, &child(), &scope(n));
}

fn subscribe(app: &mut App, n: u8) {
    app.ask(Kind::SUBSCRIBE_ITEM, &child(), &scope(n));
}

/// Takes `count` publications of each of `items`, those of one item in their order.
fn take_all(app: &mut App, items: &[u8], count: u8) {
    let mut next = vec![0; items.len()];
    while next.iter().any(|next| *next < count) {
        match app.next() {
            Said::Data(id, payload) => {
                let at = items.iter().position(|n| item(*n) == id).expect("it subscribed to that");
                assert_eq!(payload[0], next[at], "{id} is out of order");
                next[at] += 1;
            }
            Said::Start(_) | Said::Stop(_) => {}
            other @ Said::Missed(_) => panic!("{other:?}"),
        }
    }
}

fn check(random: usize, pct: usize, law: fn()) {
    let config = || {
        let mut config = Config::new();
        config.stack_size = 1 << 19;
        config
    };
    Runner::new(RandomScheduler::new(random), config()).run(law);
    Runner::new(PctScheduler::new(3, pct), config()).run(law);
}

/// At both shards an application publishes to those of the other one and of its own before anybody
/// reads; at both one asks for things of the push thread meanwhile.
fn both_are_full() {
    const COUNT: u8 = 9;
    let (node, apps) = start(2, &[0, 1, 0, 1]);
    let Ok([mut first, mut second, mut third, mut fourth]) = <[App; 4]>::try_from(apps) else {
        unreachable!()
    };
    open(&mut first, 1);
    open(&mut second, 2);
    for (app, items) in
        [(&mut first, &[2][..]), (&mut second, &[1]), (&mut third, &[1, 2]), (&mut fourth, &[1, 2])]
    {
        items.iter().for_each(|n| subscribe(app, *n));
    }
    for (app, n) in [(&mut first, 1), (&mut second, 2)] {
        assert_eq!(app.next(), Said::Start(item(n)));
        (0..COUNT).for_each(|number| app.publish(&item(n), &[number; 200]));
    }
    let reads = |mut app: App, items: &'static [u8]| {
        thread::spawn(move || {
            take_all(&mut app, items, COUNT);
            app
        })
    };
    let asks = |mut app: App, n: u8| {
        thread::spawn(move || {
            for _ in 0..3 {
                app.ask(Kind::PUBLISH_SCOPE, &scope(n), &root());
                app.ask(Kind::UNPUBLISH_SCOPE, &scope(n), &root());
            }
            take_all(&mut app, &[1, 2], COUNT);
            app
        })
    };
    let all = [reads(first, &[2]), reads(second, &[1]), asks(third, 3), asks(fourth, 4)];
    let _apps = all.map(|app| app.join().expect("it got everything"));
    node.stop();
}

#[test]
fn two_shards_that_are_full_toward_each_other_go_on_and_each_item_stays_in_order() {
    check(100, 50, both_are_full);
}

/// Who is told that its subscription is done gets what is published from then on, at whatever shard
/// the publisher is and however full the lanes of the push thread are.
fn told_before_announced() {
    for (publisher, subscriber) in [(0, 1), (1, 0)] {
        let (node, apps) = start(2, &[publisher, publisher, subscriber, 0, 1]);
        let Ok([mut first, mut before, mut late, busy, other]) = <[App; 5]>::try_from(apps) else {
            unreachable!()
        };
        open(&mut first, 1);
        subscribe(&mut before, 1);
        assert_eq!(first.next(), Said::Start(item(1)));
        let asks = |mut app: App, n: u8| {
            thread::spawn(move || {
                open(&mut app, n);
                for _ in 0..2 {
                    app.ask(Kind::SUBSCRIBE_ITEM, &child(), &scope(n));
                    app.ask(Kind::UNSUBSCRIBE_ITEM, &child(), &scope(n));
                }
                app
            })
        };
        let (go, went) = channel();
        let late = thread::spawn(move || {
            subscribe(&mut late, 1);
            go.send(()).expect("somebody waits");
            take_all(&mut late, &[1], 2);
            late
        });
        let all = [asks(busy, 3), asks(other, 4), late];
        went.recv().expect("it is subscribed");
        (0..2).for_each(|number| first.publish(&item(1), &[number; 20]));
        take_all(&mut before, &[1], 2);
        let _apps = all.map(|app| app.join().expect("it got everything"));
        node.stop();
    }
}

#[test]
fn a_subscription_is_known_to_all_shards_before_its_status_is_told() {
    check(100, 50, told_before_announced);
}

/// The same for a shard that is about to read from the publisher while all of that happens.
fn told_before_read() {
    const EARLY: u8 = 2;
    let (node, apps) = start(2, &[0, 0, 1]);
    let Ok([mut first, mut before, mut late]) = <[App; 3]>::try_from(apps) else { unreachable!() };
    open(&mut first, 1);
    subscribe(&mut before, 1);
    assert_eq!(first.next(), Said::Start(item(1)));
    let (go, went) = channel();
    let late = thread::spawn(move || {
        subscribe(&mut late, 1);
        go.send(()).expect("somebody waits");
        loop {
            // What was published before it was told may come, too.
            match late.next() {
                Said::Data(_, payload) if payload[0] < EARLY => {}
                Said::Data(_, payload) => break assert_eq!(payload[0], EARLY),
                other => panic!("{other:?}"),
            }
        }
        late
    });
    (0..EARLY).for_each(|number| first.publish(&item(1), &[number; 20]));
    went.recv().expect("it is subscribed");
    (EARLY..EARLY + 2).for_each(|number| first.publish(&item(1), &[number; 20]));
    take_all(&mut before, &[1], EARLY + 2);
    let _late = late.join().expect("it got what was published after it was told");
    node.stop();
}

#[test]
fn what_a_shard_reads_comes_behind_what_it_is_told() {
    check(50, 1200, told_before_read);
}
