//! The life cycle of faces: created, connected, lost, reconnected, closed.

use super::{Io, Worker};
use crate::uri;
use onym_engine::{LocalFace, Slot};
use onym_face::Face;
use onym_link::LinkConfig;
use onym_services::effect::Effect;
use onym_services::events::FaceEvent;
use onym_services::{Event, FarEnd, Port, Side};
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::Scope;
use serde_json::{Value, json};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Most faces of a service; a connection beyond is refused.
pub(crate) const FACES_MAX: u32 = 4096;
/// First time until a lost connection is made again, doubled up to [`RETRY_MAX`].
const RETRY_MIN: Duration = Duration::from_millis(100);
/// Longest time between attempts.
const RETRY_MAX: Duration = Duration::from_secs(2);
/// How long a connection may take to be made.
const CONNECT_MAX: Duration = Duration::from_secs(5);
/// Datagram peers that are silent for so long lose their face.
const SILENT_MAX: Duration = Duration::from_secs(600);

/// How a face came to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Made {
    /// Accepted by a listener.
    Accepted,
    /// By the control interface: it is connected again when it is lost.
    Created,
    /// For a session: it ends when it is lost.
    Session,
}

/// What a listener says of its connections.
#[derive(Debug, Clone)]
pub(crate) struct Arrival {
    pub(super) label: String,
    pub(super) side: Side,
    pub(super) far_end: FarEnd,
}

/// What a worker keeps with each of its faces.
#[derive(Debug)]
pub(crate) struct FaceState {
    pub(super) made: Made,
    /// The far end, as it is connected to; of accepted faces as they told it.
    pub(super) uri: String,
    local_uri: String,
    /// Frames for it while it was down.
    pub(super) dropped_down: u64,
    retry: Duration,
    /// When it is connected again, or the attempt is given up.
    retry_at: Tick,
    pub(super) last_error: Option<String>,
    reconnects: u64,
    up_since_ms: Option<u64>,
}

impl FaceState {
    fn new(made: Made, uri: String) -> Self {
        Self {
            made,
            uri,
            local_uri: String::new(),
            dropped_down: 0,
            retry: RETRY_MIN,
            retry_at: Tick::NEVER,
            last_error: None,
            reconnects: 0,
            up_since_ms: None,
        }
    }
}

/// When a face wants to be looked at.
fn due(face: &LocalFace<FaceState>) -> Tick {
    if face.io.is_none() || face.is_connecting() {
        return face.state.retry_at;
    }
    let falls_silent = face.state.made == Made::Accepted && !face.is_stream;
    if falls_silent { face.heard + SILENT_MAX } else { Tick::NEVER }
}

fn state_of(face: &LocalFace<FaceState>) -> &'static str {
    match (&face.io, face.is_connecting()) {
        (None, _) => "down",
        (Some(_), true) => "connecting",
        (Some(_), false) => "up",
    }
}

impl Worker {
    fn next_id(&self) -> FaceId {
        FaceId(self.shared.next_face.fetch_add(1, Ordering::Relaxed))
    }

    /// Whether there may be one more face; counts it.
    pub(crate) fn reserve_face(&self) -> bool {
        let before = self.shared.faces.fetch_add(1, Ordering::Relaxed);
        if before >= FACES_MAX {
            self.release_face();
        }
        before < FACES_MAX
    }

    pub(super) fn release_face(&self) {
        self.shared.faces.fetch_sub(1, Ordering::Relaxed);
    }

    /// Takes an accepted face over.
    pub(super) fn add_accepted(
        &mut self,
        io: &mut Io,
        transport: Box<dyn Face>,
        from: &Arrival,
    ) -> FaceId {
        let state = FaceState::new(Made::Accepted, transport.remote_uri().to_string());
        let mut port = self.port("", from.side, from.far_end);
        let id = port.id;
        port.label = format!("{}.{}", from.label, id.0);
        port.local = transport.scope() == Scope::Local;
        let slot = self.add(io, state, port);
        self.attach(io, slot, transport);
        id
    }

    /// A face with the next number.
    pub(crate) fn port(&self, label: &str, side: Side, far_end: FarEnd) -> Port {
        let mut port = Port::new(self.next_id(), label, side);
        port.far_end = far_end;
        port
    }

