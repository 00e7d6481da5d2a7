//! A router: one state machine over an [`Endpoint`].
//!
//! Its shell passes in packets, answers of the forwarder, changes of faces, results of signature
//! checks and `now`; it takes packets ([`Router::poll_transmit`]) and [`Output`]s, and calls
//! [`Router::handle_timeout`] at [`Router::poll_timeout`].

mod adverts;
mod check;
mod config;
mod doubt;
mod fib;
mod group;
mod hello;
mod links;
mod local;
mod measure;
mod neighbour;
mod output;
mod probe;
mod publish;
mod view;

pub use config::{Config, Link, next_boot};
pub use measure::CostBy;
pub use output::{Command, CommandError, Counters, Notice, Output, Verdict, Why};
pub use view::{
    DestinationView, Explanation, LinkView, NeighbourView, OfferView, OutsideView, RefusalView,
    View,
};

use crate::names::{self, Names, NamesError};
use crate::prefixes::Prefixes;
use crate::table::{PeerId, Table};
use check::Checks;
use fib::Fib;
use group::Untold;
use links::Links;
use neighbour::Neighbours;
use onym_crypto::Signer;
use onym_endpoint::{Endpoint, Event, Inbound, PrefixId, Transmit};
use onym_sync::alo::Alo;
use onym_tables::{Rng, Tick};
use onym_wire::{Interest, Name};
use probe::Probes;
use publish::{Parting, Publisher};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// Bits of a destination's number under its bootstrap time.
const SEQ_BITS: u32 = 16;
/// A bootstrap time further in the future than this is not believed: a wrong clock or a liar.
const FUTURE_MAX_S: u64 = 86_400;
/// Outputs that nobody took, at most; further notices are dropped, commands never.
const NOTICES_MAX: usize = 1024;
/// Routers whose last refusal is shown, at most; the oldest goes.
const REFUSALS_MAX: usize = 16;
/// What is refused again and again, and a router of our own name, is told to the log so often.
const TELL_AGAIN_MS: u64 = 60_000;
/// How often destinations without ways are looked at.
const SWEEP_MS: u64 = 10_000;

/// What a command was for.
#[derive(Debug, Clone)]
enum Purpose {
    Fib { prefix: Arc<Name>, face: u64, cost: Option<u64> },
    Link(usize),
    Other,
}

/// What somebody said that was not taken.
#[derive(Debug, Clone)]
struct Refusal {
    router: Name,
    key: Option<Name>,
    why: String,
    at: Tick,
    /// When the log heard of it.
    told: Tick,
}

/// The prefixes that a router serves.
#[derive(Debug, Clone, Copy)]
struct Served {
    active: PrefixId,
    passive: PrefixId,
    advert: PrefixId,
    local: PrefixId,
    /// What programs ask about this network.
    area: PrefixId,
}

/// A router of one network.
#[derive(Debug)]
pub struct Router {
    config: Config,
    names: Names,
    own: Arc<Name>,
    signer: Signer,
    endpoint: Endpoint,
    served: Served,
    table: Table,
    neighbours: Neighbours,
    links: Links,
    publisher: Publisher,
    checks: Checks,
    probes: Probes,
    rng: Rng,
    refusals: VecDeque<Refusal>,
    /// Bootstrap time of somebody with our name, and when it was told.
    duplicate: Option<(u64, Tick)>,
    fib: Fib,
    group: Alo,
    prefixes: Prefixes,
    untold: Untold,
    /// Whether there are other networks on this host, all of them, and what changed for them.
    is_border: bool,
    networks: Vec<Name>,
    reaches_changed: BTreeSet<Arc<Name>>,
    /// Routers whose prefixes are followed.
    followed: BTreeSet<Arc<Name>>,
    asking: group::Asking,
    /// Datasets of several segments, for who reads them.
    answers: VecDeque<(Name, Vec<u8>)>,
    purposes: BTreeMap<u64, Purpose>,
    command_next: u64,
    outputs: VecDeque<Output>,
    counters: Counters,
    /// Wall clock at [`Tick`] zero; for what is signed and believed, never for timers.
    unix_ms_at_zero: u64,
    signed_ms: u64,
    sweep_at: Tick,
    stopped: bool,
}

