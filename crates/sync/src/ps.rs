//! Publish and subscribe by application names over a vector: SVS-PS, as ndn-svs and NDNts have it.
//!
//! A publication is a Data of the application in a Data of the group, `/<node>/<group>/<seq>`, whose
//! name only the vector gives. Mappings tell which application name each number has: the newest along
//! with the vector, others on request. Who subscribes to a prefix fetches only what is under it.

mod mapping;
#[cfg(test)]
mod tests;

pub use mapping::Mapping;

use crate::Judged;
use crate::svs::{Check, Svs, SvsConfig, SvsEvent, Update, VerifyId as SyncVerifyId};
use onym_crypto::{Error, Signer};
use onym_endpoint::{Endpoint, Event, Inbound, Incoming, Packet, Request, RequestId, Transmit};
use onym_tables::Tick;
use onym_wire::{Data, DataBuilder, Name, NameRef, tlv, types};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

/// Publications for which a mapping is asked at once, as ndn-svs does.
const RANGE: u64 = 11;
/// Mappings and publications under way, at most; others wait.
const FETCHES_MAX: usize = 64;
/// Publications that wait, at most; further ones are told as missed.
const WAITING_MAX: usize = 4096;
/// Publications of ours that are kept, at most; the oldest go.
const KEPT_MAX: usize = 1024;
/// Publications of one node that a newcomer looks at.
const BACK_MAX: u64 = 256;
const MAPPING_LIFETIME: Duration = Duration::from_secs(2);
const MAPPING_FRESHNESS_MS: u64 = 1000;
const LIFETIME: Duration = Duration::from_secs(1);
/// With a third of all packets lost one of ten thousand is given up.
const TRIES: u32 = 12;
/// Content type of a Data that holds another one.
const ENCAPSULATED: u64 = 6;

/// What a participant is told at its start.
#[derive(Debug, Clone)]
pub struct PsConfig {
    /// The vector: its group, version, node and who looks at signatures.
    pub svs: SvsConfig,
    /// What signs publications.
    pub signer: Signer,
    /// FreshnessPeriod of publications.
    pub freshness: Duration,
}

/// Identifies a verification that was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum PsVerifyId {
    /// Of a vector.
    Vector(SyncVerifyId),
    /// Of a mapping or publication.
    Data(u64),
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum PsEvent {
    /// Something under a prefix that was subscribed to; in no order.
    Publication {
        /// Who published it.
        node: Name,
        /// Its number.
        seq: u64,
        /// The application's Data.
        packet: Vec<u8>,
    },
    /// Publications whose name or content could not be had.
    Missed {
        /// Of whom.
        node: Name,
        /// The first one.
        low: u64,
        /// The last one.
        high: u64,
    },
    /// Is this signed by somebody who may? Answer with [`PubSub::verified`].
    Verify {
        /// To be given back.
        id: PsVerifyId,
        /// A vector's packet, a mapping, or the application's Data.
        packet: Vec<u8>,
    },
}

/// Publications of a node at one of its bootstraps.
type Of = (Name, u64);

#[derive(Debug, Clone)]
enum What {
    Mapping { of: Of, low: u64, high: u64 },
    Publication { of: Of, seq: u64, name: Name },
}

/// A participant. Verbs as [`Svs`]'s.
#[derive(Debug)]
pub struct PubSub {
    config: PsConfig,
    svs: Svs,
    endpoint: Endpoint,
    /// Name and Data of each of ours.
    own: BTreeMap<u64, (Name, Vec<u8>)>,
    subscriptions: BTreeSet<Name>,
    waiting: VecDeque<What>,
    fetching: BTreeMap<RequestId, What>,
    verifying: BTreeMap<u64, (What, Packet)>,
    verify_next: u64,
    events: VecDeque<PsEvent>,
    malformed: u64,
}