    /// Makes a face to `uri`; it is connecting, up, or down until the next attempt.
    pub(crate) fn create(&mut self, io: &mut Io, made: Made, uri: &str, port: Port) -> FaceId {
        let id = port.id;
        let state = FaceState::new(made, uri.to_owned());
        let slot = self.add(io, state, port);
        self.connect_again(io, slot);
        id
    }

    fn add(&mut self, io: &mut Io, state: FaceState, mut port: Port) -> Slot {
        let slot = io.add(port.id, state);
        port.up = false;
        self.with(io, |function, now, out| function.face_added(now, port, out));
        slot
    }

    /// Gives a face its transport.
    fn attach(&mut self, io: &mut Io, slot: Slot, transport: Box<dyn Face>) {
        let octets = self.function.settings().queue_bytes_max;
        let now = io.now;
        let is_reliable = transport.transport().is_reliable();
        let link = match is_reliable {
            true => LinkConfig::stream(),
            false => LinkConfig::datagram(transport.mtu()),
        };
        let id = io.faces.peek(slot).map(|face| face.id);
        let port = id.and_then(|id| self.function.ports().get(id));
        let link = match port.map_or(FarEnd::Any, |port| port.far_end) {
            FarEnd::Service => link.between_services(),
            FarEnd::Any => link,
        };
        let local_uri = transport.local_uri().to_string();
        let opened = io.open(slot, transport, link, octets);
        let Some(face) = io.faces.get(slot) else { return };
        let is_connecting = face.is_connecting();
        face.heard = now;
        face.state.local_uri = local_uri;
        face.state.retry_at = if is_connecting { now + CONNECT_MAX } else { Tick::NEVER };
        self.faces_due = Tick(0);
        match opened {
            Err(error) => self.failed(io, slot, &format!("watching its descriptor: {error}")),
            Ok(()) if is_connecting => {}
            Ok(()) => self.face_is_up(io, slot),
        }
    }

    /// Tries to make the connection of a face.
    fn connect_again(&mut self, io: &mut Io, slot: Slot) {
        let Some(face) = io.faces.peek(slot) else { return };
        let id = face.id;
        match uri::connect(&face.state.uri, &self.shared.folders) {
            Ok(transport) => {
                let is_local = transport.scope() == Scope::Local;
                self.function.change_face(id, |port| port.local = is_local);
                self.attach(io, slot, transport);
            }
            Err(error) => self.failed(io, slot, &error),
        }
    }

    /// A face is connected.
    pub(super) fn face_is_up(&mut self, io: &mut Io, slot: Slot) {
        let unix_ms = self.unix_ms;
        let Some(face) = io.faces.get(slot) else { return };
        let state = &mut face.state;
        (state.retry_at, state.retry) = (Tick::NEVER, RETRY_MIN);
        state.up_since_ms = Some(unix_ms);
        if let Some(transport) = &face.io {
            // The address is known only now.
            state.local_uri = transport.local_uri().to_string();
        }
        let id = face.id;
        self.tell_of(io, slot, Event::FaceUp, "");
        self.with(io, |function, now, out| function.face_up(now, id, out));
    }

    fn tell_of(&self, io: &Io, slot: Slot, event: fn(FaceEvent) -> Event, reason: &str) {
        let Some(face) = io.faces.peek(slot) else { return };
        let Some(port) = self.function.ports().get(face.id) else { return };
        self.tell(&event(FaceEvent::new(port, &face.state.uri, reason)));
    }

    /// A face has no transport any more: a created one is connected again, others are gone.
    pub(super) fn failed(&mut self, io: &mut Io, slot: Slot, reason: &str) {
        let now = io.now;
        let Some(face) = io.faces.get(slot) else { return };
        let (id, state) = (face.id, &mut face.state);
        let was_up = state.up_since_ms.take().is_some();
        state.last_error = Some(reason.to_owned());
        if state.made != Made::Created {
            if was_up {
                self.tell_of(io, slot, Event::FaceDown, reason);
            }
            self.remove(io, id);
            return;
        }
        // What was queued belongs to the connection that is gone.
        let lost = face.queue.len();
        face.queue.pop(lost);
        state.dropped_down += lost as u64;
        state.retry_at = now + state.retry;
        state.retry = (state.retry * 2).min(RETRY_MAX);
        state.reconnects += u64::from(was_up);
        self.faces_due = Tick(0);
        if was_up {
            self.tell_of(io, slot, Event::FaceDown, reason);
        }
        self.function.face_down(id);
    }

