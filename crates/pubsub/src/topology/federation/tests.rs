use super::{Fact, Federation};
use crate::dispatcher::{Data, Request};
use crate::forwarder::LinkEntry;
use crate::node::{Config, Node, Output};
use crate::publication::{AppId, DomainKey, Event};
use crate::verdict::Verdict;
use onym_tables::{FaceId, Tick};
use onym_wire::push::{
    Control, DomainRoute, Filter, FrameBuilder, Id, Kind, Label, Role, RouteBuf, Sequence,
    Strategy, reserved,
};
use std::collections::BTreeMap;

const S: Strategy = Strategy::INTER_DOMAIN;
const APP: AppId = AppId(1);

/// Domains of nodes in memory, with links that take no time.
struct Net {
    nodes: Vec<Node>,
    wires: BTreeMap<(usize, FaceId), (usize, FaceId)>,
    /// Frames on links between domains.
    crossed: Vec<Vec<u8>>,
    /// So many of the next long frames between domains are lost.
    to_lose: usize,
    events: Vec<(usize, Event)>,
    now: Tick,
    faces: u32,
}

fn label(domain: usize, n: usize) -> Label {
    Label::from_u64(0xA1B2_0000_0000 + (domain as u64 * 16 + n as u64 + 1))
}

fn domain(n: usize) -> Label {
    Label::from_u64(0xD0 + n as u64)
}

impl Net {
    /// A chain of domains of two nodes each; the second node of each has the link to the next
    /// domain, the first one is rendezvous and topology manager.
    fn chain(count: usize) -> Self {
        let mut net = Self {
            nodes: Vec::new(),
            wires: BTreeMap::new(),
            crossed: Vec::new(),
            to_lose: 0,
            events: Vec::new(),
            now: Tick(0),
            faces: 256,
        };
        for d in 0..count {
            for n in 0..2 {
                let role = if n == 0 { Role(3) } else { Role(0) };
                let inside = u32::try_from(d * 2 + n).unwrap();
                let mut config = Config::new(label(d, n), inside, role, 1);
                config.domain = Some(domain(d));
                config.key = Some(DomainKey::new(&[d as u8 + 1]));
                config.federation_key = Some(DomainKey::new(b"between"));
                net.nodes.push(Node::new(config));
            }
            net.link(d * 2, d * 2 + 1, None);
            if d > 0 {
                net.link(d * 2 - 1, d * 2, Some((d - 1, d)));
            }
        }
        net
    }

    fn link(&mut self, a: usize, b: usize, between: Option<(usize, usize)>) {
        let faces = [FaceId(self.faces), FaceId(self.faces + 1)];
        self.faces += 2;
        let other = between.map(|(a, b)| [domain(b), domain(a)]);
        for (i, node) in [a, b].into_iter().enumerate() {
            let (face, number) = (faces[i], faces[i].0 - 200);
            let link = LinkEntry { face, number, is_external: between.is_some() };
            match other {
                Some(other) => self.nodes[node].exit_add(self.now, link, other[i]).unwrap(),
                None => self.nodes[node].link_add(self.now, link, 1).unwrap(),
            }
        }
        self.wires.insert((a, faces[0]), (b, faces[1]));
        self.wires.insert((b, faces[1]), (a, faces[0]));
    }

    fn take(&mut self, at: usize, output: Output) {
        self.events.extend(output.events.into_iter().map(|(_, event)| (at, event)));
        for frames in output.frames {
            for face in frames.faces {
                let Some((to, in_face)) = self.wires.get(&(at, face)).copied() else { continue };
                if self.nodes[at].forwarder.is_external(face) {
                    self.crossed.push(frames.octets.clone());
                    if self.to_lose > 0 && frames.octets.len() > 1000 {
                        self.to_lose -= 1;
                        continue;
                    }
                }
                let mut output = Output::default();
                let mut octets = frames.octets.clone();
                self.nodes[to].receive(self.now, in_face, &mut octets, &mut output);
                self.take(to, output);
            }
        }
    }

    fn run(&mut self, ms: u64) {
        let end = self.now.plus_ms(ms);
        loop {
            let due: Vec<Tick> = self.nodes.iter().map(Node::next_timeout).collect();
            let next = due.iter().min().copied().unwrap_or(end).max(self.now);
            if next > end {
                break;
            }
            self.now = next;
            for (at, _) in due.iter().enumerate().filter(|(_, due)| **due <= next) {
                let mut output = Output::default();
                self.nodes[at].handle_timeout(next, &mut output);
                self.take(at, output);
            }
        }
        self.now = end;
    }

