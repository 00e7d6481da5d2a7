//! One item in a simulated network, and what a dying link costs it.

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::{AppId, Event};
use onym_sim::PushNetwork;
use onym_tables::Tick;
use onym_wire::push::{Id, Kind, Strategy};
use std::time::Duration;

pub(crate) const PUBLISHER: AppId = AppId(1);
pub(crate) const SUBSCRIBER: AppId = AppId(2);
const STRATEGY: Strategy = Strategy::DOMAIN_LOCAL;
/// Links between the nodes of [`gap`], at a cost: the publisher at node 1, beside the topology manager,
/// has a way of two links to node 4 and a dearer one.
pub(crate) const TWO_WAYS: [(usize, usize, u16); 5] =
    [(0, 1, 1), (1, 2, 1), (2, 4, 1), (1, 3, 2), (3, 4, 2)];

fn id(text: &str) -> Id {
    text.parse().expect("an identifier")
}

fn ask(net: &mut PushNetwork, node: usize, app: AppId, kind: Kind, child: &str, prefix: &str) {
    let request = Request { kind, id: id(child), prefix: id(prefix), strategy: STRATEGY };
    net.request(node, app, 0, &request);
    let is_done = net.run_until(Duration::from_secs(20), |net| {
        let status = net.event(node, app);
        matches!(status, Some(Event::Status { status, .. }) if status.0 == 0)
    });
    assert!(is_done, "{kind:?} of node {node}");
}

/// One item, with its publisher and subscribers.
pub(crate) fn matched(net: &mut PushNetwork, publisher: usize, subscribers: &[usize]) {
    ask(net, publisher, PUBLISHER, Kind::PUBLISH_SCOPE, "/1", "/");
    ask(net, publisher, PUBLISHER, Kind::PUBLISH_ITEM, "/2", "/1");
    for subscriber in subscribers {
        ask(net, *subscriber, SUBSCRIBER, Kind::SUBSCRIBE_ITEM, "/2", "/1");
    }
    net.run_for(Duration::from_secs(3));
}

pub(crate) fn publish(net: &mut PushNetwork, publisher: usize) {
    let data = Data::new(id("/1/2"), STRATEGY, b"text");
    assert!(net.publish(publisher, PUBLISHER, &data).is_some_and(|sent| sent.is_ok()));
}

/// Of an item that node 4 is subscribed to, the second link of the way dies. How long nothing came, and
/// what was lost of one publication in a millisecond.
pub(crate) fn gap(net: &mut PushNetwork, is_told: bool) -> (Duration, usize) {
    matched(net, 1, &[4]);
    net.news = Some(Vec::new());
    let link = net.link_between(2, 4).expect("it was made");
    for ms in 0..6000 {
        if ms == 1000 && is_told {
            net.link_down_told(link);
        } else if ms == 1000 {
            net.link_down(link);
        }
        publish(net, 1);
        net.run_for(Duration::from_millis(1));
    }
    net.run_for(Duration::from_secs(1));
    let news = net.news.take().unwrap_or_default();
    let came =
        news.iter().filter(|(_, node, _, event)| *node == 4 && matches!(event, Event::Data { .. }));
    let at: Vec<Tick> = came.map(|(at, ..)| *at).collect();
    let longest = at.windows(2).map(|pair| pair[1].since(pair[0])).max();
    (longest.unwrap_or_default(), 6000 - at.len())
}
