#![doc = include_str!("../README.md")]

pub mod choice;
mod config;
mod control;
mod event;
mod explain;
pub mod faces;
pub mod fairness;
mod path;
pub mod stage;
pub mod strategy;
mod trace;
pub mod verdict;
mod waiting;

pub use choice::ChoiceError;
pub use config::{Config, UnsolicitedPolicy};
pub use control::RouteError;
pub use event::Event;
pub use explain::{Explanation, Hop, Question};
pub use faces::{Face, FaceCounters, FaceInfo, Faces};
pub use path::{BATCH, Share};
pub use verdict::{Counters, Unsent, Verdict};

use onym_link::{Outbox, Packet, PacketKind};
use onym_tables::cs::ContentStore;
use onym_tables::fib::Fib;
use onym_tables::hash::NameHashes;
use onym_tables::{FaceId, Tick};
use stage::{Cache, CacheStage, Pending, RouteStage, Routes, Strategies};

/// The pull data path of one shard: the state of its stages, wired by `path`. Who has no routes or
/// no cache of its own puts another `R` or `C` in their place.
#[derive(Debug)]
pub struct Forwarder<R = Routes, C = Cache> {
    pub(crate) pending: Pending,
    pub(crate) strategies: Strategies,
    pub(crate) routes: R,
    pub(crate) cache: C,
    /// Of the name of the Interest that is taken; every stage uses them.
    hashes: Box<NameHashes>,
}

impl Forwarder {
    /// A forwarder without routes. It has the management face and the null face.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let routes = Routes { fib: Fib::new(config.fib_entries_max) };
        let store = ContentStore::new(config.cs, &config.hash_key);
        let cache = Cache { store, watch: None, offers: None };
        Self::with(config, routes, cache)
    }
}

impl<R> Forwarder<R, Cache> {
    /// The content store, and who verifies what it keeps.
    pub fn cache_mut(&mut self) -> &mut Cache {
        &mut self.cache
    }

    /// What became of the Data that are verified before they are kept.
    #[must_use]
    pub fn watched(&self) -> stage::WatchCounts {
        self.cache.watch.as_ref().map(|watch| watch.counts()).unwrap_or_default()
    }

    /// What a second level of the content store was offered.
    #[must_use]
    pub fn offered(&self) -> stage::OfferCounts {
        self.cache.offers.as_ref().map(|offers| offers.counts()).unwrap_or_default()
    }
}

impl<R: RouteStage, C: CacheStage> Forwarder<R, C> {
    /// A forwarder with these routes and this cache.
    #[must_use]
    pub fn with(config: Config, routes: R, cache: C) -> Self {
        let strategies = Strategies::new(&config);
        Self { pending: Pending::new(config), strategies, routes, cache, hashes: Box::default() }
    }

    /// Whether [`Forwarder::foresee`] is of use: a table is larger than the processor's caches.
    #[inline]
    #[must_use]
    pub fn foresees(&self) -> bool {
        path::ahead::is_useful(self)
    }

    /// Has the processor fetch what the packets will meet that are received next, of which there are
    /// at most [`BATCH`]: octets and PIT token of each. Says nothing about what becomes of them.
    pub fn foresee<'a>(&mut self, packets: impl Iterator<Item = (&'a [u8], &'a [u8])>) {
        path::ahead::run(self, packets);
    }

    /// Takes one packet. What is to be sent is appended to `out`.
    #[inline(always)]
    pub fn receive(&mut self, now: Tick, packet: Packet, out: &mut Outbox) -> Verdict {
        path::run(self, now, packet.kind(), &packet, out)
    }

    /// The same for who knows its kind ([`Packet::kind`]), and may look at it afterwards.
    #[inline(always)]
    pub fn receive_as(
        &mut self,
        now: Tick,
        kind: PacketKind,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Verdict {
        path::run(self, now, kind, packet, out)
    }

    /// Takes a Data that concerns several shards: a shard in which Interests with CanBePrefix may
    /// wait is shown it, then its own shard takes it. `None`: shown, and nobody waits for it here;
    /// or its token says that it belongs here, and leads to nothing that it satisfies.
    pub fn receive_data(
        &mut self,
        now: Tick,
        packet: &Packet,
        share: Share,
        out: &mut Outbox,
    ) -> Option<Verdict> {
        path::run_data(self, now, packet, share, out)
    }

    /// Takes a Nack of an upstream that decides for this forwarder: it is for the downstream whose
    /// Nonce it carries, and for no other.
    pub fn receive_nack_for_one(
        &mut self,
        now: Tick,
        packet: &Packet,
        out: &mut Outbox,
    ) -> Verdict {
        let verdict = path::nack::run_for_one(&mut self.pending, now, packet, out);
        self.pending.counters.note(PacketKind::Nack, verdict);
        verdict
    }

    /// Tells that reliability of the link gave up sending `interest` (its whole element) on `face`:
    /// the strategy may try another upstream.
    pub fn interest_lost(&mut self, now: Tick, face: FaceId, interest: &[u8], out: &mut Outbox) {
        path::nack::lost(self, now, face, interest, out);
    }

    /// Does what is due at `now`: ends pending Interests, runs the timers of strategies. At most
    /// some thousands at once; [`Forwarder::poll_timeout`] tells when to call again.
    pub fn handle_timeout(&mut self, now: Tick, out: &mut Outbox) {
        path::timers::run(self, now, out);
    }

    /// When [`Forwarder::handle_timeout`] should be called next; `None` when nothing is to be done.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Tick> {
        let cache = self.cache.poll_timeout();
        match self.pending.pit.next_due() {
            None if cache == Tick::NEVER => None,
            due => Some(due.map_or(cache, |due| due.min(cache))),
        }
    }
}

impl<R, C> Forwarder<R, C> {
    /// What is pending.
    #[must_use]
    pub fn pending(&self) -> &Pending {
        &self.pending
    }

    /// What is pending, to take over more.
    pub fn pending_mut(&mut self) -> &mut Pending {
        &mut self.pending
    }

    /// The routes, or what stands in for them.
    pub fn routes_mut(&mut self) -> &mut R {
        &mut self.routes
    }
}
