//! The I/O of a thread: its faces and listeners, and which of them are ready.

use crate::attempt::{ATTEMPTS, AttemptId, Attempts, Ended};
use crate::clock::Clock;
use crate::event::FaceEvent;
use crate::face::{Faces, LocalFace, Slot};
use crate::mailbox::Load;
use crate::policy::Policy;
use crate::poller::Poller;
use crate::sync::{Arc, Epoll};
use onym_face::{CHUNK_LEN, Face, FaceError, Flush, Incoming, Listener, Ready as More};
use onym_frame::{BufPool, RxFrame, TxQueue};
use onym_link::{Link, LinkConfig};
use onym_sys::epoll::{Interest, Ready};
use onym_tables::{FaceId, Tick};
use std::collections::VecDeque;
use std::time::Duration;

/// Token of the bell in the poller; faces have their slot.
pub(crate) const BELL: u64 = u64::MAX;
/// Tokens of listeners begin here.
const LISTENERS: u64 = 1 << 62;
/// How often errors that a face survives are told at most.
const TELL_INTERVAL: Duration = Duration::from_secs(1);
/// How often the octets waiting in a socket are asked for at most.
const PROBE_INTERVAL: Duration = Duration::from_millis(5);
/// Arrivals taken from a listener at once.
const ACCEPT: usize = 64;
/// How long a listener rests after it failed, for want of descriptors most of the time.
const PAUSE: Duration = Duration::from_secs(1);

/// The number of a listener in its thread.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ListenerId(pub usize);

/// What a thread counts of its faces together.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that the link services of all faces dropped.
    pub frames_dropped: u64,
}

#[derive(Debug)]
struct Door {
    io: Box<dyn Listener>,
    /// Somebody may wait there.
    is_ready: bool,
    /// When it is watched again after it failed; never while it is watched.
    paused: Tick,
}

/// Whether faces have turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Turns {
    Taken,
    /// Not until somebody rings.
    HeldBack,
}

/// The I/O of a thread; `F` is what the driver keeps with each face.
#[derive(Debug)]
pub struct Io<F, P = Epoll> {
    /// The moment of this round.
    pub now: Tick,
    /// The clock, for what takes longer than a round.
    pub clock: Clock,
    /// The faces.
    pub faces: Faces<F>,
    /// What is counted of all of them.
    pub counters: Counters,
    /// What the thread did so far.
    pub load: Arc<Load>,
    pub(crate) poller: P,
    /// Its numbers.
    pub policy: Policy,
    pool: BufPool,
    /// A buffer for the frames of a turn.
    frames: Vec<RxFrame>,
    doors: Vec<Door>,
    pub(crate) attempts: Attempts,
    /// Slots of faces that may have frames, in the order of their turns.
    pub(crate) ready: VecDeque<Slot>,
    pub(crate) dirty: Vec<Slot>,
    pub(crate) timed: Vec<Slot>,
    /// No link service of theirs is due before.
    pub(crate) timed_due: Tick,
    pub(crate) events: VecDeque<(Slot, FaceId, FaceEvent)>,
    pub(crate) is_running: bool,
}

impl<F, P: Poller> Io<F, P> {
    pub(crate) fn new(poller: P, clock: Clock, policy: Policy, load: Arc<Load>) -> Self {
        Self {
            now: clock.now(),
            clock,
            faces: Faces::default(),
            counters: Counters::default(),
            load,
            poller,
            policy,
            pool: BufPool::new(CHUNK_LEN, policy.chunks),
            frames: Vec::with_capacity(256),
            doors: Vec::new(),
            attempts: Attempts::default(),
            ready: VecDeque::new(),
            dirty: Vec::new(),
            timed: Vec::new(),
            timed_due: Tick::NEVER,
            events: VecDeque::new(),
            is_running: true,
        }
    }

    /// Ends the engine after this round.
    pub fn stop(&mut self) {
        self.is_running = false;
    }

    /// Whether every send queue is empty and no face waits for a turn.
    pub fn is_drained(&self) -> bool {
        let are_empty = self.faces.iter().all(|face| face.io.is_none() || face.queue.is_empty());
        are_empty && self.ready.is_empty()
    }

    // ----- faces come and go

    /// Adds a face that has no transport yet.
    pub fn add(&mut self, id: FaceId, state: F) -> Slot {
        self.faces.insert(LocalFace::new(id, state))
    }

