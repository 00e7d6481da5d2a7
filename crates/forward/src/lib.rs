#![doc = include_str!("../README.md")]

pub mod choice;
mod config;
mod control;
mod explain;
pub mod faces;
pub mod fairness;
mod path;
pub mod strategy;
pub mod verdict;

pub use choice::ChoiceError;
pub use config::{Config, UnsolicitedPolicy};
pub use control::{Event, RouteError};
pub use explain::{Explanation, Hop, Question};
pub use faces::{Face, FaceCounters, FaceInfo, Faces};
pub use verdict::{Counters, Unsent, Verdict};

use choice::Choices;
use onym_frame::Buf;
use onym_link::{Outbox, Packet};
use onym_tables::cs::ContentStore;
use onym_tables::dead_nonces::DeadNonces;
use onym_tables::fib::Fib;
use onym_tables::hash::NameHashes;
use onym_tables::measurements::Measurements;
use onym_tables::pit::{Pit, TokenCodec};
use onym_tables::prefix_map::PrefixMap;
use onym_tables::{FaceId, HashKey, Rng, Tick};
use onym_wire::name::Name;
use strategy::{Action, Info, Measured};

/// The pull data path of one shard.
#[derive(Debug)]
pub struct Forwarder {
    pub(crate) config: Config,
    pub(crate) key: HashKey,
    pub(crate) rng: Rng,
    pub(crate) tokens: TokenCodec,
    pub(crate) faces: Faces,
    pub(crate) fib: Fib,
    pub(crate) pit: Pit<Info>,
    pub(crate) cs: ContentStore,
    pub(crate) dead: DeadNonces,
    pub(crate) measurements: Measurements<Measured>,
    pub(crate) choices: Choices,
    pub(crate) regions: Vec<Name>,
    pub(crate) announcements: PrefixMap<Buf>,
    pub(crate) counters: Counters,
    pub(crate) events: Vec<Event>,
    /// Room used again for each packet.
    pub(crate) actions: Vec<Action>,
    pub(crate) matched: Vec<u32>,
    pub(crate) told: Vec<FaceId>,
    /// Absent while a packet uses it.
    pub(crate) hashes: Option<Box<NameHashes>>,
    pub(crate) window: fairness::Window,
}

impl Forwarder {
    /// A forwarder without routes. It has the management face and the null face.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let key = config.hash_key;
        let mut faces = Faces::default();
        faces.add(FaceId::INTERNAL, FaceInfo { local_fields: true, ..FaceInfo::local() });
        faces.add(FaceId::NULL, FaceInfo::local());
        Self {
            key,
            rng: Rng::new(config.seed),
            tokens: TokenCodec::new(&key, config.shard),
            faces,
            fib: Fib::new(config.fib_entries_max),
            pit: Pit::new(config.pit_entries_max).with_octets_max(config.pit_octets_max),
            cs: ContentStore::new(config.cs, &key),
            dead: DeadNonces::new(config.dead_nonces_max, config.dead_nonce_lifetime_ms),
            measurements: Measurements::new(config.measurements_max),
            choices: Choices::new(&key, config.strategies_max),
            regions: Vec::new(),
            announcements: PrefixMap::default(),
            counters: Counters::default(),
            events: Vec::new(),
            actions: Vec::new(),
            matched: Vec::new(),
            told: Vec::new(),
            hashes: None,
            window: fairness::Window::default(),
            config,
        }
    }

    /// Takes one packet. What is to be sent is appended to `out`.
    pub fn receive(&mut self, now: Tick, packet: Packet, out: &mut Outbox) -> Verdict {
        path::run(self, now, &packet, out)
    }

    /// Whether `token` is one of ours for a pending Interest of exactly this name (its value), so
    /// that Data which brings it back needs no look at its name.
    #[must_use]
    pub fn token_fits(&self, token: &[u8], name: &[u8]) -> bool {
        let entry = self.tokens.decode(token).and_then(|(s, g)| self.pit.at_token(s, g));
        entry.is_some_and(|slot| self.pit.only_match(slot, name).is_some())
    }

    /// Tells that reliability of the link gave up sending `interest` (its whole element) on `face`:
    /// the strategy may try another upstream.
    pub fn interest_lost(&mut self, now: Tick, face: FaceId, interest: &[u8], out: &mut Outbox) {
        path::nack::lost(self, now, face, interest, out);
    }

    /// Shows a Data that belongs to another shard to the Interests with CanBePrefix that wait
    /// here; whether any wanted it. It is not counted as received: its own shard does that, by
    /// [`Forwarder::receive_shown`] when it was wanted here.
    pub fn show(&mut self, now: Tick, packet: &Packet, out: &mut Outbox) -> bool {
        path::data::show(self, now, packet, out)
    }

    /// Takes a Data that [`Forwarder::show`] found wanted in another shard: even without an
    /// Interest here it is not unsolicited, and it is cached.
    pub fn receive_shown(&mut self, now: Tick, packet: Packet, out: &mut Outbox) -> Verdict {
        path::run_shown(self, now, &packet, out)
    }

    /// Does what is due at `now`: ends pending Interests, runs the timers of strategies. At most
    /// some thousands at once; [`Forwarder::poll_timeout`] tells when to call again.
    pub fn handle_timeout(&mut self, now: Tick, out: &mut Outbox) {
        path::timers::run(self, now, out);
    }

    /// When [`Forwarder::handle_timeout`] should be called next; `None` when nothing is pending.
    #[inline]
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Tick> {
        self.pit.next_due()
    }
}
