//! The pending Interests of a client.

use crate::request::RequestId;
use onym_crypto::digest::implicit_digest;
use onym_tables::Tick;
use onym_wire::data::{self, Data};
use onym_wire::interest::Interest;
use onym_wire::name::Name;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap};
use std::time::Duration;

/// Requests of one endpoint that wait for an answer, at most; further ones are refused.
pub const PENDING_MAX: usize = 4096;

/// Who gets the answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owner {
    Application,
    Fetch(u64),
    Registration(u64),
}

#[derive(Debug)]
pub(crate) struct Entry {
    /// The Interest; its Nonce is replaced at each sending.
    pub(crate) wire: Vec<u8>,
    pub(crate) owner: Owner,
    pub(crate) lifetime: Duration,
    pub(crate) retries_left: u32,
    /// Nonce of the last sending; Nacks of earlier ones are stale.
    pub(crate) nonce: [u8; 4],
    pub(crate) sent: Tick,
    deadline: Tick,
    /// A retransmission is due at the deadline, not a timeout.
    pub(crate) resend: bool,
}

impl Entry {
    pub(crate) fn interest(&self) -> Interest<'_> {
        Interest::parse(&self.wire).expect("invariant: encoded here, or checked when it was given")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Pending {
    /// Ordered, so that equal inputs give equal outputs.
    entries: BTreeMap<u64, Entry>,
    /// Requests by the name of their Interest.
    by_name: HashMap<Name, Vec<u64>>,
    timers: BinaryHeap<Reverse<(Tick, u64)>>,
    /// How many entries ask for an implicit digest.
    digests: usize,
    next: u64,
}

impl Pending {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    /// Takes a request; [`Pending::arm`] says until when. `None` when the table is full.
    pub(crate) fn insert(
        &mut self,
        wire: Vec<u8>,
        owner: Owner,
        retries: u32,
    ) -> Option<RequestId> {
        if self.entries.len() >= PENDING_MAX {
            return None;
        }
        let interest = Interest::parse(&wire).ok()?;
        let lifetime = Duration::from_millis(interest.lifetime_or_default());
        self.digests += usize::from(interest.implicit_digest().is_some());
        let name = interest.name.to_name();
        let id = self.next;
        self.next += 1;
        self.by_name.entry(name).or_default().push(id);
        let entry = Entry {
            wire,
            owner,
            lifetime,
            retries_left: retries,
            nonce: [0; 4],
            sent: Tick(0),
            deadline: Tick::NEVER,
            resend: false,
        };
        self.entries.insert(id, entry);
        Some(RequestId(id))
    }

    pub(crate) fn get_mut(&mut self, id: RequestId) -> Option<&mut Entry> {
        self.entries.get_mut(&id.0)
    }

    /// All requests, oldest first.
    pub(crate) fn ids(&self) -> Vec<RequestId> {
        self.entries.keys().map(|id| RequestId(*id)).collect()
    }

    pub(crate) fn arm(&mut self, id: RequestId, deadline: Tick) {
        if let Some(entry) = self.entries.get_mut(&id.0) {
            entry.deadline = deadline;
            if deadline != Tick::NEVER {
                self.timers.push(Reverse((deadline, id.0)));
            }
        }
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Entry> {
        let entry = self.entries.remove(&id.0)?;
        let interest = entry.interest();
        self.digests -= usize::from(interest.implicit_digest().is_some());
        let name = interest.name.to_name();
        if let Some(ids) = self.by_name.get_mut(&name) {
            ids.retain(|other| *other != id.0);
            if ids.is_empty() {
                self.by_name.remove(&name);
            }
        }
        Some(entry)
    }

    /// The requests that `data` answers.
    pub(crate) fn answered_by(&self, data: &Data<'_>, found: &mut Vec<RequestId>) {
        for len in 0..=data.name.len() {
            self.collect(data.name.prefix(len).value(), data, found);
        }
        if self.digests > 0 {
            let mut full = data.name.to_name();
            full.append_implicit_digest(&implicit_digest(data.wire));
            self.collect(full.value(), data, found);
        }
    }

    fn collect(&self, name: &[u8], data: &Data<'_>, found: &mut Vec<RequestId>) {
        let Some(ids) = self.by_name.get(name) else { return };
        found.extend(ids.iter().filter_map(|id| {
            let entry = self.entries.get(id)?;
            let digest = || implicit_digest(data.wire);
            data::matches(&entry.interest(), data, digest).then_some(RequestId(*id))
        }));
    }

    /// The request whose last sending `nacked` is.
    pub(crate) fn nacked(&self, nacked: &Interest<'_>) -> Option<RequestId> {
        let ids = self.by_name.get(nacked.name.value())?;
        ids.iter().copied().map(RequestId).find(|id| {
            self.entries.get(&id.0).is_some_and(|e| nacked.nonce.is_none_or(|n| n == e.nonce))
        })
    }

    /// When the next deadline may be; entries that were answered make it early, never late.
    pub(crate) fn next_deadline(&self) -> Tick {
        self.timers.peek().map_or(Tick::NEVER, |Reverse((at, _))| *at)
    }

    /// A request whose deadline is at or before `now`.
    pub(crate) fn pop_due(&mut self, now: Tick) -> Option<RequestId> {
        while let Some(Reverse((at, id))) = self.timers.peek().copied() {
            let live = self.entries.get(&id).is_some_and(|e| e.deadline == at);
            if live && at > now {
                return None;
            }
            self.timers.pop();
            if live {
                return Some(RequestId(id));
            }
        }
        None
    }
}