    /// Makes connections that are due, gives up those that take too long, and closes datagram faces
    /// whose peers are silent.
    pub(super) fn face_timers(&mut self, io: &mut Io) {
        let now = io.now;
        let due_now: Vec<Slot> =
            io.faces.iter_mut().filter(|(_, face)| due(face) <= now).map(|(at, _)| at).collect();
        for slot in due_now {
            match io.faces.peek(slot).map(state_of) {
                Some("down") => self.connect_again(io, slot),
                Some("connecting") => {
                    io.end(slot, "it was not connected in time".into());
                }
                Some(_) => io.end(slot, "its peer is silent".into()),
                None => {}
            }
        }
        self.faces_due = io.faces.iter().map(due).min().unwrap_or(Tick::NEVER);
    }

    /// Takes a face out for good: frames that were not sent, `None` when there is no such face.
    pub(super) fn remove(&mut self, io: &mut Io, id: FaceId) -> Option<usize> {
        let (slot, _) = io.faces.by_id(id)?;
        let face = io.close(slot)?;
        self.octets_gone.0 += face.traffic.in_bytes;
        self.octets_gone.1 += face.traffic.out_bytes;
        self.release_face();
        for entry in &mut self.listeners {
            entry.forget(id);
        }
        self.with(io, |function, now, out| function.face_removed(now, id, out));
        Some(face.queue.len())
    }

    /// Does what the function asked for.
    pub(super) fn perform(&mut self, io: &mut Io, effect: Effect) {
        match effect {
            Effect::Connect { label, uri, far_end } => {
                if self.reserve_face() {
                    let port = self.port(&label, Side::Producer, far_end);
                    self.create(io, Made::Session, &uri, port);
                }
            }
            Effect::Close(id) => {
                self.remove(io, id);
            }
            Effect::AddRules(rules) => {
                // Full: the reports of a verifier come again with the next period.
                let _ = self.shared.posts.try_send(rules);
            }
        }
    }

    /// A face as the control interface shows it.
    pub(super) fn face_json(&self, io: &Io, id: FaceId) -> Option<Value> {
        let face = io.faces.peek_id(id)?;
        let (port, made) = (self.function.ports().get(id)?, &face.state);
        let (link, traffic) = (face.link.counters(), face.traffic);
        let counts = |c: onym_services::ports::Counts, bytes: u64, frames: u64| {
            json!({
                "interests": c.interests, "data": c.data, "nacks": c.nacks, "bytes": bytes,
                "frames": frames,
            })
        };
        let state = state_of(face);
        Some(json!({
            "id": id.0, "label": port.label, "uri": made.uri, "local_uri": made.local_uri,
            "side": port.side, "peer": port.far_end, "state": state, "created": made.made == Made::Created,
            "weight": port.weight, "rank": port.rank, "draining": port.draining,
            "session": session_of(&port.label), "queue_bytes": face.queue.bytes(),
            "up_since_ms": made.up_since_ms, "reconnects": made.reconnects,
            "last_error": if state == "up" { None } else { made.last_error.clone() },
            "in": counts(port.received, traffic.in_bytes, traffic.in_frames),
            "out": counts(port.sent, traffic.out_bytes, link.frames_out),
            "dropped": {
                "queue_full": link.queue_full, "over_mtu": link.over_mtu,
                "down": made.dropped_down, "frames": io.counters.frames_dropped,
            },
        }))
    }

    /// Octets received and sent, all faces that there are and were.
    pub(super) fn octets(&self, io: &Io) -> (u64, u64) {
        let all = io.faces.iter().map(|face| face.traffic);
        all.fold(self.octets_gone, |sum, t| (sum.0 + t.in_bytes, sum.1 + t.out_bytes))
    }

    /// A created face that is not up, and why.
    pub(super) fn face_not_ready(&self, io: &Io) -> Option<String> {
        let is_down = |face: &&LocalFace<FaceState>| {
            face.state.made == Made::Created && state_of(face) != "up"
        };
        let face = io.faces.iter().find(is_down)?;
        let label = self.function.ports().label(face.id);
        let why = face.state.last_error.as_deref().unwrap_or("not answered yet");
        Some(format!("face {label} to {} is {}: {why}", face.state.uri, state_of(face)))
    }
}

/// The session that a face of a dispatcher belongs to, by its label.
fn session_of(label: &str) -> Option<u32> {
    label.strip_prefix('s')?.split_once('.')?.0.parse().ok()
}
