//! The pending Interests of an endpoint.

use crate::request::{Request, RequestId};
use onym_crypto::digest::implicit_digest;
use onym_tables::Tick;
use onym_wire::data::{self, Data};
use onym_wire::interest::Hint;
use onym_wire::{Interest, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

#[derive(Debug)]
pub(crate) struct Entry {
    /// The Interest; its Nonce is replaced at each sending.
    wire: Vec<u8>,
    next_hop_face: Option<u64>,
    interval: Duration,
    tries: u32,
    /// How often it was sent.
    pub(crate) sendings: u32,
    /// Nonce of the last sending; Nacks of earlier ones are stale.
    nonce: [u8; 4],
    /// Time of the last sending.
    pub(crate) sent: Tick,
    deadline: Tick,
}

impl Entry {
    fn interest(&self) -> Interest<'_> {
        Interest::parse(&self.wire).expect("invariant: checked when it was taken")
    }
}

/// Ordered tables: equal calls give equal packets, and names that a stranger chose cost no more
/// than others.
#[derive(Debug, Default)]
pub(crate) struct Pending {
    entries: BTreeMap<u64, Entry>,
    by_name: BTreeMap<Name, Vec<u64>>,
    timers: BTreeSet<(Tick, u64)>,
    octets: usize,
    /// How many entries ask for an implicit digest.
    digests: usize,
    next: u64,
}

impl Pending {
    pub(crate) fn len(&self) -> usize {
        self.entries.len()
    }

    pub(crate) fn octets(&self) -> usize {
        self.octets
    }

    /// Takes an Interest that was checked.
    pub(crate) fn insert(&mut self, wire: Vec<u8>, how: &Request) -> RequestId {
        let id = self.next;
        self.next += 1;
        self.octets += wire.len();
        let mut entry = Entry {
            wire,
            next_hop_face: how.next_hop_face,
            interval: Duration::ZERO,
            tries: how.tries.max(1),
            sendings: 0,
            nonce: [0; 4],
            sent: Tick(0),
            deadline: Tick::NEVER,
        };
        let interest = entry.interest();
        let lifetime = Duration::from_millis(interest.lifetime_or_default());
        self.digests += usize::from(interest.implicit_digest().is_some());
        self.by_name.entry(interest.name.to_name()).or_default().push(id);
        entry.interval = how.interval.unwrap_or(lifetime);
        self.entries.insert(id, entry);
        RequestId(id)
    }

    /// Notes a sending with `nonce`: the Interest to send, and to which face.
    pub(crate) fn send(
        &mut self,
        now: Tick,
        id: RequestId,
        nonce: [u8; 4],
    ) -> Option<(Vec<u8>, Option<u64>)> {
        let entry = self.entries.get_mut(&id.0)?;
        entry.nonce = nonce;
        entry.sent = now;
        entry.sendings += 1;
        let mut wire = Vec::with_capacity(entry.wire.len() + 6);
        entry.interest().write_forwarded(&mut wire, nonce, None, Hint::Keep);
        let (face, deadline) = (entry.next_hop_face, now + entry.interval);
        self.arm(id, deadline);
        Some((wire, face))
    }

    pub(crate) fn arm(&mut self, id: RequestId, deadline: Tick) {
        let Some(entry) = self.entries.get_mut(&id.0) else { return };
        self.timers.remove(&(entry.deadline, id.0));
        entry.deadline = deadline;
        if deadline != Tick::NEVER {
            self.timers.insert((deadline, id.0));
        }
    }

    pub(crate) fn tries_left(&self, id: RequestId) -> u32 {
        self.entries.get(&id.0).map_or(0, |e| e.tries - e.sendings)
    }

    pub(crate) fn remove(&mut self, id: RequestId) -> Option<Entry> {
        let entry = self.entries.remove(&id.0)?;
        self.octets -= entry.wire.len();
        self.timers.remove(&(entry.deadline, id.0));
        let interest = entry.interest();
        self.digests -= usize::from(interest.implicit_digest().is_some());
        let name = interest.name.value();
        if let Some(ids) = self.by_name.get_mut(name) {
            ids.retain(|other| *other != id.0);
            if ids.is_empty() {
                self.by_name.remove(name);
            }
        }
        Some(entry)
    }

    /// The requests that `data` answers, oldest first within each length of name.
    pub(crate) fn answered_by(&self, data: &Data<'_>) -> Vec<RequestId> {
        let mut found = Vec::new();
        for len in 0..=data.name.len() {
            self.collect(data.name.prefix(len).value(), data, &mut found);
        }
        if self.digests > 0 {
            let mut full = data.name.to_name();
            full.append_implicit_digest(&implicit_digest(data.wire));
            self.collect(full.value(), data, &mut found);
        }
        found
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

    pub(crate) fn next_deadline(&self) -> Tick {
        self.timers.first().map_or(Tick::NEVER, |(at, _)| *at)
    }

    /// A request whose deadline is at or before `now`; it has none afterwards.
    pub(crate) fn pop_due(&mut self, now: Tick) -> Option<RequestId> {
        let (at, id) = *self.timers.first()?;
        if at > now {
            return None;
        }
        self.arm(RequestId(id), Tick::NEVER);
        Some(RequestId(id))
    }
}
