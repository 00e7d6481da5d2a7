//! Two nodes with one link, an item that the first one publishes and the second one subscribed to.

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::forwarder::{Copies, Forwarder, LinkEntry, Source};
use onym_pubsub::node::{Config, Node, Output};
use onym_pubsub::{AppId, Event, Received};
use onym_tables::{FaceId, Tick};
use onym_wire::push::{Kind, Label, Role, Status, Strategy};

const LINK: FaceId = FaceId(256);
const APP: AppId = AppId(1);

/// The nodes; the first one is the rendezvous.
pub(crate) struct Pair {
    nodes: [Node; 2],
    /// As a shard at the second one has it.
    forwarder: Forwarder,
    copies: Copies,
    outputs: [Output; 2],
    now: Tick,
}

impl Pair {
    /// The item is `/1/2`.
    pub(crate) fn matched() -> Self {
        let node = |n: u32| {
            let role = if n == 0 { Role::RENDEZVOUS.and(Role::TOPOLOGY) } else { Role::default() };
            let config = Config::new(Label::from_u64(u64::from(n) + 1), n, role, 1);
            let mut node = Node::new(config);
            let link = LinkEntry { face: LINK, number: 10 + n, is_external: false };
            node.link_add(Tick(0), link, 1).expect("invariant: one link");
            node
        };
        let nodes = [node(0), node(1)];
        let (forwarder, copies) = (nodes[1].forwarder.clone(), Copies::default());
        let outputs = <[Output; 2]>::default();
        let mut pair = Self { nodes, forwarder, copies, outputs, now: Tick(0) };
        pair.run(3000);
        pair.ask(0, Kind::PUBLISH_SCOPE, "/1", "/");
        pair.ask(0, Kind::PUBLISH_ITEM, "/2", "/1");
        pair.ask(1, Kind::SUBSCRIBE_ITEM, "/2", "/1");
        pair
    }

    /// Carries frames until there are none.
    fn carry(&mut self) {
        while let Some(at) = self.outputs.iter().position(|out| !out.frames.is_empty()) {
            let mut octets = self.outputs[at].frames.remove(0).octets;
            let other = 1 - at;
            self.nodes[other].receive(self.now, LINK, &mut octets, &mut self.outputs[other]);
            self.outputs[at].give_back(octets);
        }
    }

    fn run(&mut self, ms: u64) {
        for _ in 0..ms {
            self.now = self.now.plus_ms(1);
            for (node, output) in self.nodes.iter_mut().zip(&mut self.outputs) {
                node.handle_timeout(self.now, output);
            }
            self.carry();
        }
    }

    fn ask(&mut self, at: usize, kind: Kind, id: &str, prefix: &str) {
        let name = |text: &str| text.parse().expect("invariant: an identifier");
        let (id, prefix) = (name(id), name(prefix));
        let request = Request { kind, id, prefix, strategy: Strategy::DOMAIN_LOCAL };
        self.nodes[at].request(self.now, APP, 1, &request, &mut self.outputs[at]);
        self.run(100);
        let events = &mut self.outputs[at].events;
        let done = Event::Status { tag: 1, status: Status::OK };
        assert!(events.drain(..).any(|(_, event)| event == done), "{kind:?}");
    }

    /// Publishes at the first node and hands what leaves it to the second one; how often the
    /// subscriber there got it, both as shards do it. `between` is called when the first node is done.
    #[inline]
    pub(crate) fn publish(&mut self, data: &Data<'_>, mut between: impl FnMut()) -> usize {
        let [first, _] = &mut self.outputs;
        let [here, there] = &mut self.nodes;
        let sent = here.publish(self.now, APP, data, first);
        assert!(sent.is_ok(), "matched and started");
        between();
        let (mut frames, mut count) = (std::mem::take(&mut first.frames), 0);
        for frame in frames.drain(..) {
            let mut octets = frame.octets;
            self.forwarder.receive(Source::Face(LINK), &mut octets, &mut self.copies);
            let taken = there.take(LINK, std::iter::once(&octets[..]));
            if let Some(Received::Here { .. }) = taken.filter(|_| self.copies.is_delivered) {
                count += there.effects().list().map_or(0, |(apps, _)| apps.len());
            }
            first.give_back(octets);
        }
        first.frames = frames;
        count
    }
}
