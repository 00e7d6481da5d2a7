//! Publications of a group, each delivered at least once and in order (ndnd's SvsALO).

mod fetch;
mod key;
mod names;
mod object;
mod progress;
mod store;
#[cfg(test)]
mod tests;

pub use names::Layout;
pub use object::{HistoryEntry, read_history, read_index};

use crate::Judged;
use crate::svs::{
    Check, InnerName, StateVector, Svs, SvsConfig, SvsEvent, VerifyId as SyncVerifyId,
};
use fetch::Fetches;
use key::Key;
use onym_crypto::Signer;
use onym_endpoint::{Endpoint, Event, Inbound, Transmit};
use onym_tables::Tick;
use onym_wire::{Name, types};
use progress::Progress;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use store::Store;
use thiserror::Error;

/// How a newcomer learns what was published before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Snapshots {
    /// By each publication; a newcomer starts so many before the newest.
    None {
        /// Publications of a node that a newcomer asks for; [`u64::MAX`] for all.
        last: u64,
    },
    /// By a snapshot of the state of a node, then by the publications behind it. Only the newest
    /// bootstrap of a node counts. ndnd's routers need it.
    Latest {
        /// Publications between two snapshots. A snapshot is fetched when twice as many are missing.
        threshold: u64,
    },
    /// By bundles of all publications of a node, of all its bootstraps.
    History {
        /// As above.
        threshold: u64,
    },
}

/// What newcomers find of our own publications, beside each of them. The numbers are publications
/// between two of a kind; the first publication always has one.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Serves {
    /// Snapshots of our state.
    pub latest: Option<u64>,
    /// Bundles of history.
    pub history: Option<u64>,
}

/// Bounds of publications.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AloLimits {
    /// Publications of one node at one bootstrap that are fetched ahead of the next one.
    pub ahead_max: u64,
    /// Objects that are fetched at the same time.
    pub fetches_max: usize,
    /// Octets of one object.
    pub object_octets_max: usize,
    /// Octets that are held until they can be delivered.
    pub held_octets_max: usize,
    /// Octets of our own packets.
    pub store_octets_max: usize,
}

impl Serves {
    /// What members that learn by `snapshots` look for.
    #[must_use]
    pub const fn like(snapshots: Snapshots) -> Self {
        match snapshots {
            Snapshots::None { .. } => Self { latest: None, history: None },
            Snapshots::Latest { threshold } => Self { latest: Some(threshold), history: None },
            Snapshots::History { threshold } => Self { latest: None, history: Some(threshold) },
        }
    }
}

impl Default for AloLimits {
    fn default() -> Self {
        Self {
            ahead_max: 10,
            fetches_max: 256,
            object_octets_max: 8 << 20,
            held_octets_max: 64 << 20,
            store_octets_max: 16 << 20,
        }
    }
}

/// What a participant is told at its start.
#[derive(Debug, Clone)]
pub struct AloConfig {
    /// The group that names of publications have.
    pub group: Name,
    /// The vector. Its `check` says who looks at publications, too.
    pub svs: SvsConfig,
    /// Names of publications.
    pub layout: Layout,
    /// What signs publications and snapshots.
    pub signer: Signer,
    /// FreshnessPeriod of publications.
    pub freshness: Duration,
    /// How we learn what others published before.
    pub snapshots: Snapshots,
    /// How others learn it of us.
    pub serves: Serves,
    /// Bounds.
    pub limits: AloLimits,
    /// What was kept of the vector over a restart.
    pub known: StateVector,
}

impl AloConfig {
    /// As ndnd's SvsALO does it: vectors under `/<group>/32=svs`, the Data in them named for the
    /// node, publications `/<group>/<node>/t=<boot>/seq=<n>/v=0/seg=<k>`.
    #[must_use]
    pub fn new(group: Name, node: Name, boot: u64, signer: Signer, snapshots: Snapshots) -> Self {
        let mut sync = group.clone();
        sync.append_keyword("svs");
        let mut own = group.clone().join(node.as_ref());
        own.append_timestamp(boot).append_keyword("svs");
        let mut svs = SvsConfig::new(sync, Some(node), boot, signer.clone());
        svs.inner = InnerName::Own(own);
        Self {
            group,
            svs,
            layout: Layout::GroupFirst,
            signer,
            freshness: Duration::from_secs(4),
            snapshots,
            serves: Serves::like(snapshots),
            limits: AloLimits::default(),
            known: StateVector::default(),
        }
    }
}

