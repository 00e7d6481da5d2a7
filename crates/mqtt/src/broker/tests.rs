use super::*;
use crate::packet::Delivered;

mod exactly;
mod retained;
mod sessions;

/// Where clients come from.
const PEER: IpAddr = IpAddr::V4(std::net::Ipv4Addr::LOCALHOST);

/// A broker, and what its clients were told.
struct Played {
    broker: Broker,
    now: Instant,
    orders: Vec<Action>,
    told: BTreeMap<u64, Vec<Answer>>,
    ended: BTreeSet<u64>,
}

impl Played {
    fn new(limits: Limits) -> Self {
        let broker = Broker::new("/mqtt".parse().unwrap(), limits, Label::from_u64(1));
        let (orders, told, ended) = Default::default();
        Self { broker, now: Instant::now(), orders, told, ended }
    }

    fn take(&mut self) {
        for action in self.broker.actions() {
            match action {
                Action::Tell(client, answer) => self.told.entry(client).or_default().push(answer),
                Action::End(client) => _ = self.ended.insert(client),
                order => self.orders.push(order),
            }
        }
    }

    fn says(&mut self, client: u64, said: Said) -> Vec<Answer> {
        self.broker.said(self.now, client, said);
        self.take();
        self.told.remove(&client).unwrap_or_default()
    }

    fn connects(&mut self, client: u64, version: Version, will: Option<Message>) -> Vec<Answer> {
        let will = will.map(|will| (will, Level::Most));
        self.opens(client, Connect { version, keep_alive: 10, will, ..named(client) })
    }

    fn opens(&mut self, client: u64, connect: Connect) -> Vec<Answer> {
        self.broker.connected(self.now, client, PEER);
        self.says(client, Said::Connect(connect))
    }

    fn data(&mut self, path: &str, payload: &[u8]) {
        let id = path.parse::<Path>().unwrap().id;
        self.broker.data(self.now, &id, payload);
        self.take();
    }
}

/// A client of MQTT 5 without a will, that takes all there is, and has this number in its name.
fn named(client: u64) -> Connect {
    Connect {
        version: Version::V5,
        client: format!("client {client}").as_str().into(),
        is_clean: true,
        expiry: 0,
        keep_alive: 0,
        will: None,
        receive_max: u16::MAX,
        packet_max: u32::MAX,
    }
}

fn welcome() -> Welcome {
    Welcome { is_present: false, packet_max: 256 << 10, expiry: 0, name: None }
}

fn message(topic: &str, payload: &[u8], retain: bool) -> Message {
    Message { topic: topic.into(), payload: payload.into(), retain }
}

fn published(topic: &str, payload: &[u8], retain: bool) -> Answer {
    Answer::Published(message(topic, payload, retain), Delivered::First(Quality::Most))
}

/// A client asks for filters, at most once each.
fn subscribe(number: u16, filters: &[&str]) -> Said {
    let filters = filters.iter().map(|filter| (Arc::from(*filter), Level::Most)).collect();
    Said::Subscribe(number, filters)
}

#[test]
fn clients_of_one_bridge_hear_each_other_and_wildcards_follow_topics_that_come() {
    let mut all = Played::new(Limits::default());
    assert_eq!(all.connects(1, Version::V5, None), [Answer::Connected(welcome())]);
    all.connects(2, Version::V3, None);
    let answer = all.says(2, subscribe(7, &["home/+/light", "#", "home/a/light"]));
    assert_eq!(answer, [Answer::Subscribed(7, vec![Ok(Level::Most); 3])]);
    let said = Said::Publish(message("home/a/light", b"on", false), Quality::Least(3));
    assert_eq!(all.says(1, said), [Answer::Acknowledged(3, None)]);
    assert_eq!(all.told.remove(&2), Some(vec![published("home/a/light", b"on", false)]), "once");
    // Another bridge has a topic.
    all.data("/mqtt/~topics/1", b"garden");
    let subscribed = all.orders.iter().filter(|order| matches!(order, Action::Subscribe(_)));
    assert_eq!(subscribed.count(), 4);
    all.data("/mqtt/garden/~value", b"wet");
    assert_eq!(all.told.remove(&2), Some(vec![published("garden", b"wet", false)]));
    all.says(2, Said::Unsubscribe(8, vec!["#".into()]));
    all.data("/mqtt/garden/~value", b"dry");
    assert_eq!(all.told.remove(&2), None);
    assert!(all.says(2, Said::Ping) == [Answer::Pong]);
}

