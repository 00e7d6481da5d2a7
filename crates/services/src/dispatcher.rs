//! The packet dispatcher: splits the packets of each client onto two paths.
//!
//! It is the edge of a chain: it applies the ingress rules of a node, and adds the origin of each
//! packet.
//! In: everything of clients, and what comes back on their paths.  Out: registrations and Data of
//! a client to its producer path, its other Interests to its consumer path; what comes back to the
//! client.  Tables: sessions, bounded by `sessions_max`; a client beyond is closed. Each has a pair
//! of connections of its own, so nothing else is remembered.
//! Verdicts: `forwarded` `nack_forwarded` `no_path` `malformed` `unexpected_field` `scope`
//! `hop_limit_zero` `name_too_long` `next_hop_face_invalid`.

mod sessions;

use crate::chain::{NextHops, Origin};
use crate::config::{KindConfig, PacketDispatcher as Config};
use crate::control::{Answer, Request};
use crate::cx::Cx;
use crate::effect::Effect;
use crate::element::Element;
use crate::ports::Counts;
use crate::refusal::Refusal;
use crate::registration::is_command;
use crate::stats::{self, KindStats};
use crate::verdict::Verdict;
use onym_forward::FaceInfo;
use onym_forward::stage::rules;
use onym_frame::Buf;
use onym_link::{LpIn, LpOut, Packet, PacketKind, Payload};
use onym_tables::{FaceId, Tick};
use onym_wire::data::Data;
use onym_wire::faceuri::FaceUri;
use onym_wire::interest::Interest;
use sessions::count;
use std::collections::BTreeMap;
use std::num::NonZeroU64;

/// How long a path that was replaced must be silent before it is closed.
const SILENCE_MS: u64 = 1000;
/// Most components of the name of an Interest, as in a node.
const NAME_COMPONENTS: usize = 128;

/// One of the two ways of a client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Path {
    /// Interests for content.
    Consumer,
    /// Registrations and Data.
    Producer,
}

impl Path {
    const BOTH: [Self; 2] = [Self::Consumer, Self::Producer];

    const fn letter(self) -> char {
        match self {
            Self::Consumer => 'c',
            Self::Producer => 'p',
        }
    }
}

/// A client with its two paths.
#[derive(Debug)]
pub struct Session {
    number: u32,
    client: FaceId,
    paths: [Option<FaceId>; 2],
    /// Connections that were asked for and are not made yet.
    coming: [Option<FaceId>; 2],
    since_ms: u64,
    heard: Tick,
    received: Counts,
    sent: Counts,
    generation: u32,
    origin: Origin,
}

/// The element.
#[derive(Debug)]
pub(crate) struct PacketDispatcher {
    config: Config,
    sessions: BTreeMap<u32, Session>,
    /// Which session a face belongs to.
    faces: BTreeMap<FaceId, u32>,
    /// The clients by how the rest of the chain calls them.
    origins: BTreeMap<Origin, FaceId>,
    /// Paths that were replaced, with the moment they were heard last.
    old: BTreeMap<FaceId, (u32, Tick)>,
    next: u32,
    opened: u64,
    closed: u64,
    refused: u64,
}

impl PacketDispatcher {
    pub(crate) fn new() -> Self {
        let config = Config::default();
        Self {
            config,
            sessions: BTreeMap::new(),
            faces: BTreeMap::new(),
            origins: BTreeMap::new(),
            old: BTreeMap::new(),
            next: 0,
            opened: 0,
            closed: 0,
            refused: 0,
        }
    }

    fn uri(&self, path: Path) -> Option<&str> {
        match path {
            Path::Consumer => self.config.consumer_path.as_deref(),
            Path::Producer => self.config.producer_path.as_deref(),
        }
    }

    /// A packet of a client, which is let in by the rules of a node: the path that it takes.
    fn upward(packet: &Packet, info: FaceInfo) -> Result<Path, Verdict> {
        match packet.kind() {
            PacketKind::Nack => Ok(Path::Producer),
            PacketKind::Data => {
                rules::data_fields(&packet.lp)?;
                let data = Data::parse(&packet.bytes).map_err(|_| Verdict::Malformed)?;
                rules::data(data.name, info)?;
                Ok(Path::Producer)
            }
            PacketKind::Interest => {
                rules::interest_fields(&packet.lp, info)?;
                let interest = Interest::parse(&packet.bytes).map_err(|_| Verdict::Malformed)?;
                if is_command(interest.name) {
                    return Ok(Path::Producer);
                }
                if interest.name.len() > NAME_COMPONENTS {
                    return Err(Verdict::NameTooLong);
                }
                rules::interest(&interest, info, 1)?;
                Ok(Path::Consumer)
            }
        }
    }

    /// The next hop that an application chose, as one that no strategy is asked about.
    fn chosen(&self, packet: &Packet) -> Result<Option<Buf>, Verdict> {
        let Some(face) = packet.lp.next_hop_face.map(FaceId::of_told) else { return Ok(None) };
        let session = self.faces.get(&face).and_then(|number| self.sessions.get(number));
        let Some(session) = session.filter(|s| s.client == face) else {
            return Err(Verdict::NextHopFaceInvalid);
        };
        let hops = vec![(session.origin, 0)];
        Ok(Some(NextHops { components: 0, chosen: true, hops }.to_octets()))
    }

