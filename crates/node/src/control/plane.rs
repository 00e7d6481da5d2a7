//! The parts of the control plane, and what concerns several of them: faces made, down, up, closed.
//!
//! Each part owns its fields and is lent what it needs of others.

use super::Io;
use super::dial::{Asked, Dialed, Dialer, NotDialed, Purpose, Ways};
use super::faces::{Block, Doubt, Faces, NewFace, Newcomer, Origin, Record, room};
use super::history::History;
use super::listeners::Listeners;
use super::push::PushHalf;
use super::routes::Routes;
use super::settings::Settings;
use super::shards::Shards;
use super::target::Target;
use super::viewers::Watches;
use crate::disk::Disk;
use crate::exported::Exported;
use crate::mgmt::FaceEvent as Event;
use crate::mgmt::host::{FaceCounters, FaceError, FaceView, Ticket};
use crate::shard::Opening;
use onym_engine::{AttemptId, Clock, ListenerId};
use onym_face::uri::endpoint;
use onym_face::{Face, Incoming, Peer};
use onym_frame::RxFrame;
use onym_tables::{FaceId, Tick};
use onym_wire::faceuri::FaceUri;
use onym_wire::mgmt::{Persistency, Scope};
use std::sync::Arc;
use std::time::Duration;

/// How long a peer may be silent after the network said that it is not there.
const DOUBT: Duration = Duration::from_secs(2);

/// What management is to be told when it is not at work.
#[derive(Debug)]
pub(super) enum News {
    /// Something happened to a face.
    Face(Event, FaceView),
    /// A face that it asked for is there, or cannot be.
    Created(Ticket, Result<FaceView, FaceError>),
}

/// The parts of the control plane.
#[derive(Debug)]
pub(super) struct Plane {
    pub(super) clock: Clock,
    /// When the node started, in milliseconds of Unix time.
    pub(super) start_ms: u64,
    pub(super) settings: Settings,
    pub(super) shards: Shards,
    /// The second level of the content store, where there is one.
    pub(super) disk: Option<Disk>,
    pub(super) faces: Faces,
    pub(super) listeners: Listeners,
    pub(super) dialer: Dialer,
    pub(super) routes: Routes,
    /// The push half, when it is enabled.
    pub(super) push: Option<PushHalf>,
    /// Who looks at the traffic.
    pub(super) watches: Watches,
    /// The last hour.
    pub(super) history: History,
    /// For management, in order.
    pub(super) news: Vec<News>,
    /// Data that were verified to be kept: good and refused.
    pub(super) verified: [u64; 2],
    /// What became of spans.
    pub(super) exported: Arc<Exported>,
}

impl Plane {
    // ----- faces come

    /// Adds a face; its number.
    ///
    /// # Errors
    /// A sentence: too many faces, or its descriptor cannot be watched.
    pub(super) fn face_add(&mut self, mut new: NewFace) -> Result<FaceId, String> {
        let (id, now) = (self.faces.next(), self.clock.now());
        let owner = self.faces.shard_with_fewest();
        let record = Record::new(id, owner, &new, &self.settings, now);
        self.make_room(record.newcomer())?;
        self.faces.logs.face(now, &record, "face made", "");
        let link = record.link_config(&self.settings);
        let (queue_bytes_max, scope) = (record.queue_bytes_max, record.scope);
        self.shards.face_add(id, record.info(), owner);
        self.faces.enter(record);
        self.push_face_added(id);
        if let Some(io) = new.io.take() {
            let is_local = scope == Scope::Local;
            let opening = Opening { id, io, link, queue_bytes_max, first: new.first, is_local };
            if let Err(reason) = self.shards.open(owner, opening) {
                self.face_remove(id, &reason);
                return Err(reason);
            }
        }
        self.tell(id, Event::Created);
        Ok(id)
    }

    /// Adds the faces that exist without a peer's doing.
    ///
    /// # Errors
    /// A sentence.
    pub(super) fn add_multicast(&mut self, faces: Vec<Box<dyn Face>>) -> Result<(), String> {
        for io in faces {
            self.face_add(NewFace::of(Some(io), Persistency::Permanent))?;
        }
        Ok(())
    }

    /// Somebody arrived at a listener: a connection, or the first frame of a peer.
    pub(super) fn arrived(&mut self, io: &mut Io, at: ListenerId, incoming: Incoming) {
        match incoming {
            Incoming::Face(face) => {
                let new = NewFace::of(Some(face), Persistency::OnDemand);
                if let Err(reason) = self.face_add(new) {
                    self.faces.logs.refused(io.now, "a connection", &reason);
                }
            }
            Incoming::Frame { peer, frame } => {
                let origin = Origin { listener: at, peer };
                if let Err(reason) = self.first_frame(io, origin, frame) {
                    self.faces.logs.refused(io.now, "a new peer", &reason);
                }
            }
        }
    }

