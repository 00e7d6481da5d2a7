//! What is still to be withdrawn for nodes.

use super::graph::Held;
use onym_tables::Tick;
use onym_wire::push::Label;
use std::collections::{BTreeSet, VecDeque};

/// What is taken back in one turn, at most: about a millisecond's work.
pub const GO_MAX: usize = 256;

/// Why something of a node is taken back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Why {
    /// It is silent: all goes.
    Silent,
    /// It did not assert this again.
    Stale,
}

/// What is still to be taken back of one node.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) node: Label,
    pub(super) why: Why,
    pub(super) held: BTreeSet<Held>,
}

/// What is still to be taken back.
#[derive(Debug, Default)]
pub(super) struct Going {
    pub(super) parts: VecDeque<Part>,
    /// When it goes on.
    pub(super) at: Tick,
}

impl Going {
    /// When it goes on, if there is something.
    pub(super) fn due(&self) -> Option<Tick> {
        (!self.parts.is_empty()).then_some(self.at)
    }

    pub(super) fn push(&mut self, now: Tick, part: Part) {
        if self.parts.is_empty() {
            self.at = now;
        }
        self.parts.push_back(part);
    }

    /// Whether something of this node is still to be taken back.
    pub(super) fn has(&self, node: Label) -> bool {
        self.parts.iter().any(|part| part.node == node)
    }

    /// The node was heard: it is not forgotten, what it did not assert again will be found out.
    pub(super) fn is_back(&mut self, node: Label) {
        self.parts.retain(|part| part.node != node || part.why == Why::Stale);
    }

    /// The node asserts this, so it stays.
    pub(super) fn keep(&mut self, node: Label, held: &Held) {
        for part in self.parts.iter_mut().filter(|part| part.node == node) {
            part.held.remove(held);
        }
    }
}