#[test]
fn what_is_kept_comes_to_who_subscribes_later_and_not_twice() {
    let mut all = Played::new(Limits::default());
    (1..4).for_each(|client| _ = all.connects(client, Version::V5, None));
    all.says(1, subscribe(1, &["a"]));
    all.data("/mqtt/=a/~retained", b"old");
    assert_eq!(all.told.remove(&1), Some(vec![published("a", b"old", true)]));
    all.data("/mqtt/=a/~retained", b"new");
    assert_eq!(all.told.remove(&1), None, "it gets that live");
    let answers = all.says(2, subscribe(1, &["a"]));
    assert_eq!(
        answers,
        [Answer::Subscribed(1, vec![Ok(Level::Most)]), published("a", b"new", true)]
    );
    // Taken back by nothing.
    all.says(3, Said::Publish(message("a", b"", true), Quality::Most));
    assert_eq!(all.says(3, subscribe(2, &["a"])).len(), 1);
}

#[test]
fn a_message_that_is_to_come_once_is_taken_once() {
    let mut all = Played::new(Limits::default());
    all.connects(1, Version::V5, None);
    let said = Said::Publish(message("a", b"x", false), Quality::Exactly(9));
    for _ in 0..2 {
        assert_eq!(all.says(1, said.clone()), [Answer::Received(9, None)]);
    }
    let count = all.orders.iter().filter(|order| matches!(order, Action::Publish { .. })).count();
    assert_eq!(count, 1);
    assert_eq!(all.says(1, Said::Release(9)), [Answer::Completed(9)]);
    for number in 0..=RECEIVE_MAX {
        all.says(1, Said::Publish(message("a", b"x", false), Quality::Exactly(100 + number)));
    }
    assert!(all.ended.contains(&1));
}

#[test]
fn wills_are_published_when_a_connection_fails_and_not_when_it_is_ended() {
    let mut all = Played::new(Limits::default());
    all.connects(9, Version::V5, None);
    all.says(9, subscribe(1, &["will"]));
    let will = || Some(message("will", b"dead", false));
    (1..5).for_each(|client| _ = all.connects(client, Version::V5, will()));
    all.says(1, Said::Disconnect { with_will: false, expiry: None });
    assert_eq!(all.told.remove(&9), None);
    all.says(2, Said::Disconnect { with_will: true, expiry: None });
    all.broker.gone(all.now, 3);
    all.now += Duration::from_secs(16);
    let dead = published("will", b"dead", false);
    assert_eq!(all.says(9, Said::Ping), [dead.clone(), dead.clone(), Answer::Pong]);
    all.broker.handle_timeout(all.now);
    all.take();
    assert_eq!(all.told.remove(&9), Some(vec![dead]));
    assert_eq!(all.ended, BTreeSet::from([1, 2, 4]));
    // The same client once more: the connection from before ends.
    all.opens(5, named(9));
    assert_eq!(all.told.remove(&9), Some(vec![Answer::Ended(Reason::TakenOver)]));
}