    fn ask(&mut self, at: usize, kind: Kind, id: &str) {
        let id: Id = id.parse().unwrap();
        let prefix = Id::from_labels(id.parent());
        let request = Request { kind, id: Id::root(id.last().unwrap()), prefix, strategy: S };
        let mut output = Output::default();
        self.nodes[at].request(self.now, APP, 1, &request, &mut output);
        self.take(at, output);
        self.run(500);
    }

    fn publish(&mut self, at: usize, id: &str, payload: &[u8]) -> bool {
        let mut output = Output::default();
        let data = Data::new(id.parse().unwrap(), S, payload);
        let sent = self.nodes[at].publish(self.now, APP, &data, &mut output);
        self.take(at, output);
        sent.is_ok()
    }

    /// What applications of a node got since this was asked.
    fn got(&mut self, at: usize) -> Vec<Vec<u8>> {
        let of = |(node, event): &(usize, Event)| match event {
            Event::Data { payload, .. } if *node == at => Some(payload.to_vec()),
            _ => None,
        };
        let got = self.events.iter().filter_map(of).collect();
        self.events.retain(|(node, event)| *node != at || !matches!(event, Event::Data { .. }));
        got
    }

    fn started(&self, at: usize) -> bool {
        let of = |(node, event): &&(usize, Event)| {
            *node == at && matches!(event, Event::StartPublish(_) | Event::StopPublish(_))
        };
        let last = self.events.iter().rev().find(of);
        matches!(last, Some((_, Event::StartPublish(_))))
    }

    /// A scope and item of the first domain with a subscriber in the last one.
    fn matched(count: usize) -> Self {
        let mut net = Self::chain(count);
        net.run(10_000);
        net.ask(0, Kind::PUBLISH_SCOPE, "/1");
        net.ask(0, Kind::PUBLISH_ITEM, "/1/2");
        net.run(6_000);
        let last = count * 2 - 1;
        net.ask(last, Kind::SUBSCRIBE_ITEM, "/1/2");
        net.run(6_000);
        assert!(net.started(0), "the publisher hears of the other domain");
        net
    }
}

#[test]
fn a_publication_reaches_subscribers_of_other_domains_once() {
    for count in [2, 3] {
        let mut net = Net::matched(count);
        let last = count * 2 - 1;
        // One more in the middle of the way, and one beside the publisher.
        net.ask(2, Kind::SUBSCRIBE_ITEM, "/1/2");
        net.ask(1, Kind::SUBSCRIBE_ITEM, "/1/2");
        net.run(6_000);
        for text in ["one", "two"] {
            assert!(net.publish(0, "/1/2", text.as_bytes()), "{count} domains");
            for at in [1, 2, last] {
                assert_eq!(net.got(at), [text.as_bytes()], "{count} domains, node {at}");
            }
        }
        net.ask(2, Kind::UNSUBSCRIBE_ITEM, "/1/2");
        net.ask(1, Kind::UNSUBSCRIBE_ITEM, "/1/2");
        net.ask(last, Kind::UNSUBSCRIBE_ITEM, "/1/2");
        net.run(10_000);
        assert!(!net.started(0), "nobody wants it any more");
    }
}

#[test]
fn nothing_that_crosses_names_a_node_of_the_inside() {
    let mut net = Net::matched(2);
    assert!(net.publish(0, "/1/2", b"x"));
    // Fragments, and requests for some of them.
    net.to_lose = 3;
    assert!(net.publish(0, "/1/2", &[8; 100_000]));
    net.run(1000);
    assert_eq!(net.got(3).iter().map(Vec::len).collect::<Vec<_>>(), [1, 100_000]);
    assert_eq!(net.nodes[0].dispatcher.counters.repaired, 3);
    assert!(net.crossed.len() > 80);
    for frame in &net.crossed {
        for (d, n) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            let label = label(d, n).0;
            assert!(!frame.windows(8).any(|w| w == label), "a label of domain {d} in {frame:02x?}");
        }
    }
}

#[test]
fn subscribers_of_a_scope_hear_of_scopes_and_items_of_other_domains() {
    let mut net = Net::chain(2);
    net.run(10_000);
    net.ask(2, Kind::SUBSCRIBE_SCOPE, "/1");
    net.ask(0, Kind::PUBLISH_SCOPE, "/1");
    net.ask(0, Kind::PUBLISH_SCOPE, "/1/7");
    net.ask(0, Kind::PUBLISH_ITEM, "/1/2");
    net.run(10_000);
    let heard = Event::ScopePublished("/1/7".parse().unwrap());
    assert!(net.events.contains(&(2, heard)), "{:?}", net.events);
    assert!(net.publish(0, "/1/2", b"x"));
    assert_eq!(net.got(2), [b"x"]);
}

