//! Whole rounds within one node: a subscriber asks for a random item, the publisher hears of it and
//! publishes, the subscriber gets the data and unsubscribes (Fig. 6 of the Blackadder paper).

use onym_pubsub::dispatcher::{Data, Request};
use onym_pubsub::node::{Config, Node, Output};
use onym_pubsub::{AppId, Event};
use onym_tables::{Rng, Tick};
use onym_wire::push::{Id, Kind, Label, Role, Strategy};

const PUBLISHER: AppId = AppId(0);
const STRATEGY: Strategy = Strategy::NODE_LOCAL;
const NOW: Tick = Tick(1);

/// A node with a publisher of many items.
pub(crate) struct Round {
    node: Node,
    output: Output,
    scope: Id,
    items: u64,
    rng: Rng,
}

impl Round {
    pub(crate) fn new(items: u64) -> Self {
        let node = Node::new(Config::new(Label::from_u64(1), 0, Role::default(), 1));
        let scope = Id::root(Label::from_u64(1));
        let (output, rng) = (Output::default(), Rng::new(1));
        let mut round = Self { node, output, scope, items, rng };
        let root = Id::default();
        round.ask(PUBLISHER, Kind::PUBLISH_SCOPE, 1, &root);
        let scope = round.scope.clone();
        for item in 0..items {
            round.ask(PUBLISHER, Kind::PUBLISH_ITEM, item, &scope);
        }
        round.output.events.clear();
        round
    }

    fn ask(&mut self, app: AppId, kind: Kind, child: u64, prefix: &Id) {
        let (id, prefix) = (Id::root(Label::from_u64(child)), prefix.clone());
        let request = Request { kind, id, prefix, strategy: STRATEGY };
        self.node.request(NOW, app, 0, &request, &mut self.output);
    }

    /// One round of one of 500 subscribers; publications delivered.
    pub(crate) fn run(&mut self) -> usize {
        let (app, item) = (AppId(1 + self.rng.below(500)), self.rng.below(self.items));
        let scope = self.scope.clone();
        let mut delivered = 0;
        self.ask(app, Kind::SUBSCRIBE_ITEM, item, &scope);
        let mut events = std::mem::take(&mut self.output.events);
        for (_, event) in events.drain(..) {
            if let Event::StartPublish(id) = event {
                let data = Data::new(id, STRATEGY, &[0; 46]);
                let sent = self.node.publish(NOW, PUBLISHER, &data, &mut self.output);
                delivered += sent.map_or(0, |s| s.local);
            }
        }
        self.ask(app, Kind::UNSUBSCRIBE_ITEM, item, &scope);
        self.output.events.clear();
        delivered
    }
}
