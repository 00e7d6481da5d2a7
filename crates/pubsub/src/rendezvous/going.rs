//! What is still to be taken back of nodes.

use super::graph::Held;
use onym_tables::Tick;
use onym_wire::push::Label;
use std::collections::{BTreeSet, VecDeque};

/// What is taken back in one turn, at most: about a millisecond's work.
pub const GO_MAX: usize = 256;

/// What is still to be taken back.
#[derive(Debug, Default)]
pub(super) struct Going {
    /// Of each node all that it asserts, or this.
    pub(super) nodes: VecDeque<(Label, Option<BTreeSet<Held>>)>,
    /// When it goes on.
    pub(super) at: Tick,
}

impl Going {
    /// When it goes on, if there is something.
    pub(super) fn due(&self) -> Option<Tick> {
        (!self.nodes.is_empty()).then_some(self.at)
    }

    pub(super) fn push(&mut self, now: Tick, node: Label, what: Option<BTreeSet<Held>>) {
        if self.nodes.is_empty() {
            self.at = now;
        }
        self.nodes.push_back((node, what));
    }

    /// Whether something of this node is still to be taken back.
    pub(super) fn has(&self, node: Label) -> bool {
        self.nodes.iter().any(|(going, _)| *going == node)
    }

    /// The node was heard: it is not forgotten, what it did not assert again will be found out.
    pub(super) fn is_back(&mut self, node: Label) {
        self.nodes.retain(|(going, what)| *going != node || what.is_some());
    }

    /// The node asserts this, so it stays.
    pub(super) fn keep(&mut self, node: Label, held: &Held) {
        for (_, what) in self.nodes.iter_mut().filter(|(going, _)| *going == node) {
            what.iter_mut().for_each(|what| _ = what.remove(held));
        }
    }
}