#[test]
fn a_domain_that_is_silent_is_forgotten_and_comes_back() {
    let mut net = Net::matched(2);
    let wires = std::mem::take(&mut net.wires);
    let between = |(at, to): (usize, usize)| at / 2 != to / 2;
    net.wires = wires.clone();
    net.wires.retain(|(at, _), (to, _)| !between((*at, *to)));
    net.run(70_000);
    assert!(!net.started(0), "its subscribers are not there any more");
    net.wires = wires;
    net.run(20_000);
    assert!(net.started(0));
    assert!(net.publish(0, "/1/2", b"again"));
    assert_eq!(net.got(3), [b"again"]);
}

/// Frames that the node at the far side of a border forges.
fn forged(key: Option<&DomainKey>) -> Vec<Vec<u8>> {
    let node = label(0, 0);
    let mut all = Vec::new();
    let mut add = |root: Label, route: &RouteBuf, message: &[u8]| {
        let ids = [reserved::of(root, domain(1))];
        let mut payload = message.to_vec();
        key.iter().for_each(|key| key.seal(&mut payload));
        let mut octets = Vec::new();
        FrameBuilder {
            hop_limit: 9,
            strategy: Strategy::IMPLICIT,
            route,
            ids: &ids,
            options: &[],
            payload: &payload,
        }
        .write(&mut octets);
        all.push(octets);
    };
    let link = RouteBuf::from(onym_wire::push::Route::Link);
    let mut filter = Filter::EMPTY;
    (0..4).for_each(|bit| filter.set(bit));
    let flat = RouteBuf::flat(0, &filter);
    let facts = |sender: Label, class: u64, ids: &[&str]| Control {
        item: Some(class),
        number: 77,
        ids: ids.iter().map(|id| id.parse().unwrap()).collect(),
        ..Control::new(Kind::DOMAIN_FACTS, sender)
    };
    for root in [
        reserved::RENDEZVOUS,
        reserved::TOPOLOGY,
        reserved::DISPATCHER,
        reserved::LINK_STATE,
        reserved::HELLO,
        reserved::DOMAINS,
    ] {
        for kind in [0, 5, 55, 100, 105, 106, 160, 163, 164, 170, 171, 172, 173] {
            let message = Control { item: Some(1), ..Control::new(Kind(kind), node) }.octets();
            add(root, &link, &message);
            add(root, &flat, &message);
        }
    }
    // In the name of this domain, of one of its nodes, of another domain than the neighbour.
    for sender in [domain(0), node, domain(9)] {
        let routes = Control::new(Kind::DOMAIN_ROUTES, sender).octets();
        add(reserved::DOMAINS, &link, &routes);
    }
    add(reserved::DOMAINS, &link, &facts(domain(0), 0, &["/5"]).octets());
    add(reserved::DOMAINS, &link, &facts(node, 0, &["/5"]).octets());
    add(reserved::DOMAINS, &link, &facts(domain(1), 3, &["/5"]).octets());
    add(reserved::DOMAINS, &link, &facts(domain(1), 0, &["/ffffffffffffffff"]).octets());
    add(reserved::DOMAINS, &link, b"no message at all");
    all
}

#[test]
fn forged_and_malformed_messages_between_domains_are_counted_and_harmless() {
    for is_signed in [true, false] {
        let mut net = Net::matched(2);
        let key = DomainKey::new(b"between");
        let (face, _) = net.wires.iter().find(|((at, _), (to, _))| *at == 1 && *to == 2).unwrap();
        let face = face.1;
        let before = net.nodes[0].rendezvous.as_ref().unwrap().graph().views();
        let count = |net: &Net| {
            let dropped = net.nodes[1].dropped;
            let federation = net.nodes[0].topology.as_ref().unwrap().federation().unwrap();
            let forms = net.nodes[1].forwarder.counters().of(Verdict::Form);
            dropped.malformed + dropped.mac + dropped.misdirected + federation.refused + forms
        };
        let counted = count(&net);
        let frames = forged(is_signed.then_some(&key));
        for octets in &frames {
            let mut output = Output::default();
            net.nodes[1].receive(net.now, face, &mut octets.clone(), &mut output);
            net.take(1, output);
        }
        assert_eq!(count(&net) - counted, frames.len() as u64, "signed: {is_signed}");
        net.run(6_000);
        assert_eq!(net.nodes[0].rendezvous.as_ref().unwrap().graph().views(), before);
        assert!(net.publish(0, "/1/2", b"on"));
        assert_eq!(net.got(3), [b"on"]);
    }
}

