//! Silent nodes, and assertions that a node gave up: they are withdrawn in portions.

use super::Rendezvous;
use super::going::{GO_MAX, Why};
use super::graph::Changes;
use crate::publication::Outbox;
use onym_tables::Tick;

impl Rendezvous {
    /// Takes back as much as one turn may, and says so.
    pub(super) fn go_on(&mut self, now: Tick, out: &mut Outbox) {
        if self.going.due().is_none_or(|due| due > now) {
            return;
        }
        let (mut left, mut changes) = (GO_MAX, Changes::default());
        while let Some(part) = self.going.parts.front_mut()
            && left > 0
        {
            left -= 1;
            let (node, why) = (part.node, part.why);
            match part.held.pop_first() {
                // Taking a scope back takes items along.
                Some(held) if self.graph.is_held(node, &held) => {
                    self.graph.take_back(node, &held, &mut changes);
                }
                Some(_) => {}
                None => {
                    self.going.parts.pop_front();
                    if why == Why::Silent {
                        self.foreign.remove(&node);
                    }
                    self.share_soon(now);
                }
            }
        }
        self.going.at = now;
        self.tell(now, &changes, out);
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Config, Lease};
    use super::*;
    use crate::rendezvous::graph::request::Request;
    use onym_wire::push::{Control, Id, Kind, Label, Sequence, Strategy};
    use std::time::Duration;

    const NODE: Label = Label([7; 8]);

    fn request(n: u64, kind: Kind) -> Request {
        let id = Id::root(Label::from_u64(n));
        Request { kind, id, prefix: Id::default(), strategy: Strategy::DOMAIN_LOCAL }
    }

    /// A rendezvous where a node that was heard at 0 publishes so many scopes.
    fn rendezvous(scopes: u64) -> Rendezvous {
        let mut made = Rendezvous::new(Config {
            node: Label::from_u64(9),
            is_node_local: false,
            limits: super::super::graph::Limits::default(),
            lease: Duration::from_secs(2),
            epoch: 1,
            boot: 1,
        });
        for n in 1..=scopes {
            made.graph.request(NODE, &request(n, Kind::PUBLISH_SCOPE)).unwrap();
        }
        made.nodes.insert(NODE, Lease::default());
        made
    }

    #[test]
    fn a_silent_node_with_very_much_is_forgotten_in_short_turns() {
        let (mut made, mut out) = (rendezvous(5 * GO_MAX as u64), Outbox::default());
        let now = Tick(0) + Duration::from_secs(3);
        let mut turns = 0;
        while !made.graph.is_empty() {
            let before = made.graph.len();
            made.handle_timeout(now, &mut out);
            assert!(before - made.graph.len() <= GO_MAX);
            assert!(made.graph.is_empty() || made.next_timeout() == Some(now));
            turns += 1;
        }
        assert_eq!(turns, 5);
    }

    #[test]
    fn a_node_that_speaks_while_it_is_forgotten_keeps_what_it_asserts() {
        let many = 3 * GO_MAX as u64;
        let (mut made, mut out) = (rendezvous(many), Outbox::default());
        let now = Tick(0) + Duration::from_secs(3);
        made.handle_timeout(now, &mut out);
        let left = made.graph.len();
        assert_eq!(left, 2 * GO_MAX);
        let again = request(many, Kind::PUBLISH_SCOPE);
        let message = Control {
            sequence: Sequence { session: 1, number: 1 },
            ids: vec![again.id.clone()],
            strategy: again.strategy,
            ..Control::new(again.kind, NODE)
        };
        made.receive(now, &message, &mut out);
        for _ in 0..5 {
            made.handle_timeout(now, &mut out);
        }
        assert_eq!(made.graph.len(), left, "nothing more is forgotten");
        // What it says to have is less: it is asked, says it again, and the rest goes.
        let alive = |number| Control {
            number,
            epoch: Some(1),
            digest: 1,
            ..Control::new(Kind::KEEP_ALIVE, NODE)
        };
        made.receive(now, &alive(0), &mut out);
        let message = Control { sequence: Sequence { session: 1, number: 2 }, ..message };
        made.receive(now, &message, &mut out);
        made.receive(now, &alive(1), &mut out);
        made.handle_timeout(now, &mut out);
        assert_eq!(made.graph.held(NODE).map(|held| &held.id).collect::<Vec<_>>(), [&again.id]);
    }
}
