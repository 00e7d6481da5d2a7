//! The life of faces: made, connected, lost, connected again, closed.

use super::Worker;
use crate::uri;
use onym_face::Face;
use onym_frame::TxQueue;
use onym_link::{Link, LinkConfig};
use onym_services::element::Wish;
use onym_services::{Event, Port, Side};
use onym_sys::epoll::Interest;
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

/// One face.
#[derive(Debug)]
pub(crate) struct Slot {
    pub(crate) id: FaceId,
    pub(crate) made: Made,
    /// The far end, as it is connected to; of accepted faces as they told it.
    pub(crate) uri: String,
    local_uri: String,
    pub(super) io: Option<Box<dyn Face>>,
    pub(super) link: Link,
    pub(super) queue: TxQueue,
    pub(super) epoll_token: u64,
    pub(super) stream: bool,
    pub(super) connecting: bool,
    pub(super) listed: bool,
    pub(super) dirty: bool,
    pub(super) timed: bool,
    pub(super) blocked: bool,
    pub(super) in_bytes: u64,
    pub(super) in_frames: u64,
    pub(super) out_bytes: u64,
    pub(super) dropped_down: u64,
    pub(super) heard: Tick,
    retry: Duration,
    retry_at: Tick,
    pub(super) last_error: Option<String>,
    reconnects: u64,
    up_since_ms: Option<u64>,
}

impl Slot {
    fn new(id: FaceId, made: Made, uri: String, queue_bytes_max: usize) -> Self {
        Self {
            id,
            made,
            uri,
            local_uri: String::new(),
            io: None,
            link: Link::new(LinkConfig::stream()),
            queue: TxQueue::new(queue_bytes_max),
            epoll_token: 0,
            stream: true,
            connecting: false,
            listed: false,
            dirty: false,
            timed: false,
            blocked: false,
            in_bytes: 0,
            in_frames: 0,
            out_bytes: 0,
            dropped_down: 0,
            heard: Tick(0),
            retry: RETRY_MIN,
            retry_at: Tick::NEVER,
            last_error: None,
            reconnects: 0,
            up_since_ms: None,
        }
    }

    /// When it wants to be looked at.
    pub(super) fn due(&self) -> Tick {
        if self.io.is_none() || self.connecting {
            return self.retry_at;
        }
        let silent = self.made == Made::Accepted && !self.stream;
        if silent { self.heard + SILENT_MAX } else { Tick::NEVER }
    }

