//! Sessions that outlive their connections.

use super::*;

/// A client that keeps its session for so many seconds.
pub(super) fn kept(client: u64, expiry: u32) -> Connect {
    Connect { is_clean: false, expiry, ..named(client) }
}

/// The same in MQTT 3.1.1: as long as may be.
pub(super) fn kept_v3(client: u64) -> Connect {
    Connect { version: Version::V3, ..kept(client, u32::MAX) }
}

pub(super) fn resumed(expiry: u32) -> Answer {
    Answer::Connected(Welcome { is_present: true, expiry, ..welcome() })
}

fn fresh(expiry: u32) -> Answer {
    Answer::Connected(Welcome { expiry, ..welcome() })
}

pub(super) fn of(text: &str, delivered: Delivered) -> Answer {
    Answer::Published(message("a", text.as_bytes(), false), delivered)
}

impl Played {
    pub(super) fn value(&mut self, payload: &str) {
        self.data("/mqtt/=a/~value", payload.as_bytes());
    }

    pub(super) fn leaves(&mut self, client: u64) {
        self.broker.gone(self.now, client);
        self.take();
    }

    fn later(&mut self, seconds: u64) {
        self.now += Duration::from_secs(seconds);
        self.broker.handle_timeout(self.now);
        self.take();
    }

    fn is_subscribed(&self) -> bool {
        self.broker.wanted.contains_key("a")
    }
}

#[test]
fn a_session_goes_on_with_what_left_and_what_waited_and_nothing_comes_twice_after() {
    for (connect, expiry) in [(kept(2, 60), 60), (kept_v3(2), 86_400)] {
        let mut all = Played::new(Limits::default());
        let connect = || Connect { receive_max: 2, ..connect.clone() };
        assert_eq!(all.opens(2, connect()), [fresh(expiry)]);
        all.asks(2, &[("a", Level::Least)]);
        ["1", "2", "3"].iter().for_each(|text| all.value(text));
        assert_eq!(all.came(2).len(), 2);
        assert!(matches!(all.says(2, Said::Acknowledge(1))[..], [Answer::Published(..)]));
        all.leaves(2);
        all.value("4");
        // What need not be acknowledged is not kept.
        all.connects(1, Version::V5, None);
        all.says(1, Said::Publish(message("a", b"0", false), Quality::Most));
        let again = [
            of("2", Delivered::Again(Quality::Least(2))),
            of("3", Delivered::Again(Quality::Least(3))),
        ];
        assert_eq!(all.opens(3, connect()), [&[resumed(expiry)], &again[..]].concat());
        assert!(all.says(3, Said::Acknowledge(9)).is_empty());
        assert_eq!(
            all.says(3, Said::Acknowledge(2)),
            [of("4", Delivered::First(Quality::Least(4)))]
        );
        (3..=4).for_each(|number| assert!(all.says(3, Said::Acknowledge(number)).is_empty()));
        all.leaves(3);
        assert_eq!(all.opens(4, connect()), [resumed(expiry)]);
        // With clean session nothing of it is there.
        all.leaves(4);
        assert_eq!(all.opens(5, named(2)), [fresh(0)]);
        assert!(!all.is_subscribed());
        assert_eq!((all.broker.unacknowledged, all.broker.dropped), (0, 0));
    }
}

#[test]
fn a_connection_that_is_taken_over_leaves_its_session_only_where_it_is_to_be_kept() {
    let mut all = Played::new(Limits::default());
    let will = || Some((message("a", b"will", false), Level::Least));
    all.opens(1, Connect { will: will(), ..kept(1, 60) });
    all.asks(1, &[("a", Level::Least)]);
    let answers = all.opens(2, kept(1, 60));
    assert_eq!(answers, [resumed(60), of("will", Delivered::First(Quality::Least(1)))]);
    assert_eq!(all.told.remove(&1), Some(vec![Answer::Ended(Reason::TakenOver)]));
    // What it says still goes nowhere.
    assert!(all.says(1, Said::Acknowledge(1)).is_empty());
    all.leaves(1);
    assert_eq!(all.says(2, Said::Ping), [Answer::Pong]);
    assert_eq!(all.broker.away.len(), 0);
    // One that ends with its connection.
    all.opens(3, named(3));
    all.asks(3, &[("b", Level::Least)]);
    assert_eq!(all.opens(4, kept(3, 60)), [fresh(60)]);
    assert!(!all.broker.wanted.contains_key("b"));
}