    /// A frame of a peer that has no socket of its own yet, or just got it.
    fn first_frame(&mut self, io: &mut Io, origin: Origin, frame: RxFrame) -> Result<(), String> {
        let Origin { listener, peer } = origin;
        // Its own face, or one that was asked for by us.
        let known = self.faces.of(origin).or_else(|| match peer {
            Peer::Udp(address) => self.faces.to(&FaceUri::Udp(endpoint(address)).to_string()),
            Peer::Ether(_) => None,
        });
        if let Some(id) = known {
            self.follow(io, origin, id, &frame.bytes);
            if let Some(record) = self.faces.get_mut(id) {
                match self.shards.frame(record.owner, id, frame) {
                    true => record.heard.note(),
                    false => self.listeners.late_frames += 1,
                }
            }
            return Ok(());
        }
        // Asked before a socket is made: at the limit each stranger must cost little.
        self.make_room(Newcomer::Stranger(Block::of_peer(peer)))?;
        let Some(listener) = io.listener(listener) else { return Ok(()) };
        let face = listener.face_for(peer).map_err(|e| e.to_string())?;
        let new = NewFace {
            origin: Some(origin),
            first: vec![frame],
            ..NewFace::of(Some(face), Persistency::OnDemand)
        };
        self.face_add(new).map(drop)
    }

    /// Whether one more face may be made; faces of strangers give way to it, looked for at most
    /// once a second. The caller makes it then.
    ///
    /// # Errors
    /// A sentence with the limit.
    fn make_room(&mut self, newcomer: Newcomer) -> Result<(), String> {
        let faces_max = self.settings.faces_max();
        if self.faces.room.has_for(newcomer, faces_max) {
            return Ok(());
        }
        let now = self.clock.now();
        if self.faces.room.may_look(now) {
            self.faces.note_activity(&self.shards.owner_counters(), now);
            let packets = self.shards.packet_counters();
            let useless = room::useless(self.faces.iter(), &packets, newcomer, now);
            for id in self.faces.room.at_once(useless, now) {
                self.face_remove(id, "idle or never answered, and there is no room");
            }
            if newcomer != Newcomer::Own && self.faces.room.is_full_of_strangers(faces_max) {
                let beyond = self.faces.room.beyond_share(self.faces.iter(), faces_max);
                for id in self.faces.room.at_once(beyond, now) {
                    self.face_remove(id, "its addresses have more than their share of the room");
                }
            }
        }
        match self.faces.room.has_for(newcomer, faces_max) {
            true => Ok(()),
            false => Err(self.faces.room.refuse(faces_max)),
        }
    }

    // ----- connections

    /// Makes a face to `target`; none while its connection is being made.
    ///
    /// # Errors
    /// What management answers.
    pub(super) fn face_create(
        &mut self,
        io: &mut Io,
        target: Target,
        asked: Asked,
        new: NewFace,
    ) -> Result<Option<FaceId>, FaceError> {
        let purpose = Purpose::Make { asked, new: Box::new(new) };
        match self.dial(io, target, purpose)? {
            None => Ok(None),
            Some(dialed) => self.join(dialed).map(Some),
        }
    }

    fn dial(
        &mut self,
        io: &mut Io,
        target: Target,
        purpose: Purpose,
    ) -> Result<Option<Dialed>, FaceError> {
        let config = &self.settings.config;
        let mut ways = Ways { io, listeners: &self.listeners, config };
        self.dialer.begin(&mut ways, target, purpose)
    }

    /// A transport that was asked for is there: a face gets it.
    fn join(&mut self, dialed: Dialed) -> Result<FaceId, FaceError> {
        let Dialed { io, target, purpose } = dialed;
        match purpose {
            Purpose::Reopen(id) => {
                self.face_reopen(id, io);
                Ok(id)
            }
            Purpose::Make { new, .. } => {
                let new = NewFace { io: Some(io), target: Some(target), ..*new };
                self.face_add(new).map_err(FaceError::System)
            }
        }
    }

