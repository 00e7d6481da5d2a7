//! The applications of a shard, and publications that come in pieces.

use crate::push::Publishing;
use onym_pubsub::AppId;
use onym_tables::{FaceId, KeyedMap};
use onym_wire::push::app::Message;
use onym_wire::push::{Label, Role};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// The applications of a shard.
#[derive(Debug)]
pub(super) struct Apps {
    by_number: KeyedMap<AppId, FaceId>,
    /// The applications that got something together last, and their faces.
    last: Option<Placed>,
    next: AppId,
    pub(super) about: About,
    /// The message under way.
    pub(super) scratch: Vec<u8>,
    /// Messages that were malformed.
    pub(super) malformed: u64,
    /// Messages taken.
    pub(super) messages: u64,
}

/// Applications, and their faces.
type Placed = (Arc<[AppId]>, Arc<[FaceId]>);

/// What applications are told of their node, and what holds for all shards together.
#[derive(Debug, Clone)]
pub(crate) struct About {
    pub(crate) node: Label,
    pub(crate) role: Role,
    pub(crate) boot: u32,
    pub(crate) publication_bytes_max: usize,
    pub(crate) apps_max: usize,
    /// Applications at all shards.
    pub(crate) count: Arc<AtomicUsize>,
}

/// A publication of which pieces are still to come.
#[derive(Debug)]
pub(crate) struct Partial {
    pub(super) publishing: Publishing,
    length: usize,
    pub(super) payload: Vec<u8>,
    /// Longer than the bound: its pieces are let go.
    is_too_large: bool,
}

impl Partial {
    /// Takes a piece. What grows has room for eight times as much, so that little is written twice,
    /// and never for more than is to come: a length that is only claimed costs nothing.
    fn take(&mut self, piece: &[u8]) {
        let came = self.payload.len() + piece.len();
        if came > self.payload.capacity() {
            let room = came.saturating_mul(8).min(self.length).max(came);
            self.payload.reserve_exact(room - self.payload.len());
        }
        self.payload.extend_from_slice(piece);
    }
}

impl Apps {
    /// No applications; they are numbered so that their numbers tell the shard.
    pub(super) fn new(about: About, shard: u16, shards: u16) -> Self {
        let first = if shard == 0 { shards } else { shard };
        Self {
            by_number: KeyedMap::default(),
            last: None,
            next: AppId(first.into()),
            about,
            scratch: Vec::new(),
            malformed: 0,
            messages: 0,
        }
    }

    /// The faces of these applications; those of some that are gone are left out.
    pub(super) fn faces(&mut self, apps: &Arc<[AppId]>) -> Arc<[FaceId]> {
        match &self.last {
            Some((known, faces)) if Arc::ptr_eq(known, apps) => Arc::clone(faces),
            _ => {
                let faces = apps.iter().filter_map(|app| self.by_number.get(app).copied());
                let faces: Arc<[FaceId]> = faces.collect();
                self.last = Some((Arc::clone(apps), Arc::clone(&faces)));
                faces
            }
        }
    }

    pub(super) fn face(&self, app: AppId) -> Option<FaceId> {
        self.by_number.get(&app).copied()
    }

    /// Numbers an application; none: there are as many as may be.
    pub(super) fn register(&mut self, face: FaceId, shards: u16) -> Option<AppId> {
        let count = &self.about.count;
        if count.fetch_add(1, Ordering::Relaxed) >= self.about.apps_max {
            count.fetch_sub(1, Ordering::Relaxed);
            return None;
        }
        let app = self.next;
        self.next = AppId(app.0 + u64::from(shards));
        self.by_number.insert(app, face);
        self.last = None;
        Some(app)
    }

    pub(super) fn remove(&mut self, app: AppId) {
        if self.by_number.remove(&app).is_some() {
            self.about.count.fetch_sub(1, Ordering::Relaxed);
            self.last = None;
        }
    }
}

/// What came of a piece.
pub(super) enum Took {
    /// More are to come.
    Piece,
    /// It is the first one of a publication that is too long.
    TooLarge,
    /// It is the last one.
    All(Partial),
}

/// Takes a piece of a publication of `length` octets, which begins at `offset`.
pub(super) fn take_piece(
    partial: &mut Option<Partial>,
    message: &Message<'_>,
    offset: u64,
    length: usize,
    most: usize,
) -> Result<Took, String> {
    let is_first = offset == 0 && partial.is_none();
    if is_first {
        let (publishing, is_too_large) = (Publishing::of(message), length > most);
        *partial = Some(Partial { publishing, length, payload: Vec::new(), is_too_large });
    }
    let Some(known) = partial else {
        return Err("a piece without a first one".into());
    };
    let is_next = known.is_too_large || offset == known.payload.len() as u64;
    if !is_next || length != known.length {
        return Err("a piece that does not follow the one before".into());
    }
    let is_last = offset + message.payload.len() as u64 == length as u64;
    let is_too_large = known.is_too_large;
    if !is_too_large {
        known.take(message.payload);
    }
    let whole = if is_last { partial.take() } else { None };
    Ok(match whole.filter(|whole| !whole.is_too_large) {
        Some(whole) => Took::All(whole),
        None if is_first && is_too_large => Took::TooLarge,
        None => Took::Piece,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use onym_wire::push::app::kind;

    #[test]
    fn a_length_that_is_only_claimed_gets_no_memory() {
        let message = Message::new(kind::PUBLISH, 0);
        let (publishing, length) = (Publishing::of(&message), 64 << 20);
        let mut partial = Partial { publishing, length, payload: Vec::new(), is_too_large: false };
        partial.take(&[7; 1000]);
        assert_eq!((partial.payload.len(), partial.payload.capacity()), (1000, 8000));
        // Near its end it takes what is missing and no more.
        partial.length = 8100;
        partial.take(&[7; 7050]);
        assert_eq!((partial.payload.len(), partial.payload.capacity()), (8050, 8100));
        assert!(partial.payload.iter().all(|octet| *octet == 7));
    }
}
