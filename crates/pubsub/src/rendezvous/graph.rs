//! The information graph: scopes and items, each with all its identifiers (section 4).
//!
//! Knows nothing of messages: a request yields the changes that it made, or a status.

mod change;
mod nodes;
pub mod request;
#[cfg(test)]
mod tests;

pub use change::{Changes, ItemChange, ScopeNews};
pub use nodes::Nodes;

use crate::shrink::Shrink;
use onym_tables::{KeyedMap, KeyedState, SipKey};
use onym_wire::push::{Id, Label, Status, Strategy};
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, HashSet};

/// Bounds of a graph.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Most scopes and items.
    pub vertices_max: usize,
    /// Most identifiers of one scope or item.
    pub ids_max: usize,
    /// Most nodes that publish or subscribe.
    pub nodes_max: usize,
    /// Most octets of all of them, about.
    pub octets_max: usize,
}

/// What a scope or item, and each of its identifiers beside its octets, costs in all tables, about.
const VERTEX_OCTETS: usize = 512;
const PATH_OCTETS: usize = 384;

/// A list of so many vertices is not worth shortening.
const VERTICES_KEPT: usize = 1024;

/// Fewer octets than these are not worth handing back.
const EMPTIED: usize = 16 << 20;

/// What a node may always assert.
const SHARE_MIN: usize = 64;

fn path_octets(id: &Id) -> usize {
    PATH_OCTETS + id.octets().len()
}

impl Limits {
    /// How many scopes and items there is room for, about.
    #[must_use]
    pub fn room(&self) -> usize {
        self.vertices_max.min(self.octets_max / (VERTEX_OCTETS + PATH_OCTETS))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Self { vertices_max: 1_000_000, ids_max: 64, nodes_max: 65_536, octets_max: 1 << 29 }
    }
}

/// What a node asserts of one identifier; ordered as it is withdrawn when the node goes: items
/// before scopes, publications before subscriptions, deep before shallow.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Held {
    /// A scope.
    pub is_scope: bool,
    /// A subscription.
    pub is_subscription: bool,
    /// 255 less the labels.
    pub depth_left: u8,
    /// The identifier.
    pub id: Id,
}

impl Ord for Held {
    fn cmp(&self, other: &Self) -> Ordering {
        self.rank().cmp(&other.rank()).then_with(|| self.id.cmp(&other.id))
    }
}

impl PartialOrd for Held {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Held {
    /// What comes first in the order, as one number.
    fn rank(&self) -> u16 {
        u16::from_be_bytes([
            (u8::from(self.is_scope) << 1) | u8::from(self.is_subscription),
            self.depth_left,
        ])
    }

    /// What is held of `id`.
    #[must_use]
    pub fn new(is_scope: bool, is_subscription: bool, id: Id) -> Self {
        let depth_left = u8::try_from(255_usize.saturating_sub(id.len())).unwrap_or(0);
        Self { is_scope, is_subscription, depth_left, id }
    }
}

/// Part of a digest (P-41).
#[must_use]
pub fn digest_of(held: &Held) -> u64 {
    let kind = (u64::from(held.is_scope) << 1) | u64::from(held.is_subscription);
    SipKey::new(kind, 0).octets(held.id.octets())
}

/// What one node asserts.
#[derive(Debug, Default)]
struct Holder {
    held: HashSet<Held, KeyedState>,
    shrink: Shrink,
    digest: u64,
}

/// One identifier of a scope or item.
#[derive(Debug, Clone)]
struct Path {
    id: Id,
    /// `None`: a root.
    parent: Option<usize>,
    publishers: Nodes,
    subscribers: Nodes,
}

impl Path {
    fn is_held(&self) -> bool {
        !self.publishers.is_empty() || !self.subscribers.is_empty()
    }
}

/// A scope or an item.
#[derive(Debug, Clone)]
struct Vertex {
    /// Never used again.
    number: u64,
    is_scope: bool,
    strategy: Strategy,
    /// Ordered by id; most have one, and nothing of them lies elsewhere.
    paths: SmallVec<[Path; 1]>,
    /// The word that its last label stands for, where it was published or subscribed to by one.
    word: Option<Box<str>>,
    children: BTreeMap<[u8; 8], usize>,
}

impl Vertex {
    fn path(&self, id: &Id) -> Option<&Path> {
        self.paths.iter().find(|p| p.id == *id)
    }

