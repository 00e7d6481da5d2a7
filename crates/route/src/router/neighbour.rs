//! Neighbours: the faces on which they are heard, what they sent last, and what they acknowledged.

use super::measure::Measure;
use super::{Config, Why};
use crate::table::PeerId;
use onym_endpoint::{Packet, RequestId};
use onym_tables::Tick;
use onym_tables::doubt::Doubt;
use onym_wire::Name;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Faces of one neighbour, at most; a further one replaces the one heard longest ago.
const FACES_MAX: usize = 4;
/// Dead neighbours whose last words are remembered, so that nobody repeats them.
const PAST_MAX: usize = 1024;
/// Two hellos may be signed in the same millisecond: one for each kind.
const SAME_TIME_MS: u64 = 1000;

/// A face by which a neighbour is heard.
#[derive(Debug, Clone)]
pub(super) struct FaceHeard {
    pub(super) face: u64,
    pub(super) heard: Tick,
    /// The configured cost.
    base: u64,
    pub(super) measure: Measure,
    pub(super) doubt: Doubt,
}

impl FaceHeard {
    /// Configured and measured.
    pub(super) fn cost(&self) -> u64 {
        self.base + self.measure.added
    }
}

/// What somebody said last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub(super) struct Said {
    pub(super) boot: u64,
    pub(super) seq: u64,
}

/// The newest words of a router, by which a repetition is known.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Words {
    pub(super) said: Said,
    /// SignatureTime, ms; 0 when there was none.
    signed: u64,
    at: Tick,
}

impl Words {
    /// Whether a hello of `said`, signed at `signed`, is alive: it makes progress, or it was signed
    /// later. Remembers it then.
    pub(super) fn take(&mut self, now: Tick, said: Said, signed: Option<u64>) -> bool {
        if said < self.said {
            return false;
        }
        let progress = said > self.said;
        match signed {
            Some(ms) if progress || ms > self.signed => {
                *self = Self { said, signed: ms, at: now };
                true
            }
            Some(ms) => ms == self.signed && now < self.at.plus_ms(SAME_TIME_MS),
            // Without a time nothing tells a repetition; an operator chose not to know.
            None => {
                *self = Self { said, ..*self };
                true
            }
        }
    }
}

/// An advertisement that is being fetched.
#[derive(Debug)]
pub(super) struct Fetch {
    pub(super) said: Said,
    pub(super) id: RequestId,
    pub(super) content: Vec<u8>,
    pub(super) segment: u64,
    pub(super) last: Option<u64>,
}

/// One neighbour.
#[derive(Debug)]
pub(super) struct Neighbour {
    pub(super) id: PeerId,
    pub(super) name: Arc<Name>,
    pub(super) words: Words,
    /// Best first.
    pub(super) faces: Vec<FaceHeard>,
    /// The advertisement that the table has.
    pub(super) taken: Option<Said>,
    pub(super) fetch: Option<Fetch>,
    /// When to fetch again after a failure.
    pub(super) refetch_at: Tick,
    /// It tells what peers do not know.
    pub(super) ours: bool,
    /// The newest of our advertisements that it took.
    pub(super) acked: u64,
    /// Since when its hellos do not name this router.
    pub(super) deaf_since: Option<Tick>,
    /// Its ways are in the table.
    pub(super) usable: bool,
    pub(super) up_since: Tick,
    pub(super) rtt: Option<Duration>,
    /// Its clock less ours, when it signed last; the delay of the link is in it.
    pub(super) clock_ahead_ms: Option<i64>,
    /// Fetches of its advertisements that failed in a row.
    pub(super) fetches_failed: u32,
}

impl Neighbour {
    /// The face that packets for it are sent by.
    pub(super) fn face(&self) -> Option<u64> {
        self.faces.first().map(|f| f.face)
    }

    /// What is known about that face.
    pub(super) fn measure(&self) -> Option<&Measure> {
        self.faces.first().map(|f| &f.measure)
    }