    /// An attempt to connect ended.
    pub(super) fn dialed(&mut self, id: AttemptId, result: Result<Box<dyn Face>, String>) {
        let (asked, result) = match self.dialer.end(id, result) {
            None => return,
            Some(Ok(dialed)) => (dialed.purpose.asked(), self.join(dialed)),
            Some(Err(NotDialed { purpose: Purpose::Reopen(face), reason })) => {
                let now = self.clock.now();
                let Some(record) = self.faces.get_mut(face) else { return };
                record.reconnect = now + record.backoff;
                tracing::debug!(face = face.0, reason, "connecting again failed");
                return;
            }
            Some(Err(NotDialed { purpose, reason })) => {
                (purpose.asked(), Err(FaceError::ConnectFailed(reason)))
            }
        };
        match asked {
            None => {}
            Some(Asked::Config) => match result {
                Ok(face) => {
                    self.routes.arrived(&self.shards, &self.faces, face);
                }
                Err(error) => {
                    tracing::error!(?error, "a face of the configuration was not created")
                }
            },
            Some(Asked::Management(ticket)) => {
                let view = result.and_then(|id| self.created(id));
                self.news.push(News::Created(ticket, view));
            }
        }
    }

    /// A face that was just made, as management shows it.
    ///
    /// # Errors
    /// It closed at once.
    pub(super) fn created(&self, id: FaceId) -> Result<FaceView, FaceError> {
        self.face_view(id).ok_or_else(|| FaceError::System("the face closed at once".into()))
    }

    // ----- faces change and go

    /// Applies the properties of a face to the shards after its record changed.
    pub(super) fn face_changed(&self, id: FaceId) {
        if let Some(record) = self.faces.get(id) {
            let link = record.link_config(&self.settings);
            self.shards.face_change(id, record.info(), &link);
        }
    }

    /// Closes a face and everything that refers to it; whether there was one.
    pub(super) fn face_remove(&mut self, id: FaceId, reason: &str) -> bool {
        let Some(owner) = self.faces.get(id).map(|record| record.owner) else { return false };
        self.faces.log(self.clock.now(), id, "face closed", reason);
        // By name, and first: who forgets a face that has next hops looks for them in the whole FIB.
        self.routes.remove_face(&self.shards, &self.faces, id);
        if let Some(counters) = self.shards.face_close(owner, id) {
            self.faces.gone.add(&counters);
        }
        if let Some(push) = &mut self.push {
            push.face_removed(id);
        }
        self.tell(id, Event::Destroyed);
        self.faces.leave(id);
        true
    }

    /// The transport of a face had an error that it may survive.
    pub(super) fn face_erred(&mut self, id: FaceId, reason: &str) {
        let now = self.clock.now();
        let in_frames =
            |shards: &Shards| shards.owner_counters().get(&id).map_or(0, |c| c.traffic.in_frames);
        let Some(record) = self.faces.get_mut(id) else { return };
        if record.persistency == Persistency::OnDemand && record.doubt.is_none() {
            let in_frames = in_frames(&self.shards);
            record.doubt = Some(Doubt { in_frames, until: now + DOUBT });
        }
        tracing::debug!(face = id.0, reason, "an error that the face survives");
        if let Some(push) = &self.push {
            push.face_refused(id);
        }
        self.tell(id, Event::Refused);
    }

    /// The transport of a face ended.
    pub(super) fn face_ended(&mut self, id: FaceId, reason: &str) {
        let now = self.clock.now();
        let Some(record) = self.faces.get_mut(id) else { return };
        if record.persistency != Persistency::Permanent || record.target.is_none() {
            self.face_remove(id, reason);
            return;
        }
        let again_ms = record.backoff.as_millis();
        tracing::warn!(face = id.0, remote = %record.remote, reason, again_ms, "face down");
        record.reconnect = now + record.backoff;
        if std::mem::replace(&mut record.up, false) {
            if let Some(push) = &self.push {
                push.face_down(id);
            }
            self.tell(id, Event::Down);
        }
    }

    /// A packet of a face, forwarded by another shard than its own, was malformed: a stream to
    /// another machine ends.
    pub(super) fn face_malformed(&mut self, id: FaceId, word: &str) {
        let is_over = |r: &Record| !r.is_datagram() && r.scope != Scope::Local;
        if self.faces.get(id).is_some_and(is_over) {
            self.face_ended(id, &format!("the peer sent a malformed packet: {word}"));
        }
    }

