//! What a request changed.

use super::{Graph, Nodes, Path, VERTEX_OCTETS, path_octets};
use onym_wire::push::{Id, Label, Strategy};
use std::collections::BTreeMap;

/// Scopes that came or went, for the subscribers of their parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScopeNews {
    /// Came, not went.
    pub is_published: bool,
    /// Identifiers of the scope.
    pub ids: Vec<Id>,
    /// Who is told.
    pub nodes: Vec<Label>,
}

/// How the match of an item changed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ItemChange {
    /// Where the item is; `None` when it is gone.
    pub(crate) vertex: Option<usize>,
    /// Its identifiers, now or at last.
    pub ids: Vec<Id>,
    /// Its strategy.
    pub strategy: Strategy,
    /// It has other identifiers than before.
    pub is_renamed: bool,
    /// Publishers that came.
    pub publishers: Nodes,
    /// Publishers that went.
    pub publishers_gone: Nodes,
    /// Subscribers that came, their own or of a parent.
    pub subscribers: Nodes,
    /// Subscribers that went.
    pub subscribers_gone: Nodes,
}

impl ItemChange {
    /// Whether nothing is to tell.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.vertex.is_some()
            && !self.is_renamed
            && self.publishers.is_empty()
            && self.publishers_gone.is_empty()
            && self.subscribers.is_empty()
            && self.subscribers_gone.is_empty()
    }
}

/// Everything that one request changed, in the order in which it is told (P-25).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Changes {
    /// Scopes.
    pub scopes: Vec<ScopeNews>,
    /// The item that changed first, with its number: mostly there is no other.
    first: Option<(u64, ItemChange)>,
    /// Other items by their numbers.
    more: BTreeMap<u64, ItemChange>,
}

impl Changes {
    /// Item changes in the order of the items' first ids.
    #[must_use]
    pub fn in_order(&self) -> Vec<(u64, &ItemChange)> {
        let first = self.first.iter().map(|(number, change)| (*number, change));
        let more = self.more.iter().map(|(number, change)| (*number, change));
        let mut all: Vec<_> = first.chain(more).filter(|(_, c)| !c.is_empty()).collect();
        all.sort_by(|(n, a), (m, b)| (&a.ids, n).cmp(&(&b.ids, m)));
        all
    }

    fn of<'a>(&'a mut self, graph: &Graph, v: usize) -> &'a mut ItemChange {
        let vertex = graph.at(v);
        let number = vertex.number;
        let (first, change) = self.first.get_or_insert_with(|| (number, ItemChange::default()));
        let change = if *first == number { change } else { self.more.entry(number).or_default() };
        change.vertex = Some(v);
        change.strategy = vertex.strategy;
        change.ids = vertex.ids();
        change
    }

    pub(super) fn publisher_came(&mut self, graph: &Graph, v: usize, node: Label) {
        let change = self.of(graph, v);
        note(&mut change.publishers, &mut change.publishers_gone, node);
    }

    pub(super) fn publisher_went(&mut self, graph: &Graph, v: usize, node: Label) {
        let change = self.of(graph, v);
        note(&mut change.publishers_gone, &mut change.publishers, node);
    }

    pub(super) fn subscriber_came(&mut self, graph: &Graph, v: usize, node: Label) {
        let change = self.of(graph, v);
        note(&mut change.subscribers, &mut change.subscribers_gone, node);
    }

    pub(super) fn subscriber_went(&mut self, graph: &Graph, v: usize, node: Label) {
        let change = self.of(graph, v);
        note(&mut change.subscribers_gone, &mut change.subscribers, node);
    }

    pub(super) fn renamed(&mut self, graph: &Graph, v: usize) {
        self.of(graph, v).is_renamed = true;
    }

    /// The item goes; its match is told a last time.
    pub(super) fn gone(&mut self, graph: &Graph, v: usize) {
        self.of(graph, v).vertex = None;
    }
}

/// A node that comes and goes within one request did neither.
fn note(to: &mut Nodes, from: &mut Nodes, node: Label) {
    if !from.remove(node) {
        to.insert(node);
    }
}

impl Graph {
    /// Tells the subscribers of `parent` that a scope with these ids came.
    pub(super) fn scope_came(&self, parent: Option<usize>, ids: Vec<Id>, changes: &mut Changes) {
        self.news(parent, ids, true, changes);
    }

    /// Tells the subscribers of `parent` that a scope with these ids went.
    fn scope_went(&self, parent: Option<usize>, ids: Vec<Id>, changes: &mut Changes) {
        self.news(parent, ids, false, changes);
    }

    fn news(&self, parent: Option<usize>, ids: Vec<Id>, is_published: bool, changes: &mut Changes) {
        let Some(parent) = parent else { return };
        let nodes = self.at(parent).subscribers().collect::<Nodes>().to_vec();
        if !nodes.is_empty() && !ids.is_empty() {
            changes.scopes.push(ScopeNews { is_published, ids, nodes });
        }
    }

    /// Removes what nothing holds: the branch of `v` under `parent`, then `v`, then what that left
    /// empty above.
    pub(super) fn tidy(&mut self, v: usize, parent: Option<usize>, changes: &mut Changes) {
        let vertex = self.at(v);
        let (branch, rest): (Vec<&Path>, Vec<&Path>) =
            vertex.paths.iter().partition(|p| p.parent == parent);
        let is_held = branch.iter().any(|p| p.is_held());
        if is_held || branch.is_empty() || !vertex.children.is_empty() {
            return;
        }
        let ids: Vec<Id> = branch.iter().map(|p| p.id.clone()).collect();
        let (is_scope, is_last) = (vertex.is_scope, rest.is_empty());
        let label = ids.first().and_then(Id::last);
        let served: Nodes = parent.iter().flat_map(|f| self.at(*f).subscribers()).collect();
        if is_scope {
            self.scope_went(parent, ids.clone(), changes);
        } else if is_last {
            changes.gone(self, v);
        }
        for id in &ids {
            self.index.remove(id);
            self.octets -= path_octets(id);
        }
        self.at_mut(v).paths.retain(|p| p.parent != parent);
        if let (Some(parent), Some(label)) = (parent, label) {
            self.at_mut(parent).children.remove(&label.0);
        }
        if is_last {
            if let Some(vertex) = self.vertices[v].take() {
                self.by_number.remove(&vertex.number);
                self.octets -= vertex.word.map_or(0, |word| word.len());
            }
            self.octets -= VERTEX_OCTETS;
            self.free(v);
        } else if !is_scope {
            changes.renamed(self, v);
            for node in served.iter() {
                if !self.is_served(v, *node) {
                    changes.subscriber_went(self, v, *node);
                }
            }
        }
        let Some(parent) = parent else { return };
        for above in self.branches(parent) {
            if self.vertices[parent].is_some() {
                self.tidy(parent, above, changes);
            }
        }
    }

    /// The parents of `v`, `None` among them when it is a root.
    pub(super) fn branches(&self, v: usize) -> Vec<Option<usize>> {
        let mut all: Vec<Option<usize>> = self.at(v).paths.iter().map(|p| p.parent).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
