//! The control plane of a node: graph, rendezvous, topology, link state, sessions, fragments and
//! their repair, signatures. Only here are parts wired: publications go from part to part.

mod border;
mod bundles;
mod detours;
mod links;
mod retain;
mod send;

use crate::courier::Traffic;
use crate::data::{Data, Published, Refusal};
use crate::dispatcher::{self, Came, Dispatcher, FragmentLimits, Origin, Request};
use crate::fib::{self, Fib, Pass};
use crate::forwarder::{self, Copies, Forwarder};
use crate::link_state::{self, LinkState};
use crate::publication::{AppId, DomainKey, Event, Notice, Outbox, To};
use crate::rendezvous::{self, Kept, Rendezvous};
use crate::signature::{Signing, Trusted};
use crate::topology::{self, Routing, TopologyManager};
use bundles::Bundles;
use onym_tables::bloom::KeyedTags;
use onym_tables::{FaceId, Tick};
use onym_wire::push::{Bundle, Control, Flags, Frame, Id, Kind, Label, Role, Strategy, reserved};
use smallvec::SmallVec;
use std::collections::BTreeSet;
use std::time::Duration;

/// Settings of a node.
#[derive(Debug, Clone)]
pub struct Config {
    /// Its identifier.
    pub node: Label,
    /// Number of its inside.
    pub inside: u32,
    /// What it does for the domain.
    pub role: Role,
    /// Number of this life of the node; another one than before.
    pub boot: u32,
    /// Its shards, each with a push FIB; 64 at most.
    pub shards: u16,
    /// The forwarder's limits, and how link numbers become tags.
    pub forwarder: forwarder::Config,
    /// How a topology manager makes filters; its scheme is the forwarder's.
    pub routing: Routing,
    /// Bounds of a rendezvous.
    pub limits: rendezvous::graph::Limits,
    /// Most octets of link states, about.
    pub link_state_octets_max: usize,
    /// Time after which a rendezvous forgets a silent node.
    pub lease: Duration,
    /// Most octets of a frame.
    pub frame_max: usize,
    /// The key of control messages, where the domain has one.
    pub key: Option<DomainKey>,
    /// Who signs what this node publishes; nobody: it is not signed.
    pub signing: Option<Signing>,
    /// Whose publications are delivered here; without it everybody's.
    pub trusted: Option<Trusted>,
    /// Whose control messages are obeyed, beside the keys of the domains; those of this node are
    /// signed then, too. Without it nobody's signature is asked for.
    pub control: Option<Trusted>,
    /// Octets of publications with algorithmic identifiers that are kept for who subscribes later.
    pub cache_octets_max: usize,
    /// Octets of publications of items that are retained for who subscribes later.
    pub retained_octets_max: usize,
    /// Octets of them that an application may be told and not have taken.
    pub reader_octets_max: usize,
    /// How long a publisher waits at a stretch for who is behind, where it wants that; zero: not.
    pub hold: Duration,
    /// Whether a topology manager tells nodes ways round their links, for when these are lost.
    pub backups: bool,
    /// The label of the domain, where there are others.
    pub domain: Option<Label>,
    /// The key of messages between domains, where they have one.
    pub federation_key: Option<DomainKey>,
}

impl Config {
    /// The usual settings.
    #[must_use]
    pub fn new(node: Label, inside: u32, role: Role, boot: u32) -> Self {
        Self {
            node,
            inside,
            role,
            boot,
            shards: 1,
            forwarder: forwarder::Config::default(),
            routing: Routing::default(),
            limits: rendezvous::graph::Limits::default(),
            link_state_octets_max: 16 << 20,
            lease: Duration::from_secs(30),
            frame_max: 1400,
            key: None,
            signing: None,
            trusted: None,
            control: None,
            cache_octets_max: 16 << 20,
            retained_octets_max: 16 << 20,
            reader_octets_max: 4 << 20,
            hold: dispatcher::HOLD,
            backups: false,
            domain: None,
            federation_key: None,
        }
    }
}

/// Faces of one frame; so many that no memory is asked for in the common case.
pub type Faces = SmallVec<[FaceId; 16]>;

