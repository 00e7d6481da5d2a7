//! Requests that the router of a destination increment its number.
//!
//! A request travels in advertisements, hop by hop, towards the destination. Each router forwards a
//! request for a number only once in a while, so it costs each router one advertisement, which is
//! shared with everything else that is due.

use super::select::Ask;
use super::{Destination, PeerId, Table};
use crate::codec::Request;
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::BTreeSet;
use std::sync::Arc;

/// A better way is asked for after this time only: it mostly comes by itself.
const PATIENCE_MS: u64 = 300;
/// First wait before a request is repeated; it doubles.
const REPEAT_MS: u64 = 600;
const REPEAT_MAX_MS: u64 = 30_000;
/// A request stays in advertisements for this time.
const OPEN_MS: u64 = 2_000;
/// The same number is passed on again after this time.
const PASS_AGAIN_MS: u64 = 500;
/// Repetitions for a destination of which nobody has a way.
const TRIES_MAX: u32 = 5;

#[derive(Debug, Clone)]
pub(super) struct Want {
    seq: u64,
    to: Option<PeerId>,
    /// When to say it (again).
    due: Tick,
    /// When it was said last.
    said: Option<Tick>,
    tries: u32,
    /// For somebody else: said once.
    once: bool,
}

/// What a request of a neighbour led to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// This router counted on.
    Raised,
    /// It goes on towards the destination.
    Passed,
    /// Nothing to do.
    Ignored,
}

impl Destination {
    /// Notes what choosing wants to ask for.
    pub(super) fn ask(
        &mut self,
        now: Tick,
        ask: Option<Ask>,
        name: &Arc<Name>,
        asking: &mut BTreeSet<Arc<Name>>,
    ) {
        let Some(ask) = ask else {
            if self.want.as_ref().is_some_and(|want| !want.once) {
                self.want = None;
                asking.remove(name);
            }
            return;
        };
        let urgent = ask.to.is_none();
        match &mut self.want {
            Some(want) if !want.once && want.seq >= ask.seq => {
                let more_urgent = urgent && want.to.is_some();
                want.to = ask.to;
                if more_urgent {
                    want.due = now;
                    want.tries = 0;
                }
            }
            _ => {
                let due = if urgent { now } else { now.plus_ms(PATIENCE_MS) };
                let (seq, to) = (ask.seq, ask.to);
                self.want = Some(Want { seq, to, due, said: None, tries: 0, once: false });
                asking.insert(Arc::clone(name));
            }
        }
    }
}

impl Table {
    /// A neighbour asks for a number of `request.destination`, this router or everybody.
    pub fn asked(&mut self, now: Tick, from: PeerId, request: &Request) -> Asked {
        if request.destination == *self.own {
            if request.seq > self.own_seq {
                self.raise(request.seq - 1);
                return Asked::Raised;
            }
            return Asked::Ignored;
        }
        if request.to.as_ref().is_some_and(|to| *to != *self.own) {
            return Asked::Ignored;
        }
        let Some((name, destination)) = self.destinations.get_key_value(&request.destination)
        else {
            return Asked::Ignored;
        };
        let name = Arc::clone(name);
        let route = destination.route.as_ref();
        if route.is_some_and(|route| route.seq.is_some_and(|seq| seq >= request.seq)) {
            return Asked::Ignored;
        }
        let best = route.and_then(|route| route.hops.first()).map(|hop| hop.peer);
        let to = best.filter(|peer| *peer != from);
        let Some(destination) = self.destinations.get_mut(&name) else { return Asked::Ignored };
        let passed = destination
            .passed
            .is_some_and(|(seq, at)| seq >= request.seq && now < at.plus_ms(PASS_AGAIN_MS));
        let own = destination.want.as_ref().is_some_and(|want| {
            want.seq >= request.seq && want.to.is_none() && want.said.is_some()
        });
        if passed || own {
            return Asked::Ignored;
        }
        destination.passed = Some((request.seq, now));
        let seq = request.seq.max(destination.want.as_ref().map_or(0, |want| want.seq));
        let once = destination.want.as_ref().is_none_or(|want| want.once);
        destination.want = Some(Want { seq, to, due: now, said: None, tries: 0, once });
        self.asking.insert(name);
        Asked::Passed
    }

    /// Whether a request is due.
    pub(super) fn asking_due(&self, now: Tick) -> bool {
        self.next_ask() <= now
    }

    /// When the next request is due.
    #[must_use]
    pub fn next_ask(&self) -> Tick {
        let wants =
            self.asking.iter().filter_map(|name| self.destinations.get(name)?.want.as_ref());
        wants.map(|want| want.due).min().unwrap_or(Tick::NEVER)
    }

    /// Requests for an advertisement at `now`: those due, which are counted as said, and those said of
    /// late.
    pub(super) fn requests(&mut self, now: Tick) -> Vec<Request> {
        let mut done = Vec::new();
        for name in &self.asking {
            let Some(destination) = self.destinations.get_mut(name) else {
                done.push(Arc::clone(name));
                continue;
            };
            let hopeless = destination.entries.is_empty();
            let Some(want) = &mut destination.want else {
                done.push(Arc::clone(name));
                continue;
            };
            if want.due <= now {
                if want.said.is_some() && (want.once || (hopeless && want.tries >= TRIES_MAX)) {
                    destination.want = None;
                    done.push(Arc::clone(name));
                    continue;
                }
                want.said = Some(now);
                let wait = if want.once { OPEN_MS } else { REPEAT_MS << want.tries.min(8) };
                want.due = now.plus_ms(wait.min(REPEAT_MAX_MS));
                want.tries += 1;
            }
        }
        for name in done {
            self.asking.remove(&name);
        }
        let open = |want: &Want| want.said.is_some_and(|said| now < said.plus_ms(OPEN_MS));
        self.requests_that(open)
    }

    /// Requests that were said and are not answered.
    pub(super) fn open_requests(&self) -> Vec<Request> {
        self.requests_that(|want| want.said.is_some())
    }

    fn requests_that(&self, keep: impl Fn(&Want) -> bool) -> Vec<Request> {
        let request = |name: &Arc<Name>| {
            let want = self.destinations.get(name)?.want.as_ref().filter(|want| keep(want))?;
            let to = want.to.and_then(|peer| self.peers.get(&peer)).map(|p| (*p.name).clone());
            Some(Request { destination: (**name).clone(), seq: want.seq, to })
        };
        self.asking.iter().filter_map(request).collect()
    }
}
