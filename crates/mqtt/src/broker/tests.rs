use super::*;

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
        let broker = Broker::new("/mqtt".parse().unwrap(), limits);
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
        self.broker.connected(self.now, client);
        let name = format!("client {client}").as_str().into();
        self.says(client, Said::Connect(Connect { version, client: name, keep_alive: 10, will }))
    }

    fn data(&mut self, path: &str, payload: &[u8]) {
        let id = path.parse::<Path>().unwrap().id;
        self.broker.data(self.now, &id, payload);
        self.take();
    }
}

fn message(topic: &str, payload: &[u8], retain: bool) -> Message {
    Message { topic: topic.into(), payload: payload.to_vec(), retain }
}

fn published(topic: &str, payload: &[u8], retain: bool) -> Answer {
    Answer::Published(message(topic, payload, retain))
}

#[test]
fn clients_of_one_bridge_hear_each_other_and_wildcards_follow_topics_that_come() {
    let mut all = Played::new(Limits::default());
    assert_eq!(all.connects(1, Version::V5, None), [Answer::Connected(256 << 10)]);
    all.connects(2, Version::V3, None);
    let filters = vec!["home/+/light".into(), "#".into(), "home/a/light".into()];
    let answer = all.says(2, Said::Subscribe(7, filters));
    assert_eq!(answer, [Answer::Subscribed(7, vec![None; 3])]);
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
    all.says(1, Said::Subscribe(1, vec!["a".into()]));
    all.data("/mqtt/=a/~retained", b"old");
    assert_eq!(all.told.remove(&1), Some(vec![published("a", b"old", true)]));
    all.data("/mqtt/=a/~retained", b"new");
    assert_eq!(all.told.remove(&1), None, "it gets that live");
    let answers = all.says(2, Said::Subscribe(1, vec!["a".into()]));
    assert_eq!(answers, [Answer::Subscribed(1, vec![None]), published("a", b"new", true)]);
    // Taken back by nothing.
    all.says(3, Said::Publish(message("a", b"", true), Quality::Most));
    assert!(matches!(all.orders.last(), Some(Action::Forget(_))));
    assert_eq!(all.says(3, Said::Subscribe(2, vec!["a".into()])).len(), 1);
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
    all.says(9, Said::Subscribe(1, vec!["will".into()]));
    let will = || Some(message("will", b"dead", false));
    (1..5).for_each(|client| _ = all.connects(client, Version::V5, will()));
    all.says(1, Said::Disconnect(false));
    assert_eq!(all.told.remove(&9), None);
    all.says(2, Said::Disconnect(true));
    all.broker.gone(3);
    all.now += Duration::from_secs(16);
    let dead = published("will", b"dead", false);
    assert_eq!(all.says(9, Said::Ping), [dead.clone(), dead.clone(), Answer::Pong]);
    all.broker.handle_timeout(all.now);
    all.take();
    assert_eq!(all.told.remove(&9), Some(vec![dead]));
    assert_eq!(all.ended, BTreeSet::from([1, 2, 4]));
    // The same client once more: the connection from before ends.
    all.broker.connected(all.now, 5);
    let (version, keep_alive, will) = (Version::V5, 0, None);
    let connect = Connect { version, client: "client 9".into(), keep_alive, will };
    all.says(5, Said::Connect(connect));
    assert_eq!(all.told.remove(&9), Some(vec![Answer::Ended(Reason::TakenOver)]));
}

#[test]
fn at_the_bounds_what_is_beyond_is_refused_and_the_rest_goes_on() {
    let limits = Limits { clients: 2, filters: 2, topics: 3, ..Limits::default() };
    let mut all = Played::new(limits);
    all.connects(1, Version::V5, None);
    all.connects(2, Version::V3, None);
    assert!(!all.broker.takes());
    let filters = ["a", "$share/g/a", "a/#/b", "$SYS/x", "b", "c"].map(Arc::from).to_vec();
    let refused = [Reason::Shared, Reason::Filter, Reason::Filter].map(Some);
    let refused = [&[None], &refused[..], &[None, Some(Reason::Full)]].concat();
    assert_eq!(all.says(1, Said::Subscribe(1, filters)), [Answer::Subscribed(1, refused)]);
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
    all.says(1, Said::Subscribe(3, vec!["#".into()]));
    (0..9).for_each(|n| all.data("/mqtt/~topics/1", format!("t{n}").as_bytes()));
    assert!(all.broker.wanted.len() <= 3 && all.broker.unfollowed > 0);
    assert!(all.told.is_empty());
    let said = all.says(7, Said::Ping);
    assert!(said.is_empty(), "nobody");
    all.broker.connected(all.now, 8);
    assert_eq!(all.says(8, Said::Ping), [Answer::Ended(Reason::Protocol)], "not who it is");
}