impl PubSub {
    /// A participant; see [`Svs::new`] for the parameters.
    #[must_use]
    pub fn new(now: Tick, unix_ms: u64, config: PsConfig, seed: u64) -> Self {
        let svs = Svs::new(now, unix_ms, config.svs.clone(), seed);
        let mut endpoint = Endpoint::new(!seed, onym_endpoint::Limits::default());
        if let Some(node) = &config.svs.node {
            let served = endpoint.serve(node.clone().join(config.svs.group.as_ref()));
            debug_assert!(served.is_ok(), "the first prefix has room");
        }
        Self {
            config,
            svs,
            endpoint,
            own: BTreeMap::new(),
            subscriptions: BTreeSet::new(),
            waiting: VecDeque::new(),
            fetching: BTreeMap::new(),
            verifying: BTreeMap::new(),
            verify_next: 0,
            events: VecDeque::new(),
            malformed: 0,
        }
    }

    /// The vector.
    #[must_use]
    pub const fn svs(&self) -> &Svs {
        &self.svs
    }

    /// The prefix under which our Data are asked for: to be routed to us.
    #[must_use]
    pub fn data_prefix(&self) -> Option<Name> {
        Some(self.base(self.config.svs.node.as_ref()?))
    }

    /// Packets that could not be read.
    #[must_use]
    pub const fn malformed(&self) -> u64 {
        self.malformed
    }

    /// What is published under `prefix` from now on, and the last of before, is delivered.
    pub fn subscribe(&mut self, prefix: Name) {
        self.subscriptions.insert(prefix);
    }

    /// Ends a subscription.
    pub fn unsubscribe(&mut self, prefix: &Name) {
        self.subscriptions.remove(prefix);
    }

    fn wants(&self, name: &Name) -> bool {
        self.subscriptions.iter().any(|prefix| prefix.as_ref().is_prefix_of(name.as_ref()))
    }

    // --- publishing

    /// Publishes the application's Data `packet`, one packet; its number, or nothing without a node.
    ///
    /// # Errors
    /// When it cannot be signed, or is no Data.
    pub fn publish(&mut self, now: Tick, packet: &[u8]) -> Result<Option<u64>, PsError> {
        let Some(node) = self.config.svs.node.clone() else { return Ok(None) };
        let name = Data::parse(packet)?.name.to_name();
        let seq = self.svs.seq() + 1;
        let outer = self.publication(&node, seq);
        let freshness = u64::try_from(self.config.freshness.as_millis()).unwrap_or(u64::MAX);
        let data = DataBuilder {
            content_type: ENCAPSULATED,
            freshness_ms: freshness.max(1),
            ..DataBuilder::new(outer.as_ref(), packet)
        };
        let mut wire = Vec::new();
        self.config.signer.sign_data(&data, &mut wire)?;
        self.own.insert(seq, (name.clone(), wire));
        while self.own.len() > KEPT_MAX {
            self.own.pop_first();
        }
        let mut mapping = Vec::new();
        Mapping { node, entries: vec![(seq, name)] }.write(&mut mapping);
        self.svs.attach(&mapping);
        Ok(self.svs.publish(now))
    }

    fn base(&self, node: &Name) -> Name {
        node.clone().join(self.config.svs.group.as_ref())
    }

    fn publication(&self, node: &Name, seq: u64) -> Name {
        let mut name = self.base(node);
        name.append_number(types::GENERIC_COMPONENT, seq);
        name
    }

    fn mapping_name(&self, node: &Name, low: u64, high: u64) -> Name {
        let mut name = self.base(node);
        name.append_generic(b"MAPPING");
        name.append_number(types::GENERIC_COMPONENT, low);
        name.append_number(types::GENERIC_COMPONENT, high);
        name
    }

    fn serve(&mut self, incoming: &Incoming) -> Option<()> {
        let node = self.config.svs.node.clone()?;
        let interest = incoming.interest();
        let rest = interest.name.strip_prefix(self.base(&node).as_ref())?;
        if rest.get(0)?.value == b"MAPPING" {
            let (low, high) = (rest.get(1)?.as_number()?, rest.get(2)?.as_number()?);
            if rest.len() != 3 || low > high || high - low >= RANGE * 8 {
                return None;
            }
            // Only whole: a reader takes what is missing for what does not exist.
            let entry = |seq| Some((seq, self.own.get(&seq)?.0.clone()));
            let entries: Option<Vec<(u64, Name)>> = (low..=high).map(entry).collect();
            let mut content = Vec::new();
            Mapping { node, entries: entries? }.write(&mut content);
            let data = DataBuilder {
                freshness_ms: MAPPING_FRESHNESS_MS,
                ..DataBuilder::new(interest.name, &content)
            };
            let mut wire = Vec::new();
            self.config.signer.sign_data(&data, &mut wire).ok()?;
            self.endpoint.reply(incoming, wire);
            return Some(());
        }
        let seq = rest.get(0)?.as_number()?;
        let (_, wire) = self.own.get(&seq).filter(|_| rest.len() == 1)?;
        self.endpoint.reply(incoming, wire.clone());
        Some(())
    }

