//! Links that are configured here: their faces, their costs, and neighbours held down.

use super::{Command, CommandError, Config, Link, Notice, Purpose, Router, Why};
use onym_tables::Tick;
use onym_wire::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Wait before a link that cannot be made is tried again, doubling.
const RETRY_MS: u64 = 1_000;
const RETRY_MAX_MS: u64 = 30_000;

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
    held: BTreeSet<Name>,
}

impl Links {
    pub(super) fn new(links: &[Link]) -> Self {
        let state =
            |link: &Link| State { link: link.clone(), face: None, due: Tick(0), failures: 0 };
        Self {
            links: links.iter().map(state).collect(),
            by_face: BTreeMap::new(),
            faces: BTreeSet::new(),
            held: BTreeSet::new(),
        }
    }

    /// Faces of configured links.
    pub(super) fn faces(&self) -> &BTreeSet<u64> {
        &self.faces
    }

    /// Cost of a face: that of its link, else 1.
    pub(super) fn cost(&self, face: u64) -> u64 {
        let link = self.by_face.get(&face).and_then(|index| self.links.get(*index));
        link.map_or(1, |state| state.link.cost.max(1))
    }

    pub(super) fn face_gone(&mut self, now: Tick, face: u64) {
        self.faces.remove(&face);
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
        for state in &mut self.links {
            (state.face, state.due) = (None, now);
        }
    }

    pub(super) fn next_due(&self) -> Tick {
        self.links.iter().map(|state| state.due).min().unwrap_or(Tick::NEVER)
    }

    pub(super) fn is_held(&self, router: &Name) -> bool {
        self.held.contains(router)
    }

    pub(super) fn held(&self) -> impl Iterator<Item = &Name> {
        self.held.iter()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Link, Option<u64>)> {
        self.links.iter().map(|state| (&state.link, state.face))
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

    /// Holds a neighbour down, until [`Router::release`]: what it says is not heard. The shell keeps
    /// this over restarts.
    pub fn hold(&mut self, now: Tick, router: &Name) {
        if self.links.held.len() >= Config::held_max() || !self.names.is_router(router.as_ref()) {
            return;
        }
        self.links.held.insert(router.clone());
        if let Some(peer) = self.neighbours.id(router) {
            self.lose(now, peer, Why::Held);
            self.control_routes();
        }
        self.progress(now);
    }

    /// Hears a neighbour again that was held down.
    pub fn release(&mut self, router: &Name) {
        self.links.held.remove(router);
    }
}

impl Config {
    /// Neighbours that can be held down at once.
    pub(super) const fn held_max() -> usize {
        256
    }
}
