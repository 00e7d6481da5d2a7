//! The life of faces: made, up, down, connected again, closed.

use super::connect::Target;
use super::record::{NewFace, Record};
use super::room::Block;
use super::{Control, Purpose};
use crate::mgmt::FaceEvent as Event;
use crate::mgmt::host::{self, FaceView, User};
use crate::shard::{FaceOrder, Opening, ask_all};
use onym_engine::{FaceMap, OwnerCounters};
use onym_face::{Face, Transport};
use onym_link::{CongestionConfig, ReassemblyLimits};
use onym_tables::{FaceId, Tick};
use onym_wire::mgmt::{FACE_CONGESTION_MARKING, LinkType, Persistency, Scope};
use std::net::IpAddr;
use std::time::Duration;

impl Control {
    /// Adds a face; its number.
    ///
    /// # Errors
    /// A sentence: too many faces, or its descriptor cannot be watched.
    pub(crate) fn face_add(&mut self, mut new: NewFace) -> Result<FaceId, String> {
        let id = FaceId(self.next_face);
        let record = self.record(id, &new);
        self.room_for_face(record.is_stranger().then_some(record.block))?;
        self.next_face += 1;
        self.logs.face(self.clock.now(), &record, "face made", "");
        let (info, owner) = (record.info(), record.owner);
        let link = record.link_config(self.reassembly_limits());
        let queue_bytes_max = record.queue_bytes_max;
        ask_all(&self.ports, |reply| FaceOrder::Add { id, info, owner, reply });
        let is_local = record.scope == Scope::Local;
        self.enter(record);
        self.push_face_added(id);
        if let Some(io) = new.io.take() {
            let opening = Opening { id, io, link, queue_bytes_max, first: new.first, is_local };
            if let Err(reason) = self.open(owner, opening) {
                self.face_remove(id, &reason);
                return Err(reason);
            }
        }
        self.face_event(id, Event::Created);
        Ok(id)
    }

    fn open(&self, owner: usize, opening: Opening) -> Result<(), String> {
        let opening = Box::new(opening);
        match self.ports[owner].ask(|reply| FaceOrder::Open { opening, reply }) {
            Some(Ok(())) => Ok(()),
            Some(Err(error)) => Err(format!("watching its descriptor: {error}")),
            None => Err("the node is stopping".into()),
        }
    }

    fn record(&self, id: FaceId, new: &NewFace) -> Record {
        let now = self.clock.now();
        let defaults = &self.config.faces;
        let props = &new.props;
        let (remote, local, transport) = match (&new.io, &new.target) {
            (Some(io), _) => {
                (io.remote_uri().to_string(), io.local_uri().to_string(), io.transport())
            }
            (None, Some(target)) => (target.uri.to_string(), String::new(), target.transport()),
            (None, None) => (String::new(), String::new(), Transport::Mem),
        };
        let marks = defaults.congestion.marking && marks_by_default(transport);
        let marking = if marks { FACE_CONGESTION_MARKING } else { 0 };
        let own_mtu = new.io.as_ref().map_or(onym_wire::PACKET_LEN_MAX, |io| io.mtu());
        let default_mtu = match transport {
            Transport::Udp | Transport::UdpMulticast => defaults.udp.mtu,
            _ => own_mtu,
        };
        let asked = props.mtu.map_or(default_mtu, |m| usize::try_from(m).unwrap_or(own_mtu));
        let base_ms = Duration::from_millis(defaults.congestion.base_ms);
        let threshold = props.congestion_threshold.unwrap_or(defaults.congestion.threshold_bytes);
        let scope = new.io.as_deref().map_or(Scope::NonLocal, |io| self.scope_of(io));
        Record {
            id,
            remote,
            local,
            scope,
            link_type: self.link_type_of(new.io.as_deref()),
            transport,
            persistency: new.persistency,
            flags: marking & !props.mask | props.flags & props.mask,
            congestion: CongestionConfig {
                base_interval: props.congestion_interval_ns.map_or(base_ms, Duration::from_nanos),
                threshold: usize::try_from(threshold).unwrap_or(usize::MAX),
            },
            mtu: (!transport.is_reliable()).then(|| asked.min(own_mtu)),
            transport_mtu: own_mtu,
            queue_bytes_max: new.queue_bytes_max.unwrap_or(defaults.queue_bytes_max),
            up: new.io.is_some(),
            owner: self.shard_with_fewest_faces(),
            target: new.target.clone(),
            backoff: Duration::from_millis(defaults.reconnect_min_ms),
            reconnect: if new.io.is_some() { Tick::NEVER } else { now },
            frames: 0,
            active: now,
            peer: new.peer,
            stranger: new.persistency == Persistency::OnDemand && scope == Scope::NonLocal,
            user: self.user_of(new.io.as_deref()),
            made: now,
            block: Block::of(new),
        }
    }