impl Router {
    /// Signs by another certificate from now on, of this or another key.
    pub fn renew(&mut self, signer: Signer) {
        self.group.renew(signer.clone());
        self.signer = signer;
    }

    /// A router that begins at `now`; `unix_ms` is the wall clock then.
    ///
    /// # Errors
    /// [`NamesError`].
    ///
    /// # Panics
    /// Never: an endpoint serves more prefixes than a router has.
    pub fn new(
        now: Tick,
        config: Config,
        signer: Signer,
        unix_ms: u64,
    ) -> Result<Self, NamesError> {
        let names = Names::new(config.network.clone(), config.router.clone())?;
        let own = Arc::new(names.router.clone());
        let mut endpoint = Endpoint::new(config.seed, onym_endpoint::Limits::default());
        let mut serve =
            |name: &Name| endpoint.serve(name.clone()).expect("invariant: few prefixes");
        let served = Served {
            active: serve(&names.sync_active),
            passive: serve(&names.sync_passive),
            advert: serve(&names.advert),
            local: serve(&local::prefix()),
            area: serve(&local::area_prefix(names.network.as_ref())),
        };
        let table = Table::new(Arc::clone(&own), config.boot << SEQ_BITS, config.table);
        let mut router = Self {
            publisher: Publisher::new(now, config.boot),
            links: Links::new(&config),
            neighbours: Neighbours::new(config.neighbours_max),
            checks: Checks::default(),
            probes: Probes::default(),
            rng: Rng::new(config.seed.rotate_left(29)),
            refusals: VecDeque::new(),
            duplicate: None,
            fib: Fib::default(),
            group: group::group(now, unix_ms, &names, signer.clone(), &config),
            prefixes: Prefixes::new(Arc::clone(&own), config.prefixes),
            untold: Untold::new(now),
            is_border: false,
            networks: vec![names.network.clone()],
            reaches_changed: BTreeSet::new(),
            followed: BTreeSet::new(),
            asking: group::Asking::new(),
            answers: VecDeque::new(),
            purposes: BTreeMap::new(),
            command_next: 1,
            outputs: VecDeque::new(),
            counters: Counters::default(),
            unix_ms_at_zero: unix_ms.saturating_sub(now.0 / 1_000_000),
            signed_ms: 0,
            sweep_at: now.plus_ms(SWEEP_MS),
            stopped: false,
            config,
            names,
            own,
            signer,
            endpoint,
            served,
            table,
        };
        router.start(now);
        router.tell_reset(now);
        Ok(router)
    }

    fn start(&mut self, now: Tick) {
        self.command(Command::LocalFields, Purpose::Other);
        let mut group = self.names.prefixes_of(self.own.as_ref().as_ref());
        group.append_timestamp(self.config.boot);
        let prefixes = [
            self.names.sync.clone(),
            self.names.advert.clone(),
            self.names.prefix_sync.clone(),
            group,
            local::prefix(),
        ];
        for prefix in prefixes {
            self.command(Command::Serve { prefix }, Purpose::Other);
        }
        for prefix in [self.names.sync.clone(), self.names.prefix_sync.clone()] {
            self.command(Command::Multicast { prefix }, Purpose::Other);
        }
        self.open_links(now);
        self.believe(now);
        self.progress(now);
    }

    // --- what goes in

    /// The wall clock was set: `unix_ms` at `now`. Only signatures and beliefs about the future change.
    pub fn set_clock(&mut self, now: Tick, unix_ms: u64) {
        self.unix_ms_at_zero = unix_ms.saturating_sub(now.0 / 1_000_000);
        self.group.set_clock(now, unix_ms);
        self.believe(now);
    }

    fn believe(&mut self, now: Tick) {
        let latest = self.unix_s(now).max(self.config.boot) + FUTURE_MAX_S;
        self.table.believe_below((latest + 1) << SEQ_BITS);
    }

    fn unix_ms(&self, now: Tick) -> u64 {
        self.unix_ms_at_zero + now.0 / 1_000_000
    }

    fn unix_s(&self, now: Tick) -> u64 {
        self.unix_ms(now) / 1000
    }

