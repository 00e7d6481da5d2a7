//! Streams of events: faces at `/localhost/nfd/faces/events/seq=N`, changes of the RIB that are not
//! routing's own at `/localhost/onym/rib/events/seq=N`.
//!
//! A subscriber's Interest waits in the PIT until an event exists; then the Data satisfies it.

use super::host::FaceView;
use super::reply::FRESHNESS_MS;
use onym_crypto::signer::write_digest_data;
use onym_tables::Tick;
use onym_wire::data::DataBuilder;
use onym_wire::interest::{Interest, LIFETIME_DEFAULT_MS};
use onym_wire::mgmt::{Block as _, FaceEventKind, FaceEventNotification};
use onym_wire::name::{Name, NameRef};
use std::collections::VecDeque;

/// Events kept for subscribers that are behind; older ones are forgotten.
const KEPT_COUNT: usize = 1024;

/// Interests remembered as waiting; the oldest is forgotten, its subscriber asks again.
const WAITING_MAX: usize = 256;

/// What happened to a face.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaceEvent {
    /// It was made.
    Created,
    /// It was closed.
    Destroyed,
    /// It can send again.
    Up,
    /// It cannot send for the time being.
    Down,
    /// The network said that nobody is there; the face goes on.
    Refused,
}

/// What a subscriber asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Requested {
    /// The next event, whichever it is.
    Next,
    /// The event with this number.
    Number(u64),
}

/// The name of a stream: four generic components.
type Stream = [&'static str; 4];

const FACES: Stream = ["localhost", "nfd", "faces", "events"];
const RIB: Stream = ["localhost", "onym", "rib", "events"];

fn is_under(name: NameRef<'_>, stream: &Stream) -> bool {
    let is_part = |(at, part): (usize, &&str)| {
        name.get(at).is_some_and(|c| c.is_generic() && c.value == part.as_bytes())
    };
    stream.iter().enumerate().all(is_part)
}

#[derive(Debug)]
struct Waiting {
    requested: Requested,
    until: Tick,
}

/// One stream.
#[derive(Debug)]
pub(super) struct Events {
    stream: Stream,
    /// The content of the last events; the number of the first is `first`.
    kept: VecDeque<Vec<u8>>,
    first: u64,
    newest_at: Option<Tick>,
    waiting: VecDeque<Waiting>,
}

impl Events {
    fn new(stream: Stream) -> Self {
        Self { stream, kept: VecDeque::new(), first: 0, newest_at: None, waiting: VecDeque::new() }
    }

    /// The stream of face events.
    pub(super) fn of_faces() -> Self {
        Self::new(FACES)
    }

    /// The stream of changes of the RIB.
    pub(super) fn of_rib() -> Self {
        Self::new(RIB)
    }

    /// What `interest` asks of this stream; `None` when it is about something else.
    pub(super) fn requested(&self, interest: &Interest<'_>) -> Option<Requested> {
        if !is_under(interest.name, &self.stream) {
            return None;
        }
        match (interest.name.len(), interest.name.get(self.stream.len())) {
            (4, _) if interest.can_be_prefix => Some(Requested::Next),
            (5, Some(component)) => component.as_sequence_num().map(Requested::Number),
            _ => None,
        }
    }

    /// The Data that answers now, or nothing and the Interest waits.
    pub(super) fn subscribe(
        &mut self,
        interest: &Interest<'_>,
        requested: Requested,
        now: Tick,
    ) -> Option<Vec<u8>> {
        let number = match requested {
            Requested::Number(number) => Some(number),
            // Without a number only an event that is still fresh counts as news.
            Requested::Next => {
                let is_fresh = self.newest_at.is_some_and(|at| now < at.plus_ms(FRESHNESS_MS));
                is_fresh.then(|| self.next_number().wrapping_sub(1))
            }
        };
        if let Some(wire) = number.and_then(|n| self.data(n)) {
            return Some(wire);
        }
        if self.waiting.len() >= WAITING_MAX {
            self.waiting.pop_front();
        }
        let until = now.plus_ms(interest.lifetime_ms.unwrap_or(LIFETIME_DEFAULT_MS));
        self.waiting.push_back(Waiting { requested, until });
        None
    }

    /// Adds an event; the Data, when someone waits for it.
    pub(super) fn publish(&mut self, content: Vec<u8>, now: Tick) -> Option<Vec<u8>> {
        let number = self.next_number();
        if self.kept.len() >= KEPT_COUNT {
            self.kept.pop_front();
            self.first += 1;
        }
        self.kept.push_back(content);
        self.newest_at = Some(now);
        self.waiting.retain(|w| w.until > now);
        let alive = self.waiting.len();
        let hears = |r: Requested| r == Requested::Next || r == Requested::Number(number);
        self.waiting.retain(|w| !hears(w.requested));
        let is_heard = self.waiting.len() < alive;
        if is_heard { self.data(number) } else { None }
    }

    fn next_number(&self) -> u64 {
        self.first + self.kept.len() as u64
    }

    fn data(&self, number: u64) -> Option<Vec<u8>> {
        let at = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let content = self.kept.get(at)?;
        let mut name = Name::new();
        for part in self.stream {
            name.append_generic(part);
        }
        name.append_sequence_num(number);
        let mut wire = Vec::new();
        let data =
            DataBuilder { freshness_ms: FRESHNESS_MS, ..DataBuilder::new(name.as_ref(), content) };
        write_digest_data(&data, &mut wire);
        Some(wire)
    }
}

/// The content of an event of a face.
pub(super) fn notification(event: FaceEvent, face: &FaceView) -> Vec<u8> {
    let told = FaceEventNotification {
        kind: match event {
            FaceEvent::Created => FaceEventKind::Created,
            FaceEvent::Destroyed => FaceEventKind::Destroyed,
            FaceEvent::Up => FaceEventKind::Up,
            FaceEvent::Down => FaceEventKind::Down,
            FaceEvent::Refused => FaceEventKind::Refused,
        },
        face_id: u64::from(face.id.0),
        uri: face.remote_uri.clone(),
        local_uri: face.local_uri.clone(),
        face_scope: face.scope,
        face_persistency: face.persistency,
        link_type: face.link_type,
        flags: face.flags,
    };
    told.to_wire()
}