#[test]
fn at_the_bounds_what_is_beyond_is_refused_and_the_rest_goes_on() {
    let limits = Limits { clients: 2, filters: 2, topics: 3, ..Limits::default() };
    let mut all = Played::new(limits);
    all.connects(1, Version::V5, None);
    all.connects(2, Version::V3, None);
    assert!(!all.broker.takes());
    let filters = subscribe(1, &["a", "$share/g/a", "a/#/b", "$SYS/x", "b", "c"]);
    let refused = [Reason::Shared, Reason::Filter, Reason::Filter].map(Err);
    let granted = [Ok(Level::Most)];
    let answers = [&granted, &refused[..], &granted, &[Err(Reason::Full)]].concat();
    assert_eq!(all.says(1, filters), [Answer::Subscribed(1, answers)]);
    for topic in ["1", "2", "3"] {
        let said = Said::Publish(message(topic, b"", false), Quality::Least(1));
        assert_eq!(all.says(1, said), [Answer::Acknowledged(1, None)]);
    }
    let more = |topic: &str| Said::Publish(message(topic, b"", false), Quality::Least(1));
    assert_eq!(all.says(1, more("4")), [Answer::Acknowledged(1, Some(Reason::Full))]);
    assert_eq!(all.says(1, more("3")), [Answer::Acknowledged(1, None)]);
    assert_eq!(all.says(1, more("$x")), [Answer::Acknowledged(1, Some(Reason::Topic))]);
    assert_eq!(all.says(2, more("4")), [Answer::Ended(Reason::Full)]);
    assert!(all.ended.contains(&2) && all.broker.takes());
    // By wildcards no more topics are followed than there may be.
    all.says(1, Said::Unsubscribe(2, vec!["b".into()]));
    all.says(1, subscribe(3, &["#"]));
    (0..9).for_each(|n| all.data("/mqtt/~topics/1", format!("t{n}").as_bytes()));
    assert!(all.broker.wanted.len() <= 3 && all.broker.unfollowed > 0);
    assert!(all.told.is_empty());
    let said = all.says(7, Said::Ping);
    assert!(said.is_empty(), "nobody");
    all.broker.connected(all.now, 8, PEER);
    assert_eq!(all.says(8, Said::Ping), [Answer::Ended(Reason::Protocol)], "not who it is");
}

impl Played {
    /// A client of MQTT 5 that takes so many unacknowledged publications, and asks for filters.
    fn listens(&mut self, client: u64, receive_max: u16, filters: &[(&str, Level)]) -> Vec<Answer> {
        self.takes(client, receive_max, u32::MAX);
        self.asks(client, filters)
    }

    /// A client of MQTT 5 that takes so many unacknowledged publications, and packets so large.
    fn takes(&mut self, client: u64, receive_max: u16, packet_max: u32) {
        self.opens(client, Connect { receive_max, packet_max, ..named(client) });
    }

    fn asks(&mut self, client: u64, filters: &[(&str, Level)]) -> Vec<Answer> {
        let filters = filters.iter().map(|(filter, level)| (Arc::from(*filter), *level)).collect();
        self.says(client, Said::Subscribe(1, filters))
    }

    /// The publications that a client was told: what they say, and the number they have.
    fn came(&mut self, client: u64) -> Vec<(String, Option<u16>)> {
        let told = self.told.remove(&client).unwrap_or_default();
        let came = told.into_iter().map(|answer| match answer {
            Answer::Published(message, of) => {
                let number = match of {
                    Delivered::First(Quality::Most) => None,
                    Delivered::First(Quality::Least(number)) => Some(number),
                    other => panic!("{message:?} {other:?}"),
                };
                (String::from_utf8(message.payload.to_vec()).unwrap(), number)
            }
            other => panic!("{other:?}"),
        });
        came.collect()
    }
}