/// Identifies a verification that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum VerifyId {
    /// Of a vector.
    Vector(SyncVerifyId),
    /// Of a Data that was fetched.
    Data(u64),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum AloEvent {
    /// A node published, subscribed or not.
    Publisher {
        /// Who.
        node: Name,
        /// Its bootstrap time.
        boot: u64,
        /// Its newest sequence number.
        seq: u64,
    },
    /// A publication of a node that was subscribed to; in order for each bootstrap.
    Publication {
        /// Who.
        node: Name,
        /// Its bootstrap time.
        boot: u64,
        /// Its number.
        seq: u64,
        /// What was published.
        content: Vec<u8>,
    },
    /// The state of a node after publication `seq`: replaces what was delivered before. The
    /// publications behind it follow.
    Snapshot {
        /// Who.
        node: Name,
        /// Its bootstrap time.
        boot: u64,
        /// The last publication that it covers.
        seq: u64,
        /// The state.
        content: Vec<u8>,
    },
    /// Is this signed by somebody who may? Answer with [`Alo::verified`], always: what is fetched
    /// waits for it.
    Verify {
        /// To be given back.
        id: VerifyId,
        /// A Data; for vectors of version 2 the Sync Interest.
        packet: Vec<u8>,
    },
    /// Something of a node could not be fetched; it is tried again.
    Unreachable {
        /// Who.
        node: Name,
        /// Its bootstrap time.
        boot: u64,
        /// How often in a row.
        failures: u32,
    },
    /// Publications that cannot be fetched and are not waited for any longer; only where there are
    /// no snapshots ([`Snapshots::None`]).
    Lost {
        /// Who.
        node: Name,
        /// Its bootstrap time.
        boot: u64,
        /// The first one.
        low: u64,
        /// The last one.
        high: u64,
    },
    /// See [`SvsEvent::OwnAhead`]. The next publication has a snapshot.
    OwnAhead {
        /// What was heard.
        seq: u64,
    },
    /// See [`SvsEvent::Extra`].
    Extra(Vec<u8>),
}

/// Why nothing was published; nothing changed.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum PublishError {
    /// This participant has no node of its own.
    #[error("a participant without a node publishes nothing")]
    NoNode,
    /// Longer than one packet where the layout has no segments, or than the store.
    #[error("{0} octets are too many for a publication here")]
    TooLong(usize),
    /// It cannot be signed.
    #[error("cannot sign the publication: {0}")]
    Sign(#[from] onym_crypto::Error),
}

/// What a participant counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AloCounters {
    /// Objects fetched.
    pub fetched: u64,
    /// Objects that were not fetched: no answer, not verified, malformed, too long.
    pub failed: u64,
    /// Interests for our Data that were answered.
    pub served: u64,
    /// Those that asked for what is not there (any more).
    pub absent: u64,
}

/// A participant with its publications; see the [crate].
#[derive(Debug)]
pub struct Alo {
    config: AloConfig,
    svs: Svs,
    endpoint: Endpoint,
    store: Store,
    subscriptions: BTreeSet<Name>,
    progress: BTreeMap<Key, Progress>,
    timers: BTreeSet<(Tick, Key)>,
    fetches: Fetches,
    /// Octets in fetches and in what waits for its turn.
    held: usize,
    events: VecDeque<AloEvent>,
    counters: AloCounters,
}

impl Alo {
    /// A participant; see [`Svs::new`] for the parameters.
    #[must_use]
    pub fn new(now: Tick, unix_ms: u64, config: AloConfig, seed: u64) -> Self {
        let mut svs = Svs::new(now, unix_ms, config.svs.clone(), seed);
        svs.restore(now, &config.known);
        let mut endpoint = Endpoint::new(!seed, onym_endpoint::Limits::default());
        if let Some(prefix) = names::data_prefix(&config) {
            let served = endpoint.serve(prefix);
            debug_assert!(served.is_ok(), "the first prefix has room");
        }
        let store = Store::new(unix_ms.saturating_sub(now.0 / 1_000_000));
        Self {
            config,
            svs,
            endpoint,
            store,
            subscriptions: BTreeSet::new(),
            progress: BTreeMap::new(),
            timers: BTreeSet::new(),
            fetches: Fetches::default(),
            held: 0,
            events: VecDeque::new(),
            counters: AloCounters::default(),
        }
    }

    /// The vector.
    #[must_use]
    pub const fn svs(&self) -> &Svs {
        &self.svs
    }

    /// Signs by another certificate from now on.
    pub fn renew(&mut self, signer: Signer) {
        self.svs.renew(signer.clone());
        self.config.svs.signer = signer.clone();
        self.config.signer = signer;
    }

    /// The prefix under which our Data are asked for: to be routed to us. `None` without a node.
    #[must_use]
    pub fn data_prefix(&self) -> Option<Name> {
        names::data_prefix(&self.config)
    }

    /// As [`Svs::set_clock`].
    pub fn set_clock(&mut self, now: Tick, unix_ms: u64) {
        self.svs.set_clock(now, unix_ms);
        self.store.set_clock(unix_ms.saturating_sub(now.0 / 1_000_000));
    }

    /// As [`Svs::sync_now`].
    pub fn sync_now(&mut self, now: Tick) {
        self.svs.sync_now(now);
    }

    /// As [`Svs::connected`].
    pub fn connected(&mut self, now: Tick) {
        self.svs.connected(now);
    }

    // --- publishing

