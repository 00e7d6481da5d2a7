//! Whose publications: a node at one of its bootstraps.

use onym_wire::Name;

/// A node at one of its bootstraps.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    pub(crate) node: Name,
    pub(crate) boot: u64,
}

impl Key {
    pub(crate) fn is_under(&self, prefix: &Name) -> bool {
        prefix.as_ref().is_prefix_of(self.node.as_ref())
    }
}
