//! The order law: what one publisher publishes to one item arrives in order, or is told as missed in
//! its place. Publications of every length, which leave by different ways.

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_sim::push::LinkConfig;
use onym_tables::Rng;
use onym_wire::push::{Id, Kind, Role, Strategy};
use std::time::Duration;

const PUBLISHER: AppId = AppId(1);
const SUBSCRIBER: AppId = AppId(2);
const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;
const PUBLICATIONS: u32 = 400;

fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

/// Three nodes in a row; the first one publishes the item `/1/2`, to which all three subscribed.
fn matched(seed: u64, loss_ppm: u32) -> PushNetwork {
    let mut net = PushNetwork::new(seed);
    for n in 0..3 {
        let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
        net.add_node(n + 1, role, |_| {});
    }
    for n in 1..3 {
        net.link(n - 1, n, LinkConfig { loss_ppm, ..LinkConfig::default() });
    }
    net.run_for(Duration::from_secs(3));
    for (node, app, kind, child, prefix) in [
        (0, PUBLISHER, Kind::PUBLISH_SCOPE, "/1", "/"),
        (0, PUBLISHER, Kind::PUBLISH_ITEM, "/2", "/1"),
        (0, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, "/2", "/1"),
        (1, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, "/2", "/1"),
        (2, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, "/2", "/1"),
    ] {
        let request = Request { kind, id: id(child), prefix: id(prefix), strategy: STRATEGY };
        net.request(node, app, 0, &request);
        net.run_for(Duration::from_secs(5));
    }
    while net.event(0, PUBLISHER).is_some() {}
    for node in 0..3 {
        let status = net.event(node, SUBSCRIBER);
        assert!(matches!(status, Some(Event::Status { .. })), "seed {seed}: {status:?}");
    }
    net
}

/// What a subscriber got.
#[derive(Debug, Default)]
struct Heard {
    /// What is to come next, from the first publication on.
    next: Option<u32>,
    got: u32,
    missed: u64,
}

impl Heard {
    fn take(&mut self, event: &Event, what: &str) {
        match event {
            Event::Missed(count) => {
                self.missed += count;
                let count = u32::try_from(*count).expect("few are missed");
                self.next = self.next.map(|next| next + count);
            }
            Event::Data { payload, .. } => {
                let (number, _) = payload.split_first_chunk().expect("it has a number");
                let number = u32::from_be_bytes(*number);
                let next = self.next.unwrap_or(number);
                assert_eq!(number, next, "{what}: out of order, or a loss was not told");
                (self.next, self.got) = (Some(number + 1), self.got + 1);
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}

/// Publishes publications of random lengths at random moments; what each subscriber heard.
fn publishes(seed: u64, loss_ppm: u32) -> [Heard; 3] {
    let (mut net, mut rng) = (matched(seed, loss_ppm), Rng::new(seed));
    let mut heard = <[Heard; 3]>::default();
    let take = |net: &mut PushNetwork, heard: &mut [Heard; 3]| {
        for (node, heard) in heard.iter_mut().enumerate() {
            while let Some(event) = net.event(node, SUBSCRIBER) {
                heard.take(&event, &format!("seed {seed}, node {node}"));
            }
        }
    };
    for number in 0..PUBLICATIONS {
        // About a third leaves in fragments; some take many milliseconds to leave.
        let len = match rng.below(12) {
            0 => 100_000 + rng.below(200_000),
            1..4 => 1300 + rng.below(5000),
            _ => rng.below(1000),
        };
        let mut payload = number.to_be_bytes().to_vec();
        payload.resize(4 + usize::try_from(len).expect("it is short"), 7);
        let data = Data::new(id("/1/2"), STRATEGY, &payload);
        let sent = net.publish(0, PUBLISHER, &data).expect("up").expect("started");
        assert_eq!((sent.local, sent.frames > 0), (1, true), "seed {seed}");
        if rng.below(3) == 0 {
            net.run_for(Duration::from_millis(rng.below(8)));
        }
        take(&mut net, &mut heard);
    }
    net.run_for(Duration::from_secs(20));
    take(&mut net, &mut heard);
    heard
}

#[test]
fn what_is_published_to_an_item_arrives_in_order_whatever_its_length() {
    for seed in 1..=6 {
        for heard in publishes(seed, 0) {
            assert_eq!((heard.got, heard.missed), (PUBLICATIONS, 0), "seed {seed}");
        }
    }
}

#[test]
fn what_is_lost_on_the_way_is_told_as_missed_in_its_place() {
    let mut missed = 0;
    for seed in 11..=16 {
        let [local, near, far] = publishes(seed, 20_000);
        assert_eq!((local.got, local.missed), (PUBLICATIONS, 0), "seed {seed}");
        for heard in [near, far] {
            assert!(heard.got > PUBLICATIONS / 2, "seed {seed}: {heard:?}");
            missed += heard.missed;
        }
    }
    assert!(missed > 0, "the links lose frames");
}