/// A frame for its faces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frames {
    /// The faces.
    pub faces: Faces,
    /// The one frame for all of them.
    pub octets: Vec<u8>,
    /// The shard by which it leaves, behind what left there before, when it is data.
    pub by: Option<u16>,
}

/// What a node has to say to its shell; the buffers are used again and again.
#[derive(Debug, Default)]
pub struct Output {
    /// Frames, in order.
    pub frames: Vec<Frames>,
    /// What the control plane tells shards, in order, behind the frames.
    pub notices: Vec<Notice>,
    /// Events of applications, in order, where control plane and push FIB are one [`Node`].
    ///
    /// [`Node`]: crate::Node
    pub events: Vec<(To, Event)>,
    /// Buffers of frames that left.
    spare: Vec<Vec<u8>>,
}

/// Buffers that are kept for frames to come.
const SPARE_MAX: usize = 64;

impl Output {
    /// Takes the buffer of a frame that left, for another one.
    pub fn give_back(&mut self, mut octets: Vec<u8>) {
        if self.spare.len() < SPARE_MAX {
            octets.clear();
            self.spare.push(octets);
        }
    }

    pub(crate) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }
}

/// Control messages that ended without effect, by why.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Dropped {
    /// Do not parse.
    pub malformed: u64,
    /// No MAC of the domain, or a wrong one.
    pub mac: u64,
    /// Publications and control messages without the signature of somebody who is trusted.
    pub signature: u64,
    /// For a part that this node does not have, or from who may not send it.
    pub misdirected: u64,
}

/// A forwarder with the keys of the epoch that it starts in.
fn forwarder_of(config: &Config) -> Forwarder {
    let mut forwarder = Forwarder::new(config.forwarder.clone(), config.inside);
    if let Some(keyed) = config.routing.keyed {
        let node = config.node.to_u64();
        let keys = KeyedTags::of_node(keyed.master, node, keyed.epoch, keyed.k);
        forwarder.epoch_start(keyed.epoch, keys);
    }
    forwarder
}

/// All parts of one node but its push FIBs.
#[derive(Debug)]
pub struct ControlPlane {
    config: Config,
    /// Where frames go.
    pub forwarder: Forwarder,
    /// Applications.
    pub dispatcher: Dispatcher,
    /// The rendezvous within the node.
    pub inner: Rendezvous,
    /// The rendezvous of the domain, when this node is one.
    pub rendezvous: Option<Rendezvous>,
    /// The topology manager, when this node is one.
    pub topology: Option<TopologyManager>,
    /// Neighbours.
    pub link_state: LinkState,
    /// Control messages without effect.
    pub dropped: Dropped,
    /// Control messages handed to a part, by kind.
    taken: Box<[u64; 256]>,
    /// The forwarder decides otherwise than when this was last taken back.
    pub is_forwarder_changed: bool,
    /// Numbers of the links that there are and were.
    numbers: BTreeSet<u32>,
    /// Ways round lost links that frames take now; old ones are looked at again.
    detours: Vec<forwarder::Detour>,
    are_detours_old: bool,
    outbox: Outbox,
    copies: Copies,
    bundles: Bundles,
    /// Messages to other nodes wait for the end of a round.
    is_held: bool,
}

