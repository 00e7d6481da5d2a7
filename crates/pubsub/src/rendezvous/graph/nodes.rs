//! A set of nodes.

use onym_wire::push::Label;
use smallvec::SmallVec;
use std::ops::Deref;

/// Nodes in order, each once; mostly one, which lies where the set does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Nodes(SmallVec<[Label; 2]>);

impl Deref for Nodes {
    type Target = [Label];

    fn deref(&self) -> &[Label] {
        &self.0
    }
}

impl FromIterator<Label> for Nodes {
    fn from_iter<I: IntoIterator<Item = Label>>(nodes: I) -> Self {
        let mut nodes: SmallVec<[Label; 2]> = nodes.into_iter().collect();
        nodes.sort_unstable();
        nodes.dedup();
        Self(nodes)
    }
}

impl Nodes {
    /// Whether `node` is one of them.
    #[must_use]
    pub fn contains(&self, node: Label) -> bool {
        self.0.binary_search(&node).is_ok()
    }

    pub(super) fn insert(&mut self, node: Label) {
        if let Err(at) = self.0.binary_search(&node) {
            self.0.insert(at, node);
        }
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, node: Label) -> bool {
        let found = self.0.binary_search(&node);
        if let Ok(at) = found {
            self.0.remove(at);
        }
        found.is_ok()
    }
}