    /// What a packet of a client is on its path.
    fn taken_in(&self, packet: Packet) -> Result<Packet, Verdict> {
        if packet.kind() != PacketKind::Interest {
            return Ok(packet);
        }
        let prefix_announcement = self.chosen(&packet)?;
        let lp = LpIn { next_hop_face: None, prefix_announcement, ..packet.lp };
        Ok(Packet { lp, ..packet })
    }

    /// How a client is told where a packet came from.
    fn told(&self, packet: &Packet) -> Option<NonZeroU64> {
        let origin = Origin::of_packet(&packet.lp)?;
        if origin == Origin::STORE {
            return FaceId::CONTENT_STORE.told();
        }
        self.origins.get(&origin).and_then(|face| face.told())
    }

    fn connect(&mut self, cx: &mut Cx<'_>, number: u32, path: Path) {
        let Some(uri) = self.uri(path).map(str::to_owned) else { return };
        let Some(session) = self.sessions.get_mut(&number) else { return };
        session.generation += 1;
        let label = format!("s{number}.{}.{}", path.letter(), session.generation);
        cx.effects.push(Effect::Connect { label, uri, far_end: self.config.peer });
    }

    /// The session and path that a label of ours names.
    fn named(label: &str) -> Option<(u32, Path)> {
        let (session, rest) = label.strip_prefix('s')?.split_once('.')?;
        let letter = rest.chars().next()?;
        let path = Path::BOTH.into_iter().find(|p| p.letter() == letter)?;
        Some((session.parse().ok()?, path))
    }

    fn close(&mut self, cx: &mut Cx<'_>, number: u32) {
        let Some(session) = self.sessions.remove(&number) else { return };
        self.closed += 1;
        self.origins.remove(&session.origin);
        let paths = session.paths.into_iter().chain(session.coming).flatten();
        let replaced = self.old.iter().filter(|(_, (n, _))| *n == number).map(|(f, _)| *f);
        let mut all: Vec<FaceId> = paths.chain(replaced).chain([session.client]).collect();
        all.dedup();
        for face in all {
            self.faces.remove(&face);
            self.old.remove(&face);
            cx.effects.push(Effect::Close(face));
        }
    }

    fn downward(&mut self, cx: &mut Cx<'_>, packet: &Packet, number: u32) -> Verdict {
        if let Some((_, heard)) = self.old.get_mut(&packet.face) {
            *heard = cx.now;
        }
        let Some(session) = self.sessions.get_mut(&number) else { return Verdict::NoPath };
        let kind = packet.kind();
        count(&mut session.sent, kind);
        let client = session.client;
        let lp = LpOut {
            pit_token: packet.lp.pit_token.clone(),
            congestion_mark: packet.lp.congestion_mark,
            nack: packet.lp.nack,
            incoming_face: self.told(packet),
            no_cache: packet.lp.no_cache,
            non_discovery: packet.lp.non_discovery,
            prefix_announcement: packet.lp.prefix_announcement.clone(),
        };
        cx.emit(client, kind, Payload::Shared(packet.bytes.clone()), lp);
        if kind == PacketKind::Nack { Verdict::NackForwarded } else { Verdict::Forwarded }
    }
}

impl Element for PacketDispatcher {
    fn receive(&mut self, cx: &mut Cx<'_>, packet: Packet) -> Option<Verdict> {
        let Some(number) = self.faces.get(&packet.face).copied() else {
            return Some(Verdict::NoPath);
        };
        let is_client = self.sessions.get(&number).is_some_and(|s| s.client == packet.face);
        if !is_client {
            return Some(self.downward(cx, &packet, number));
        }
        let kind = packet.kind();
        let session = self.sessions.get_mut(&number)?;
        session.heard = cx.now;
        count(&mut session.received, kind);
        let (origin, paths) = (session.origin, session.paths);
        let local_fields = cx.ports.get(packet.face).is_some_and(|p| p.local_fields);
        let info = FaceInfo { local_fields, ..origin.info() };
        let taken = Self::upward(&packet, info).and_then(|path| Ok((path, self.taken_in(packet)?)));
        let (path, packet) = match taken {
            Ok(taken) => taken,
            Err(verdict) => return Some(verdict),
        };
        let Some(face) = paths[path as usize] else { return Some(Verdict::NoPath) };
        cx.pass_with(face, &packet, packet.lp.pit_token.clone(), Some(origin));
        Some(if kind == PacketKind::Nack { Verdict::NackForwarded } else { Verdict::Forwarded })
    }