#[test]
fn only_a_topology_manager_opens_the_border() {
    let mut net = Net::matched(2);
    let message = Control { item: Some(1), ..Control::new(Kind::BORDER, label(0, 1)) };
    let before = net.nodes[1].dropped.misdirected;
    net.nodes[1].border(&message);
    assert_eq!(net.nodes[1].dropped.misdirected, before + 1);
}

/// What was published is known to the rendezvous of a domain.
fn knows(net: &Net, domain: usize, id: &str) -> bool {
    let id: Id = id.parse().unwrap();
    net.nodes[domain * 2].rendezvous.as_ref().unwrap().graph().view(&id).is_some()
}

/// Messages between domains of this kind that came to a border node.
fn taken(net: &Net, at: usize, kind: Kind) -> u64 {
    net.nodes[at].taken(kind)
}

#[test]
fn what_changes_is_told_at_once_through_every_domain() {
    // P-66: a quarter of the time to the next round that says everything.
    let mut net = Net::chain(4);
    net.run(2_000);
    for round in 0..5 {
        // At another moment between two such rounds each time.
        net.run(850);
        net.ask(0, Kind::PUBLISH_SCOPE, "/1");
        net.ask(0, Kind::PUBLISH_ITEM, "/1/2");
        net.run(500);
        assert!(knows(&net, 3, "/1/2"), "round {round}: what is published");
        net.ask(7, Kind::SUBSCRIBE_ITEM, "/1/2");
        net.run(500);
        assert!(net.started(0), "round {round}: what is wanted");
        assert!(net.publish(0, "/1/2", b"x"));
        assert_eq!(net.got(7), [b"x"], "round {round}");
        net.ask(7, Kind::UNSUBSCRIBE_ITEM, "/1/2");
        net.run(500);
        assert!(!net.started(0), "round {round}: what is wanted no more");
        net.ask(0, Kind::UNPUBLISH_ITEM, "/1/2");
        net.ask(0, Kind::UNPUBLISH_SCOPE, "/1");
        net.run(500);
        assert!(!knows(&net, 3, "/1"), "round {round}: what is published no more");
        let waits = net.nodes.iter().map(|node| node.traffic().unacknowledged).sum::<u64>();
        assert_eq!(waits, 0, "round {round}: nobody waits for an answer of another domain");
    }
}

#[test]
fn a_domain_that_comes_later_is_told_everything_at_once() {
    let mut net = Net::chain(3);
    let wires = std::mem::take(&mut net.wires);
    net.wires = wires.clone();
    net.wires.retain(|(at, _), (to, _)| at.max(to) != &4 || at.min(to) != &3);
    net.run(2_000);
    net.ask(0, Kind::PUBLISH_SCOPE, "/1");
    net.ask(0, Kind::PUBLISH_ITEM, "/1/2");
    net.run(2_700);
    assert!(knows(&net, 1, "/1/2") && !knows(&net, 2, "/1"));
    net.wires = wires;
    // The neighbours notice at a round of theirs, within 4 s; from then on it takes 1.5 s.
    let came = |net: &Net| taken(net, 4, Kind::DOMAIN_ROUTES) + taken(net, 3, Kind::DOMAIN_ROUTES);
    let before = came(&net);
    while came(&net) == before {
        net.run(10);
    }
    net.run(1_500);
    assert!(knows(&net, 2, "/1/2"));
}

#[test]
fn what_flaps_costs_a_neighbour_one_round_in_a_tenth_of_a_second() {
    let mut net = Net::chain(3);
    net.run(2_000);
    net.ask(2, Kind::PUBLISH_SCOPE, "/1");
    let wires = net.wires.iter();
    let ((_, face), _) = wires.map(|(a, b)| (*a, *b)).find(|(a, b)| (a.0, b.0) == (3, 4)).unwrap();
    let link = LinkEntry { face, number: face.0 - 200, is_external: true };
    let said = |net: &Net| [Kind::DOMAIN_ROUTES, Kind::DOMAIN_FACTS].map(|k| taken(net, 1, k));
    let before = said(&net);
    for round in 0..300 {
        // The domain in the middle publishes more and more, and its link to the last one flaps.
        let id = Id::root(Label::from_u64(round + 10));
        let prefix = "/1".parse().unwrap();
        let request = Request { kind: Kind::PUBLISH_ITEM, id, prefix, strategy: S };
        let mut output = Output::default();
        net.nodes[2].request(net.now, APP, 1, &request, &mut output);
        net.take(2, output);
        let mut output = Output::default();
        match round % 6 {
            0 => drop(net.nodes[3].link_remove(net.now, face, &mut output)),
            3 => net.nodes[3].exit_add(net.now, link, domain(2)).unwrap(),
            _ => {}
        }
        net.take(3, output);
        net.run(20);
    }
    let [routes, facts] = said(&net);
    let (routes, facts) = (routes - before[0], facts - before[1]);
    // 6 s; twice everything is said, in up to 10 messages.
    assert!((1..=62).contains(&routes), "{routes} messages of routes");
    assert!((50..=82).contains(&facts), "{facts} messages of facts");
    net.run(3_000);
    let last = "/1/135";
    assert!(knows(&net, 0, last) && knows(&net, 2, last), "it ends as it is");
}

