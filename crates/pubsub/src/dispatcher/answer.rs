//! A publication of a cache on its way to one late subscriber (P-89).

use super::cache::{Piece, Whole};
use crate::publication::Publication;
use onym_wire::push::{Id, Label};
use std::sync::{Arc, Weak};

/// What a cache sends to one late subscriber. It holds nothing itself: when the cache forgets it, it
/// ends.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) to: Label,
    pub(super) count: u32,
    whole: Weak<Whole>,
}

impl Answer {
    pub(super) fn new(to: Label, whole: &Arc<Whole>) -> Self {
        let count = u32::try_from(whole.pieces.len()).unwrap_or(u32::MAX);
        Self { to, count, whole: Arc::downgrade(whole) }
    }

    /// Fragment `index`, as it came.
    pub(super) fn fragment(&self, index: u32, like: &Publication) -> Option<Publication> {
        let whole = self.whole.upgrade()?;
        let Piece { options, payload } = whole.pieces.get(usize::try_from(index).ok()?)?;
        let mut ids = vec![fragment_id(&whole.scope, self.count, index)];
        ids.extend_from_slice(&whole.names);
        Some(Publication {
            ids,
            options: options.to_vec(),
            payload: payload.to_vec(),
            ..like.clone()
        })
    }
}

/// The identifier of fragment `index` of so many.
pub(super) fn fragment_id(scope: &Id, count: u32, index: u32) -> Id {
    scope.child(Label::from_u64((u64::from(count) << 32) | u64::from(index)))
}