    /// TCP faces are local by the subnets of the configuration, WebSockets where that is on, others
    /// by their kind.
    fn scope_of(&self, io: &dyn Face) -> Scope {
        if io.transport() == Transport::WebSocket && !self.config.faces.websocket.local {
            return Scope::NonLocal;
        }
        if io.transport() == Transport::Tcp {
            let ends = [io.remote_uri(), io.local_uri()].map(super::connect::ip_of);
            let local = |ip: &Option<IpAddr>| {
                ip.is_some_and(|ip| self.tcp_local.iter().any(|net| net.contains(ip)))
            };
            return if ends.iter().all(local) { Scope::Local } else { Scope::NonLocal };
        }
        io.scope()
    }

    /// Who is at the other end of a transport, as its door tells.
    fn user_of(&self, io: Option<&dyn Face>) -> User {
        let Some(io) = io else { return User::UNKNOWN };
        if io.transport() == Transport::Mem {
            // A part of this process.
            return User { uid: Some(onym_sys::peer::own_uid()), is_operator: true };
        }
        io.credentials().map_or(User::UNKNOWN, |peer| User {
            // What the kernel cannot name is nobody.
            uid: (peer.uid != u32::MAX).then_some(peer.uid),
            is_operator: self.operators.include(&peer),
        })
    }

    fn link_type_of(&self, io: Option<&dyn Face>) -> LinkType {
        match io.map_or(LinkType::PointToPoint, Face::link) {
            LinkType::MultiAccess if self.config.faces.udp.multicast_ad_hoc => LinkType::AdHoc,
            link => link,
        }
    }

    pub(crate) fn reassembly_limits(&self) -> ReassemblyLimits {
        let config = &self.config.reassembly;
        ReassemblyLimits {
            messages_max: config.partial_max,
            octets_max: config.bytes_max,
            timeout: Duration::from_millis(config.timeout_ms),
        }
    }

    /// Closes a face and everything that refers to it; whether there was one.
    pub(crate) fn face_remove(&mut self, id: FaceId, reason: &str) -> bool {
        let Some(record) = self.faces.get(&id) else { return false };
        let owner = record.owner;
        self.logs.face(self.clock.now(), record, "face closed", reason);
        if let Some(Some(counters)) = self.ports[owner].ask(|reply| FaceOrder::Close { id, reply })
        {
            self.gone.add(&counters);
        }
        ask_all(&self.ports, |reply| FaceOrder::Forget { id, reply });
        self.push_face_removed(id);
        self.face_event(id, Event::Destroyed);
        if let Some(peer) = self.leave(id).and_then(|record| record.peer) {
            self.peers.remove(&peer);
        }
        self.routes_of_face_remove(id);
        true
    }