    /// Publishes `content`; the group hears of it at the next [`Alo::poll_transmit`]. `snapshot`
    /// gives the state of this node with this publication; it is called when a snapshot is due
    /// ([`Serves::latest`]).
    ///
    /// # Errors
    /// [`PublishError`].
    pub fn publish(
        &mut self,
        now: Tick,
        content: &[u8],
        snapshot: impl FnOnce() -> Vec<u8>,
    ) -> Result<u64, PublishError> {
        if self.config.svs.node.is_none() {
            return Err(PublishError::NoNode);
        }
        let seq = self.svs.seq() + 1;
        self.store.publication(now, &self.config, seq, content)?;
        self.store.snapshots(now, &self.config, seq, snapshot)?;
        self.svs.publish(now);
        Ok(seq)
    }

    /// Sends elements along with the next vector, as [`Svs::attach`].
    pub fn attach(&mut self, elements: &[u8]) {
        self.svs.attach(elements);
    }

    /// Keeps a Data of ours under the data prefix, so that it is served.
    pub fn keep(&mut self, name: Name, data: Vec<u8>) {
        self.store.keep(name, data);
    }

    // --- subscribing

    /// Fetches what nodes under `prefix` publish; the empty name is for all.
    pub fn subscribe(&mut self, now: Tick, prefix: Name) {
        let keys: Vec<Key> =
            self.progress.keys().filter(|k| k.is_under(&prefix)).cloned().collect();
        self.subscriptions.insert(prefix);
        keys.iter().for_each(|key| self.pump(now, key));
    }

    /// Ends a subscription. What was delivered is remembered: a later subscription goes on there.
    pub fn unsubscribe(&mut self, prefix: &Name) {
        self.subscriptions.remove(prefix);
        let keys: Vec<Key> = self.progress.keys().filter(|k| k.is_under(prefix)).cloned().collect();
        for key in &keys {
            if !self.is_subscribed(&key.node) {
                self.stop(key);
            }
        }
    }

    fn is_subscribed(&self, node: &Name) -> bool {
        let name = node.as_ref();
        (0..=name.len()).any(|len| self.subscriptions.contains(name.prefix(len).value()))
    }

    // --- packets and time

    /// Takes a packet. Says whether it was for this participant.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        let is_interest = packet.wire.first().copied().map(u32::from) == Some(types::INTEREST);
        let taken = is_interest && packet.nack.is_none() && self.svs.receive(now, packet.wire);
        let taken = taken || self.endpoint.receive(now, packet);
        self.settle(now);
        taken
    }

    /// The answer to an [`AloEvent::Verify`].
    pub fn verified(&mut self, now: Tick, id: VerifyId, judged: Judged) {
        match id {
            VerifyId::Vector(id) => self.svs.verified(now, id, judged),
            VerifyId::Data(id) => self.data_verified(now, id, judged),
        }
        self.settle(now);
    }

    /// When [`Alo::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        let timer = self.timers.first().map_or(Tick::NEVER, |(at, _)| *at);
        self.svs.poll_timeout().min(self.endpoint.poll_timeout()).min(timer)
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        self.svs.handle_timeout(now);
        self.endpoint.handle_timeout(now);
        while let Some((_, key)) = self.timers.first().filter(|(at, _)| *at <= now).cloned() {
            self.timers.pop_first();
            self.pump(now, &key);
        }
        self.settle(now);
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Tick) -> Option<Transmit> {
        if let Some(wire) = self.svs.poll_transmit(now) {
            self.endpoint.notify(wire, None);
        }
        self.endpoint.poll_transmit()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<AloEvent> {
        self.events.pop_front()
    }

    /// What happened so far.
    #[must_use]
    pub const fn counters(&self) -> AloCounters {
        self.counters
    }

    /// Takes what the vector and the endpoint have to tell.
    fn settle(&mut self, now: Tick) {
        while let Some(event) = self.svs.poll_event() {
            self.on_svs(now, event);
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Data { id, packet, .. } => self.on_data(now, id, packet),
                Event::Unanswered { id, .. } => self.on_unanswered(now, id),
                Event::Interest { incoming, .. } => {
                    let found = self.store.find(&incoming.interest()).map(<[u8]>::to_vec);
                    self.counters.served += u64::from(found.is_some());
                    self.counters.absent += u64::from(found.is_none());
                    if let Some(data) = found {
                        self.endpoint.reply(&incoming, data);
                    }
                }
                _ => {}
            }
        }
    }

    fn on_svs(&mut self, now: Tick, event: SvsEvent) {
        match event {
            SvsEvent::Verify { id, packet } => {
                self.events.push_back(AloEvent::Verify { id: VerifyId::Vector(id), packet });
            }
            SvsEvent::Extra(elements) => self.events.push_back(AloEvent::Extra(elements)),
            SvsEvent::OwnAhead { seq } => {
                self.store.snapshot_due();
                self.events.push_back(AloEvent::OwnAhead { seq });
            }
            SvsEvent::Updates(updates) => {
                for update in updates {
                    let (node, boot, seq) = (update.node, update.boot, update.high);
                    self.advance(now, Key { node: node.clone(), boot }, seq);
                    self.events.push_back(AloEvent::Publisher { node, boot, seq });
                }
                self.prune();
            }
        }
    }

    fn checks(&self) -> bool {
        self.config.svs.check == Check::Ask
    }
}