    // --- packets and time

    /// Takes a packet. Says whether it was for this participant.
    pub fn receive(&mut self, now: Tick, packet: &Inbound<'_>) -> bool {
        let is_interest = packet.nack.is_none() && packet.wire.first() == Some(&5);
        let taken = (is_interest && self.svs.receive(now, packet.wire))
            || self.endpoint.receive(now, packet);
        self.settle(now);
        taken
    }

    fn settle(&mut self, now: Tick) {
        while let Some(event) = self.svs.poll_event() {
            match event {
                SvsEvent::Updates(updates) => updates.into_iter().for_each(|u| self.look(u)),
                SvsEvent::Verify { id, packet } => {
                    self.events.push_back(PsEvent::Verify { id: PsVerifyId::Vector(id), packet });
                }
                SvsEvent::Extra(elements) => self.take_extra(&elements),
                SvsEvent::OwnAhead { .. } => {}
            }
        }
        while let Some(event) = self.endpoint.poll_event() {
            match event {
                Event::Interest { incoming, .. } => drop(self.serve(&incoming)),
                Event::Data { id, packet, .. } => self.on_data(id, packet),
                Event::Unanswered { id, .. } => {
                    if let Some(what) = self.fetching.remove(&id) {
                        self.miss(what);
                    }
                }
                _ => {}
            }
        }
        self.fetch(now);
    }

    /// Numbers are new: their names are looked up, where they did not come along.
    fn look(&mut self, update: Update) {
        let of: Of = (update.node, update.boot);
        let low = update.low.max(update.high.saturating_sub(BACK_MAX - 1));
        if low > update.low {
            self.missed(&of.0, update.low, low - 1);
        }
        self.map(&of, low, update.high + 1);
    }

    /// Asks for the names of `low` and those before `end`.
    fn map(&mut self, of: &Of, low: u64, end: u64) {
        let mut low = low;
        while low < end {
            let high = (low + RANGE).min(end) - 1;
            self.wait(What::Mapping { of: of.clone(), low, high });
            low = high + 1;
        }
    }

    fn named(&mut self, of: &Of, seq: u64, name: Name) {
        if self.wants(&name) {
            self.wait(What::Publication { of: of.clone(), seq, name });
        }
    }

    fn wait(&mut self, what: What) {
        if self.waiting.len() >= WAITING_MAX {
            return self.miss(what);
        }
        self.waiting.push_back(what);
    }

    fn miss(&mut self, what: What) {
        match what {
            What::Mapping { of, low, high } => self.missed(&of.0, low, high),
            What::Publication { of, seq, .. } => self.missed(&of.0, seq, seq),
        }
    }

    fn missed(&mut self, node: &Name, low: u64, high: u64) {
        self.events.push_back(PsEvent::Missed { node: node.clone(), low, high });
    }

    /// Names that came along with a vector, which is accepted before they are told.
    fn take_extra(&mut self, elements: &[u8]) {
        let Ok(Some(mapping)) = Mapping::parse(elements) else { return };
        for (seq, name) in mapping.entries {
            let queued = self.waiting.iter().position(|what| match what {
                What::Mapping { of, low, high } => {
                    of.0 == mapping.node && *low == seq && *high == seq
                }
                What::Publication { .. } => false,
            });
            // The number was told before its name, and nobody asked for it yet.
            if let Some(What::Mapping { of, .. }) = queued.and_then(|at| self.waiting.remove(at)) {
                self.named(&of, seq, name);
            }
        }
    }

