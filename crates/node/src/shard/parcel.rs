//! Publications and loss reports on their way to applications and links: of this shard, or a batch
//! of them for another shard. Payloads over [`COPY_LEN_MAX`] are shared, not copied.

use crate::cross::Load;
use onym_frame::{Buf, COPY_LEN_MAX, FrameRow};
use onym_pubsub::{Above, AppId, To};
use onym_tables::FaceId;
use onym_wire::push::app::{Message, PIECE_MAX, kind};
use onym_wire::push::{Id, Strategy};
use std::ops::Range;
use std::sync::Arc;

/// Who gets something.
#[derive(Debug, Clone)]
pub(super) enum Whose {
    /// Applications of this shard.
    Apps(Arc<[AppId]>),
    App(AppId),
    /// Those who subscribed to one of these names or to what is above, as the shard that takes it
    /// finds them.
    Names(Arc<[Id]>, Above),
    /// Faces of this shard.
    Faces(Arc<[FaceId]>),
}

impl Whose {
    fn is_same(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Apps(a), Self::Apps(b)) => Arc::ptr_eq(a, b),
            (Self::App(a), Self::App(b)) => a == b,
            (Self::Names(a, above), Self::Names(b, other)) => Arc::ptr_eq(a, b) && above == other,
            _ => false,
        }
    }
}

impl From<To> for Whose {
    fn from(to: To) -> Self {
        match to {
            To::One(app) => Self::App(app),
            To::All(apps) => Self::Apps(apps),
        }
    }
}

/// One thing of a parcel.
#[derive(Debug)]
pub(super) enum Item {
    /// Messages, one behind the other: where they stand in [`Parcel::octets`], and their ends in
    /// [`Parcel::ends`].
    Run { to: Whose, octets: Range<usize>, ends: Range<usize> },
    /// Messages that have a head each and then what stands in a frame from octet `from` on.
    Row { to: Whose, head: Range<usize>, row: FrameRow, from: usize, came_by: Option<Strategy> },
    /// A message that is cut for its applications.
    Whole { to: Whose, message: Buf },
    /// So many publications never came.
    Missed { to: Whose, count: u64 },
    /// Everything that the application published before this is delivered: the push thread is told.
    Settled(AppId),
    /// So many publications an application had no room for.
    NoRoom { app: AppId, count: u64 },
    /// The push thread is to know when an application has taken what is before.
    Mark { app: AppId },
    /// Frames for a link, as [`Item::Row`]; none: the head is all.
    Frames { face: FaceId, head: Range<usize>, row: Option<(FrameRow, usize)> },
}

/// Publications for one shard.
#[derive(Debug, Default)]
pub(crate) struct Parcel {
    pub(super) items: Vec<Item>,
    pub(super) octets: Vec<u8>,
    pub(super) ends: Vec<usize>,
    /// Octets that are shared.
    shared: usize,
}

impl Load for Parcel {
    fn load(&self) -> (usize, usize) {
        (self.items.len().max(self.ends.len()), self.octets.len() + self.shared)
    }

    fn clear(&mut self) {
        self.items.clear();
        self.octets.clear();
        self.ends.clear();
        self.shared = 0;
    }
}

/// The identifier of a publication, and the strategy without rendezvous that it came by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Called<'a> {
    pub(super) id: &'a Id,
    pub(super) came_by: Option<Strategy>,
}

/// What an application hears of a publication.
pub(super) fn data_message<'a>(called: Called<'a>, payload: &'a [u8]) -> Message<'a> {
    let Called { id, came_by } = called;
    Message { id: id.octets(), came_by, payload, ..Message::new(kind::DATA, 0) }
}

/// The message of a long publication, made once for all shards.
pub(super) type Made = Option<(Id, Buf)>;

impl Parcel {
    /// Adds the publications whose payloads stand in `row` from octet `from` on.
    pub(super) fn put(
        &mut self,
        to: Whose,
        called: Called<'_>,
        row: &FrameRow,
        from: usize,
        made: &mut Made,
    ) {
        let Called { id, came_by } = called;
        let len = row.frame_len() - from;
        if len <= COPY_LEN_MAX {
            return self.run(
                to,
                called,
                row.iter().map(|frame| frame.get(from..).unwrap_or_default()),
            );
        }
        self.shared += len * row.count();
        if len <= PIECE_MAX {
            let start = self.octets.len();
            data_message(called, &[]).write_head(len, &mut self.octets);
            let (head, row) = (start..self.octets.len(), row.clone());
            return self.items.push(Item::Row { to, head, row, from, came_by });
        }
        let message = match made {
            Some((known, message)) if known == id => message.clone(),
            _ => {
                let mut head = Vec::new();
                data_message(called, &[]).write_head(len, &mut head);
                let message = Buf::joined(&head, row.first().get(from..).unwrap_or_default());
                *made = Some((id.clone(), message.clone()));
                message
            }
        };
        self.items.push(Item::Whole { to, message });
    }