    fn has_publisher(&self, node: Label) -> bool {
        self.paths.iter().any(|p| p.publishers.contains(node))
    }

    fn has_subscriber(&self, node: Label) -> bool {
        self.paths.iter().any(|p| p.subscribers.contains(node))
    }

    fn subscribers(&self) -> impl Iterator<Item = Label> {
        self.paths.iter().flat_map(|p| p.subscribers.iter().copied())
    }

    fn ids(&self) -> Vec<Id> {
        self.paths.iter().map(|p| p.id.clone()).collect()
    }

    /// Parents, each once.
    fn parents(&self) -> SmallVec<[usize; 2]> {
        let mut parents: SmallVec<[usize; 2]> =
            self.paths.iter().filter_map(|p| p.parent).collect();
        parents.sort_unstable();
        parents.dedup();
        parents
    }
}

/// A view of one scope or item, for status and pictures.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VertexView {
    /// Whether it is a scope.
    pub is_scope: bool,
    /// Its strategy.
    pub strategy: Strategy,
    /// Its identifiers with publishers and subscribers of each.
    pub ids: Vec<(Id, Vec<Label>, Vec<Label>)>,
    /// Labels of its children.
    pub children: Vec<Label>,
}

/// The graph.
#[derive(Debug, Default)]
pub struct Graph {
    limits: Limits,
    vertices: Vec<Option<Vertex>>,
    /// Places in it that are free; the last one never is.
    free: BTreeSet<usize>,
    shrink: Shrink,
    index: KeyedMap<Id, usize>,
    numbers: u64,
    by_number: KeyedMap<u64, usize>,
    held: KeyedMap<Label, Holder>,
    /// What all that costs, about.
    octets: usize,
    /// The most of it since memory was said to be free.
    octets_most: usize,
    /// Scopes whose publishers changed, where somebody keeps them.
    unkept: Option<BTreeSet<Id>>,
}

impl Graph {
    /// An empty graph.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Number of scopes and items.
    #[must_use]
    pub fn len(&self) -> usize {
        self.by_number.len()
    }

    /// Whether nothing is there.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// What the scope or item with this id is.
    #[must_use]
    pub fn view(&self, id: &Id) -> Option<VertexView> {
        self.index.get(id).map(|v| self.view_of(*v))
    }

    /// Every scope and item once, in the order of its first id.
    #[must_use]
    pub fn views(&self) -> Vec<VertexView> {
        let mut views: Vec<VertexView> = (0..self.vertices.len())
            .filter(|v| self.vertices[*v].is_some())
            .map(|v| self.view_of(v))
            .collect();
        views.sort_by(|a, b| a.ids.first().map(|i| &i.0).cmp(&b.ids.first().map(|i| &i.0)));
        views
    }

    fn view_of(&self, v: usize) -> VertexView {
        let vertex = self.at(v);
        let of = |p: &Path| (p.id.clone(), p.publishers.to_vec(), p.subscribers.to_vec());
        VertexView {
            is_scope: vertex.is_scope,
            strategy: vertex.strategy,
            ids: vertex.paths.iter().map(of).collect(),
            children: vertex.children.keys().copied().map(Label).collect(),
        }
    }

    /// Whether what has this id, if something does, has another word than `word`.
    pub(super) fn has_other_word(&self, id: &Id, word: &str) -> bool {
        let vertex = self.index.get(id).map(|v| self.at(*v));
        vertex.and_then(|vertex| vertex.word.as_deref()).is_some_and(|known| known != word)
    }

    /// What has this id has the word `word`, the label of which is its last.
    pub(super) fn name(&mut self, id: &Id, word: &str) {
        let Some(v) = self.index.get(id).copied() else { return };
        if self.at(v).word.is_none() {
            self.at_mut(v).word = Some(word.into());
            self.octets += word.len();
        }
    }

