//! What comes exactly once.

use super::sessions::{kept, kept_v3, of, resumed};
use super::*;

fn first(text: &str, number: u16) -> Answer {
    of(text, Delivered::First(Quality::Exactly(number)))
}

fn again(text: &str, number: u16) -> Answer {
    of(text, Delivered::Again(Quality::Exactly(number)))
}

const fn release(number: u16) -> Answer {
    Answer::Release(number, None)
}

const fn unknown(number: u16) -> Answer {
    Answer::Release(number, Some(Reason::Unknown))
}

impl Played {
    /// A client that asks for what is to come exactly once.
    fn listens_once(&mut self, client: u64, receive_max: u16) {
        let granted = self.listens(client, receive_max, &[("a", Level::Exactly)]);
        assert_eq!(granted, [Answer::Subscribed(1, vec![Ok(Level::Exactly)])]);
    }

    fn told(&mut self, client: u64) -> Vec<Answer> {
        self.told.remove(&client).unwrap_or_default()
    }

    fn values(&mut self, texts: &[&str]) {
        texts.iter().for_each(|text| self.value(text));
    }
}

#[test]
fn what_leaves_is_let_go_of_in_two_steps_and_has_its_place_until_the_second() {
    let mut all = Played::new(Limits::default());
    all.listens_once(2, 2);
    all.values(&["1", "2", "3", "4"]);
    assert_eq!(all.told(2), [first("1", 1), first("2", 2)]);
    // Said once more: it is told once more, and nothing is left for another message.
    for _ in 0..2 {
        assert_eq!(all.says(2, Said::Received(1)), [release(1)]);
    }
    assert_eq!(all.says(2, Said::Completed(1)), [first("3", 3)]);
    assert_eq!(all.says(2, Said::Received(3)), [release(3)]);
    assert_eq!(all.says(2, Said::Received(2)), [release(2)]);
    assert_eq!(all.says(2, Said::Completed(2)), [first("4", 4)]);
    // What it has is not lost with its session; what it may not have is counted.
    all.leaves(2);
    assert_eq!((all.broker.unacknowledged, all.broker.dropped), (1, 0));
}

#[test]
fn what_a_client_makes_up_frees_nothing() {
    let mut all = Played::new(Limits::default());
    all.listens(2, 3, &[("a", Level::Exactly), ("b", Level::Least)]);
    all.values(&["1", "2"]);
    (0..2).for_each(|_| all.data("/mqtt/=b/~value", b"b"));
    assert_eq!(all.told(2).len(), 3, "the window");
    for number in [4, 64, 65, u16::MAX] {
        assert_eq!(all.says(2, Said::Received(number)), [unknown(number)], "nobody used it");
        assert_eq!(all.says(2, Said::Received(number)), [unknown(number)], "twice");
        assert!(all.says(2, Said::Completed(number)).is_empty());
        assert!(all.says(2, Said::Declined(number)).is_empty());
    }
    // Out of order, and of the other kind.
    assert!(all.says(2, Said::Completed(1)).is_empty());
    assert!(all.says(2, Said::Acknowledge(1)).is_empty());
    assert_eq!(all.says(2, Said::Received(3)), [unknown(3)]);
    assert!(all.says(2, Said::Completed(3)).is_empty());
    assert!(all.says(2, Said::Declined(3)).is_empty());
    // Each is as it was.
    assert_eq!(all.says(2, Said::Received(1)), [release(1)]);
    assert!(all.says(2, Said::Acknowledge(1)).is_empty());
    let last = Answer::Published(message("b", b"b", false), Delivered::First(Quality::Least(4)));
    assert_eq!(all.says(2, Said::Completed(1)), [last]);
    assert!(all.says(2, Said::Completed(1)).is_empty(), "twice");
    (3..=4).for_each(|number| assert!(all.says(2, Said::Acknowledge(number)).is_empty()));
    assert_eq!(all.says(2, Said::Received(2)), [release(2)]);
    assert!(all.ended.is_empty());
}

#[test]
fn a_client_that_declines_a_message_is_done_with_it_whenever_it_says_so() {
    let mut all = Played::new(Limits::default());
    all.listens_once(2, 1);
    all.values(&["1", "2", "3"]);
    assert_eq!(all.told(2), [first("1", 1)]);
    assert_eq!(all.says(2, Said::Declined(1)), [first("2", 2)]);
    assert!(all.says(2, Said::Declined(1)).is_empty());
    // After it said that it has it.
    assert_eq!(all.says(2, Said::Received(2)), [release(2)]);
    assert_eq!(all.says(2, Said::Declined(2)), [first("3", 3)]);
    assert!(all.says(2, Said::Completed(2)).is_empty());
    assert_eq!(all.says(2, Said::Received(2)), [unknown(2)]);
    assert_eq!((all.broker.unacknowledged, all.broker.dropped), (0, 0));
}