    /// Adds short publications.
    fn run<'a>(&mut self, to: Whose, called: Called<'_>, payloads: impl Iterator<Item = &'a [u8]>) {
        let (start, first) = (self.octets.len(), self.ends.len());
        for payload in payloads {
            data_message(called, payload).write(&mut self.octets);
            self.ends.push(self.octets.len());
        }
        match self.items.last_mut() {
            Some(Item::Run { to: known, octets, ends }) if known.is_same(&to) => {
                (octets.end, ends.end) = (self.octets.len(), self.ends.len());
            }
            _ => self.items.push(Item::Run {
                to,
                octets: start..self.octets.len(),
                ends: first..self.ends.len(),
            }),
        }
    }

    /// Adds that so many publications never came.
    pub(super) fn missed(&mut self, to: Whose, count: u64) {
        self.items.push(Item::Missed { to, count });
    }

    /// Adds a mark: the push thread is told when everything before it is delivered.
    pub(super) fn settled(&mut self, app: AppId) {
        self.items.push(Item::Settled(app));
    }

    /// Adds that an application had no room for so many publications.
    pub(super) fn no_room(&mut self, app: AppId, count: u64) {
        self.items.push(Item::NoRoom { app, count });
    }

    /// Adds that the push thread is to know when an application has taken what is before.
    pub(super) fn mark(&mut self, app: AppId) {
        self.items.push(Item::Mark { app });
    }

    /// Adds frames for a link: for each of `row`, `head` and then what stands in it from `from` on.
    pub(super) fn frames(&mut self, face: FaceId, head: &[u8], row: &FrameRow, from: usize) {
        let rest = row.frame_len() - from;
        if rest > COPY_LEN_MAX {
            let start = self.octets.len();
            self.octets.extend_from_slice(head);
            self.shared += rest * row.count();
            let (head, row) = (start..self.octets.len(), Some((row.clone(), from)));
            return self.items.push(Item::Frames { face, head, row });
        }
        for frame in row.iter() {
            let start = self.octets.len();
            self.octets.extend_from_slice(head);
            self.octets.extend_from_slice(frame.get(from..).unwrap_or_default());
            self.items.push(Item::Frames { face, head: start..self.octets.len(), row: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(octets: &[u8]) -> FrameRow {
        FrameRow::one(Buf::copy_from(octets))
    }

    #[test]
    fn messages_for_the_same_applications_are_one_run_unless_something_comes_between() {
        let mut parcel = Parcel::default();
        let id: Id = "/1".parse().unwrap();
        let apps: [Arc<[AppId]>; 2] = [[AppId(1)].into(), [AppId(2), AppId(3)].into()];
        let say = |parcel: &mut Parcel, which: usize, len: usize| {
            let to = Whose::Apps(Arc::clone(&apps[which]));
            parcel.put(to, Called { id: &id, came_by: None }, &of(&vec![7; len]), 0, &mut None);
        };
        say(&mut parcel, 0, 1);
        say(&mut parcel, 0, 2);
        say(&mut parcel, 1, 3);
        say(&mut parcel, 1, COPY_LEN_MAX + 1);
        say(&mut parcel, 1, 4);
        say(&mut parcel, 1, PIECE_MAX + 1);
        let shapes: Vec<_> = parcel
            .items
            .iter()
            .map(|item| match item {
                Item::Run { ends, .. } => ends.len(),
                Item::Row { .. } => 100,
                Item::Whole { .. } => 200,
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(shapes, [2, 1, 100, 1, 200]);
    }

    #[test]
    fn a_parcel_is_full_by_octets_whether_they_are_shared_or_not() {
        for len in [COPY_LEN_MAX, 8000, 100_000] {
            let (mut parcel, mut octets) = (Parcel::default(), 0);
            let id: Id = "/1".parse().unwrap();
            while !parcel.is_full() {
                parcel.put(
                    Whose::App(AppId(1)),
                    Called { id: &id, came_by: None },
                    &of(&vec![7; len]),
                    0,
                    &mut None,
                );
                octets += len;
            }
            assert!((900 << 10..1200 << 10).contains(&octets), "{octets} of {len} each");
            parcel.clear();
            assert!(parcel.is_empty() && !parcel.is_full());
        }
    }
}