#[test]
fn a_session_ends_when_its_client_says_and_never_later_than_the_bridge_does() {
    let mut all = Played::new(Limits { age: 100, ..Limits::default() });
    let comes = |all: &mut Played, client: u64, connect: Connect| {
        let answers = all.opens(client, connect);
        all.asks(client, &[("a", Level::Least)]);
        answers
    };
    assert_eq!(comes(&mut all, 1, kept(1, u32::MAX)), [fresh(100)]);
    all.leaves(1);
    all.later(99);
    assert_eq!(comes(&mut all, 2, kept(1, 10)), [resumed(10)]);
    // It is kept longer from now on, and then not at all.
    all.says(2, Said::Disconnect { with_will: false, expiry: Some(50) });
    all.value("1");
    all.later(49);
    assert_eq!(all.opens(3, kept(1, 10))[0], resumed(10));
    all.says(3, Said::Disconnect { with_will: false, expiry: Some(0) });
    assert!(!all.is_subscribed());
    assert_eq!(all.broker.unacknowledged, 1);
    // What was to end with the connection does.
    assert_eq!(comes(&mut all, 4, kept(1, 0)), [fresh(0)]);
    let said = all.says(4, Said::Disconnect { with_will: false, expiry: Some(9) });
    assert_eq!(said, [Answer::Ended(Reason::Protocol)]);
    assert!(!all.is_subscribed());
    // Its time is over, seen or not.
    assert_eq!(comes(&mut all, 5, kept(1, 10)), [fresh(10)]);
    all.leaves(5);
    all.now += Duration::from_secs(10);
    assert_eq!(comes(&mut all, 6, kept(1, 10)), [fresh(10)]);
    all.leaves(6);
    all.later(11);
    assert!(!all.is_subscribed() && all.broker.sessions.is_empty() && all.broker.names.is_empty());
    assert_eq!((all.broker.away.len(), all.broker.forgotten), (0, 0));
}

#[test]
fn who_leaves_many_sessions_behind_loses_its_own() {
    let mut all = Played::new(Limits { sessions: 4, ..Limits::default() });
    let leaves = |all: &mut Played, client: u64, peer: &str| {
        all.broker.connected(all.now, client, peer.parse().unwrap());
        all.says(client, Said::Connect(kept(client, 60)));
        all.leaves(client);
    };
    leaves(&mut all, 1, "192.0.2.1");
    // All of one network of IPv6, whatever the host says its address is.
    (10..30).for_each(|client| leaves(&mut all, client, &format!("2001:db8::{client}")));
    leaves(&mut all, 2, "::ffff:192.0.2.1");
    let left = |all: &Played| -> Vec<Arc<str>> { all.broker.names.keys().cloned().collect() };
    assert_eq!(left(&all), ["client 1", "client 2", "client 28", "client 29"].map(Arc::from));
    assert_eq!((all.broker.forgotten, all.broker.away.octets()), (18, 4));
    assert_eq!(all.opens(3, kept(10, 60)), [fresh(60)]);
    // None at all.
    let mut none = Played::new(Limits { sessions: 0, ..Limits::default() });
    leaves(&mut none, 1, "192.0.2.1");
    assert!(none.broker.sessions.is_empty());
}

#[test]
fn a_session_without_connection_holds_no_more_than_its_octets() {
    let limits = Limits { session: 1000, sessions: 9, ..Limits::default() };
    let mut all = Played::new(limits);
    all.opens(1, kept(1, 60));
    all.asks(1, &[("a", Level::Least)]);
    // More than there may be waits when it goes: the newest make room.
    let text = |number: u64| format!("{number:0>100}");
    (0..20).for_each(|number| all.value(&text(number)));
    assert_eq!(all.came(1).len(), 20);
    all.leaves(1);
    let gone = all.broker.dropped;
    assert!((11..20).contains(&gone), "{gone}");
    (20..40).for_each(|number| all.value(&text(number)));
    // One beyond at most.
    assert!((19..=20).contains(&(all.broker.dropped - gone)), "{}", all.broker.dropped);
    let answers = all.opens(2, kept(1, 60));
    let first = of(&text(0), Delivered::Again(Quality::Least(1)));
    assert_eq!((&answers[1], answers.len() as u64), (&first, 1 + 40 - all.broker.dropped));
    // Filters alone are more: it ends, and says so.
    let long = "a".repeat(64);
    let filters: Vec<String> = (10..30).map(|number| format!("{long}/{number}")).collect();
    let filters: Vec<(&str, Level)> = filters.iter().map(|f| (&f[..], Level::Most)).collect();
    all.asks(2, &filters);
    all.leaves(2);
    assert!(all.broker.sessions.is_empty() && all.broker.wanted.is_empty());
    assert_eq!(all.broker.forgotten, 1);
}