    /// Gives a face a transport, with a link service and an empty send queue of its own: what was
    /// sent in part to the old connection cannot be continued on another one.
    ///
    /// # Errors
    /// The descriptor cannot be watched; the face has no transport then.
    pub fn open(
        &mut self,
        slot: Slot,
        io: Box<dyn Face>,
        link: LinkConfig,
        queue_bytes_max: usize,
    ) -> std::io::Result<()> {
        let Some(face) = self.faces.get(slot) else { return Ok(()) };
        let is_connecting = io.is_connecting();
        face.link = Link::new(link);
        face.queue = TxQueue::new(queue_bytes_max);
        face.is_stream = io.transport().is_reliable();
        (face.is_connecting, face.is_blocked) = (is_connecting, is_connecting);
        (face.is_muted, face.is_whole) = (false, false);
        if std::mem::take(&mut face.is_aside) {
            // Put aside, it has its place in no list.
            face.is_listed = false;
        }
        face.backlog.clear();
        let for_room = is_connecting && io.room_is_writable();
        let interest = if for_room { Interest::ReadWrite } else { Interest::Read };
        self.poller.add(io.fd(), u64::from(slot.0), interest)?;
        face.io = Some(io);
        // Frames may have come before the descriptor was watched, in the transport's own buffer.
        self.note_ready(
            &Ready { token: u64::from(slot.0), readable: true, writable: is_connecting },
            Turns::Taken,
        );
        Ok(())
    }

    /// Takes a face out; what can leave at once leaves. The face, with what did not.
    pub fn close(&mut self, slot: Slot) -> Option<LocalFace<F>> {
        let mut face = self.faces.remove(slot)?;
        if let Some(io) = &mut face.io {
            let before = face.queue.bytes();
            let _ = io.flush(&mut face.queue);
            face.traffic.out_bytes += (before - face.queue.bytes()) as u64;
            let _ = self.poller.delete(io.fd());
        }
        self.ready.retain(|s| *s != slot);
        self.dirty.retain(|s| *s != slot);
        self.timed.retain(|s| *s != slot);
        self.events.retain(|(s, ..)| *s != slot);
        Some(face)
    }

    /// The transport of a face ended: nothing more is received or sent.
    pub fn end(&mut self, slot: Slot, reason: String) {
        let now = self.now;
        let Some(face) = self.faces.get(slot) else { return };
        let Some(io) = face.io.take() else { return };
        (face.is_connecting, face.is_blocked) = (false, false);
        face.backlog.clear();
        let _ = self.poller.delete(io.fd());
        face.tell_after = now + TELL_INTERVAL;
        let id = face.id;
        self.events.push_back((slot, id, FaceEvent::Failed { reason, is_fatal: true }));
    }

    /// The transport of a face had an error that it survives; such are told once a second.
    pub fn note_error(&mut self, slot: Slot, reason: String) {
        let now = self.now;
        let Some(face) = self.faces.get(slot).filter(|face| face.tell_after <= now) else { return };
        face.tell_after = now + TELL_INTERVAL;
        let id = face.id;
        self.events.push_back((slot, id, FaceEvent::Failed { reason, is_fatal: false }));
    }

    pub(crate) fn face_error(&mut self, slot: Slot, error: &FaceError) {
        match error.is_fatal() {
            true => self.end(slot, error.to_string()),
            false => self.note_error(slot, error.to_string()),
        }
    }

    // ----- listeners

    /// Takes what arrives at `io` from now on.
    ///
    /// # Errors
    /// The descriptor cannot be watched.
    pub fn listen(&mut self, io: Box<dyn Listener>) -> std::io::Result<ListenerId> {
        let at = self.doors.len();
        self.poller.add(io.fd(), LISTENERS + at as u64, Interest::Read)?;
        self.doors.push(Door { io, is_ready: false, paused: Tick::NEVER });
        Ok(ListenerId(at))
    }

    /// A listener.
    pub fn listener(&mut self, at: ListenerId) -> Option<&mut (dyn Listener + 'static)> {
        self.doors.get_mut(at.0).map(|door| &mut *door.io)
    }

    /// The listeners, in the order of their numbers.
    pub fn listeners(&self) -> impl Iterator<Item = &dyn Listener> {
        self.doors.iter().map(|door| &*door.io)
    }

    /// Closes every listener: nobody is accepted any more.
    pub fn close_listeners(&mut self) {
        for door in self.doors.drain(..) {
            let _ = self.poller.delete(door.io.fd());
        }
    }

    /// What arrived at the next listener that is ready.
    pub(crate) fn arrivals(&mut self) -> Option<(ListenerId, Vec<Incoming>)> {
        let at = self.doors.iter().position(|door| door.is_ready)?;
        let door = self.doors.get_mut(at)?;
        door.is_ready = false;
        let mut arrived = Vec::new();
        if let Err(error) = door.io.accept(&mut self.pool, ACCEPT, &mut arrived) {
            let uri = door.io.local_uri().to_string();
            tracing::warn!(listener = uri, %error, rest_ms = PAUSE.as_millis(), "accepting a connection failed");
            // Its descriptor would stay ready.
            if self.poller.delete(door.io.fd()).is_ok() {
                door.paused = self.now + PAUSE;
            }
        }
        Some((ListenerId(at), arrived))
    }

