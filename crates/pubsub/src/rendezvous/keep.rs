//! What a store keeps of a rendezvous, and what it gives back (P-44).
//!
//! The store is the shell's; here are only the scopes that changed, and scopes that come back.

use super::Rendezvous;
use super::graph::request::Request;
use crate::publication::Outbox;
use onym_tables::Tick;
use onym_wire::push::{Id, Kind, Label, Strategy};
use std::collections::BTreeSet;

/// A published scope as it is kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// Its only name.
    pub id: Id,
    /// Its strategy.
    pub strategy: Strategy,
    /// Nodes that publish it; none: it is kept no longer.
    pub publishers: Vec<Label>,
}

impl Rendezvous {
    /// From now on it is noted which scopes a store has to keep.
    pub fn keep_scopes(&mut self) {
        self.graph.keep_scopes();
    }

    /// Whether there is something to keep.
    #[must_use]
    pub fn has_news(&self) -> bool {
        self.graph.has_unkept()
    }

    /// Scopes of this rendezvous that have other publishers than when they were asked for last, of
    /// `most` names at most. Scopes with several names are not kept: their publishers assert them.
    pub fn news(&mut self, most: usize) -> Vec<Kept> {
        let mut ids = BTreeSet::new();
        while ids.len() < most
            && let Some(id) = self.graph.unkept().and_then(BTreeSet::pop_first)
        {
            let names = self.graph.names(&id);
            ids.insert(id);
            // One that has a second name now was kept by its first one.
            if names.len() > 1 {
                ids.extend(names);
            }
        }
        ids.retain(|id| self.is_ours(id));
        let kept = |id: Id| {
            let (strategy, publishers) = self.graph.publishers_of(&id).unwrap_or_default();
            Kept { id, strategy, publishers }
        };
        ids.into_iter().map(kept).collect()
    }

    /// Scopes that come back from a store: as if their publishers had said so now. Those who do
    /// not assert them within the lease are forgotten. They are news, since this one owns them now.
    pub fn recall(&mut self, now: Tick, mut kept: Vec<Kept>, out: &mut Outbox) {
        kept.sort_by(|a, b| (a.id.len(), &a.id).cmp(&(b.id.len(), &b.id)));
        for scope in kept {
            let Some(label) = scope.id.last().filter(|_| self.is_ours(&scope.id)) else { continue };
            let prefix = Id::from_labels(scope.id.parent());
            let (kind, strategy) = (Kind::PUBLISH_SCOPE, scope.strategy);
            let request = Request { kind, id: Id::root(label), prefix, strategy };
            for node in scope.publishers {
                // What is there already, or has lost its parent, is not recalled.
                let Ok(changes) = self.graph.request(node, &request) else { continue };
                self.nodes.entry(node).or_default().heard = now;
                self.tell(now, &changes, out);
            }
        }
        self.has_shared = true;
        self.share_soon(now);
    }

    /// Whether roots came to this rendezvous since this was asked last.
    pub fn take_recall_wanted(&mut self) -> bool {
        std::mem::take(&mut self.is_recall_wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::super::Config;
    use super::*;
    use std::time::Duration;

    fn rendezvous() -> Rendezvous {
        let mut made = Rendezvous::new(Config {
            node: Label::from_u64(9),
            is_node_local: false,
            limits: super::super::graph::Limits::default(),
            lease: Duration::from_secs(2),
            epoch: 1,
            boot: 1,
        });
        made.keep_scopes();
        made
    }

    fn id(text: &str) -> Id {
        text.parse().unwrap()
    }

    fn publish(rendezvous: &mut Rendezvous, node: u64, at: &str) {
        let full = id(at);
        let prefix = Id::from_labels(full.parent());
        let id = Id::root(full.last().unwrap());
        let strategy = Strategy::DOMAIN_LOCAL;
        let request = Request { kind: Kind::PUBLISH_SCOPE, id, prefix, strategy };
        rendezvous.graph.request(Label::from_u64(node), &request).unwrap();
    }

    #[test]
    fn scopes_come_back_from_what_was_kept_and_go_when_nobody_asserts_them() {
        let mut first = rendezvous();
        publish(&mut first, 1, "/1");
        publish(&mut first, 2, "/1/2");
        let kept = first.news(100);
        assert_eq!(kept.len(), 2);
        assert!(!first.has_news());

        let (mut second, mut out) = (rendezvous(), Outbox::default());
        let shuffled = kept.iter().rev().cloned().collect();
        second.recall(Tick(0), shuffled, &mut out);
        assert_eq!(second.graph.publishers_of(&id("/1/2")), first.graph.publishers_of(&id("/1/2")));
        assert_eq!(second.news(100), kept, "it is kept by this one now");

        second.handle_timeout(Tick(0) + Duration::from_secs(3), &mut out);
        assert!(second.graph.is_empty(), "leases of publishers that did not come back");
        let gone = second.news(100);
        assert!(gone.len() == 2 && gone.iter().all(|k| k.publishers.is_empty()), "{gone:?}");
    }

    #[test]
    fn a_scope_with_a_second_name_is_kept_no_longer() {
        let mut rendezvous = rendezvous();
        for at in ["/1", "/2", "/1/5"] {
            publish(&mut rendezvous, 1, at);
        }
        assert_eq!(rendezvous.news(100).len(), 3);
        let (kind, strategy) = (Kind::PUBLISH_SCOPE, Strategy::DOMAIN_LOCAL);
        let again = Request { kind, id: id("/1/5"), prefix: id("/2"), strategy };
        rendezvous.graph.request(Label::from_u64(1), &again).unwrap();
        let news = rendezvous.news(100);
        assert_eq!(news.len(), 2, "{news:?}");
        assert!(news.iter().all(|k| k.publishers.is_empty()), "{news:?}");
    }
}