#[test]
fn a_message_comes_with_the_lower_of_what_its_publisher_and_the_filter_say() {
    let mut all = Played::new(Limits::default());
    all.connects(1, Version::V5, None);
    let granted = all.listens(2, 9, &[("a", Level::Most), ("b", Level::Least)]);
    let [Answer::Subscribed(1, granted)] = &granted[..] else { panic!("{granted:?}") };
    assert_eq!(*granted, [Ok(Level::Most), Ok(Level::Least)]);
    for (topic, number) in [("a", 7), ("b", 8)] {
        for of in [Quality::Most, Quality::Least(number), Quality::Exactly(number)] {
            all.says(1, Said::Publish(message(topic, topic.as_bytes(), false), of));
        }
    }
    let (a, b) = (|| ("a".to_owned(), None), |number| ("b".to_owned(), number));
    assert_eq!(all.came(2), [a(), a(), a(), b(None), b(Some(1)), b(Some(2))]);
    // Items do not say which it had.
    all.data("/mqtt/=a/~value", b"a");
    all.data("/mqtt/=b/~value", b"b");
    assert_eq!(all.came(2), [a(), b(Some(3))]);
    // The highest of all filters that mean the topic, also of one that follows it; once.
    let said = || Said::Publish(message("a", b"a", true), Quality::Least(1));
    for (filter, level, number) in
        [("#", Level::Least, Some(4)), ("#", Level::Most, None), ("a", Level::Least, Some(6))]
    {
        all.asks(2, &[(filter, level)]);
        all.told.clear();
        all.says(1, said());
        assert_eq!(all.came(2), [("a".to_owned(), number)], "{filter} {level:?}");
        (1..9).for_each(|number| _ = all.says(2, Said::Acknowledge(number)));
    }
    all.says(2, Said::Unsubscribe(2, vec!["a".into()]));
    all.says(1, said());
    assert_eq!(all.came(2), [a()]);
    // A will has its own.
    let will = Some((message("b", b"b", false), Level::Least));
    all.opens(5, Connect { version: Version::V3, will, ..named(5) });
    all.broker.gone(all.now, 5);
    all.take();
    assert_eq!(all.came(2), [b(Some(7))]);
    // What is kept has the QoS of its publisher, too.
    let kept = all.listens(3, 9, &[("a", Level::Least)]);
    assert_eq!(
        kept[1],
        Answer::Published(message("a", b"a", true), Delivered::First(Quality::Least(1)))
    );
    all.says(1, Said::Publish(message("a", b"a", true), Quality::Most));
    let kept = all.listens(4, 9, &[("a", Level::Least)]);
    assert_eq!(kept[1], published("a", b"a", true));
}

#[test]
fn no_more_leaves_than_a_client_acknowledges_and_what_it_makes_up_frees_nothing() {
    let mut all = Played::new(Limits::default());
    all.listens(2, 2, &[("a", Level::Least)]);
    let of = |text: u8, number| (char::from(text).to_string(), Some(number));
    b"12345".iter().for_each(|text| all.data("/mqtt/=a/~value", &[*text]));
    assert_eq!(all.came(2), [of(b'1', 1), of(b'2', 2)]);
    // Those that nobody used, and one twice.
    for number in [3, 4, 64, 65, u16::MAX] {
        assert!(all.says(2, Said::Acknowledge(number)).is_empty(), "{number}");
    }
    let third = Answer::Published(message("a", b"3", false), Delivered::First(Quality::Least(3)));
    assert_eq!(all.says(2, Said::Acknowledge(2)), [third]);
    assert!(all.says(2, Said::Acknowledge(2)).is_empty());
    // What need not be acknowledged does not wait.
    all.connects(1, Version::V3, None);
    all.says(1, Said::Publish(message("a", b"now", false), Quality::Most));
    assert_eq!(all.came(2), [("now".to_owned(), None)]);
    // Who names no bound has that of the bridge.
    all.listens(3, u16::MAX, &[("b", Level::Least)]);
    (0..99).for_each(|_| all.data("/mqtt/=b/~value", b"b"));
    assert_eq!(all.came(3).len(), 64);
    (1..=64).for_each(|number| _ = all.says(3, Said::Acknowledge(number)));
    all.broker.gone(all.now, 3);
    assert_eq!(all.broker.unacknowledged, 99 - 64);
}

#[test]
fn who_never_acknowledges_holds_no_more_than_its_bound_and_nobody_else_up() {
    let mut all = Played::new(Limits { queue: 4096, ..Limits::default() });
    all.listens(1, u16::MAX, &[("a", Level::Least)]);
    all.listens(2, u16::MAX, &[("a", Level::Least)]);
    let count = 1000_u64;
    for number in 1..=count {
        // Empty ones take room, too.
        all.data("/mqtt/=a/~value", b"");
        assert_eq!(all.came(2).len(), 1);
        all.says(2, Said::Acknowledge(u16::try_from(number).unwrap()));
    }
    let dropped = all.broker.dropped;
    assert!((count - 4096 / 32..count).contains(&dropped), "{dropped}");
    assert!(all.came(1).len() <= 64);
    // It acknowledges after all: there is room again.
    all.says(1, Said::Acknowledge(1));
    (2..=64).for_each(|number| _ = all.says(1, Said::Acknowledge(number)));
    all.data("/mqtt/=a/~value", b"late");
    assert_eq!(all.came(1).last().unwrap().0, "late");
    all.says(2, Said::Acknowledge(1001));
    // Each was acknowledged, or is counted.
    all.broker.stop();
    all.broker.actions();
    assert_eq!(all.broker.dropped, dropped);
    let acknowledged = (count - dropped).min(64);
    assert_eq!(all.broker.unacknowledged, count + 1 - dropped - acknowledged);
}