#[test]
fn who_knows_nothing_asks_to_be_told_everything_and_is_once_a_second() {
    let mut net = Net::chain(2);
    net.run(2_000);
    let wires = net.wires.iter();
    let ((at, face), _) = wires.map(|(a, b)| (*a, *b)).find(|(a, b)| (a.0, b.0) == (1, 2)).unwrap();
    let before = taken(&net, 2, Kind::DOMAIN_ROUTES);
    for _ in 0..1000 {
        // The routes of the neighbour are as they were, but it says that it has none of ours.
        let routes = net.nodes[2].topology.as_ref().unwrap().federation().unwrap();
        let mut message = Control::new(Kind::DOMAIN_ROUTES, domain(1));
        (message.is_full, message.domains) = (true, routes.domains.routes_for(domain(0)));
        let mut payload = message.octets();
        DomainKey::new(b"between").seal(&mut payload);
        let mut octets = Vec::new();
        FrameBuilder {
            hop_limit: 9,
            strategy: Strategy::IMPLICIT,
            route: &RouteBuf::from(onym_wire::push::Route::Link),
            ids: &[reserved::of(reserved::DOMAINS, domain(1))],
            options: &[],
            payload: &payload,
        }
        .write(&mut octets);
        let mut output = Output::default();
        net.nodes[at].receive(net.now, face, &mut octets, &mut output);
        net.take(at, output);
        net.run(5);
    }
    let told = taken(&net, 2, Kind::DOMAIN_ROUTES) - before;
    assert!((5..=6).contains(&told), "{told} times in 5 s");
}

#[test]
fn what_comes_behind_a_later_message_changes_nothing() {
    let item = |n: u64| Fact::Item(Id::root(Label::from_u64(1)).child(Label::from_u64(n)));
    let mut federation = Federation::new(domain(0), label(0, 0), 1, 0);
    let mut says = |number: u64, is_gone: bool| {
        let message = Control::new(Kind::DOMAIN_FACTS, domain(1));
        let message = Control { number, is_full: is_gone, ..message };
        federation.take(Tick(0), &message, vec![item(2)]);
        federation.facts[&domain(1)].values().filter(|known| !known.is_gone).count()
    };
    let [manager, other] = [7 << 32, 8 << 32];
    assert_eq!(says(manager + 5, true), 0, "the message before it went another way");
    assert_eq!(says(manager + 4, false), 0);
    assert_eq!(says(manager + 6, false), 1);
    assert_eq!(says(manager + 5, true), 1);
    assert_eq!(says(other + 1, true), 0, "managers do not number together");
    assert_eq!(federation.count, 1);
    federation.expire(Tick::from_ms(15_001));
    assert_eq!(federation.count, 0);
}

#[test]
fn routes_that_come_behind_later_ones_are_not_taken() {
    let mut federation = Federation::new(domain(0), label(0, 0), 1, 0);
    federation.domains.neighbour_set(domain(1), 5);
    federation.exits.insert(domain(1), vec![(label(0, 1), 9)]);
    let mut says = |session: u32, number: u32, is_empty: bool| {
        let own = DomainRoute { destination: domain(1), delivery: 3, path: Vec::new() };
        let domains = if is_empty { Vec::new() } else { vec![own] };
        let sequence = Sequence { session, number };
        let message = Control { sequence, domains, ..Control::new(Kind::DOMAIN_ROUTES, domain(1)) };
        federation.take_routes(Tick(0), domain(1), message);
        federation.domains.reaches(domain(1))
    };
    assert!(says(4, 2, false));
    assert!(says(4, 1, true), "it is older");
    assert!(!says(4, 3, true) && says(5, 1, false), "another manager of the domain");
    assert!(!says(0, 0, true) && says(0, 0, false), "one of an earlier version");
}