    fn face_added(&mut self, cx: &mut Cx<'_>, face: FaceId) {
        let label = cx.ports.label(face).to_owned();
        if let Some((number, path)) = Self::named(&label) {
            let Some(session) = self.sessions.get_mut(&number) else {
                cx.effects.push(Effect::Close(face));
                return;
            };
            self.faces.insert(face, number);
            // The first one is used while it is being connected: what is sent waits in its queue.
            match session.paths[path as usize] {
                None => session.paths[path as usize] = Some(face),
                Some(_) => session.coming[path as usize] = Some(face),
            }
            return;
        }
        if self.sessions.len() >= self.config.sessions_max {
            self.refused += 1;
            cx.effects.push(Effect::Close(face));
            return;
        }
        // Unique among the threads of a dispatcher, as numbers of faces are.
        self.next = face.0;
        self.opened += 1;
        let Some(origin) = cx.ports.get(face).map(|port| port.entrance(cx.key)) else { return };
        let (since_ms, heard) = (cx.unix_ms, cx.now);
        let session = Session {
            number: self.next,
            client: face,
            paths: [None; 2],
            coming: [None; 2],
            since_ms,
            heard,
            received: Counts::default(),
            sent: Counts::default(),
            generation: 0,
            origin,
        };
        self.origins.insert(origin, face);
        self.sessions.insert(self.next, session);
        self.faces.insert(face, self.next);
        for path in Path::BOTH {
            self.connect(cx, self.next, path);
        }
    }

    fn face_up(&mut self, cx: &mut Cx<'_>, face: FaceId) {
        let Some(number) = self.faces.get(&face).copied() else { return };
        let Some(session) = self.sessions.get_mut(&number) else { return };
        for path in Path::BOTH {
            if session.coming[path as usize] == Some(face) {
                // Made before the old one is given up: no packet is lost between them.
                session.coming[path as usize] = None;
                if let Some(old) = session.paths[path as usize].replace(face) {
                    self.old.insert(old, (number, cx.now));
                }
            }
        }
    }

    fn face_removed(&mut self, cx: &mut Cx<'_>, face: FaceId, _: &str) {
        let Some(number) = self.faces.remove(&face) else { return };
        if self.old.remove(&face).is_some() {
            return;
        }
        let Some(session) = self.sessions.get_mut(&number) else { return };
        if let Some(at) = session.coming.iter().position(|c| *c == Some(face)) {
            // The new path could not be made: the old one goes on.
            session.coming[at] = None;
            return;
        }
        self.close(cx, number);
    }

    fn handle_timeout(&mut self, cx: &mut Cx<'_>) {
        let silent = |heard: Tick, ms: u64| heard.plus_ms(ms) <= cx.now;
        let over = self.old.iter().filter(|(_, (_, heard))| silent(*heard, SILENCE_MS));
        let over: Vec<FaceId> = over.map(|(face, _)| *face).collect();
        let idle = self.config.idle_ms;
        let still = self.sessions.values().filter(|s| idle > 0 && silent(s.heard, idle));
        let still: Vec<u32> = still.map(|s| s.number).collect();
        for face in over {
            // Its end is none of the session's any more.
            self.old.remove(&face);
            self.faces.remove(&face);
            cx.effects.push(Effect::Close(face));
        }
        for number in still {
            self.close(cx, number);
        }
    }

    fn poll_timeout(&self) -> Option<Tick> {
        let old = self.old.values().map(|(_, heard)| heard.plus_ms(SILENCE_MS)).min();
        let idle = match self.config.idle_ms {
            0 => None,
            ms => self.sessions.values().map(|s| s.heard.plus_ms(ms)).min(),
        };
        old.into_iter().chain(idle).min()
    }

    fn config(&self) -> KindConfig {
        KindConfig::PacketDispatcher(self.config.clone())
    }

    fn configure(&mut self, cx: &mut Cx<'_>, config: KindConfig) -> Result<(), Refusal> {
        let KindConfig::PacketDispatcher(config) = config else { return Err(Refusal::no_path()) };
        for (key, uri) in
            [("consumer_path", &config.consumer_path), ("producer_path", &config.producer_path)]
        {
            if let Some(Err(e)) = uri.as_ref().map(|u| u.parse::<FaceUri>()) {
                return Err(Refusal::field(key, format!("not a face URI: {e}")));
            }
        }
        let before = std::mem::replace(&mut self.config, config);
        let changed = [
            before.consumer_path != self.config.consumer_path,
            before.producer_path != self.config.producer_path,
        ];
        let numbers: Vec<u32> = self.sessions.keys().copied().collect();
        for number in numbers {
            for path in Path::BOTH {
                let missing =
                    self.sessions.get(&number).is_some_and(|s| s.paths[path as usize].is_none());
                if changed[path as usize] && (self.config.repoint || missing) {
                    self.connect(cx, number, path);
                }
            }
        }
        Ok(())
    }

    fn stats(&self, _: &Cx<'_>) -> KindStats {
        KindStats::PacketDispatcher(stats::PacketDispatcher {
            sessions: self.sessions.len() as u64,
            opened: self.opened,
            closed: self.closed,
            refused: self.refused,
        })
    }

    fn control(&mut self, cx: &mut Cx<'_>, request: Request) -> Result<Answer, Refusal> {
        match request {
            Request::Sessions => Ok(self.list(cx)),
            _ => Err(Refusal::no_path()),
        }
    }
}