#[test]
fn what_is_larger_than_a_client_takes_is_dropped_and_counted_as_it_never_came() {
    let mut all = Played::new(Limits::default());
    all.takes(2, 1, 10);
    all.asks(2, &[("a", Level::Least), ("b", Level::Most)]);
    for text in ["large", "fits", "1"] {
        all.data("/mqtt/=b/~value", text.as_bytes());
    }
    assert_eq!(all.came(2), [("fits".to_owned(), None), ("1".to_owned(), None)]);
    // Those that do not come have no number, and hold nothing up.
    for text in ["fits", "no", "1"] {
        all.data("/mqtt/=a/~value", text.as_bytes());
    }
    assert_eq!(all.came(2), [("no".to_owned(), Some(1))]);
    assert_eq!(
        all.says(2, Said::Acknowledge(1)),
        [Answer::Published(message("a", b"1", false), Delivered::First(Quality::Least(2)))]
    );
    assert_eq!(all.broker.dropped, 2);
}

#[test]
fn who_may_not_connect_hears_why_and_nothing_else() {
    let mut all = Played::new(Limits::default());
    all.broker.connected(all.now, 1, PEER);
    all.broker.refused(all.now, 1, Reason::Protocol);
    all.take();
    assert_eq!(all.told.remove(&1), Some(vec![Answer::Refused(Reason::Protocol)]));
    assert!(all.ended.contains(&1));
}

#[test]
fn one_address_does_not_take_the_topics_of_all() {
    let mut all = Played::new(Limits { topics: 90, ..Limits::default() });
    let publish = |topic: &str| Said::Publish(message(topic, b"", false), Quality::Least(1));
    let refused = |answer: &Answer| *answer == Answer::Acknowledged(1, Some(Reason::Full));
    let mut granted = 0;
    for client in 1..=3 {
        all.opens(client, named(client));
        let topics: Vec<String> = (0..60).map(|number| format!("{client}/{number}")).collect();
        let filters: Vec<(&str, Level)> = topics.iter().map(|of| (&of[..], Level::Most)).collect();
        let [Answer::Subscribed(1, answers)] = &all.asks(client, &filters)[..] else { panic!() };
        granted += answers.iter().filter(|answer| answer.is_ok()).count();
        let answers: Vec<Answer> =
            topics.iter().flat_map(|t| all.says(client, publish(t))).collect();
        assert!(client == 1 || answers.iter().any(refused));
    }
    assert_eq!((granted, all.broker.published.len()), (81, 81));
    // Somebody else still has some, and what somebody wants already is anybody's.
    all.broker.connected(all.now, 9, "192.0.2.1".parse().unwrap());
    all.says(9, Said::Connect(named(9)));
    assert_eq!(all.asks(9, &[("other", Level::Most)]).len(), 1);
    assert_eq!(all.says(9, publish("mine")), [Answer::Acknowledged(1, None)]);
    let more = all.asks(1, &[("1/0", Level::Most), ("other", Level::Most), ("more", Level::Most)]);
    assert_eq!(
        more,
        [Answer::Subscribed(1, vec![Ok(Level::Most), Ok(Level::Most), Err(Reason::Full)])]
    );
    // What it gives back it may have again.
    all.says(1, Said::Unsubscribe(2, vec!["1/0".into(), "1/1".into()]));
    let more = all.asks(1, &[("more", Level::Most)]);
    assert_eq!(more, [Answer::Subscribed(1, vec![Ok(Level::Most)])]);
}