    pub(super) fn cost(&self) -> u64 {
        self.faces.first().map_or(1, FaceHeard::cost)
    }

    /// It was heard by `face`. Says whether that changes its faces.
    pub(super) fn hear(&mut self, now: Tick, face: u64, cost: u64) -> bool {
        let before = (self.face(), self.cost(), self.faces.len());
        match self.faces.iter_mut().find(|f| f.face == face) {
            Some(found) => {
                (found.heard, found.base) = (now, cost);
                found.doubt.settle();
            }
            None => {
                if self.faces.len() >= FACES_MAX {
                    let oldest = self.faces.iter().map(|f| f.heard).min();
                    self.faces.retain(|f| Some(f.heard) != oldest);
                }
                let (measure, doubt) = (Measure::new(now), Doubt::default());
                self.faces.push(FaceHeard { face, heard: now, base: cost, measure, doubt });
            }
        }
        self.sort_faces();
        before != (self.face(), self.cost(), self.faces.len())
    }

    pub(super) fn sort_faces(&mut self) {
        self.faces.sort_by_key(|f| (f.cost(), f.face));
    }
}

/// All neighbours.
#[derive(Debug)]
pub(super) struct Neighbours {
    max: usize,
    next: u32,
    by_name: BTreeMap<Arc<Name>, PeerId>,
    by_id: BTreeMap<PeerId, Neighbour>,
    past: BTreeMap<Arc<Name>, Words>,
}

impl Neighbours {
    pub(super) fn new(max: usize) -> Self {
        Self {
            max,
            next: 1,
            by_name: BTreeMap::new(),
            by_id: BTreeMap::new(),
            past: BTreeMap::new(),
        }
    }

    pub(super) fn get(&self, id: PeerId) -> Option<&Neighbour> {
        self.by_id.get(&id)
    }

    pub(super) fn get_mut(&mut self, id: PeerId) -> Option<&mut Neighbour> {
        self.by_id.get_mut(&id)
    }

