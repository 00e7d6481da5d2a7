//! The cache stage: a content store, or none.

use super::offers::{Came, Offers};
use super::{Arrival, Held, Watch};
use onym_frame::Buf;
use onym_tables::cs::{Body, ContentStore, Demand, Inserted, Query};
use onym_tables::hash::NameHashes;
use onym_tables::{HashKey, Tick};
use onym_wire::data::{Data, DataHead};
use onym_wire::interest::Interest;

/// What the path asks of a cache.
pub trait CacheStage {
    /// Whether a query by exactly the name with this hash may find something; otherwise it needs not be
    /// made.
    #[inline(always)]
    fn may_have(&self, _hash: u64) -> bool {
        true
    }

    /// The cached Data for `query`.
    fn find(&mut self, now: Tick, query: &Query<'_>) -> Option<Body<'_>>;

    /// Has the processor fetch what a lookup or an insertion of a name with this hash meets.
    #[inline(always)]
    fn prefetch(&self, _hash: u64) {}

    /// Whether the processor may not have what a lookup or an insertion meets; then the following
    /// three, each when the one before it is done for a whole batch, have it fetched.
    #[inline(always)]
    fn is_large(&self) -> bool {
        false
    }

    /// For an Interest whose name has this hash.
    #[inline(always)]
    fn prefetch_found(&self, _hash: u64) {}

    /// As [`CacheStage::prefetch_found`], the octets of an answer.
    #[inline(always)]
    fn prefetch_hit(&self, _hash: u64) {}

    /// For the room of so many Data; in the second step what those leave that go.
    #[inline(always)]
    fn prefetch_room(&self, _count: usize, _step: usize) {}

    /// Steps that searches took beyond usual ones since this was asked last.
    fn take_steps(&mut self) -> u32 {
        0
    }

    /// When [`CacheStage::handle_timeout`] should be called next.
    fn poll_timeout(&self) -> Tick {
        Tick::NEVER
    }

    /// Goes on with what lookups left to do.
    fn handle_timeout(&mut self, _now: Tick) {}

    /// Keeps a Data, whose name has this hash, if it may be kept.
    fn admit(&mut self, now: Tick, arrival: &Arrival<'_>) -> Inserted;
}

/// The content store of a node or service.
#[derive(Debug)]
pub struct Cache {
    /// The table.
    pub store: ContentStore,
    /// Whose Data are verified before they are kept.
    pub watch: Option<Box<Watch>>,
    /// What a second level of the store is offered, where there is one.
    pub offers: Option<Box<Offers>>,
}

impl CacheStage for Cache {
    #[inline(always)]
    fn may_have(&self, hash: u64) -> bool {
        self.store.may_have(hash)
    }

    #[inline(always)]
    fn find(&mut self, now: Tick, query: &Query<'_>) -> Option<Body<'_>> {
        if self.offers.is_some() {
            return self.find_noting(now, query);
        }
        self.store.find(now, query)
    }

    #[inline(always)]
    fn prefetch(&self, hash: u64) {
        self.store.prefetch(hash);
    }

    #[inline(always)]
    fn is_large(&self) -> bool {
        self.store.is_large()
    }

    #[inline(always)]
    fn prefetch_found(&self, hash: u64) {
        self.store.prefetch_found(hash);
    }

    #[inline(always)]
    fn prefetch_hit(&self, hash: u64) {
        self.store.prefetch_hit(hash);
    }

    #[inline(always)]
    fn prefetch_room(&self, count: usize, step: usize) {
        match step {
            0 => self.store.prefetch_evictions(count),
            _ => self.store.prefetch_evicted(count),
        }
    }

    fn take_steps(&mut self) -> u32 {
        self.store.take_steps()
    }

    #[inline(always)]
    fn poll_timeout(&self) -> Tick {
        self.store.poll_timeout()
    }

    #[inline(always)]
    fn handle_timeout(&mut self, now: Tick) {
        self.store.handle_timeout(now);
    }

    #[inline(always)]
    fn admit(&mut self, now: Tick, arrival: &Arrival<'_>) -> Inserted {
        let Arrival { packet, data, hash, demand } = *arrival;
        if packet.lp.no_cache || !self.store.config().admit {
            return Inserted::Refused;
        }
        if let Some(watch) = &mut self.watch
            && watch.takes(now, arrival)
        {
            return Inserted::Refused;
        }
        let DataHead { name, freshness_ms: fresh_ms } = *data;
        let bytes = &packet.bytes;
        let demand = match &mut self.offers {
            Some(offers) => offers.came(&Came { bytes, name, hash, fresh_ms, demand }),
            None => demand,
        };
        self.store.insert(now, bytes, name.value(), hash, fresh_ms, demand)
    }
}

impl Cache {
    /// A Data that was handed out to be verified is back, and is not kept.
    pub fn rejected(&mut self) {
        if let Some(watch) = &mut self.watch {
            watch.is_back();
        }
    }

    /// A Data that was handed out to be verified is back, and is good: it is kept.
    pub fn verified(&mut self, now: Tick, held: &Held) {
        if let Some(watch) = &mut self.watch {
            watch.is_back();
        }
        let Ok(data) = Data::parse(&held.bytes) else { return };
        if self.store.config().admit {
            let name = data.name;
            // It was as fresh as it is when it came.
            let aged_ms = now.0.saturating_sub(held.since.0) / 1_000_000;
            let fresh_ms = data.freshness_ms.saturating_sub(aged_ms);
            let (bytes, hash, demand) = (&held.bytes, held.hash, held.demand);
            let demand = match &mut self.offers {
                Some(offers) => offers.came(&Came { bytes, name, hash, fresh_ms, demand }),
                None => demand,
            };
            self.store.insert(now, bytes, name.value(), hash, fresh_ms, demand);
        }
    }

    /// Whether somebody is to be handed Data: to verify them, or to keep them on a second level.
    #[inline(always)]
    #[must_use]
    pub fn hands_out(&self) -> bool {
        self.watch.is_some() || self.offers.is_some()
    }

    /// As [`CacheStage::find`]; what is found for the first time is offered.
    #[cold]
    fn find_noting(&mut self, now: Tick, query: &Query<'_>) -> Option<Body<'_>> {
        let found = self.store.find_noting(now, query)?;
        if found.is_first
            && let Some(offers) = &mut self.offers
        {
            let fresh_ms = found.fresh_until.0.saturating_sub(now.0) / 1_000_000;
            offers.was_asked_again(found.body.bytes(), fresh_ms);
        }
        Some(found.body)
    }

    /// A packet of the second level is wanted: it is kept here as long as others are.
    pub fn promote(&mut self, now: Tick, key: &HashKey, bytes: &Buf, fresh_ms: u64) {
        let Ok(data) = Data::parse(bytes) else { return };
        let name = data.name.value();
        self.store.insert(now, bytes, name, key.name(name), fresh_ms, Demand::Noted);
    }
}

/// What an Interest asks of a cache.
#[inline(always)]
#[must_use]
pub fn query<'a>(interest: &Interest<'a>, hashes: &NameHashes) -> Query<'a> {
    Query {
        name: &interest.name.value()[..hashes.undigested_len],
        hash: hashes.undigested,
        can_be_prefix: interest.can_be_prefix,
        must_be_fresh: interest.must_be_fresh,
        digest: interest.implicit_digest(),
    }
}

/// As [`query`], where nothing else needs the hashes.
#[must_use]
pub fn query_alone<'a>(key: &HashKey, interest: &Interest<'a>) -> Query<'a> {
    query(interest, &NameHashes::new(key, interest.name.value(), 0))
}

/// No cache: nothing is found, nothing is kept.
#[derive(Debug, Clone, Copy, Default)]
pub struct NoCache;

impl CacheStage for NoCache {
    #[inline(always)]
    fn may_have(&self, _hash: u64) -> bool {
        false
    }

    fn find(&mut self, _: Tick, _: &Query<'_>) -> Option<Body<'_>> {
        None
    }

    fn admit(&mut self, _: Tick, _: &Arrival<'_>) -> Inserted {
        Inserted::Refused
    }
}