    /// The identifier with the words that are known of it.
    #[must_use]
    pub fn path(&self, id: &Id) -> onym_wire::push::Path {
        let word = |depth: usize| {
            let above = Id::from_labels(&id.labels()[..depth]);
            let word = self.index.get(&above).and_then(|v| self.at(*v).word.clone());
            // A second name may end in another label.
            word.filter(|word| above.last() == Some(Label::of_word(word))).map(String::from)
        };
        let words = (1..=id.len()).map(word).collect();
        onym_wire::push::Path { id: id.clone(), words }
    }

    /// What this node asserts, in no order.
    pub fn held(&self, node: Label) -> impl Iterator<Item = &Held> {
        self.held.get(&node).into_iter().flat_map(|h| &h.held)
    }

    pub(crate) fn is_held(&self, node: Label, held: &Held) -> bool {
        self.held.get(&node).is_some_and(|holder| holder.held.contains(held))
    }

    /// The digest of what this node asserts (P-41).
    #[must_use]
    pub fn digest(&self, node: Label) -> u64 {
        self.held.get(&node).map_or(0, |h| h.digest)
    }

    /// What others than `except` publish with this strategy; and whether it is a scope.
    pub(super) fn published(
        &self,
        strategy: Strategy,
        except: &BTreeSet<Label>,
    ) -> BTreeSet<(Id, bool)> {
        let own = self.held.iter().filter(|(node, _)| !except.contains(node));
        let held = own.flat_map(|(_, holder)| &holder.held).filter(|held| !held.is_subscription);
        let is_meant = |held: &&Held| {
            self.index.get(&held.id).is_some_and(|v| self.at(*v).strategy == strategy)
        };
        held.filter(is_meant).map(|held| (held.id.clone(), held.is_scope)).collect()
    }

    /// From now on it is noted which scopes get other publishers.
    pub(super) fn keep_scopes(&mut self) {
        self.unkept.get_or_insert_default();
    }

    /// Scopes whose publishers changed; `None` when nobody keeps them.
    pub(super) fn unkept(&mut self) -> Option<&mut BTreeSet<Id>> {
        self.unkept.as_mut()
    }

    /// Whether there are any.
    pub(super) fn has_unkept(&self) -> bool {
        self.unkept.as_ref().is_some_and(|ids| !ids.is_empty())
    }

    /// Strategy and publishers of the scope `id`, when that is its only name.
    pub(super) fn publishers_of(&self, id: &Id) -> Option<(Strategy, Vec<Label>)> {
        let vertex = self.at(*self.index.get(id)?);
        let [path] = vertex.paths.as_slice() else { return None };
        vertex.is_scope.then(|| (vertex.strategy, path.publishers.to_vec()))
    }

    /// All names of what has this one.
    pub(super) fn names(&self, id: &Id) -> Vec<Id> {
        self.index.get(id).map(|v| self.at(*v).ids()).unwrap_or_default()
    }

    /// Publishers of an item, by its number's vertex.
    pub(super) fn publishers(&self, v: usize) -> Nodes {
        self.at(v).paths.iter().flat_map(|p| p.publishers.iter().copied()).collect()
    }

    /// Own subscribers of an item and those of its parents.
    pub(super) fn effective_subscribers(&self, v: usize) -> Nodes {
        let vertex = self.at(v);
        let parents = vertex.parents().into_iter();
        let of_parents = parents.flat_map(|parent| self.at(parent).subscribers());
        vertex.subscribers().chain(of_parents).collect()
    }

    /// Whether an item has publishers and subscribers.
    pub(super) fn is_matched(&self, v: usize) -> bool {
        let vertex = self.at(v);
        let is_wanted = |v: &Vertex| v.paths.iter().any(|p| !p.subscribers.is_empty());
        vertex.paths.iter().any(|p| !p.publishers.is_empty())
            && (is_wanted(vertex)
                || vertex.parents().into_iter().any(|parent| is_wanted(self.at(parent))))
    }

    fn is_served(&self, v: usize, node: Label) -> bool {
        let vertex = self.at(v);
        vertex.has_subscriber(node)
            || vertex.parents().into_iter().any(|f| self.at(f).has_subscriber(node))
    }

    fn at(&self, v: usize) -> &Vertex {
        self.vertices[v].as_ref().expect("invariant: the index names vertices that are there")
    }

