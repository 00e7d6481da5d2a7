//! Those who subscribed, and what the last publication that came found among them: the next one is
//! mostly of the same item, and is known by the octets in front of its number.

use super::numbers::NUMBER_LEN;
use super::{Effects, Found};
use crate::data::{Name, Receivers as List, names_above};
use crate::names::{Hashing, Key, Names};
use crate::publication::{AppId, To};
use onym_wire::push::{Frame, Id, option};
use onym_wire::tlv;
use onym_wire::types::PacketType;
use smallvec::SmallVec;
use std::collections::HashSet;
use std::sync::Arc;

/// Those who subscribed to one identifier.
#[derive(Debug, Default)]
struct Receiving {
    /// Applications, in the order in which they came.
    apps: SmallVec<[AppId; 2]>,
    /// The same list for events, until it changes.
    shared: Option<Arc<[AppId]>>,
    /// A subscription is asked for and not answered.
    is_awaiting: bool,
}

impl Receiving {
    fn is_over(&self) -> bool {
        self.apps.is_empty() && !self.is_awaiting
    }
}

/// The last publication that came and that one list of applications got.
#[derive(Debug)]
struct Last {
    /// Version and form.
    first: u8,
    /// What stands between the hop limit and the number.
    head: Vec<u8>,
    stream: u64,
    receivers: List,
}

/// A publication like the last one.
#[derive(Debug)]
pub(super) struct Alike<'s> {
    pub(super) stream: u64,
    /// Where its payload begins, right behind its number.
    pub(super) payload_at: usize,
    pub(super) receivers: &'s List,
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

/// Those who subscribed, by identifier. Every change makes what was found before forgotten.
#[derive(Debug)]
pub(super) struct Receivers {
    by_id: Names<Receiving>,
    last: Option<Last>,
    /// Changes until now.
    changes: u64,
}

/// Names with receivers, each with the id that it is above of.
type Matches<'a> = SmallVec<[(&'a Id, Name<'a>); 4]>;

impl Receivers {
    pub(super) fn new(hashing: &Hashing) -> Self {
        Self { by_id: Names::new(hashing), last: None, changes: 0 }
    }

    fn change(&mut self, key: Key) -> &mut Receiving {
        (self.last, self.changes) = (None, self.changes + 1);
        self.by_id.get_or_insert(key, Receiving::default)
    }

    /// A subscription is asked for.
    pub(super) fn await_answer(&mut self, key: Key) {
        self.change(key).is_awaiting = true;
    }

    pub(super) fn join(&mut self, key: Key, app: AppId) {
        let entry = self.change(key);
        entry.shared = None;
        if !entry.apps.contains(&app) {
            entry.apps.push(app);
        }
    }

    /// Whether nobody is left.
    pub(super) fn leave(&mut self, key: &Key, app: AppId) -> bool {
        (self.last, self.changes) = (None, self.changes + 1);
        let leave = |entry: &mut Receiving| {
            entry.shared = None;
            entry.apps.retain(|known| *known != app);
            entry.is_over()
        };
        self.by_id.remove_if(key, leave).is_some()
    }

    /// The subscription is answered; whether nobody has it.
    pub(super) fn answered(&mut self, key: &Key) -> bool {
        let answer = |entry: &mut Receiving| {
            entry.is_awaiting = false;
            entry.is_over()
        };
        self.by_id.remove_if(key, answer).is_some()
    }

    pub(super) fn apps(&self, name: Name<'_>) -> &[AppId] {
        self.by_id.get(name).map_or(&[], |entry| &entry.apps)
    }

    /// Whether somebody here subscribed to one of these names, or is about to.
    pub(super) fn is_wanted(&self, ids: &[Id]) -> bool {
        !self.by_id.is_empty()
            && ids.iter().any(|id| names_above(id, false).any(|name| self.by_id.contains(name)))
    }

    /// Whether a subscription to one of these names waits for its answer.
    pub(super) fn is_awaited(&self, ids: &[Id]) -> bool {
        let waits = |name| self.by_id.get(name).is_some_and(|entry| entry.is_awaiting);
        ids.iter().any(|id| names_above(id, false).any(waits))
    }

    fn matches<'a>(&self, ids: &'a [Id], is_deep: bool) -> Matches<'a> {
        let mut found = Matches::new();
        if self.by_id.is_empty() {
            return found;
        }
        let has = |name: &Name<'_>| !self.apps(name).is_empty();
        for id in ids {
            found.extend(names_above(id, is_deep).filter(has).map(|name| (id, name)));
        }
        found
    }

    /// The applications that have the subscription with these octets, but when `except` is one.
    fn list(&mut self, id: &[u8], except: Option<AppId>) -> Option<Arc<[AppId]>> {
        let Receiving { apps, shared, .. } = self.by_id.get_mut(id)?;
        let is_whole = except.is_none_or(|app| !apps.contains(&app));
        is_whole.then(|| Arc::clone(shared.get_or_insert_with(|| apps.as_slice().into())))
    }

    /// The one list of those who get what is published under these names, with the id that they
    /// are above of; `None` when it is not one list as it is.
    fn list_of(&mut self, found: &Matches<'_>, except: Option<AppId>) -> Option<List> {
        let [(id, name)] = found[..] else { return None };
        Some((self.list(name, except)?, id.clone()))
    }

    /// The one list of those who get what is published under these names, where there is one.
    pub(super) fn one_list(&mut self, ids: &[Id]) -> Option<List> {
        let found = self.matches(ids, false);
        self.list_of(&found, None)
    }

    /// Finds who gets what `app` publishes under these names, as `found` says if nothing changed
    /// since that was found; how many.
    pub(super) fn find_again(
        &mut self,
        ids: &[Id],
        app: AppId,
        known: &mut Option<(u64, Found)>,
        effects: &mut Effects,
    ) -> usize {
        match known {
            Some((changes, found)) if *changes == self.changes => match found {
                Found::Nobody => return 0,
                Found::List((apps, id)) => {
                    effects.to.push((To::All(Arc::clone(apps)), id.clone()));
                    return apps.len();
                }
            },
            _ => {}
        }
        let count = self.find(ids, false, Some(app), effects);
        let found = match &effects.to[..] {
            [] => Some(Found::Nobody),
            [(To::All(apps), id)] => Some(Found::List((Arc::clone(apps), id.clone()))),
            _ => None,
        };
        *known = found.map(|found| (self.changes, found));
        count
    }

    /// Finds the applications that subscribed to one of these names (P-28); how many.
    pub(super) fn find(
        &mut self,
        ids: &[Id],
        is_deep: bool,
        except: Option<AppId>,
        effects: &mut Effects,
    ) -> usize {
        let found = self.matches(ids, is_deep);
        if found.is_empty() {
            return 0;
        }
        if let Some((apps, id)) = self.list_of(&found, except) {
            // One list as it is: nobody gets it twice.
            let count = apps.len();
            effects.to.push((To::All(apps), id));
            return count;
        }
        let mut served: HashSet<AppId> = except.into_iter().collect();
        let before = served.len();
        for (id, name) in found {
            for app in self.apps(name) {
                if served.insert(*app) {
                    effects.to.push((To::One(*app), id.clone()));
                }
            }
        }
        served.len() - before
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
    pub(super) fn remember(&mut self, octets: &[u8], frame: &Frame<'_>, receivers: &List) {
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
