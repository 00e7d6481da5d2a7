//! Links that are configured here: their faces, their costs, and neighbours held down.

use super::{Command, CommandError, Config, Link, Notice, Purpose, Router, Why};
use crate::codec::Hello;
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Wait before a link that cannot be made is tried again, doubling.
const RETRY_MS: u64 = 1_000;
const RETRY_MAX_MS: u64 = 30_000;
/// Neighbours held down, at most; a further one is not.
const HELD_MAX: usize = 256;
/// Links whose faces the shell made, at most; a further one is not taken.
const MET_MAX: usize = 512;
/// Faces of one of them that are known, at most; the lowest goes.
const HELD_FACES_MAX: usize = 4;

#[derive(Debug)]
struct State {
    link: Link,
    face: Option<u64>,
    /// When to make its face; never while it has one or is being made.
    due: Tick,
    failures: u32,
}

#[derive(Debug)]
pub(super) struct Links {
    links: Vec<State>,
    by_face: BTreeMap<u64, usize>,
    faces: BTreeSet<u64>,
    /// Links whose faces the shell made.
    met: BTreeMap<u64, Link>,
    /// Neighbours held down, and the faces by which they were heard since.
    held: BTreeMap<Name, BTreeSet<u64>>,
}

impl Links {
    pub(super) fn new(config: &Config) -> Self {
        let state =
            |link: &Link| State { link: link.clone(), face: None, due: Tick(0), failures: 0 };
        Self {
            links: config.links.iter().map(state).collect(),
            by_face: BTreeMap::new(),
            faces: BTreeSet::new(),
            met: BTreeMap::new(),
            held: config.held.iter().take(HELD_MAX).map(|n| (n.clone(), BTreeSet::new())).collect(),
        }
    }

    /// Faces of configured links.
    pub(super) fn faces(&self) -> &BTreeSet<u64> {
        &self.faces
    }

    /// Faces of configured links by which this router speaks: not those to a neighbour held down, unless
    /// somebody else `is_heard` there.
    pub(super) fn open_faces(&self, is_heard: impl Fn(u64) -> bool) -> BTreeSet<u64> {
        self.faces.iter().copied().filter(|face| is_heard(*face) || !self.is_shut(*face)).collect()
    }

    /// Whether a neighbour held down was heard by `face`.
    pub(super) fn is_shut(&self, face: u64) -> bool {
        self.held.values().any(|faces| faces.contains(&face))
    }

    /// Cost of a face: that of its link, else 1.
    pub(super) fn cost(&self, face: u64) -> u64 {
        let configured = self.by_face.get(&face).and_then(|index| self.links.get(*index));
        let link = configured.map(|state| &state.link).or_else(|| self.met.get(&face));
        link.map_or(1, |link| link.cost.max(1))
    }

    pub(super) fn face_gone(&mut self, now: Tick, face: u64) {
        self.faces.remove(&face);
        self.met.remove(&face);
        for faces in self.held.values_mut() {
            faces.remove(&face);
        }
        if let Some(index) = self.by_face.remove(&face)
            && let Some(state) = self.links.get_mut(index)
        {
            state.face = None;
            state.due = now.plus_ms(RETRY_MS);
        }
    }

    pub(super) fn forget_all(&mut self, now: Tick) {
        self.faces.clear();
        self.by_face.clear();
        self.met.clear();
        self.held.values_mut().for_each(BTreeSet::clear);
        for state in &mut self.links {
            (state.face, state.due) = (None, now);
        }
    }

    pub(super) fn next_due(&self) -> Tick {
        self.links.iter().map(|state| state.due).min().unwrap_or(Tick::NEVER)
    }

    pub(super) fn is_held(&self, router: &Name) -> bool {
        self.held.contains_key(router)
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Name> {
        self.held.keys()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Link, Option<u64>)> {
        self.links.iter().map(|state| (&state.link, state.face))
    }

    /// Links whose faces the shell made.
    pub(super) fn met(&self) -> impl Iterator<Item = (&Link, Option<u64>)> {
        self.met.iter().map(|(face, link)| (link, Some(*face)))
    }
}

impl Router {
    /// Makes the faces of links that are due.
    pub(super) fn open_links(&mut self, now: Tick) {
        for index in 0..self.links.links.len() {
            let Some(state) = self.links.links.get_mut(index) else { continue };
            if state.due > now {
                continue;
            }
            state.due = Tick::NEVER;
            let (uri, mtu) = (state.link.uri.clone(), state.link.mtu);
            self.command(Command::CreateFace { uri, mtu }, Purpose::Link(index));
        }
    }

    /// Links that wait are tried at once: a face or an interface came up.
    pub fn retry_links(&mut self, now: Tick) {
        for state in self.links.links.iter_mut().filter(|state| state.due != Tick::NEVER) {
            (state.due, state.failures) = (now, 0);
        }
        self.open_links(now);
        self.progress(now);
    }