    fn at_mut(&mut self, v: usize) -> &mut Vertex {
        self.vertices[v].as_mut().expect("invariant: the index names vertices that are there")
    }

    /// The scope at `id`.
    fn scope(&self, id: &Id) -> Option<usize> {
        self.scope_at(id.octets())
    }

    /// As [`Graph::scope`], by the octets of the identifier.
    fn scope_at(&self, id: &[u8]) -> Option<usize> {
        self.index.get(id).copied().filter(|v| self.at(*v).is_scope)
    }

    fn item(&self, id: &Id) -> Option<usize> {
        self.index.get(id).copied().filter(|v| !self.at(*v).is_scope)
    }

    /// The item at `id`, where no scope is.
    fn item_or_none(&self, id: &Id) -> Result<Option<usize>, Status> {
        let found = self.index.get(id).copied();
        if found.is_some_and(|v| self.at(v).is_scope) { Err(Status::IS_SCOPE) } else { Ok(found) }
    }

    /// Makes a vertex without identifiers.
    fn make(&mut self, is_scope: bool, strategy: Strategy) -> Result<usize, Status> {
        if self.len() >= self.limits.vertices_max || self.octets >= self.limits.octets_max {
            return Err(Status::FULL);
        }
        self.octets += VERTEX_OCTETS;
        self.octets_most = self.octets_most.max(self.octets);
        let number = self.numbers;
        self.numbers += 1;
        let vertex = Vertex {
            number,
            is_scope,
            strategy,
            paths: SmallVec::new(),
            word: None,
            children: BTreeMap::new(),
        };
        let v = match self.free.pop_first() {
            Some(v) => {
                self.vertices[v] = Some(vertex);
                v
            }
            None => {
                self.vertices.push(Some(vertex));
                self.vertices.len() - 1
            }
        };
        self.by_number.insert(number, v);
        self.shrink.grew(self.by_number.len());
        Ok(v)
    }

    /// Identifiers that `v` would get as child `label` of `parent`; the root without parent.
    fn child_ids(&self, parent: Option<usize>, label: Label) -> Vec<Id> {
        match parent {
            None => vec![Id::root(label)],
            Some(parent) => self.at(parent).paths.iter().map(|p| p.id.child(label)).collect(),
        }
    }

    /// Whether `v` and all beneath it may get `more` times as many identifiers.
    fn may_grow(&self, v: usize, more: usize, deeper: usize) -> bool {
        let vertex = self.at(v);
        let deepest = vertex.paths.iter().map(|p| p.id.len()).max().unwrap_or(0);
        vertex.paths.len() + more <= self.limits.ids_max
            && deepest.max(deeper) < onym_wire::push::DEPTH_MAX
            && vertex.children.values().all(|c| self.may_grow(*c, more, deeper + 1))
    }

    /// Gives `v` the identifiers of a child `label` of `parent`, and what is beneath it too.
    fn attach(&mut self, v: usize, parent: Option<usize>, label: Label) {
        let ids = self.child_ids(parent, label);
        if let Some(parent) = parent {
            self.at_mut(parent).children.insert(label.0, v);
        }
        self.add_paths(v, parent, &ids);
    }

    fn add_paths(&mut self, v: usize, parent: Option<usize>, ids: &[Id]) {
        for id in ids {
            self.index.insert(id.clone(), v);
            self.octets += path_octets(id);
            let (publishers, subscribers) = Default::default();
            let path = Path { id: id.clone(), parent, publishers, subscribers };
            let paths = &mut self.at_mut(v).paths;
            let at = paths.partition_point(|p| p.id < *id);
            paths.insert(at, path);
        }
        let children: Vec<([u8; 8], usize)> =
            self.at(v).children.iter().map(|(label, c)| (*label, *c)).collect();
        for (label, child) in children {
            let ids: Vec<Id> = ids.iter().map(|id| id.child(Label(label))).collect();
            self.add_paths(child, Some(v), &ids);
        }
    }