    /// The transport of a face ended, or had an error that it may survive.
    pub(crate) fn face_failed(&mut self, id: FaceId, reason: &str, fatal: bool) {
        let now = self.clock.now();
        let Some(record) = self.faces.get_mut(&id) else { return };
        match (record.persistency, fatal) {
            (Persistency::Permanent | Persistency::Persistent, false) => {
                tracing::debug!(face = id.0, reason, "an error that the face survives");
            }
            (Persistency::Permanent, true) if record.target.is_some() => {
                tracing::warn!(face = id.0, remote = %record.remote, reason,
                    again_ms = record.backoff.as_millis(), "face down");
                record.reconnect = now + record.backoff;
                if std::mem::replace(&mut record.up, false) {
                    self.push_face_down(id);
                    self.face_event(id, Event::Down);
                }
            }
            _ => {
                self.face_remove(id, reason);
            }
        }
    }

    /// The transport of a face has become one of another kind: an application on the Unix socket
    /// asked for shared memory.
    pub(crate) fn face_carried_by(
        &mut self,
        id: FaceId,
        transport: Transport,
        local: String,
        remote: String,
    ) {
        // Out and in again: others look it up by where it leads.
        let Some(mut record) = self.leave(id) else { return };
        tracing::info!(face = id.0, ?transport, local, "face carried by another transport");
        (record.transport, record.local, record.remote) = (transport, local, remote);
        self.enter(record);
    }

    /// A permanent face has its transport again.
    pub(crate) fn face_reopen(&mut self, id: FaceId, io: Box<dyn Face>) {
        let limits = self.reassembly_limits();
        let backoff = Duration::from_millis(self.config.faces.reconnect_min_ms);
        let (scope, user) = (self.scope_of(&*io), self.user_of(Some(&*io)));
        let Some(record) = self.faces.get_mut(&id) else { return };
        record.user = user;
        record.local = io.local_uri().to_string();
        record.scope = scope;
        record.transport = io.transport();
        record.mtu = record.mtu.map(|m| m.min(io.mtu()));
        record.transport_mtu = io.mtu();
        (record.up, record.backoff, record.reconnect) = (true, backoff, Tick::NEVER);
        let (link, info, owner) = (record.link_config(limits), record.info(), record.owner);
        let (queue_bytes_max, is_local) = (record.queue_bytes_max, scope == Scope::Local);
        tracing::info!(face = id.0, remote = %record.remote, "face up");
        ask_all(&self.ports, |reply| FaceOrder::Add { id, info, owner, reply });
        let opening = Opening { id, io, link, queue_bytes_max, first: Vec::new(), is_local };
        match self.open(owner, opening) {
            Ok(()) => self.face_event(id, Event::Up),
            Err(reason) => self.face_failed(id, &reason, true),
        }
    }

    /// Connects permanent faces that are down and due; closes idle ones.
    pub(crate) fn face_timers(&mut self, now: Tick) {
        let due = self.faces.values().filter(|r| r.reconnect <= now).map(|r| r.id);
        for id in due.collect::<Vec<_>>() {
            self.reconnect(id, now);
        }
        if self.next_idle_check <= now {
            let timeout = Duration::from_secs(self.config.faces.idle_timeout_s);
            self.next_idle_check = now + timeout / 2;
            self.close_idle(now, timeout);
        }
    }

    fn reconnect(&mut self, id: FaceId, now: Tick) {
        let longest = Duration::from_millis(self.config.faces.reconnect_max_ms);
        let Some(record) = self.faces.get_mut(&id) else { return };
        let Some(target) = record.target.clone() else { return };
        record.backoff = (record.backoff * 2).min(longest);
        // Until the attempt ends; its own time limit ends it.
        record.reconnect = Tick::NEVER;
        let again = now + record.backoff;
        if let Err(error) = self.connect(target, Purpose::Reopen(id)) {
            tracing::debug!(face = id.0, ?error, "connecting again failed");
            if let Some(record) = self.faces.get_mut(&id) {
                record.reconnect = again;
            }
        }
    }

    fn close_idle(&mut self, now: Tick, timeout: Duration) {
        self.note_activity(now);
        let idle = |r: &&Record| r.idles() && now.since(r.active) >= timeout;
        let idle: Vec<FaceId> = self.faces.values().filter(idle).map(|r| r.id).collect();
        for id in idle {
            self.face_remove(id, "idle");
        }
    }

