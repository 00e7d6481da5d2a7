//! The stream of face events: `/localhost/nfd/faces/events/seq=N`.
//!
//! A subscriber's Interest waits in the PIT until an event exists; then the Data satisfies it.

use super::host::FaceView;
use super::reply::FRESHNESS_MS;
use onym_crypto::signer::write_digest_data;
use onym_tables::Tick;
use onym_wire::data::DataBuilder;
use onym_wire::interest::{Interest, LIFETIME_DEFAULT_MS};
use onym_wire::mgmt::{Block as _, FaceEventKind, FaceEventNotification};
use onym_wire::name::Name;
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

/// What `interest` asks of the stream; `None` when it is about something else.
pub(super) fn requested(interest: &Interest<'_>) -> Option<Requested> {
    let mut parts = interest.name.components().map(|c| if c.is_generic() { c.value } else { b"" });
    let is_stream = parts.next() == Some(b"localhost".as_slice())
        && parts.next() == Some(b"nfd".as_slice())
        && parts.next() == Some(b"faces".as_slice())
        && parts.next() == Some(b"events".as_slice());
    if !is_stream {
        return None;
    }
    match (interest.name.len(), interest.name.get(4)) {
        (4, _) if interest.can_be_prefix => Some(Requested::Next),
        (5, Some(component)) => component.as_sequence_num().map(Requested::Number),
        _ => None,
    }
}

#[derive(Debug)]
struct Waiting {
    requested: Requested,
    until: Tick,
}

/// The stream.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// The content of the last events; the number of the first is `first`.
    kept: VecDeque<Vec<u8>>,
    first: u64,
    newest_at: Option<Tick>,
    waiting: VecDeque<Waiting>,
}

impl Events {
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
    pub(super) fn publish(
        &mut self,
        event: FaceEvent,
        face: &FaceView,
        now: Tick,
    ) -> Option<Vec<u8>> {
        let number = self.next_number();
        if self.kept.len() >= KEPT_COUNT {
            self.kept.pop_front();
            self.first += 1;
        }
        self.kept.push_back(notification(event, face).to_wire());
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
        name.append_generic("localhost").append_generic("nfd");
        name.append_generic("faces").append_generic("events").append_sequence_num(number);
        let mut wire = Vec::new();
        let data =
            DataBuilder { freshness_ms: FRESHNESS_MS, ..DataBuilder::new(name.as_ref(), content) };
        write_digest_data(&data, &mut wire);
        Some(wire)
    }
}

fn notification(event: FaceEvent, face: &FaceView) -> FaceEventNotification {
    FaceEventNotification {
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
    }
}