    pub(crate) fn listener_timers(&mut self) {
        let now = self.now;
        for (door, at) in self.doors.iter_mut().zip(LISTENERS..) {
            if door.paused <= now {
                let watched = self.poller.add(door.io.fd(), at, Interest::Read);
                door.paused = if watched.is_ok() { Tick::NEVER } else { now + PAUSE };
            }
        }
    }

    // ----- connections

    /// Waits for the connection of `io` to be made, until `until` at most;
    /// [`Driver::connected`](crate::Driver::connected) is told how it ended. How many there are is
    /// for the driver to bound.
    ///
    /// # Errors
    /// The descriptor cannot be watched.
    pub fn connect(&mut self, io: Box<dyn Face>, until: Tick) -> std::io::Result<AttemptId> {
        self.attempts.begin(&self.poller, io, until)
    }

    /// Gives up every connection that is being made; nobody is told.
    pub fn abandon_attempts(&mut self) {
        self.attempts.abandon(&self.poller);
    }

    /// The next attempt that ended.
    pub(crate) fn ended_attempt(&mut self) -> Option<Ended> {
        self.attempts.end(&self.poller, self.now)
    }

    // ----- in

    /// Notes what the poller told.
    pub(crate) fn note_ready(&mut self, event: &Ready, turns: Turns) {
        if event.token >= LISTENERS {
            let at = usize::try_from(event.token - LISTENERS).unwrap_or(usize::MAX);
            self.doors.get_mut(at).into_iter().for_each(|door| door.is_ready = true);
            return;
        }
        if event.token >= ATTEMPTS {
            self.attempts.note_ready(event.token);
            return;
        }
        let Ok(slot) = u32::try_from(event.token).map(Slot) else { return };
        let Some(face) = self.faces.get(slot) else { return };
        // What is put aside has its place kept: it is listed, and in no list.
        if event.readable && !face.is_listed {
            face.is_listed = true;
            self.ready.push_back(slot);
        }
        // Epoll is level-triggered: it would spin.
        let waits = face.is_aside || turns == Turns::HeldBack;
        let mutes = event.readable && waits && !face.is_muted;
        face.is_muted |= mutes;
        if event.writable && !face.is_dirty {
            face.is_dirty = true;
            self.dirty.push(slot);
        }
        if mutes {
            self.watch_again(slot);
        }
    }

    /// The frames for a turn: what was left of the last one, else what the transport gives.
    pub(crate) fn take_frames(
        &mut self,
        slot: Slot,
        budget: usize,
    ) -> Option<(Vec<RxFrame>, Result<More, FaceError>)> {
        let face = self.faces.get(slot)?;
        let io = face.io.as_mut()?;
        if !face.backlog.is_empty() {
            // The transport was not asked again, so it may have more.
            return Some((std::mem::take(&mut face.backlog), Ok(More::More)));
        }
        let mut frames = std::mem::take(&mut self.frames);
        let result = io.receive(&mut self.pool, budget, &mut frames);
        // Such a face tells by being readable that there is room again.
        if face.is_blocked && !face.is_dirty && !io.room_is_writable() {
            face.is_dirty = true;
            self.dirty.push(slot);
        }
        face.is_pressed = io.is_pressed();
        self.note_connected(slot);
        Some((frames, result))
    }

    /// What is left of a turn waits with its face; an empty buffer is used again.
    pub(crate) fn keep_frames(&mut self, slot: Slot, frames: Vec<RxFrame>) {
        if frames.is_empty() {
            if frames.capacity() > self.frames.capacity() {
                self.frames = frames;
            }
        } else if let Some(face) = self.faces.get(slot) {
            face.backlog = frames;
        }
    }

    /// Gives a face its place among those that have frames; false when it has one.
    pub(crate) fn list(&mut self, slot: Slot) -> bool {
        self.faces.get(slot).is_some_and(|face| !std::mem::replace(&mut face.is_listed, true))
    }

    /// Gives a face frames that came another way than over its transport; they have the next turns
    /// of the face.
    pub fn give(&mut self, slot: Slot, frames: Vec<RxFrame>) {
        let Some(face) = self.faces.get(slot) else { return };
        face.backlog.extend(frames);
        if self.list(slot) {
            self.ready.push_back(slot);
        }
    }

    /// A face has no turns until [`Io::take_up`].
    pub fn put_aside(&mut self, slot: Slot) {
        if let Some(face) = self.faces.get(slot) {
            face.is_aside = true;
        }
    }

    /// A face that was put aside has turns again.
    pub fn take_up(&mut self, slot: Slot) {
        let Some(face) = self.faces.get(slot) else { return };
        if !std::mem::take(&mut face.is_aside) {
            return;
        }
        self.ready.push_back(slot);
        self.unmute(slot);
    }

