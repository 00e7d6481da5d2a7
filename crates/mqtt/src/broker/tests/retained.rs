//! What clients of this bridge have retained.

use super::*;

/// A message that is to be retained.
fn retain(topic: &str, payload: &[u8]) -> Said {
    Said::Publish(message(topic, payload, true), Quality::Most)
}

impl Played {
    /// What comes of a topic to a client of this number, that was not here before.
    fn kept(&mut self, client: u64, topic: &str) -> Vec<Answer> {
        self.opens(client, named(client));
        let mut answers = self.asks(client, &[(topic, Level::Most)]);
        assert_eq!(answers.remove(0), Answer::Subscribed(1, vec![Ok(Level::Most)]));
        answers
    }

    /// What other bridges are to hear of what is retained, and whether it is to be forgotten after.
    fn ordered(&mut self) -> Vec<(String, Option<Vec<u8>>)> {
        let orders = std::mem::take(&mut self.orders).into_iter();
        let of = |order| match order {
            Action::Publish { item, payload, is_kept: true } => {
                Some((item.to_string(), Some(payload.to_vec())))
            }
            Action::Forget(item) => Some((item.to_string(), None)),
            _ => None,
        };
        orders.filter_map(of).collect()
    }
}

#[test]
fn what_a_client_had_retained_comes_to_who_subscribes_here_later_until_it_is_taken_back() {
    let mut all = Played::new(Limits::default());
    all.opens(1, named(1));
    let item = || "/mqtt/=a/~retained".to_owned();
    // Nobody is subscribed.
    all.says(1, retain("a", b"old"));
    all.says(1, retain("a", b"new"));
    let said = [b"old", b"new"].map(|text| (item(), Some(text.to_vec())));
    assert_eq!(all.ordered(), said);
    assert_eq!(all.kept(2, "a"), [published("a", b"new", true)]);
    assert_eq!(all.kept(3, "#"), [published("a", b"new", true)]);
    all.says(1, Said::Publish(message("a", b"passing", false), Quality::Most));
    assert_eq!(all.kept(4, "a"), [published("a", b"new", true)]);
    // Other bridges hear that nothing is, and then there is nothing to hear.
    all.ordered();
    all.says(1, retain("a", b""));
    assert_eq!(all.ordered(), [(item(), Some(Vec::new())), (item(), None)]);
    assert!(all.kept(5, "a").is_empty());
    all.says(1, retain("a", b""));
    assert!(all.ordered().is_empty());
    assert_eq!(all.broker.retained.octets(), 0);
}

#[test]
fn another_bridge_takes_back_what_it_said_and_nobody_hears_an_empty_message_of_it() {
    let mut all = Played::new(Limits::default());
    assert!(all.kept(1, "a").is_empty());
    all.data("/mqtt/=a/~retained", b"");
    assert_eq!(all.told.remove(&1), None);
    all.data("/mqtt/=a/~retained", b"kept");
    assert_eq!(all.told.remove(&1), Some(vec![published("a", b"kept", true)]), "it still waits");
    assert_eq!(all.kept(2, "a"), [published("a", b"kept", true)]);
    all.data("/mqtt/=a/~retained", b"");
    assert!(all.kept(3, "a").is_empty());
}

#[test]
fn who_has_most_retained_loses_the_oldest() {
    let mut all = Played::new(Limits { retained: 5000, ..Limits::default() });
    all.broker.connected(all.now, 1, "192.0.2.1".parse().unwrap());
    all.says(1, Said::Connect(named(1)));
    all.says(1, retain("mine", &[1; 100]));
    all.opens(2, named(2));
    for number in 0..100 {
        all.says(2, retain(&format!("{number}"), &[0; 100]));
        assert!(all.broker.retained.octets() <= 5000);
    }
    // One that is larger than all there is for it is published, and not retained.
    all.says(2, retain("large", &[0; 5000]));
    let forgotten = all.ordered().into_iter().filter(|(_, payload)| payload.is_none());
    let forgotten: Vec<String> = forgotten.map(|(item, _)| item).collect();
    assert_eq!(forgotten.len() as u64, all.broker.unretained);
    assert_eq!(forgotten[0], "/mqtt/=0/~retained");
    assert_eq!(forgotten.last().unwrap(), "/mqtt/large/~retained");
    assert!(all.kept(3, "large").is_empty());
    assert_eq!(all.kept(4, "mine"), [published("mine", &[1; 100], true)]);
}
