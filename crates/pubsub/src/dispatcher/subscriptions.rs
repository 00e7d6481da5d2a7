//! Subscriptions of this node, and what the last publication that came found among them: the next
//! one is mostly of the same item, and is known by the octets in front of its number.

use super::request::Waiting;
use crate::publication::AppId;
use onym_tables::KeyedMap;
use onym_wire::push::{Frame, Id, Strategy, option};
use onym_wire::tlv;
use onym_wire::types::PacketType;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Octets of a publication's number, the last ones of its option.
const NUMBER_LEN: usize = 4;

/// A subscription of this node.
#[derive(Debug)]
pub(super) struct Subscribing {
    pub(super) is_scope: bool,
    pub(super) strategy: Strategy,
    /// As it was asked.
    pub(super) id: Id,
    pub(super) prefix: Id,
    pub(super) subscribers: Subscribers,
    pub(super) waiting: Vec<Waiting>,
}

/// Applications that get the same, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Subscribers {
    apps: Vec<AppId>,
    /// The same list for events, until it changes.
    shared: Option<Arc<[AppId]>>,
}

impl Subscribers {
    pub(super) fn push(&mut self, app: AppId) {
        self.shared = None;
        self.apps.push(app);
    }

    /// Whether it was there.
    pub(super) fn remove(&mut self, app: AppId) -> bool {
        self.shared = None;
        let before = self.apps.len();
        self.apps.retain(|a| *a != app);
        self.apps.len() != before
    }
}

impl Deref for Subscribers {
    type Target = [AppId];

    fn deref(&self) -> &[AppId] {
        &self.apps
    }
}

/// Those who get a publication, and the id that they subscribed to.
pub type Receivers = (Arc<[AppId]>, Id);

/// The last publication that came and that one list of applications got.
#[derive(Debug)]
struct Last {
    /// Version and form.
    first: u8,
    /// What stands between the hop limit and the number.
    head: Vec<u8>,
    stream: u64,
    receivers: Receivers,
}

/// A publication like the last one.
#[derive(Debug)]
pub(super) struct Alike<'s> {
    pub(super) stream: u64,
    /// Where its payload begins, right behind its number.
    pub(super) payload_at: usize,
    pub(super) receivers: &'s Receivers,
}

impl Alike<'_> {
    /// The number of `octets`, a frame that is the same as this one up to its number.
    pub(super) fn number(&self, octets: &[u8]) -> Option<u32> {
        let (number, _) = octets.get(self.number_at()..)?.split_first_chunk::<NUMBER_LEN>()?;
        Some(u32::from_be_bytes(*number))
    }

    /// Where its number begins.
    pub(super) const fn number_at(&self) -> usize {
        self.payload_at - NUMBER_LEN
    }
}

/// Subscriptions by identifier. Whoever may change one makes the last publication forgotten.
#[derive(Debug, Default)]
pub(super) struct Subscriptions {
    by_id: KeyedMap<Id, Subscribing>,
    last: Option<Last>,
}

impl Deref for Subscriptions {
    type Target = KeyedMap<Id, Subscribing>;

    fn deref(&self) -> &Self::Target {
        &self.by_id
    }
}

impl DerefMut for Subscriptions {
    fn deref_mut(&mut self) -> &mut Self::Target {
        self.last = None;
        &mut self.by_id
    }
}

impl Subscriptions {
    /// The applications that have the subscription with these octets, but when `except` is one.
    pub(super) fn list(&mut self, id: &[u8], except: Option<AppId>) -> Option<Arc<[AppId]>> {
        let Subscribers { apps, shared } = &mut self.by_id.get_mut(id)?.subscribers;
        let is_whole = except.is_none_or(|app| !apps.contains(&app));
        is_whole.then(|| Arc::clone(shared.get_or_insert_with(|| apps.as_slice().into())))
    }

    /// Whether the whole frame `octets` is one of the last publication's item, by the same way.
    pub(super) fn alike(&self, octets: &[u8]) -> Option<Alike<'_>> {
        let Last { first, head, stream, receivers } = self.last.as_ref()?;
        let (octet, rest) = octets.get(value_at(octets)?..)?.split_first()?;
        // Behind the hop limit.
        let rest = rest.get(1..)?.strip_prefix(&head[..]).filter(|_| octet == first)?;
        let payload_at = octets.len() - rest.len().checked_sub(NUMBER_LEN)?;
        Some(Alike { stream: *stream, payload_at, receivers })
    }

    /// Remembers a frame that these got, where its number comes right before its payload.
    pub(super) fn remember(&mut self, octets: &[u8], frame: &Frame<'_>, receivers: &Receivers) {
        let Some((stream, _)) = frame.options.number else { return };
        let last = tlv::Reader::new(frame.options.octets()).last();
        let is_last = last.is_some_and(|o| o.is_ok_and(|o| o.typ == option::NUMBER));
        let end = octets.len() - frame.payload.len() - NUMBER_LEN;
        let Some(at) = value_at(octets).filter(|_| is_last) else { return };
        let (Some(first), Some(part)) = (octets.get(at), octets.get(at + 2..end)) else { return };
        let mut head = self.last.take().map(|last| last.head).unwrap_or_default();
        head.clear();
        head.extend_from_slice(part);
        self.last = Some(Last { first: *first, head, stream, receivers: receivers.clone() });
    }
}

/// Where the value of a whole push frame begins.
fn value_at(octets: &[u8]) -> Option<usize> {
    let is_frame = PacketType::of(octets) == Some(PacketType::PushFrame);
    let is_whole = tlv::frame_len(octets).is_ok_and(|len| len == Some(octets.len()));
    let at = if octets.get(1).is_some_and(|len| *len < 253) { 2 } else { 4 };
    (is_frame && is_whole).then_some(at)
}