    /// A permanent face has its transport again.
    pub(super) fn face_reopen(&mut self, id: FaceId, io: Box<dyn Face>) {
        let Some(record) = self.faces.get_mut(id) else { return };
        record.reopen(&*io, &self.settings);
        tracing::info!(face = id.0, remote = %record.remote, "face up");
        let (owner, queue_bytes_max) = (record.owner, record.queue_bytes_max);
        let is_local = record.scope == Scope::Local;
        let link = record.link_config(&self.settings);
        self.shards.face_add(id, record.info(), owner);
        let opening = Opening { id, io, link, queue_bytes_max, first: Vec::new(), is_local };
        match self.shards.open(owner, opening) {
            Ok(()) => self.tell(id, Event::Up),
            Err(reason) => self.face_ended(id, &reason),
        }
    }

    // ----- timers

    pub(super) fn poll_timeout(&self) -> Tick {
        let parts = [
            self.faces.poll_timeout(),
            self.routes.poll_timeout(),
            self.watches.poll_timeout(),
            self.history.poll_timeout(),
            self.push.as_ref().map_or(Tick::NEVER, PushHalf::poll_timeout),
        ];
        parts.into_iter().min().unwrap_or(Tick::NEVER)
    }

    pub(super) fn handle_timeout(&mut self, io: &mut Io) {
        let now = io.now;
        self.reconnect(io);
        if self.faces.has_doubts(now) {
            for id in self.faces.silent(&self.shards.owner_counters(), now) {
                self.face_remove(id, "nobody is there");
            }
        }
        if self.faces.next_idle_check <= now {
            let timeout = self.settings.idle_timeout();
            self.faces.next_idle_check = now + timeout / 2;
            self.faces.note_activity(&self.shards.owner_counters(), now);
            for id in self.faces.idle(now, timeout) {
                self.face_remove(id, "idle");
            }
        }
        self.routes.handle_timeout(&self.shards, &self.faces, now);
        self.watches.handle_timeout(&self.shards, now);
        if let Some(push) = &mut self.push {
            push.measure(now, &self.shards, &self.faces);
        }
        self.remember(io);
    }

    /// Connects permanent faces that are down and due.
    pub(super) fn reconnect(&mut self, io: &mut Io) {
        let now = self.clock.now();
        let longest = Duration::from_millis(self.settings.config.faces.reconnect_max_ms);
        for id in self.faces.due(now) {
            let Some(record) = self.faces.get_mut(id) else { continue };
            // Until the attempt ends; its own time limit ends it.
            record.reconnect = Tick::NEVER;
            let Some(target) = record.target.clone() else { continue };
            record.backoff = (record.backoff * 2).min(longest);
            let again = now + record.backoff;
            match self.dial(io, target, Purpose::Reopen(id)) {
                Ok(None) => {}
                Ok(Some(dialed)) => _ = self.join(dialed),
                Err(error) => {
                    tracing::debug!(face = id.0, ?error, "connecting again failed");
                    if let Some(record) = self.faces.get_mut(id) {
                        record.reconnect = again;
                    }
                }
            }
        }
    }

    // ----- routes

    /// Registers the routes of the configuration whose faces exist.
    pub(super) fn apply_routes(&mut self) {
        self.routes.apply(&self.shards, &self.faces, &self.settings.config);
    }

    // ----- faces shown

    /// The faces as management shows them.
    pub(super) fn face_views(&self) -> Vec<FaceView> {
        self.views(self.faces.iter())
    }

    /// One face as management shows it.
    pub(super) fn face_view(&self, id: FaceId) -> Option<FaceView> {
        self.views(self.faces.get(id).into_iter()).pop()
    }

    fn views<'a>(&self, records: impl Iterator<Item = &'a Record>) -> Vec<FaceView> {
        let (counted, now) = (self.shards.face_counters(), self.clock.now());
        let counters = |id| counted.get(&id).copied().unwrap_or_default();
        records.map(|record| record.view(counters(record.id), &self.settings, now)).collect()
    }

    /// What each face counted.
    pub(super) fn face_counters(&self) -> Vec<(FaceId, FaceCounters)> {
        let counted = self.shards.face_counters();
        let counters = |id| counted.get(&id).copied().unwrap_or_default();
        self.faces.iter().map(|record| (record.id, counters(record.id))).collect()
    }

    /// Tells subscribers of management what happened to a face.
    fn tell(&mut self, id: FaceId, event: Event) {
        if let Some(record) = self.faces.get(id) {
            let view = record.view(FaceCounters::default(), &self.settings, self.clock.now());
            self.news.push(News::Face(event, view));
        }
    }

    /// A face is there: the push thread is told before the first frame.
    fn push_face_added(&self, id: FaceId) {
        if let (Some(push), Some(record)) = (&self.push, self.faces.get(id)) {
            push.face_added(record);
        }
    }
}