    pub(super) fn id(&self, name: &Name) -> Option<PeerId> {
        self.by_name.get(name).copied()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = &Neighbour> {
        self.by_id.values()
    }

    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Neighbour> {
        self.by_id.values_mut()
    }

    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// What `name` said last, alive or dead.
    pub(super) fn words(&self, name: &Name) -> Words {
        match self.id(name).and_then(|id| self.get(id)) {
            Some(neighbour) => neighbour.words,
            None => self.past.get(name).copied().unwrap_or_default(),
        }
    }

    /// A new neighbour; `None` when there are too many.
    pub(super) fn add(&mut self, now: Tick, name: &Name) -> Option<PeerId> {
        if self.by_id.len() >= self.max {
            return None;
        }
        let id = PeerId(self.next);
        self.next += 1;
        let name = Arc::new(name.clone());
        let words = self.past.remove(&name).unwrap_or_default();
        let neighbour = Neighbour {
            id,
            name: Arc::clone(&name),
            words,
            faces: Vec::new(),
            taken: None,
            fetch: None,
            refetch_at: Tick::NEVER,
            ours: false,
            acked: 0,
            deaf_since: None,
            usable: false,
            up_since: now,
            rtt: None,
            clock_ahead_ms: None,
            fetches_failed: 0,
        };
        self.by_name.insert(name, id);
        self.by_id.insert(id, neighbour);
        Some(id)
    }

    pub(super) fn remove(&mut self, id: PeerId) -> Option<Neighbour> {
        let neighbour = self.by_id.remove(&id)?;
        self.by_name.remove(&neighbour.name);
        if self.past.len() >= PAST_MAX {
            self.past.pop_first();
        }
        self.past.insert(Arc::clone(&neighbour.name), neighbour.words);
        Some(neighbour)
    }

    /// The face is gone; which neighbours had it.
    pub(super) fn drop_face(&mut self, face: u64) -> Vec<PeerId> {
        let mut lost = Vec::new();
        for (id, neighbour) in &mut self.by_id {
            let before = neighbour.faces.len();
            neighbour.faces.retain(|f| f.face != face);
            if neighbour.faces.len() != before {
                lost.push(*id);
            }
        }
        lost
    }

    /// Faces that were silent for the dead interval go; whose they were.
    pub(super) fn silent(&mut self, now: Tick, config: &Config) -> Vec<PeerId> {
        let mut lost = Vec::new();
        for (id, neighbour) in &mut self.by_id {
            let before = neighbour.faces.len();
            neighbour.faces.retain(|f| now < f.heard + config.dead_interval);
            if neighbour.faces.len() != before {
                lost.push(*id);
            }
        }
        lost
    }

    pub(super) fn next_due(&self, config: &Config) -> Tick {
        let faces = self.by_id.values().flat_map(|n| n.faces.iter());
        let dead = faces.map(|f| f.heard + config.dead_interval);
        let again = self.by_id.values().map(|n| n.refetch_at);
        let ours = self.by_id.values().filter(|n| n.ours);
        let probes = ours.flat_map(|n| n.faces.iter().map(|f| f.measure.next));
        let doubts = self.by_id.values().flat_map(|n| n.faces.iter().map(|f| f.doubt.due()));
        dead.chain(again).chain(probes).chain(doubts).min().unwrap_or(Tick::NEVER)
    }

    pub(super) fn faces(&self) -> Vec<u64> {
        let mut faces: Vec<u64> =
            self.by_id.values().flat_map(|n| n.faces.iter().map(|f| f.face)).collect();
        faces.sort_unstable();
        faces.dedup();
        faces
    }

    /// The neighbour that fetches by `id`.
    pub(super) fn fetching(&self, id: RequestId) -> Option<PeerId> {
        let found = |n: &&Neighbour| n.fetch.as_ref().is_some_and(|f| f.id == id);
        self.by_id.values().find(found).map(|n| n.id)
    }
}

/// A segment of an advertisement, checked or not yet.
#[derive(Debug)]
pub(super) struct Segment {
    pub(super) peer: PeerId,
    pub(super) id: RequestId,
    pub(super) packet: Packet,
}

impl super::Router {
    /// Neighbours whose last face fell silent are dead.
    pub(super) fn bury(&mut self, now: Tick) {
        let lost = self.neighbours.silent(now, &self.config);
        if lost.is_empty() {
            return;
        }
        for peer in lost {
            self.neighbour_faces_changed(now, peer, Why::Silent);
        }
        self.control_routes();
    }

    /// The faces of a neighbour are others; without any it is gone, for the reason `why`.
    pub(super) fn neighbour_faces_changed(&mut self, now: Tick, peer: PeerId, why: Why) {
        let Some(neighbour) = self.neighbours.get(peer) else { return };
        if neighbour.faces.is_empty() {
            return self.lose(now, peer, why);
        }
        let (name, cost, usable) =
            (Arc::clone(&neighbour.name), neighbour.cost(), neighbour.usable);
        if usable {
            self.table.set_peer(peer, &name, cost);
        }
        self.settle(now);
        // Same ways, perhaps, by another face.
        let all: Vec<Arc<Name>> = self.table.routes().map(|(name, _)| Arc::clone(name)).collect();
        for name in &all {
            self.install(name);
            self.follow(now, name);
        }
    }

    /// A neighbour is gone.
    pub(super) fn lose(&mut self, now: Tick, peer: PeerId, why: Why) {
        let Some(neighbour) = self.neighbours.remove(peer) else { return };
        if let Some(fetch) = &neighbour.fetch {
            self.endpoint.cancel(fetch.id);
        }
        let link = Arc::new(crate::names::link_prefix(neighbour.name.as_ref().as_ref()));
        self.fib.set(&link, Vec::new());
        self.table.drop_peer(peer);
        // Ways to this router by that link are gone for others, too: they need a new number.
        self.table.raise_once();
        self.settle(now);
        self.notice(super::Notice::NeighbourDown((*neighbour.name).clone(), why));
    }
}