    /// Takes a packet; says whether it was for this router.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        let taken = self.endpoint.receive(now, packet)
            || self.is_flooded(now, packet)
            || self.group.receive(now, packet);
        self.events(now);
        self.progress(now);
        taken
    }

    /// Whether it is a vector of the prefix group beyond what its face may send.
    fn is_flooded(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        let Some(face) = packet.incoming_face else { return false };
        let sync = self.names.prefix_sync.as_ref();
        let is_vector = Interest::parse(packet.wire).is_ok_and(|i| sync.is_prefix_of(i.name));
        let flooded = is_vector && !self.checks.allow_vector(now, face);
        self.counters.flooded += u64::from(flooded);
        flooded
    }

    fn events(&mut self, now: Tick) {
        self.group_events(now);
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Interest { prefix, incoming } if prefix == self.served.advert => {
                    self.serve_advert(now, &incoming);
                }
                Event::Interest { prefix, incoming } if prefix == self.served.local => {
                    self.serve_local(now, &incoming);
                }
                Event::Interest { prefix, incoming } if prefix == self.served.area => {
                    self.serve_dataset(now, &incoming, local::AREA_LEN);
                }
                Event::Interest { prefix, incoming } => {
                    debug_assert!([self.served.active, self.served.passive].contains(&prefix));
                    self.on_sync(now, &incoming);
                }
                Event::Data { id, packet, rtt, .. } => self.on_advert(now, id, packet, rtt),
                Event::Unanswered { id, .. } => self.on_no_advert(now, id),
                _ => {}
            }
        }
    }

    /// The forwarder answered the command `id`; of [`Command::CreateFace`] with the face.
    pub fn completed(&mut self, now: Tick, id: u64, answer: Result<Option<u64>, CommandError>) {
        match self.purposes.remove(&id) {
            Some(Purpose::Fib { prefix, face, cost }) => {
                if answer.is_err() {
                    self.counters.commands_failed += 1;
                }
                match answer {
                    Ok(_) => {
                        self.fib.installed(&prefix, face, cost);
                        if cost.is_some() && *prefix == self.names.prefix_sync {
                            self.group.connected(now);
                        }
                    }
                    Err(error) => self.fib.failed(now, &prefix, face, cost, error),
                }
            }
            Some(Purpose::Link(index)) => self.link_answered(now, index, answer),
            Some(Purpose::Other) | None => {}
        }
        self.progress(now);
    }

    /// A face is gone or does not carry packets any more.
    pub fn face_down(&mut self, now: Tick, face: u64) {
        self.fib.face_gone(face);
        for prefix in self.prefixes.of_face(face) {
            self.withdraw(now, &prefix, face);
        }
        self.links.face_gone(now, face);
        let lost = self.neighbours.drop_face(face);
        for peer in lost {
            self.neighbour_faces_changed(now, peer, Why::FaceDown);
        }
        self.control_routes();
        self.progress(now);
    }

    /// The forwarder was started again: it has none of our faces and routes.
    pub fn forwarder_restarted(&mut self, now: Tick) {
        let faces: Vec<u64> = self.neighbours.faces();
        faces.iter().for_each(|face| self.face_down(now, *face));
        self.fib.forget_all();
        self.links.forget_all(now);
        self.start(now);
    }

    /// Neighbours are told that this router leaves; what it installed is withdrawn.
    pub fn stop(&mut self, now: Tick) {
        self.send_hello(now, None, Parting::Goodbye);
        self.stopped = true;
        self.fib.withdraw_all();
        self.progress(now);
    }

    // --- time and output

    /// When [`Router::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        if self.stopped {
            return self.fib.next_due();
        }
        [
            self.endpoint.poll_timeout(),
            self.group.poll_timeout(),
            self.publisher.next_due(),
            self.next_publish(),
            self.neighbours.next_due(&self.config),
            self.links.next_due(),
            self.fib.next_due(),
            self.untold.next_due(),
            self.asking.next_due(),
            self.sweep_at,
        ]
        .into_iter()
        .min()
        .unwrap_or(Tick::NEVER)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        self.endpoint.handle_timeout(now);
        self.group.handle_timeout(now);
        self.events(now);
        if self.sweep_at <= now {
            self.sweep_at = now.plus_ms(SWEEP_MS);
            self.table.sweep(now);
            self.believe(now);
        }
        self.bury(now);
        self.open_links(now);
        self.refetch(now);
        self.probe(now);
        self.inquire(now);
        self.send_due(now);
        self.tell_due(now);
        self.ask_due(now);
        self.progress(now);
    }

    /// Settles the table, installs, advertises: what follows from what was taken.
    fn progress(&mut self, now: Tick) {
        if !self.stopped {
            self.settle(now);
            self.publish_if_due(now);
        }
        while let Some((prefix, face, cost)) = self.fib.next(now) {
            let command = match cost {
                Some(cost) => Command::Register { prefix: (*prefix).clone(), face, cost },
                None => Command::Unregister { prefix: (*prefix).clone(), face },
            };
            self.command(command, Purpose::Fib { prefix, face, cost });
        }
    }

    /// Chooses ways again and tells the forwarder.
    fn settle(&mut self, now: Tick) {
        for destination in self.table.settle(now) {
            self.counters.route_changes += 1;
            self.install(&destination);
            self.follow(now, &destination);
        }
    }

    /// The ways to `destination` for the forwarder.
    fn install(&mut self, destination: &Arc<Name>) {
        let hops = self.face_hops(destination);
        let prefix = Arc::new(self.names.prefixes_of(destination.as_ref().as_ref()));
        self.fib.set(&prefix, hops);
    }

    /// Faces and costs of the ways to `destination`, best first.
    fn face_hops(&self, destination: &Name) -> Vec<(u64, u64)> {
        let Some(route) = self.table.route(destination) else { return Vec::new() };
        let face = |peer: PeerId| self.neighbours.get(peer)?.face();
        route.hops.iter().filter_map(|hop| Some((face(hop.peer)?, hop.metric))).collect()
    }

    /// Routes to neighbours themselves: for what they serve on the link, and for both syncs.
    fn control_routes(&mut self) {
        let mut faces: BTreeMap<u64, ()> = BTreeMap::new();
        for neighbour in self.neighbours.iter() {
            faces.extend(neighbour.faces.iter().map(|f| (f.face, ())));
            let prefix = Arc::new(names::link_prefix(neighbour.name.as_ref().as_ref()));
            self.fib.set(&prefix, neighbour.face().map(|face| (face, 0)).into_iter().collect());
        }
        let all: Vec<(u64, u64)> = faces.keys().map(|face| (*face, 0)).collect();
        let configured = self.links.open_faces(|face| faces.contains_key(&face));
        let passive = all.iter().filter(|(face, _)| !configured.contains(face)).copied().collect();
        let active = configured.iter().map(|face| (*face, 1)).collect();
        self.fib.set(&Arc::new(self.names.sync_passive.clone()), passive);
        self.fib.set(&Arc::new(self.names.sync_active.clone()), active);
        self.fib.set(&Arc::new(self.names.prefix_sync.clone()), all);
    }

    fn command(&mut self, command: Command, purpose: Purpose) {
        let id = self.command_next;
        self.command_next += 1;
        self.purposes.insert(id, purpose);
        self.counters.commands += 1;
        self.outputs.push_back(Output::Command { id, command });
    }

    fn notice(&mut self, notice: Notice) {
        if self.outputs.len() < NOTICES_MAX {
            self.outputs.push_back(Output::Notice(notice));
        } else {
            self.counters.notices_dropped += 1;
        }
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Tick) -> Option<Transmit> {
        self.endpoint.poll_transmit().or_else(|| self.group.poll_transmit(now))
    }

    /// The next thing that the shell shall do.
    pub fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    // --- views

    /// The names of this router.
    #[must_use]
    pub fn names(&self) -> &Names {
        &self.names
    }

    /// Its table.
    #[must_use]
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// The router behind a neighbour's identifier.
    #[must_use]
    pub fn neighbour_name(&self, peer: PeerId) -> Option<&Name> {
        self.neighbours.get(peer).map(|neighbour| &*neighbour.name)
    }

    /// Its prefix tables.
    #[must_use]
    pub fn prefixes(&self) -> &Prefixes {
        &self.prefixes
    }

    /// What was counted.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }
}

#[cfg(test)]
mod tests;
