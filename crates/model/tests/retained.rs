//! What an application publishes while it changes what is retained of an item.

use onym_model::{App, Said, start};
use onym_wire::push::{Id, Kind};
use shuttle::scheduler::{PctScheduler, RandomScheduler};
use shuttle::{Config, Runner, thread};

fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

/// Publications of one application to one item come in order at a subscriber of its own shard and
/// at one of another, when their way changes: `changes` says before which of them how many are
/// retained from then on.
fn law(changes: &[(u8, u64)]) {
    const COUNT: u8 = 12;
    let (node, apps) = start(2, &[0, 1, 0]);
    let Ok([mut first, second, third]) = <[App; 3]>::try_from(apps) else { unreachable!() };
    first.ask(Kind::PUBLISH_SCOPE, &id("/1"), &id("/"));
    first.ask(Kind::PUBLISH_ITEM, &id("/7"), &id("/1"));
    let readers = [second, third].map(|mut app| {
        app.ask(Kind::SUBSCRIBE_ITEM, &id("/7"), &id("/1"));
        app
    });
    assert_eq!(first.next(), Said::Start(id("/1/7")));
    let readers = readers.map(|mut app| {
        thread::spawn(move || {
            for next in 0..COUNT {
                match app.next() {
                    Said::Data(_, payload) => assert_eq!(payload[0], next, "out of order"),
                    other => panic!("{other:?}"),
                }
            }
            app
        })
    });
    for number in 0..COUNT {
        for (_, count) in changes.iter().filter(|(before, _)| *before == number) {
            first.retain(&id("/1/7"), *count);
        }
        first.publish(&id("/1/7"), &[number; 20]);
    }
    let _readers = readers.map(|reader| reader.join().expect("everything came in order"));
    node.stop();
}

fn check(law: fn()) {
    let config = || {
        let mut config = Config::new();
        config.stack_size = 1 << 19;
        config
    };
    Runner::new(RandomScheduler::new(100), config()).run(law);
    Runner::new(PctScheduler::new(4, 200), config()).run(law);
}

#[test]
fn what_is_published_before_it_is_retained_is_not_overtaken() {
    check(|| law(&[(4, 3)]));
}

#[test]
fn what_is_retained_is_not_overtaken_by_what_is_not_any_more() {
    check(|| law(&[(0, 3), (8, 0)]));
}

#[test]
fn a_change_back_and_forth_keeps_the_order() {
    check(|| law(&[(3, 1), (5, 0), (5, 2), (9, 0)]));
}