#[test]
fn sessions_without_connection_give_their_topics_to_who_is_there() {
    let mut all = Played::new(Limits { topics: 3, ..Limits::default() });
    for client in 1..=3 {
        all.opens(client, kept(client, 60));
        let topic = client.to_string();
        all.asks(client, &[(&topic, Level::Least)]);
        all.leaves(client);
    }
    all.opens(4, named(4));
    let granted = all.asks(4, &[("3", Level::Most), ("4", Level::Most), ("5", Level::Most)]);
    assert_eq!(granted, [Answer::Subscribed(1, vec![Ok(Level::Most); 3])]);
    assert_eq!(all.broker.forgotten, 2);
    // Nobody else is there whose topics were nobody's.
    let refused = all.asks(4, &[("6", Level::Most)]);
    assert_eq!(refused, [Answer::Subscribed(1, vec![Err(Reason::Full)])]);
    assert_eq!((all.broker.forgotten, all.broker.away.len()), (2, 1));
    // Topics that a wildcard means take nobody's place.
    all.says(4, Said::Unsubscribe(2, vec!["3".into()]));
    all.asks(4, &[("#", Level::Most)]);
    all.data("/mqtt/~topics/1", b"7");
    assert_eq!((all.broker.forgotten, all.broker.unfollowed), (2, 1));
}

#[test]
fn sessions_of_others_do_not_give_way_for_who_has_too_many_topics() {
    let mut all = Played::new(Limits { topics: 90, ..Limits::default() });
    all.broker.connected(all.now, 1, "192.0.2.1".parse().unwrap());
    all.says(1, Said::Connect(kept(1, 60)));
    all.asks(1, &[("other", Level::Least)]);
    all.leaves(1);
    let asks = |all: &mut Played, client: u64| {
        let topics: Vec<String> = (0..90).map(|number| format!("{client}/{number}")).collect();
        let filters: Vec<(&str, Level)> = topics.iter().map(|of| (&of[..], Level::Most)).collect();
        let answers = all.asks(client, &filters);
        let [Answer::Subscribed(1, answers)] = &answers[..] else { panic!("{answers:?}") };
        answers.iter().filter(|answer| answer.is_ok()).count()
    };
    all.opens(2, kept(2, 60));
    assert_eq!((asks(&mut all, 2), all.broker.forgotten), (80, 0));
    // Its own do, where it has most.
    all.leaves(2);
    all.opens(3, kept(3, 60));
    all.leaves(3);
    all.opens(4, named(4));
    assert_eq!((asks(&mut all, 4), all.broker.forgotten), (80, 1));
    assert_eq!(all.broker.names.len(), 3);
}

#[test]
fn a_client_of_mqtt_5_without_a_name_gets_one_and_another_may_not_come_back() {
    let mut all = Played::new(Limits::default());
    let nameless = |version, is_clean| {
        let (client, expiry) = (Arc::from(""), if is_clean { 0 } else { 60 });
        Connect { version, client, is_clean, expiry, ..named(0) }
    };
    assert_eq!(all.opens(1, nameless(Version::V3, false)), [Answer::Refused(Reason::Name)]);
    assert!(all.ended.contains(&1));
    assert_eq!(all.opens(2, nameless(Version::V3, true)), [fresh(0)]);
    let mut named_as = |client| match &all.opens(client, nameless(Version::V5, false))[..] {
        [Answer::Connected(Welcome { name: Some(name), .. })] => name.clone(),
        other => panic!("{other:?}"),
    };
    let (one, two) = (named_as(3), named_as(4));
    assert_ne!(one, two);
    all.leaves(3);
    let back = Connect { client: one, ..nameless(Version::V5, false) };
    assert_eq!(all.opens(5, back), [resumed(60)]);
}

#[test]
fn what_is_to_come_once_is_taken_once_over_two_connections() {
    let mut all = Played::new(Limits::default());
    all.opens(1, kept(1, 60));
    let said = || Said::Publish(message("a", b"x", false), Quality::Exactly(9));
    all.says(1, said());
    all.leaves(1);
    all.opens(2, kept(1, 60));
    assert_eq!(all.says(2, said()), [Answer::Received(9, None)]);
    let count = all.orders.iter().filter(|order| matches!(order, Action::Publish { .. })).count();
    assert_eq!(count, 1);
}

#[test]
fn a_client_that_takes_less_than_before_gets_what_it_takes() {
    let mut all = Played::new(Limits::default());
    all.opens(1, kept(1, 60));
    all.asks(1, &[("a", Level::Least)]);
    all.value("large enough");
    assert_eq!(all.came(1).len(), 1);
    all.leaves(1);
    all.value("1");
    let answers = all.opens(2, Connect { packet_max: 10, ..kept(1, 60) });
    assert_eq!(answers, [resumed(60), of("1", Delivered::First(Quality::Least(2)))]);
    assert_eq!(all.broker.dropped, 1);
}