#[test]
fn a_session_goes_on_where_each_message_was_and_none_comes_after_a_client_has_it() {
    for (connect, expiry) in [(kept(2, 60), 60), (kept_v3(2), 86_400)] {
        let mut all = Played::new(Limits::default());
        let connect = || Connect { receive_max: 4, ..connect.clone() };
        all.opens(2, connect());
        all.asks(2, &[("a", Level::Exactly)]);
        all.values(&["1", "2", "3", "4", "5"]);
        assert_eq!(all.told(2).len(), 4);
        // In the order in which it says so.
        all.says(2, Said::Received(3));
        all.says(2, Said::Received(1));
        all.leaves(2);
        all.value("6");
        let goes_on = [resumed(expiry), release(3), release(1), again("2", 2), again("4", 4)];
        assert_eq!(all.opens(3, connect()), goes_on);
        // That connection fails as well.
        all.leaves(3);
        assert_eq!(all.opens(4, connect()), goes_on);
        assert_eq!(all.says(4, Said::Completed(1)), [first("5", 5)]);
        assert_eq!(all.says(4, Said::Completed(3)), [first("6", 6)]);
        for number in [2, 4, 5, 6] {
            assert_eq!(all.says(4, Said::Received(number)), [release(number)]);
        }
        // It takes less than before: what it is to let go of it hears even so, and no more comes.
        all.leaves(4);
        all.value("7");
        let less = || Connect { receive_max: 1, ..connect() };
        let released = [2, 4, 5, 6].map(release);
        assert_eq!(all.opens(5, less()), [&[resumed(expiry)], &released[..]].concat());
        for number in [2, 4, 5] {
            assert!(all.says(5, Said::Completed(number)).is_empty());
        }
        assert_eq!(all.says(5, Said::Completed(6)), [first("7", 7)]);
        assert_eq!((all.broker.unacknowledged, all.broker.dropped), (0, 0));
    }
}

#[test]
fn what_left_and_is_dropped_keeps_its_identifier_until_its_client_lets_go_of_it() {
    // There is no room while it is away.
    let mut all = Played::new(Limits { session: 400, ..Limits::default() });
    all.opens(1, kept(1, 60));
    all.asks(1, &[("a", Level::Exactly)]);
    let text = |number: u64| format!("{number:0>100}");
    (1..=4).for_each(|number| all.value(&text(number)));
    assert_eq!(all.told(1).len(), 4);
    all.leaves(1);
    assert_eq!(all.broker.dropped, 2);
    let answers = all.opens(2, kept(1, 60));
    let left = [again(&text(1), 1), again(&text(2), 2)];
    assert_eq!(answers, [&[resumed(60), release(4), release(3)], &left[..]].concat());
    assert_eq!(all.says(2, Said::Received(3)), [release(3)], "it had it");
    // A client that takes less than before.
    all.leaves(2);
    let answers = all.opens(3, Connect { packet_max: 50, ..kept(1, 60) });
    assert_eq!(answers, [&[resumed(60)], &[4, 3, 1, 2].map(release)[..]].concat());
    assert_eq!((all.broker.dropped, all.broker.unacknowledged), (4, 0));
    (1..=4).for_each(|number| _ = all.says(3, Said::Completed(number)));
    all.value("5");
    assert_eq!(all.told(3), [first("5", 5)]);
}

#[test]
fn who_never_completes_gets_its_window_and_holds_nobody_up() {
    let mut all = Played::new(Limits { queue: 4096, ..Limits::default() });
    all.listens_once(1, u16::MAX);
    all.listens_once(2, u16::MAX);
    for number in 1..=1000 {
        all.value("");
        assert_eq!(all.told(2), [first("", number)]);
        assert_eq!(all.says(2, Said::Received(number)), [release(number)]);
        assert!(all.says(2, Said::Completed(number)).is_empty());
        for answer in all.told(1) {
            assert!(number <= 64, "{answer:?}");
            assert_eq!(all.says(1, Said::Received(number)), [release(number)]);
        }
    }
    let dropped = all.broker.dropped;
    assert!((1000 - 64 - 4096 / 32..1000 - 64).contains(&dropped), "{dropped}");
    all.leaves(1);
    assert_eq!(all.broker.unacknowledged, 1000 - 64 - dropped);
}

#[test]
fn a_message_comes_exactly_once_where_publisher_and_filter_say_so() {
    let mut all = Played::new(Limits::default());
    all.connects(1, Version::V5, None);
    all.listens_once(2, 9);
    for quality in [Quality::Most, Quality::Least(7), Quality::Exactly(7)] {
        all.says(1, Said::Publish(message("a", b"x", true), quality));
    }
    let came = [Quality::Most, Quality::Least(1), Quality::Exactly(2)];
    assert_eq!(all.told(2), came.map(|quality| of("x", Delivered::First(quality))));
    // What is kept has that of its publisher; items do not say which they had; a will has its own.
    let retained = |number| {
        let number = Delivered::First(Quality::Exactly(number));
        Answer::Published(message("a", b"x", true), number)
    };
    all.takes(3, 9, u32::MAX);
    assert_eq!(all.asks(3, &[("a", Level::Exactly)])[1], retained(1));
    all.says(1, Said::Publish(message("a", b"x", true), Quality::Most));
    all.told.clear();
    all.data("/mqtt/=a/~retained", b"x");
    assert_eq!(all.asks(3, &[("a", Level::Exactly)])[1], retained(2));
    all.told.clear();
    let will = Some((message("a", b"will", false), Level::Exactly));
    all.opens(4, Connect { will, ..named(4) });
    all.leaves(4);
    assert_eq!(all.told(2), [first("will", 3)]);
    assert_eq!(all.told(3), [first("will", 3)]);
}