    /// Notes what `node` asserts of `id`.
    fn hold(&mut self, v: usize, id: &Id, node: Label, is_subscription: bool) {
        let vertex = self.at_mut(v);
        let is_scope = vertex.is_scope;
        if let Some(path) = vertex.paths.iter_mut().find(|p| p.id == *id) {
            let set = if is_subscription { &mut path.subscribers } else { &mut path.publishers };
            set.insert(node);
        }
        let held = Held::new(is_scope, is_subscription, id.clone());
        let holder = self.held.entry(node).or_default();
        let digest = digest_of(&held);
        if holder.held.insert(held) {
            holder.digest ^= digest;
            holder.shrink.grew(holder.held.len());
        }
        self.note_unkept(id, is_scope && !is_subscription);
    }

    fn note_unkept(&mut self, id: &Id, is_published_scope: bool) {
        if let Some(unkept) = self.unkept.as_mut().filter(|_| is_published_scope) {
            unkept.insert(id.clone());
        }
    }

    /// Octets of all that is there, about.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Whether most of what was here has gone since this was asked last, so that the allocator may
    /// hand memory back.
    pub fn take_emptied(&mut self) -> bool {
        let is_emptied = self.octets_most > EMPTIED && self.octets < self.octets_most / 4;
        if is_emptied {
            self.octets_most = self.octets;
        }
        is_emptied
    }

    /// The vertex at `v` was taken out: its place is free, and memory is handed back.
    fn free(&mut self, v: usize) {
        self.free.insert(v);
        if let Some(room) = self.shrink.fell(self.len()) {
            self.index.shrink_to(room);
            self.by_number.shrink_to(room);
        }
        // The others keep their places, so only the end of the list can go.
        while let Some(None) = self.vertices.last() {
            self.vertices.pop();
            self.free.remove(&self.vertices.len());
        }
        let (len, capacity) = (self.vertices.len(), self.vertices.capacity());
        if capacity > VERTICES_KEPT && len < capacity / 4 {
            self.vertices.shrink_to((2 * len).max(VERTICES_KEPT / 4));
        }
    }

    /// Whether the node may assert one more thing: beyond three quarters of the bounds who has more
    /// than its share has to give something back first.
    fn has_room_for(&self, node: Label) -> bool {
        let Some(holder) = self.held.get(&node) else {
            return self.held.len() < self.limits.nodes_max;
        };
        let is_contended = |used: usize, max: usize| used >= max - max / 4;
        let limits = &self.limits;
        if !is_contended(self.len(), limits.vertices_max)
            && !is_contended(self.octets, limits.octets_max)
        {
            return true;
        }
        // One more than there are: room for who comes next.
        let share = limits.room() / (self.held.len() + 1);
        holder.held.len() < share.max(SHARE_MIN)
    }

    /// Takes back what [`hold`](Self::hold) noted.
    fn let_go(&mut self, v: usize, id: &Id, node: Label, is_subscription: bool) {
        let vertex = self.at_mut(v);
        let is_scope = vertex.is_scope;
        if let Some(path) = vertex.paths.iter_mut().find(|p| p.id == *id) {
            let set = if is_subscription { &mut path.subscribers } else { &mut path.publishers };
            set.remove(node);
        }
        if let Some(holder) = self.held.get_mut(&node) {
            let held = Held::new(is_scope, is_subscription, id.clone());
            if holder.held.remove(&held) {
                holder.digest ^= digest_of(&held);
                if let Some(room) = holder.shrink.fell(holder.held.len()) {
                    holder.held.shrink_to(room);
                }
            }
            if holder.held.is_empty() {
                self.held.remove(&node);
            }
        }
        self.note_unkept(id, is_scope && !is_subscription);
    }

    /// Whether `ancestor` is `v` or above it.
    fn is_above(&self, ancestor: usize, v: usize) -> bool {
        ancestor == v || self.at(v).parents().into_iter().any(|f| self.is_above(ancestor, f))
    }
}

impl Graph {
    /// The whole match of the item with this number, as a change.
    pub(crate) fn whole(&self, number: u64) -> Option<(ItemChange, usize)> {
        let v = *self.by_number.get(&number)?;
        let vertex = self.at(v);
        let change = ItemChange {
            vertex: Some(v),
            ids: vertex.ids(),
            strategy: vertex.strategy,
            publishers: self.publishers(v),
            subscribers: self.effective_subscribers(v),
            ..ItemChange::default()
        };
        Some((change, v))
    }
}