    /// Notes which faces had traffic since this was asked last.
    pub(super) fn note_activity(&mut self, now: Tick) {
        let counters = self.owner_counters();
        for record in self.faces.values_mut() {
            let c = counters.get(&record.id).copied().unwrap_or_default();
            let frames = c.traffic.in_frames + c.link.frames_out;
            if frames != record.frames {
                (record.frames, record.active) = (frames, now);
            }
        }
    }

    /// Counters of every face by the shard that does its I/O.
    pub(crate) fn owner_counters(&self) -> FaceMap<OwnerCounters> {
        let each = ask_all(&self.ports, |reply| FaceOrder::OwnerCounters { reply });
        each.into_iter().flatten().collect()
    }

    /// Packets of every face, all shards together.
    pub(super) fn packet_counters(&self) -> FaceMap<host::FaceCounters> {
        let mut packets = FaceMap::<host::FaceCounters>::default();
        let each = ask_all(&self.ports, |reply| FaceOrder::PacketCounters { reply });
        for (id, c) in each.into_iter().flatten() {
            let sum = packets.entry(id).or_default();
            sum.in_interests += c.in_interests;
            sum.in_data += c.in_data;
            sum.in_nacks += c.in_nacks;
            sum.out_interests += c.out_interests;
            sum.out_data += c.out_data;
            sum.out_nacks += c.out_nacks;
        }
        packets
    }

    /// Faces as management shows them.
    pub(crate) fn face_views(&self, only: Option<FaceId>) -> Vec<FaceView> {
        let (owner, packets) = (self.owner_counters(), self.packet_counters());
        let records = self.faces.values().filter(|r| only.is_none_or(|id| r.id == id));
        records
            .map(|record| {
                let mut counters = packets.get(&record.id).copied().unwrap_or_default();
                let owner = owner.get(&record.id).copied().unwrap_or_default();
                counters.in_bytes = owner.traffic.in_bytes;
                counters.out_bytes = owner.traffic.out_bytes;
                self.face_view(record, counters)
            })
            .collect()
    }

    pub(crate) fn face_view(&self, record: &Record, counters: host::FaceCounters) -> FaceView {
        let left = || {
            let timeout = Duration::from_secs(self.config.faces.idle_timeout_s);
            let left = timeout.saturating_sub(self.clock.now().since(record.active));
            u64::try_from(left.as_millis()).unwrap_or(u64::MAX)
        };
        let interval = record.congestion.base_interval.as_nanos();
        FaceView {
            id: record.id,
            remote_uri: record.remote.clone(),
            local_uri: record.local.clone(),
            expiration_ms: record.idles().then(left),
            scope: record.scope,
            persistency: record.persistency,
            link_type: record.link_type,
            congestion_interval_ns: u64::try_from(interval).ok(),
            congestion_threshold: Some(record.congestion.threshold as u64),
            mtu: record.mtu.map(|m| m as u64),
            flags: record.flags,
            up: record.up,
            counters,
        }
    }

    /// A face that a peer made is now one that we asked for.
    pub(super) fn face_keep(&mut self, id: FaceId, persistency: Persistency, target: Target) {
        let Some(record) = self.faces.get_mut(&id) else { return };
        if record.persistency == Persistency::OnDemand {
            record.persistency = persistency;
            record.target = Some(target);
        }
    }

    /// Applies the properties of `id` to the shards after its record changed.
    pub(crate) fn face_changed(&self, id: FaceId) {
        let Some(record) = self.faces.get(&id) else { return };
        let (info, link) = (record.info(), record.link_config(self.reassembly_limits()));
        ask_all(&self.ports, |reply| FaceOrder::Change { id, info, link: link.clone(), reply });
    }
}

/// Whether congestion is marked without being asked for, as NFD does: where the transport tells how
/// much of its queue is not sent yet.
fn marks_by_default(transport: Transport) -> bool {
    use Transport as T;
    !matches!(transport, T::Ether | T::EtherMulticast | T::WebSocket)
}
