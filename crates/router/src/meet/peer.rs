//! A neighbour for which a face is made: its addresses, and which one is tried.

use super::lan::Way;
use onym_tables::Tick;
use std::time::Duration;

/// When no way led to it, all are tried again after this time.
const AGAIN_MS: u64 = 30_000;
/// A face that cannot be made is tried again after this time.
const FAILED_MS: u64 = 2_000;

/// A face that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Made {
    pub(crate) face: u64,
    /// It was not there before.
    pub(crate) is_own: bool,
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum State {
    Idle,
    Making {
        id: u64,
        uri: String,
    },
    Up {
        face: u64,
        uri: String,
        /// It was made here.
        is_own: bool,
        /// Since when nobody is heard by it.
        silent: Option<Tick>,
    },
}

#[derive(Debug)]
struct Known {
    way: Way,
    signed_ms: u64,
    /// It was tried, and nobody answered.
    was_tried: bool,
}

#[derive(Debug)]
pub(super) struct Peer {
    /// Best first.
    ways: Vec<Known>,
    pub(super) state: State,
    /// When to look at it.
    pub(super) next: Tick,
    /// It is gone then, unless it says something.
    pub(super) until: Tick,
    pub(super) cost: u64,
    pub(super) mtu: Option<u64>,
}

impl Peer {
    pub(super) fn new(next: Tick, cost: u64, mtu: Option<u64>) -> Self {
        Self { ways: Vec::new(), state: State::Idle, next, until: Tick::NEVER, cost, mtu }
    }

    /// It said that `way` leads to it; whether that was new.
    pub(super) fn hear(&mut self, now: Tick, way: Way, signed_ms: u64, patience_ms: u64) -> bool {
        let known = self.ways.iter_mut().find(|known| known.way.kind == way.kind);
        match known {
            // Without a time nothing tells a repetition; an operator chose not to know.
            Some(known) if signed_ms != 0 && signed_ms <= known.signed_ms => return false,
            Some(known) => {
                known.was_tried &= known.way == way;
                (known.way, known.signed_ms) = (way, signed_ms);
            }
            None => self.ways.push(Known { way, signed_ms, was_tried: false }),
        }
        self.ways.sort_by_key(|known| known.way.kind);
        self.until = now.plus_ms(patience_ms);
        true
    }

    /// These ways and no others lead to it. The face that does not any more.
    pub(super) fn resolve(&mut self, now: Tick, ways: Vec<Way>) -> Option<(u64, bool)> {
        let known = |way: Way| Known { way, signed_ms: 0, was_tried: false };
        let same = ways.len() == self.ways.len()
            && ways.iter().all(|way| self.ways.iter().any(|known| known.way == *way));
        if same {
            return None;
        }
        self.ways = ways.into_iter().map(known).collect();
        let uri = match &self.state {
            State::Idle => None,
            State::Making { uri, .. } | State::Up { uri, .. } => Some(uri),
        };
        let still = uri.is_some_and(|uri| self.ways.iter().any(|known| known.way.uri == *uri));
        if still {
            return None;
        }
        self.next = now;
        self.drop_face()
    }

    pub(super) fn face(&self) -> Option<u64> {
        match self.state {
            State::Up { face, .. } => Some(face),
            _ => None,
        }
    }

    /// When [`Peer::begin`] has something to do.
    pub(super) fn due(&self) -> Tick {
        if self.state == State::Idle && !self.ways.is_empty() { self.next } else { Tick::NEVER }
    }

    /// The face to make now, which is number `id`.
    pub(super) fn begin(&mut self, now: Tick, id: u64) -> Option<Way> {
        if self.due() > now {
            return None;
        }
        let Some(known) = self.ways.iter().find(|known| !known.was_tried) else {
            self.ways.iter_mut().for_each(|known| known.was_tried = false);
            self.next = now.plus_ms(AGAIN_MS);
            return None;
        };
        self.state = State::Making { id, uri: known.way.uri.clone() };
        Some(known.way.clone())
    }

    /// The face is there; its URI.
    pub(super) fn up(&mut self, now: Tick, made: Made) -> String {
        let Made { face, is_own } = made;
        let uri = match &self.state {
            State::Making { uri, .. } => uri.clone(),
            _ => String::new(),
        };
        self.state = State::Up { face, uri: uri.clone(), is_own, silent: Some(now) };
        uri
    }

    /// The face cannot be made.
    pub(super) fn failed(&mut self, now: Tick) {
        self.pass_over();
        (self.state, self.next) = (State::Idle, now.plus_ms(FAILED_MS));
    }

    /// The way in use is not the next one.
    fn pass_over(&mut self) {
        let (State::Making { uri, .. } | State::Up { uri, .. }) = &self.state else { return };
        if let Some(known) = self.ways.iter_mut().find(|known| known.way.uri == *uri) {
            known.was_tried = true;
        }
    }

    /// Somebody is heard by its face.
    pub(super) fn heard(&mut self) {
        if let State::Up { silent, .. } = &mut self.state {
            *silent = None;
        }
    }

    /// Nobody is heard by its face. Gives up a face by which nobody was for `dead`, when there are other
    /// ways.
    pub(super) fn silent(&mut self, now: Tick, dead: Duration) -> Option<(u64, bool)> {
        let others = self.ways.len() > 1;
        let State::Up { silent, .. } = &mut self.state else { return None };
        let since = *silent.get_or_insert(now);
        if !others || now < since + dead {
            return None;
        }
        self.pass_over();
        self.next = now;
        self.drop_face()
    }

    /// Has no face any more; the one it had, and whether it was made here.
    pub(super) fn drop_face(&mut self) -> Option<(u64, bool)> {
        match std::mem::replace(&mut self.state, State::Idle) {
            State::Up { face, is_own, .. } => Some((face, is_own)),
            _ => None,
        }
    }
}