    /// Watches a face for reading again.
    #[inline]
    pub(crate) fn unmute(&mut self, slot: Slot) {
        let Some(face) = self.faces.get(slot) else { return };
        if std::mem::take(&mut face.is_muted) {
            self.watch_again(slot);
        }
    }

    // ----- out

    /// Something was put into the send queue of a face: it is flushed in this round, and at once
    /// when the queue is long.
    #[inline]
    pub fn queued(&mut self, slot: Slot) {
        let Some(face) = self.faces.get(slot) else { return };
        if face.is_blocked {
            return;
        }
        let is_batch = face.queue.len() >= self.policy.flush_frames
            || face.queue.bytes() >= self.policy.flush_octets;
        if !face.is_dirty {
            face.is_dirty = true;
            self.dirty.push(slot);
        }
        if is_batch {
            self.flush(slot);
        }
    }

    /// Hands the queues that got something to their transports.
    pub(crate) fn flush_dirty(&mut self) {
        let mut dirty = std::mem::take(&mut self.dirty);
        for slot in dirty.drain(..) {
            let Some(face) = self.faces.get(slot) else { continue };
            face.is_dirty = false;
            // What left as whole batches needs nothing more; a blocked transport is tried again.
            if !face.queue.is_empty() || face.is_blocked {
                self.flush(slot);
            }
        }
        if self.dirty.is_empty() {
            self.dirty = dirty;
        }
    }

    /// Whether a face waits to be flushed.
    pub(crate) fn is_dirty(&self) -> bool {
        !self.dirty.is_empty()
    }

    /// Hands the queue of a face to its transport now.
    pub fn flush(&mut self, slot: Slot) {
        let now = self.now;
        let Some(face) = self.faces.get(slot) else { return };
        let id = face.id;
        let Some(io) = &mut face.io else { return };
        let before = face.queue.bytes();
        let result = io.flush(&mut face.queue);
        face.traffic.out_bytes += (before - face.queue.bytes()) as u64;
        if face.link.wants_socket_queue() && now.since(face.probed) >= PROBE_INTERVAL {
            face.probed = now;
            face.link.set_socket_queue(io.queue_octets());
        }
        let is_told = result.is_ok() && std::mem::take(&mut face.tells_flushed);
        match result {
            Ok(flush) => self.watch(slot, flush),
            Err(error) => self.face_error(slot, &error),
        }
        self.note_connected(slot);
        if is_told {
            self.events.push_back((slot, id, FaceEvent::Flushed));
        }
        self.note_timer(slot);
    }

    /// A transport finds out by receiving or by sending that its connection is made.
    fn note_connected(&mut self, slot: Slot) {
        let Some(face) = self.faces.get(slot) else { return };
        if face.is_connecting && face.io.as_ref().is_some_and(|io| !io.is_connecting()) {
            face.is_connecting = false;
            let id = face.id;
            self.events.push_back((slot, id, FaceEvent::Connected));
        }
    }

    /// Watches for room exactly while the transport is full.
    pub(crate) fn watch(&mut self, slot: Slot, flush: Flush) {
        let Some(face) = self.faces.get(slot) else { return };
        let is_blocked = flush == Flush::Blocked;
        if face.io.is_none() || is_blocked == face.is_blocked {
            return;
        }
        face.is_blocked = is_blocked;
        self.watch_again(slot);
    }

    /// Tells the poller what this face waits for.
    fn watch_again(&mut self, slot: Slot) {
        let Some(face) = self.faces.get(slot) else { return };
        let Some(io) = &face.io else { return };
        let for_room = face.is_blocked && io.room_is_writable();
        let interest = match (face.is_muted, for_room) {
            (false, false) => Interest::Read,
            (false, true) => Interest::ReadWrite,
            (true, false) => Interest::Nothing,
            (true, true) => Interest::Write,
        };
        if let Err(error) = self.poller.modify(io.fd(), u64::from(slot.0), interest) {
            self.end(slot, format!("watching its descriptor: {error}"));
        }
    }

    // ----- timers

    /// Remembers when the link service of a face has something to do: after a frame, a flush, a change
    /// of its configuration.
    pub fn note_timer(&mut self, slot: Slot) {
        let Some(face) = self.faces.get(slot) else { return };
        let due = face.link.poll_timeout();
        if due == Tick::NEVER {
            return;
        }
        self.timed_due = self.timed_due.min(due);
        if !face.is_timed {
            face.is_timed = true;
            self.timed.push(slot);
        }
    }

    /// When the next link service, listener or attempt is due.
    pub(crate) fn poll_timeout(&self) -> Tick {
        let doors = self.doors.iter().map(|door| door.paused).min().unwrap_or(Tick::NEVER);
        doors.min(self.timed_due).min(self.attempts.poll_timeout())
    }
}
