//! A long publication as a cache holds it: its fragments with what their publisher signed, so that
//! who gets them from here checks them as those of the publisher.

use onym_tables::Tick;
use onym_wire::push::{Flags, Id};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Most names of an item.
pub(super) const NAMES_MAX: usize = 64;
/// What a fragment takes beside options and payload, about.
const OVERHEAD: usize = 96;

/// A fragment, as it came.
#[derive(Debug)]
pub(in crate::dispatcher) struct Piece {
    pub(in crate::dispatcher) options: Box<[u8]>,
    pub(in crate::dispatcher) payload: Box<[u8]>,
}

impl Piece {
    pub(in crate::dispatcher) fn new(options: &[u8], payload: &[u8]) -> Self {
        Self { options: options.into(), payload: payload.into() }
    }

    pub(super) fn size(&self) -> usize {
        self.options.len() + self.payload.len() + OVERHEAD
    }
}

/// All fragments of a publication.
#[derive(Debug)]
pub(in crate::dispatcher) struct Whole {
    /// Names of the item.
    pub(in crate::dispatcher) names: Vec<Id>,
    /// What identifiers of fragments are beneath.
    pub(in crate::dispatcher) scope: Id,
    pub(in crate::dispatcher) pieces: Vec<Piece>,
    /// An application of this node published it: it is signed when it leaves.
    pub(in crate::dispatcher) is_own: bool,
    lifetime: Duration,
    until: Tick,
}

impl Whole {
    /// The flags of the frames that it leaves in; `None`: it is too old.
    pub(in crate::dispatcher) fn flags(&self, now: Tick) -> Option<Flags> {
        Flags::aged(self.lifetime, self.until.since(now))
    }

    /// What was published.
    pub(in crate::dispatcher) fn payload(&self) -> Arc<[u8]> {
        let pieces: Vec<&[u8]> = self.pieces.iter().map(|piece| &*piece.payload).collect();
        pieces.concat().into()
    }
}

/// Fragments of a publication that is not whole.
#[derive(Debug)]
pub(super) struct Pieces {
    names: Vec<Id>,
    count: u32,
    pieces: BTreeMap<u32, Piece>,
    lifetime: Duration,
    /// As in [`Whole`].
    pub(super) is_own: bool,
}

/// Which fragment one is, of how many.
#[derive(Debug, Clone, Copy)]
pub(super) struct At {
    pub(super) count: u32,
    pub(super) index: u32,
}

impl Pieces {
    pub(super) fn new(names: &[Id], count: u32, lifetime: Duration) -> Self {
        Self { names: names.to_vec(), count, pieces: BTreeMap::new(), lifetime, is_own: false }
    }

    /// Adds a fragment; whether it is one of these, and new.
    pub(super) fn add(&mut self, names: &[Id], at: At, piece: Piece) -> bool {
        let is_one = self.names == names && self.count == at.count;
        if !is_one || self.pieces.contains_key(&at.index) {
            return false;
        }
        self.pieces.insert(at.index, piece);
        true
    }

    pub(super) fn is_whole(&self) -> bool {
        self.pieces.len() == self.count as usize
    }

    /// Takes the fragments out.
    pub(super) fn take(&mut self, scope: &Id, until: Tick) -> Whole {
        let (names, pieces) = (std::mem::take(&mut self.names), std::mem::take(&mut self.pieces));
        let Self { lifetime, is_own, .. } = *self;
        let (pieces, scope) = (pieces.into_values().collect(), scope.clone());
        Whole { names, scope, pieces, is_own, lifetime, until }
    }
}

/// A long publication.
#[derive(Debug)]
pub(super) enum Long {
    Partial(Pieces),
    Whole(Arc<Whole>),
}