impl ControlPlane {
    /// A node without links and applications.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let inner = rendezvous::Config {
            node: config.node,
            is_node_local: true,
            limits: config.limits,
            lease: config.lease,
            epoch: u64::from(config.boot),
            boot: config.boot,
        };
        let domain = rendezvous::Config { is_node_local: false, ..inner.clone() };
        let topology = topology::Config {
            node: config.node,
            routing: Routing {
                scheme: config.forwarder.scheme,
                fill_max: config.forwarder.fill_max,
                ..config.routing
            },
            boot: config.boot,
            backups: config.backups,
            domain: config.domain,
        };
        let dispatcher = dispatcher::Config {
            frame_max: config.frame_max,
            reserve: config.signing.as_ref().map_or(0, Signing::overhead),
            cache_octets_max: config.cache_octets_max,
            retained_octets_max: config.retained_octets_max,
            reader_octets_max: config.reader_octets_max,
            hold: config.hold,
            keep_alive: config.lease / 3,
            held_max: config.limits.room(),
            shards: config.shards,
            ..dispatcher::Config::new(config.node, config.boot)
        };
        let links = link_state::Config {
            octets_max: config.link_state_octets_max,
            domain: config.domain,
            ..link_state::Config::new(config.node, config.inside, config.role, config.boot.into())
        };
        let signing = config.signing.as_ref().filter(|_| config.control.is_some());
        let bundles_reserve = signing.map_or(0, Signing::overhead);
        Self {
            forwarder: forwarder_of(&config),
            dispatcher: Dispatcher::new(dispatcher),
            inner: Rendezvous::new(inner),
            rendezvous: config.role.has(Role::RENDEZVOUS).then(|| Rendezvous::new(domain)),
            topology: config.role.has(Role::TOPOLOGY).then(|| TopologyManager::new(topology)),
            link_state: LinkState::new(links),
            dropped: Dropped::default(),
            taken: Box::new([0; 256]),
            is_forwarder_changed: false,
            numbers: BTreeSet::new(),
            detours: Vec::new(),
            are_detours_old: false,
            outbox: Outbox::default(),
            copies: Copies::default(),
            bundles: Bundles::new(bundles_reserve),
            is_held: false,
            config,
        }
    }

    /// Control messages of a kind that were handed to a part.
    #[must_use]
    pub fn taken(&self, kind: Kind) -> u64 {
        self.taken[usize::from(kind.0)]
    }

    /// Its identifier.
    #[must_use]
    pub const fn label(&self) -> Label {
        self.config.node
    }

    /// Its shards.
    #[must_use]
    pub const fn shards(&self) -> u16 {
        self.config.shards
    }

    /// Control messages of all its parts that are repeated until they are acknowledged.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        let graphs = [Some(&self.inner), self.rendezvous.as_ref()].into_iter().flatten();
        let manager = self.topology.iter().map(TopologyManager::traffic);
        let parts = graphs.map(Rendezvous::traffic).chain(manager);
        parts.chain([self.dispatcher.traffic()]).sum()
    }

    /// Starts another epoch of keyed tags, where the domain uses them. The shells of a domain start
    /// an epoch within half of its time of each other: the keys of the last one stay good.
    pub fn epoch_start(&mut self, now: Tick, number: u8, output: &mut Output) {
        let Some(keyed) = self.config.routing.keyed else { return };
        let node = self.config.node.to_u64();
        let keys = KeyedTags::of_node(keyed.master, node, number, keyed.k);
        self.forwarder.epoch_start(number, keys);
        if let Some(topology) = &mut self.topology {
            topology.epoch_start(now, number, &mut self.outbox);
        }
        self.settle(now, output);
    }

    /// From now on it is noted which scopes a store has to keep (P-44).
    pub fn keep_scopes(&mut self) {
        if let Some(rendezvous) = &mut self.rendezvous {
            rendezvous.keep_scopes();
        }
    }

    /// Scopes that come back from a store.
    pub fn recall(&mut self, now: Tick, kept: Vec<Kept>, output: &mut Output) {
        if let Some(rendezvous) = &mut self.rendezvous {
            rendezvous.recall(now, kept, &mut self.outbox);
        }
        self.settle(now, output);
    }

    /// Rendezvous nodes and topology managers whose lease in a store holds.
    pub fn roster(&mut self, now: Tick, nodes: BTreeSet<Label>) {
        if let Some(topology) = &mut self.topology {
            topology.roster(now, nodes);
        }
    }

    /// An empty push FIB for a shard of this node.
    #[must_use]
    pub fn fib(&self, shard: u16) -> Fib {
        let config = fib::Config {
            node: self.config.node,
            boot: self.config.boot,
            shard,
            shards: self.config.shards,
            frame_max: self.config.frame_max,
            reserve: self.config.signing.as_ref().map_or(0, Signing::overhead),
            spare_hops: dispatcher::SPARE_HOPS,
            is_checked: self.config.trusted.is_some(),
            octets_max: FragmentLimits::default().octets_max,
        };
        Fib::new(config, self.dispatcher.hashing())
    }

    /// A frame for this node that a push FIB passed.
    pub fn deliver_frame(
        &mut self,
        now: Tick,
        (face, origin): (FaceId, Origin),
        octets: &[u8],
        output: &mut Output,
    ) {
        self.dispatcher.take(origin);
        self.deliver(now, (face, origin), octets);
        self.settle(now, output);
    }

    /// A frame that a push FIB passed was lost on its way here: nothing waits for it.
    pub fn dropped_frame(&mut self, origin: Origin) {
        self.dispatcher.take(origin);
    }

    /// A frame for this node: to the part that listens at its identifier.
    fn deliver(&mut self, now: Tick, (face, origin): (FaceId, Origin), octets: &[u8]) {
        let Ok(frame) = Frame::parse(octets) else {
            self.dispatcher.counters.malformed += 1;
            return;
        };
        let mut ids = frame.ids;
        let id = ids.next().map(Id::from_labels).unwrap_or_default();
        if self.forwarder.is_external(face) {
            let came = Came { face, flags: Flags::of(octets), origin };
            return self.deliver_abroad(now, came, &frame, &id);
        }
        if !id.first().is_some_and(reserved::is_reserved) {
            let came = Came { face, flags: Flags::of(octets), origin };
            return self.deliver_data(now, &frame, came);
        }
        let is_fit = match &self.config.key {
            Some(key) => key.fits(frame.payload),
            None => true,
        };
        if !is_fit {
            self.dropped.mac += 1;
            return;
        }
        if !self.may_control(&frame) {
            return;
        }
        for message in Bundle::messages(frame.payload) {
            match message {
                Ok(message) => self.control(now, &id, message, face),
                Err(_) => self.dropped.malformed += 1,
            }
        }
    }

    /// A publication for applications of this node.
    pub(crate) fn deliver_data(&mut self, now: Tick, frame: &Frame<'_>, came: Came) {
        let trusted = self.config.trusted.as_ref();
        if trusted.is_some_and(|trusted| trusted.check(frame).is_err()) {
            self.dropped.signature += 1;
            return;
        }
        self.dispatcher.receive(now, frame, came, &mut self.outbox);
    }

    /// A frame on its way to others which caches may keep ([`Flags::may_keep`]): that of this node
    /// keeps it, if it would be delivered here. Nothing is counted, as it goes on anyway.
    pub fn pass_by(&mut self, now: Tick, face: FaceId, octets: &[u8]) {
        let Ok(frame) = Frame::parse(octets) else { return };
        let trusted = self.config.trusted.as_ref();
        if trusted.is_none_or(|trusted| trusted.check(&frame).is_ok()) {
            self.dispatcher.keep_passing(now, &frame, face, Flags::of(octets));
        }
    }

    /// A control message that came over a face.
    fn control(&mut self, now: Tick, id: &Id, payload: &[u8], face: FaceId) {
        let Ok(mut message) = Control::parse(payload) else {
            self.dropped.malformed += 1;
            return;
        };
        let place = (id.first().unwrap_or_default(), id.last().unwrap_or_default());
        self.obey(now, place, &mut message, Some(face));
    }

    /// A control message under `/root/node`; `face` is where it came from, `None`: a part of this
    /// node. Whoever keeps the message takes it.
    fn obey(
        &mut self,
        now: Tick,
        (root, node): (Label, Label),
        message: &mut Control,
        face: Option<FaceId>,
    ) {
        self.taken[usize::from(message.kind.0)] += 1;
        let out = &mut self.outbox;
        match (root, face) {
            (reserved::RENDEZVOUS, None)
                if message.strategy == Strategy::NODE_LOCAL && message.kind.is_request() =>
            {
                self.inner.receive(now, message, out);
            }
            (reserved::RENDEZVOUS, _) if message.sender == node => match &mut self.rendezvous {
                Some(rendezvous) => rendezvous.receive(now, message, out),
                None => self.dropped.misdirected += 1,
            },
            (reserved::TOPOLOGY, _) if message.sender == node => match &mut self.topology {
                Some(topology) => topology.receive(now, std::mem::take(message), out),
                None => self.dropped.misdirected += 1,
            },
            (reserved::DISPATCHER, _)
                if node == self.config.node
                    && matches!(message.kind, Kind::DOMAIN_OUT | Kind::BORDER) =>
            {
                self.border(message);
            }
            (reserved::DISPATCHER, _) if node == self.config.node => {
                if let (Kind::HOMES, Some(rendezvous)) = (message.kind, &mut self.rendezvous) {
                    rendezvous.receive(now, message, out);
                }
                self.dispatcher.control(now, message, face.is_none(), out);
            }
            (reserved::REPAIR, _) if node == self.config.node => {
                self.dispatcher.repair(now, message, out);
            }
            (reserved::LINK_STATE, None) => {
                if let Some(topology) = &mut self.topology {
                    topology.receive(now, std::mem::take(message), out);
                }
            }
            (reserved::LINK_STATE | reserved::HELLO, Some(face)) if message.sender == node => {
                self.link_state.receive(now, face, std::mem::take(message), out);
            }
            _ => self.dropped.misdirected += 1,
        }
    }

    /// A request of an application; its status is an event with `tag`.
    pub fn request(
        &mut self,
        now: Tick,
        app: AppId,
        tag: u64,
        request: &Request,
        output: &mut Output,
    ) {
        self.request_named(now, app, tag, request, None, output);
    }

    /// As [`ControlPlane::request`], with the word that the last label stands for.
    pub fn request_named(
        &mut self,
        now: Tick,
        app: AppId,
        tag: u64,
        request: &Request,
        word: Option<&str>,
        output: &mut Output,
    ) {
        self.dispatcher.request_named(now, app, tag, request, word, &mut self.outbox);
        self.settle(now, output);
    }

    /// Does what a push FIB of `shard` passed of a publication: how many frames that makes, and
    /// what the same push FIB is to hand out.
    ///
    /// # Errors
    /// [`Refusal`].
    pub fn publish(
        &mut self,
        now: Tick,
        app: AppId,
        data: &Data<'_>,
        pass: &Pass,
        shard: u16,
        output: &mut Output,
    ) -> Result<Published, Refusal> {
        let origin = Origin { shard, number: pass.number };
        self.dispatcher.take(origin);
        let out = &mut self.outbox;
        let done = self.dispatcher.publish(now, app, data, pass, origin, out);
        self.settle(now, output);
        done
    }

    /// An item says how far it is, which a push FIB of `shard` passed.
    pub fn reached(&mut self, now: Tick, pass: &Pass, shard: u16, output: &mut Output) {
        let origin = Origin { shard, number: pass.number };
        self.dispatcher.take(origin);
        if let Some(item) = &pass.item {
            self.dispatcher.reached(now, item, pass.place, origin, &mut self.outbox);
        }
        self.settle(now, output);
    }

    /// Why `app` may not publish what its push FIB does not know.
    #[must_use]
    pub fn refusal(&self, app: AppId, id: &Id) -> Refusal {
        self.dispatcher.refusal(app, id)
    }

    /// An application is gone.
    pub fn disconnect(&mut self, now: Tick, app: AppId, output: &mut Output) {
        self.dispatcher.disconnect(now, app, &mut self.outbox);
        self.settle(now, output);
    }

    /// Whether most of what applications and nodes asserted has gone since this was asked last, so
    /// that the allocator may hand memory back.
    pub fn take_emptied(&mut self) -> bool {
        let inner = self.inner.take_emptied();
        self.rendezvous.as_mut().is_some_and(Rendezvous::take_emptied) || inner
    }

    /// Timers.
    pub fn handle_timeout(&mut self, now: Tick, output: &mut Output) {
        let out = &mut self.outbox;
        self.link_state.handle_timeout(now, out);
        self.dispatcher.handle_timeout(now, out);
        if let Some(rendezvous) = &mut self.rendezvous {
            rendezvous.handle_timeout(now, out);
        }
        if let Some(topology) = &mut self.topology {
            topology.handle_timeout(now, out);
        }
        self.settle(now, output);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Tick {
        let parts = [
            self.link_state.next_timeout(),
            self.dispatcher.next_timeout(),
            self.rendezvous.as_ref().and_then(Rendezvous::next_timeout),
            self.topology.as_ref().and_then(TopologyManager::next_timeout),
            self.next_missed(),
        ];
        parts.into_iter().flatten().min().unwrap_or(Tick::NEVER)
    }
}