    fn state(&self) -> &'static str {
        match (&self.io, self.connecting) {
            (None, _) => "down",
            (Some(_), true) => "connecting",
            (Some(_), false) => "up",
        }
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
            self.shared.faces.fetch_sub(1, Ordering::Relaxed);
        }
        before < FACES_MAX
    }

    /// Takes an accepted face over.
    pub(crate) fn add_accepted(&mut self, io: Box<dyn Face>, listener: &str, side: Side) -> FaceId {
        let id = self.next_id();
        let label = format!("{listener}.{}", id.0);
        let uri = io.remote_uri().to_string();
        self.add(id, Made::Accepted, label, uri, side, Some(io));
        id
    }

    /// Makes a face to `uri`; it is connecting, up, or down until the next attempt.
    pub(crate) fn create(&mut self, made: Made, label: &str, uri: &str, side: Side) -> FaceId {
        let id = self.next_id();
        self.add(id, made, label.to_owned(), uri.to_owned(), side, None);
        id
    }

    fn add(
        &mut self,
        id: FaceId,
        made: Made,
        label: String,
        uri: String,
        side: Side,
        io: Option<Box<dyn Face>>,
    ) {
        let octets = self.function.settings().queue_bytes_max;
        let mut slot = Slot::new(id, made, uri, octets);
        slot.heard = self.now.tick;
        let at = self.slots.iter().position(Option::is_none).unwrap_or(self.slots.len());
        if at == self.slots.len() {
            self.slots.push(None);
        }
        self.slots[at] = Some(slot);
        self.by_id.insert(id, at);
        let mut port = Port::new(id, label, side);
        port.up = false;
        port.local = io.as_ref().is_some_and(|io| io.scope() == Scope::Local);
        self.with(|function, now, out| function.face_added(now, port, out));
        match io {
            Some(io) => self.attach(at, io),
            None => self.connect_again(at),
        }
    }

    /// Gives a face its transport.
    fn attach(&mut self, at: usize, io: Box<dyn Face>) {
        self.generation += 1;
        let token = (self.generation & 0x3fff_ffff) << 32 | at as u64;
        let now = self.now.tick;
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        let reliable = io.transport().is_reliable();
        slot.stream = reliable;
        slot.link =
            Link::new(if reliable { LinkConfig::stream() } else { LinkConfig::datagram(io.mtu()) });
        slot.local_uri = io.local_uri().to_string();
        slot.epoll_token = token;
        slot.connecting = io.is_connecting();
        slot.blocked = slot.connecting && io.room_is_writable();
        slot.retry_at = if slot.connecting { now + CONNECT_MAX } else { Tick::NEVER };
        self.faces_due = Tick(0);
        let interest = if slot.blocked { Interest::ReadWrite } else { Interest::Read };
        if let Err(error) = self.epoll.add(io.fd(), token, interest) {
            slot.io = Some(io);
            self.fail(at, &format!("watching its descriptor: {error}"));
            return;
        }
        slot.io = Some(io);
        if slot.connecting {
            return;
        }
        // What came before it was watched.
        slot.listed = true;
        self.ready.push_back(at);
        self.face_is_up(at);
    }

    /// Tries to make the connection of a face, or gives up one that takes too long.
    pub(super) fn connect_again(&mut self, at: usize) {
        let Some(slot) = self.slots.get(at).and_then(Option::as_ref) else { return };
        let uri = slot.uri.clone();
        match uri::connect(&uri) {
            Ok(io) => {
                let local = io.scope() == Scope::Local;
                let id = slot.id;
                self.function.change_face(id, |p| p.local = local);
                self.attach(at, io);
            }
            Err(error) => self.fail(at, &error),
        }
    }

    /// The face in `at` is connected.
    pub(super) fn face_is_up(&mut self, at: usize) {
        let unix_ms = self.now.unix_ms;
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        slot.connecting = false;
        slot.retry_at = Tick::NEVER;
        slot.retry = RETRY_MIN;
        slot.up_since_ms = Some(unix_ms);
        if let Some(io) = &slot.io {
            // The address is known only now.
            slot.local_uri = io.local_uri().to_string();
        }
        let id = slot.id;
        self.tell_of(at, "face_up", "");
        self.with(|function, now, out| function.face_up(now, id, true, out));
    }

    fn tell_of(&self, at: usize, kind: &'static str, reason: &str) {
        let Some(slot) = self.slots.get(at).and_then(Option::as_ref) else { return };
        let Some(port) = self.function.ports().get(slot.id) else { return };
        let body = json!({
            "face": slot.id.0, "label": port.label, "uri": slot.uri, "side": port.side,
            "reason": reason,
        });
        self.tell(&Event::new(kind, body));
    }

    /// The transport of a face has ended: a created one is connected again, others are gone.
    pub(super) fn fail(&mut self, at: usize, reason: &str) {
        let now = self.now.tick;
        let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut) else { return };
        if let Some(io) = slot.io.take() {
            let _ = self.epoll.delete(io.fd());
        }
        let was_up = slot.up_since_ms.take().is_some();
        slot.last_error = Some(reason.to_owned());
        slot.connecting = false;
        slot.blocked = false;
        let id = slot.id;
        if slot.made != Made::Created {
            if was_up {
                self.tell_of(at, "face_down", reason);
            }
            self.remove(id);
            return;
        }
        // What was queued belongs to the connection that is gone.
        let lost = slot.queue.len();
        slot.queue.pop(lost);
        slot.dropped_down += lost as u64;
        slot.retry_at = now + slot.retry;
        self.faces_due = Tick(0);
        slot.retry = (slot.retry * 2).min(RETRY_MAX);
        slot.reconnects += u64::from(was_up);
        if was_up {
            self.tell_of(at, "face_down", reason);
        }
        self.with(|function, now, out| function.face_up(now, id, false, out));
    }

    /// Closes a datagram face whose peer is silent.
    pub(super) fn close_silent(&mut self, at: usize) {
        let connecting = self.slots.get(at).and_then(Option::as_ref).is_some_and(|s| s.connecting);
        if connecting {
            self.fail(at, "it was not connected in time");
        } else {
            self.fail(at, "its peer is silent");
        }
    }

    /// Takes a face out for good: frames that were not sent, `None` when there is no such face.
    pub(crate) fn remove(&mut self, id: FaceId) -> Option<usize> {
        let at = self.by_id.remove(&id)?;
        self.flush_last(at);
        let slot = self.slots.get_mut(at)?.take()?;
        self.octets_gone.0 += slot.in_bytes;
        self.octets_gone.1 += slot.out_bytes;
        if let Some(io) = &slot.io {
            let _ = self.epoll.delete(io.fd());
        }
        self.shared.faces.fetch_sub(1, Ordering::Relaxed);
        for entry in &mut self.listeners {
            entry.forget(id);
        }
        self.with(|function, now, out| function.face_removed(now, id, out));
        Some(slot.queue.len())
    }

    fn flush_last(&mut self, at: usize) {
        if let Some(slot) = self.slots.get_mut(at).and_then(Option::as_mut)
            && let Some(io) = &mut slot.io
            && !slot.connecting
        {
            let _ = io.flush(&mut slot.queue);
        }
    }

    /// Does what the function asked for.
    pub(super) fn fulfil(&mut self, wish: Wish) {
        match wish {
            Wish::Connect { label, uri } => {
                if self.reserve_face() {
                    self.create(Made::Session, &label, &uri, Side::Producer);
                }
            }
            Wish::Close(id) => {
                self.remove(id);
            }
            Wish::Post { .. } => {
                // Full: the reports of a verifier come again with the next period.
                let _ = self.shared.posts.try_send(wish);
            }
        }
    }

    /// A face as the control interface shows it.
    pub(crate) fn face_json(&self, id: FaceId) -> Option<Value> {
        let at = *self.by_id.get(&id)?;
        let slot = self.slots.get(at)?.as_ref()?;
        let port = self.function.ports().get(id)?;
        let link = slot.link.counters();
        let counts = |c: onym_services::ports::Counts, bytes: u64, frames: u64| {
            json!({
                "interests": c.interests, "data": c.data, "nacks": c.nacks, "bytes": bytes,
                "frames": frames,
            })
        };
        let state = slot.state();
        Some(json!({
            "id": id.0, "label": port.label, "uri": slot.uri, "local_uri": slot.local_uri,
            "side": port.side, "state": state, "created": slot.made == Made::Created,
            "weight": port.weight, "rank": port.rank, "draining": port.draining,
            "session": session_of(&port.label), "queue_bytes": slot.queue.bytes(),
            "up_since_ms": slot.up_since_ms, "reconnects": slot.reconnects,
            "last_error": if state == "up" { None } else { slot.last_error.clone() },
            "in": counts(port.received, slot.in_bytes, slot.in_frames),
            "out": counts(port.sent, slot.out_bytes, link.frames_out),
            "dropped": {
                "queue_full": link.queue_full, "over_mtu": link.over_mtu,
                "down": slot.dropped_down, "frames": self.frames_dropped,
            },
        }))
    }

    /// Octets received and sent, all faces that there are and were.
    pub(crate) fn octets(&self) -> (u64, u64) {
        let all = self.slots.iter().flatten();
        all.fold(self.octets_gone, |sum, s| (sum.0 + s.in_bytes, sum.1 + s.out_bytes))
    }

    /// Whether every created face is up; else the one that is not.
    pub(crate) fn not_ready(&self) -> Option<String> {
        let slot =
            self.slots.iter().flatten().find(|s| s.made == Made::Created && s.state() != "up")?;
        let label = self.function.ports().label(slot.id);
        let why = slot.last_error.as_deref().unwrap_or("not answered yet");
        Some(format!("face {label} to {} is {}: {why}", slot.uri, slot.state()))
    }

    /// The uri and way of making of a face.
    pub(crate) fn made(&self, id: FaceId) -> Option<(&str, Made)> {
        let at = *self.by_id.get(&id)?;
        self.slots.get(at)?.as_ref().map(|s| (s.uri.as_str(), s.made))
    }
}

/// The session that a face of a dispatcher belongs to, by its label.
fn session_of(label: &str) -> Option<u32> {
    label.strip_prefix('s')?.split_once('.')?.0.parse().ok()
}
