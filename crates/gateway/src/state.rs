//! The gateway as a state machine: Interests, events and statuses in; actions out.

use crate::items::{Offer, Want};
use crate::map::Map;
use onym_client::Incoming;
use onym_crypto::signer::Signer;
use onym_frame::Buf;
use onym_tables::Tick;
use onym_wire::NackReason;
use onym_wire::name::Name;
use onym_wire::push::{Id, Kind, Status, Strategy};
use std::collections::{HashMap, VecDeque};
use std::time::Duration;

/// Bounds and times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Items with a subscription or publications kept.
    pub items_max: usize,
    /// Interests that wait for a publication.
    pub interests_max: usize,
    /// Octets of publications kept as Data.
    pub kept_bytes_max: usize,
    /// Items fed from producers.
    pub offers_max: usize,
    /// A subscription that no Interest asked for ends after this.
    pub idle: Duration,
    /// How often a producer is asked for a newer version while somebody subscribes.
    pub poll: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            items_max: 4096,
            interests_max: 65_536,
            kept_bytes_max: 64 << 20,
            offers_max: 4096,
            idle: Duration::from_secs(30),
            poll: Duration::from_secs(1),
        }
    }
}

/// A request to the dispatcher of the node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// One of the eight requests.
    pub kind: Kind,
    /// Full identifier.
    pub id: Id,
    /// Its strategy.
    pub strategy: Strategy,
}

/// What the shell has to do.
#[derive(Debug, Clone)]
pub enum Action {
    /// Make a request and tell its tag with [`Gateway::asked`].
    Request(Ask),
    /// Answer an Interest with this Data.
    Reply(Incoming, Buf),
    /// Answer an Interest with a Nack.
    Refuse(Incoming, NackReason),
    /// Fetch what the producer has newest under the name.
    Fetch(Id, Name),
    /// Stop fetching for this item.
    Cancel(Id),
    /// Publish.
    Publish(Id, Strategy, Vec<u8>),
}

/// What the gateway counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Interests that came.
    pub interests: u64,
    /// Interests answered with Data.
    pub answered: u64,
    /// Interests answered with a Nack: no item, a version that is not kept, refused.
    pub refused: u64,
    /// Interests that found no room.
    pub full: u64,
    /// Interests that waited in vain.
    pub expired: u64,
    /// Publications that became Data.
    pub publications_in: u64,
    /// Publications that nobody waited for any more, or that do not fit.
    pub publications_lost: u64,
    /// Versions that became publications.
    pub publications_out: u64,
    /// Fetches that failed.
    pub fetches_failed: u64,
}

/// Wait before a refused request is made again.
pub(crate) const AGAIN: Duration = Duration::from_millis(500);

/// The gateway.
#[derive(Debug)]
pub struct Gateway {
    pub(crate) maps: Vec<Map>,
    pub(crate) limits: Limits,
    pub(crate) signer: Signer,
    pub(crate) wants: HashMap<Id, Want>,
    pub(crate) offers: HashMap<Id, Offer>,
    /// Requests under way by their tag.
    asked: HashMap<u32, Ask>,
    pub(crate) actions: VecDeque<Action>,
    pub(crate) waiting: usize,
    pub(crate) kept_bytes: usize,
    unix_ms_at_zero: u64,
    /// Nothing is due before.
    pub(crate) due: Tick,
    pub(crate) counters: Counters,
}

impl Gateway {
    /// A gateway that signs with `signer`; the wall clock shows `unix_ms_at_zero` at [`Tick`] zero
    /// (versions are made of it).
    #[must_use]
    pub fn new(maps: Vec<Map>, limits: Limits, signer: Signer, unix_ms_at_zero: u64) -> Self {
        let mut gateway = Self {
            maps,
            limits,
            signer,
            wants: HashMap::new(),
            offers: HashMap::new(),
            asked: HashMap::new(),
            actions: VecDeque::new(),
            waiting: 0,
            kept_bytes: 0,
            unix_ms_at_zero,
            due: Tick::NEVER,
            counters: Counters::default(),
        };
        gateway.open();
        gateway
    }

    /// Publishes the scopes of the maps and their configured items.
    fn open(&mut self) {
        for at in 0..self.maps.len() {
            let (scope, strategy) = (self.maps[at].scope.clone(), self.maps[at].strategy);
            self.scopes_to(&scope, scope.len(), strategy);
            for id in self.maps[at].items.clone() {
                self.offer_configured(at, id);
            }
        }
    }

    /// Publishes the first `depth` scopes of `id`: the highest first.
    pub(crate) fn scopes_to(&mut self, id: &Id, depth: usize, strategy: Strategy) {
        for depth in 1..=depth {
            let id = Id::from_labels(&id.labels()[..depth]);
            self.request(Kind::PUBLISH_SCOPE, id, strategy);
        }
    }

    pub(crate) fn request(&mut self, kind: Kind, id: Id, strategy: Strategy) {
        self.actions.push_back(Action::Request(Ask { kind, id, strategy }));
    }

    /// The request got this tag.
    pub fn asked(&mut self, tag: u32, ask: Ask) {
        self.asked.insert(tag, ask);
    }

    /// The answer to the request with this tag.
    pub fn answered(&mut self, now: Tick, tag: u32, status: Status) {
        let Some(ask) = self.asked.remove(&tag) else { return };
        match ask.kind {
            Kind::SUBSCRIBE_ITEM => self.subscribed(now, &ask, status),
            Kind::PUBLISH_ITEM => self.offered(now, &ask, status),
            Kind::PUBLISH_SCOPE if !matches!(status, Status::OK | Status::EXISTS) => {
                tracing::debug!(id = %ask.id, %status, "a scope of the gateway is not published");
            }
            _ => {}
        }
    }

    /// What has to be done next.
    pub fn poll_action(&mut self) -> Option<Action> {
        self.actions.pop_front()
    }

    /// When [`Gateway::handle_timeout`] has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Tick {
        self.due
    }

    /// Does what is due.
    pub fn handle_timeout(&mut self, now: Tick) {
        if now < self.due {
            return;
        }
        self.due = self.wants_timeout(now).min(self.offers_timeout(now));
    }

    pub(crate) fn due_at(&mut self, at: Tick) {
        self.due = self.due.min(at);
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        self.counters
    }

    pub(crate) fn unix_ms(&self, now: Tick) -> u64 {
        self.unix_ms_at_zero + now.0 / 1_000_000
    }
}

/// Whether a refusal may pass: a scope or a rendezvous that is not there yet.
pub(crate) fn may_pass(status: Status) -> bool {
    matches!(status, Status::NO_PARENT | Status::UNREACHED | Status::FULL | Status::NO_SCOPE)
}