    /// The shell made `face` for a link that the configuration does not name: to a neighbour that was
    /// met, or to one whose address changes. `false` when there are too many.
    pub fn link_up(&mut self, now: Tick, face: u64, link: Link) -> bool {
        if self.links.met.len() >= MET_MAX {
            return false;
        }
        self.links.met.insert(face, link);
        self.links.faces.insert(face);
        self.control_routes();
        self.publisher.greet(now);
        self.progress(now);
        true
    }

    /// That link is none any more: nothing is said by `face` unless somebody is heard there.
    pub fn link_down(&mut self, now: Tick, face: u64) {
        if self.links.met.remove(&face).is_some() && !self.links.by_face.contains_key(&face) {
            self.links.faces.remove(&face);
            self.control_routes();
            self.progress(now);
        }
    }

    /// Faces of the neighbours that hear this router and are heard, and their costs.
    pub fn links_in_use(&self) -> impl Iterator<Item = (u64, u64)> {
        let used = self.neighbours.iter().filter(|n| n.usable);
        used.filter_map(|n| Some((n.face()?, n.cost())))
    }

    /// Whether this router speaks or is heard by `face`: it has a link there.
    #[must_use]
    pub fn has_face(&self, face: u64) -> bool {
        self.links.faces.contains(&face) || self.heard_by().any(|(_, by)| by == face)
    }

    /// Neighbours that are heard, by each face.
    pub fn heard_by(&self) -> impl Iterator<Item = (&Name, u64)> {
        self.neighbours.iter().flat_map(|n| n.faces.iter().map(|f| (&*n.name, f.face)))
    }

    pub(super) fn link_answered(
        &mut self,
        now: Tick,
        index: usize,
        answer: Result<Option<u64>, CommandError>,
    ) {
        let Some(state) = self.links.links.get_mut(index) else { return };
        match answer {
            Ok(Some(face)) => {
                (state.face, state.failures) = (Some(face), 0);
                self.links.by_face.insert(face, index);
                self.links.faces.insert(face);
                self.control_routes();
                self.publisher.greet(now);
            }
            Ok(None) => self.link_failed(now, index, CommandError::Silent),
            Err(error) => self.link_failed(now, index, error),
        }
    }

    fn link_failed(&mut self, now: Tick, index: usize, error: CommandError) {
        let Some(state) = self.links.links.get_mut(index) else { return };
        let wait = (RETRY_MS << state.failures.min(8)).min(RETRY_MAX_MS);
        state.failures += 1;
        state.due = now.plus_ms(wait);
        let uri = state.link.uri.clone();
        self.notice(Notice::LinkFailed(uri, error));
    }

    /// Holds a neighbour down, until [`Router::release`]: what it says is not heard, and it is told
    /// goodbye. The shell keeps this over restarts.
    pub fn hold(&mut self, now: Tick, router: &Name) {
        let links = &mut self.links;
        let known = links.held.contains_key(router) || !self.names.is_router(router.as_ref());
        if known || links.held.len() >= HELD_MAX {
            return;
        }
        links.held.insert(router.clone(), BTreeSet::new());
        if let Some(peer) = self.neighbours.id(router) {
            let faces = self.neighbours.get(peer).map(|n| n.faces.clone()).unwrap_or_default();
            faces.iter().for_each(|face| self.shut(now, router, face.face));
            self.lose(now, peer, Why::Held);
            self.control_routes();
        }
        self.progress(now);
    }

    /// Hears a neighbour again that was held down.
    pub fn release(&mut self, now: Tick, router: &Name) {
        if self.links.held.remove(router).is_some() {
            self.control_routes();
            self.publisher.greet(now);
            self.progress(now);
        }
    }

    /// Neighbours that are held down.
    pub fn held(&self) -> impl Iterator<Item = &Name> {
        self.links.held.keys()
    }

    /// A neighbour held down was heard by `face`: it shall not hear this router there either.
    pub(super) fn keep_held(&mut self, now: Tick, hello: &Hello, face: u64) {
        let known = self.links.held.get(&hello.router).is_some_and(|faces| faces.contains(&face));
        let hears_us = hello.heard.iter().any(|heard| heard.router == *self.own);
        if !known || hears_us {
            self.shut(now, &hello.router, face);
            self.control_routes();
        }
    }

    /// Nothing more is said by `face`, to which goodbye is said, unless somebody else is heard there.
    fn shut(&mut self, now: Tick, router: &Name, face: u64) {
        let Some(faces) = self.links.held.get_mut(router) else { return };
        if faces.len() >= HELD_FACES_MAX && !faces.contains(&face) {
            faces.pop_first();
        }
        faces.insert(face);
        let other = |n: &super::neighbour::Neighbour| *n.name != *router;
        let others = self.neighbours.iter().filter(|n| other(n));
        let is_shared = others.flat_map(|n| n.faces.iter()).any(|f| f.face == face);
        if !is_shared {
            self.send_goodbye(now, face);
        }
    }
}