    fn fetch(&mut self, now: Tick) {
        while self.fetching.len() + self.verifying.len() < FETCHES_MAX {
            let Some(what) = self.waiting.pop_front() else { return };
            let request = match &what {
                What::Mapping { of, low, high } => Request {
                    lifetime: MAPPING_LIFETIME,
                    tries: TRIES,
                    ..Request::new(self.mapping_name(&of.0, *low, *high))
                },
                What::Publication { of, seq, .. } => Request {
                    can_be_prefix: true,
                    lifetime: LIFETIME,
                    tries: TRIES,
                    ..Request::new(self.publication(&of.0, *seq))
                },
            };
            match self.endpoint.express(now, &request) {
                Ok(id) => drop(self.fetching.insert(id, what)),
                Err(_) => return self.waiting.push_front(what),
            }
        }
    }

    fn on_data(&mut self, id: RequestId, packet: Packet) {
        let Some(what) = self.fetching.remove(&id) else { return };
        // Of a publication what the application signed is what counts.
        let inner = match &what {
            What::Mapping { .. } => Some(packet),
            What::Publication { name, .. } => unwrapped(&packet, name.as_ref()),
        };
        let Some(packet) = inner else {
            self.malformed += 1;
            return self.miss(what);
        };
        if self.config.svs.check == Check::Nothing {
            return self.take(what, &packet);
        }
        let id = self.verify_next;
        self.verify_next += 1;
        let wire = packet.wire().to_vec();
        self.verifying.insert(id, (what, packet));
        self.events.push_back(PsEvent::Verify { id: PsVerifyId::Data(id), packet: wire });
    }

    /// The answer to a [`PsEvent::Verify`].
    pub fn verified(&mut self, now: Tick, id: PsVerifyId, judged: Judged) {
        match id {
            PsVerifyId::Vector(id) => self.svs.verified(now, id, judged),
            PsVerifyId::Data(id) => {
                let Some((what, packet)) = self.verifying.remove(&id) else { return };
                if judged == Judged::Good {
                    self.take(what, &packet);
                } else {
                    self.miss(what);
                }
            }
        }
        self.settle(now);
    }

    fn take(&mut self, what: What, packet: &Packet) {
        match &what {
            What::Mapping { of, low, high } => {
                let mapping = Mapping::parse(packet.data().content).ok().flatten();
                let Some(mapping) = mapping.filter(|mapping| mapping.node == of.0) else {
                    self.malformed += 1;
                    return self.miss(what);
                };
                let mut names: BTreeMap<u64, Name> = mapping.entries.into_iter().collect();
                for seq in *low..=*high {
                    match names.remove(&seq) {
                        Some(name) => self.named(of, seq, name),
                        None => self.missed(&of.0, seq, seq),
                    }
                }
            }
            What::Publication { of, seq, .. } => {
                let (node, packet) = (of.0.clone(), packet.wire().to_vec());
                self.events.push_back(PsEvent::Publication { node, seq: *seq, packet });
            }
        }
    }

    /// When [`PubSub::handle_timeout`] wants to be called.
    #[must_use]
    pub fn poll_timeout(&self) -> Tick {
        self.endpoint.poll_timeout().min(self.svs.poll_timeout())
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        self.svs.handle_timeout(now);
        self.endpoint.handle_timeout(now);
        self.settle(now);
    }

    /// The next packet to send.
    pub fn poll_transmit(&mut self, now: Tick) -> Option<Transmit> {
        if let Some(wire) = self.svs.poll_transmit(now) {
            return Some(Transmit { wire, ..Transmit::default() });
        }
        self.endpoint.poll_transmit()
    }

    /// The next thing that happened.
    pub fn poll_event(&mut self) -> Option<PsEvent> {
        self.events.pop_front()
    }
}

/// Why nothing was published; nothing changed.
#[derive(Debug, thiserror::Error)]
pub enum PsError {
    /// It is no Data.
    #[error("not a Data: {0}")]
    Malformed(#[from] onym_wire::Malformed),
    /// It cannot be signed.
    #[error("cannot sign the publication: {0}")]
    Sign(#[from] Error),
}

/// The application's Data in `outer`, when it is called `name` or a segment of it.
fn unwrapped(outer: &Packet, name: NameRef<'_>) -> Option<Packet> {
    let data = outer.data();
    if data.content_type != ENCAPSULATED {
        return None;
    }
    let element = tlv::Element::parse(data.content).ok()?;
    let inner = Packet::parse(element.wire).ok()?;
    name.is_prefix_of(inner.data().name).then_some(inner)
}
