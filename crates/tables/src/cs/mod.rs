//! The content store of one shard: packets by name, in canonical order, bounded in packets and
//! octets.
//!
//! An exact Interest finds its Data by the hash of the name; one with CanBePrefix finds the
//! canonically smallest, and with MustBeFresh too the smallest of those that are fresh: they have an
//! order of their own, which stale ones leave. Packets enter an order when somebody asks for it, at
//! most [`ENTER_MAX`] in a turn; until then they wait, and lookups by prefix do not know them. Packets
//! that differ but have one name form a chain, ordered by implicit digest; the digest is computed only
//! there, and when an Interest asks for one.

mod ahead;
mod body;
mod chain;
mod deferred;
mod enter;
mod lookup;
mod order;
mod orders;
mod queue;
#[cfg(test)]
mod tests;
mod waiting;

pub use body::{Body, SMALL_LEN_MAX};
pub use lookup::Noting;

use crate::hash::HashKey;
use crate::index::HashIndex;
use crate::wheel::Wheel;
use crate::{Tick, room};
use body::{Pool, Stored};
use onym_frame::Buf;
use onym_wire::tlv::first_value_at;
use order::NONE;
use orders::{Of, Orders};
use queue::{Queue, Queues};
use std::time::Duration;
use waiting::{Marker, REGROUP_AT};

/// Different packets of one name that are kept; the last in order leaves for a further one.
pub const VARIANTS_MAX: usize = 16;

/// Names under a prefix that one lookup with CanBePrefix examines; a match farther on is missed.
pub const SCAN_MAX: usize = 1024;

/// Packets that one turn, which has one time, enters into the orders.
pub const ENTER_MAX: u32 = 256;

/// A store of so many packets is in the processor's caches.
const CACHED: usize = 1 << 10;

/// How soon the store goes on to enter what a lookup found waiting, when no other lookup does.
const GO_ON_AFTER: Duration = Duration::from_millis(10);

/// Which packets leave first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Policy {
    /// The least recently used.
    #[default]
    Lru,
    /// Unsolicited, then stale, then fresh packets, each in order of arrival.
    PriorityFifo,
}

/// Limits and behaviour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CsConfig {
    /// Most packets; 0 turns the store off.
    pub packets_max: usize,
    /// Most octets of packets.
    pub bytes_max: usize,
    /// Which leave first.
    pub policy: Policy,
    /// Whether packets are taken.
    pub admit: bool,
    /// Whether lookups are answered.
    pub serve: bool,
}

impl Default for CsConfig {
    fn default() -> Self {
        Self {
            packets_max: 65536,
            bytes_max: 512 << 20,
            policy: Policy::Lru,
            admit: true,
            serve: true,
        }
    }
}

/// Whether Data was asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Demand {
    /// It was.
    Asked,
    /// Nobody asked: it is evicted first.
    Unsolicited,
    /// It was, and is not news to who asks for what [`ContentStore::find_noting`] finds.
    Noted,
}

/// What became of an insertion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// The packet is in the store.
    New,
    /// The same packet was there; its freshness starts again.
    Refreshed,
    /// Not taken: the store is off or the packet larger than its limit.
    Refused,
}

/// What an Interest asks of the store.
#[derive(Debug, Clone, Copy)]
pub struct Query<'a> {
    /// Value of the name, without an implicit digest.
    pub name: &'a [u8],
    /// Its hash.
    pub hash: u64,
    /// CanBePrefix.
    pub can_be_prefix: bool,
    /// MustBeFresh.
    pub must_be_fresh: bool,
    /// The implicit digest that the name ended with.
    pub digest: Option<&'a [u8; 32]>,
}

#[derive(Debug)]
struct Slot {
    hash: u64,
    stored: Stored,
    fresh_until: Tick,
    name_at: u16,
    name_len: u16,
    /// Other packets of this name; the first one stands in the index and the order.
    same_prev: u32,
    same_next: u32,
    /// Where its implicit digest is, once it was asked for.
    digest: u32,
    unsolicited: bool,
    /// Whether [`ContentStore::find_noting`] has found it.
    noted: bool,
}

/// A packet that is to be put in.
struct Arrived<'a> {
    data: &'a Buf,
    name: &'a [u8],
    hash: u64,
    fresh_until: Tick,
    demand: Demand,
}

/// A turn is what has one time.
#[derive(Debug)]
struct Turn {
    at: Tick,
    left: u32,
}

/// The store. Full: the packet that the policy names leaves.
#[derive(Debug)]
pub struct ContentStore {
    config: CsConfig,
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: HashIndex,
    marker: Marker,
    orders: Orders,
    /// What this turn may still enter.
    turn: Turn,
    /// When entering goes on.
    due: Tick,
    queues: Queues,
    /// Ends of freshness, under `priority_fifo` only.
    wheel: Wheel,
    pool: Pool,
    octets: usize,
    /// Names that lookups compared to enter packets, and packets that they passed over, until it is
    /// taken.
    steps: u32,
    /// Implicit digests of the few packets for which they matter.
    digests: Vec<[u8; 32]>,
    digests_free: Vec<u32>,
    sha256: fn(&[u8]) -> [u8; 32],
}

#[inline(always)]
fn name_of(slots: &[Slot], slot: u32) -> &[u8] {
    let s = &slots[slot as usize];
    &s.stored.room()[s.name_at as usize..s.name_at as usize + s.name_len as usize]
}

impl Default for Slot {
    fn default() -> Self {
        Self {
            hash: 0,
            stored: Stored::Nothing,
            fresh_until: Tick(0),
            name_at: 0,
            name_len: 0,
            same_prev: NONE,
            same_next: NONE,
            digest: NONE,
            unsolicited: false,
            noted: false,
        }
    }
}

impl ContentStore {
    /// An empty store. The key seeds the shape of the order.
    #[must_use]
    pub fn new(config: CsConfig, key: &HashKey) -> Self {
        Self {
            config,
            slots: Vec::new(),
            free: Vec::new(),
            index: HashIndex::new(),
            marker: Marker::new(key),
            orders: Orders::new(key),
            turn: Turn { at: Tick::NEVER, left: 0 },
            due: Tick::NEVER,
            queues: Queues::new(),
            wheel: Wheel::default(),
            pool: Pool::new(),
            octets: 0,
            steps: 0,
            digests: Vec::new(),
            digests_free: Vec::new(),
            sha256: onym_crypto::digest::implicit_digest,
        }
    }

    /// Packets in the store.
    #[must_use]
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Whether the store is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Octets of the packets in the store.
    #[must_use]
    pub fn octets(&self) -> usize {
        self.octets
    }

    /// Limits and behaviour.
    #[must_use]
    pub fn config(&self) -> &CsConfig {
        &self.config
    }

    /// Changes limits and behaviour. What is too much under smaller limits leaves with the next
    /// insertions, or by [`ContentStore::evict`]; a new policy takes packets up in their order.
    pub fn set_config(&mut self, now: Tick, config: CsConfig) {
        let changed = config.policy != self.config.policy;
        self.config = config;
        if changed {
            for slot in 0..self.slots.len() {
                if !self.slots[slot].stored.is_nothing() {
                    let slot = u32::try_from(slot).expect("invariant: fewer than 2^32 packets");
                    let queue = self.queue_for(now, slot);
                    self.queues.move_to(slot, queue);
                }
            }
        }
    }

    /// Evicts at most `count` packets beyond the limits; says how many.
    pub fn evict(&mut self, count: usize) -> usize {
        let mut evicted = 0;
        while evicted < count
            && (self.len() > self.config.packets_max || self.octets > self.config.bytes_max)
        {
            let Some(slot) = self.queues.first() else { break };
            self.remove(slot);
            evicted += 1;
        }
        evicted
    }

    #[inline(always)]
    fn name(&self, slot: u32) -> &[u8] {
        name_of(&self.slots, slot)
    }

    /// Whether a packet may be here whose name has this hash: half of it is compared and nothing else.
    #[inline(always)]
    #[must_use]
    pub fn may_have(&self, hash: u64) -> bool {
        self.index.likely(hash).is_some()
    }

    #[inline(always)]
    fn head(&self, hash: u64, name: &[u8]) -> Option<u32> {
        self.index
            .find(hash, |slot| self.slots[slot as usize].hash == hash && self.name(slot) == name)
    }

    /// Has the processor fetch what a lookup or an insertion of a name with this hash meets.
    #[inline(always)]
    pub fn prefetch(&self, hash: u64) {
        self.index.prefetch(hash);
    }

    /// Has the processor fetch what the next eviction meets: it is some exchanges away.
    #[inline(always)]
    fn prefetch_next(&self) {
        if self.is_large()
            && let Some(next) = self.queues.first()
        {
            self.prefetch_places(next);
        }
    }

    /// Puts `data` in. `name`, a part of `data`, is the value of its name, and `hash` its hash.
    pub fn insert(
        &mut self,
        now: Tick,
        data: &Buf,
        name: &[u8],
        hash: u64,
        freshness_ms: u64,
        demand: Demand,
    ) -> Inserted {
        if self.config.packets_max == 0 || data.len() > self.config.bytes_max {
            return Inserted::Refused;
        }
        let fresh_until = if freshness_ms == 0 { Tick(0) } else { now.plus_ms(freshness_ms) };
        if self.may_have(hash)
            && let Some(head) = self.head(hash, name)
        {
            return self.insert_beside(
                now,
                head,
                Arrived { data, name, hash, fresh_until, demand },
            );
        }
        let vacated = self.make_room(now, data.len());
        self.insert_new(now, vacated, Arrived { data, name, hash, fresh_until, demand });
        Inserted::New
    }

    /// Puts in a packet whose name no other one has.
    #[inline(always)]
    fn insert_new(&mut self, now: Tick, vacated: Option<u32>, arrived: Arrived<'_>) {
        let slot = self.fill(vacated, &arrived);
        let mark = self.marker.mark(arrived.name);
        self.index.insert(arrived.hash, slot);
        let of = if arrived.fresh_until == Tick(0) { Of::All } else { Of::Fresh };
        self.orders.note(slot, mark, of);
        let queue = self.queue_for(now, slot);
        self.queues.push(slot, queue);
    }

    /// Puts in a packet of whose name there is one, in `head`.
    #[cold]
    fn insert_beside(&mut self, now: Tick, head: u32, arrived: Arrived<'_>) -> Inserted {
        let Arrived { data, name, hash, fresh_until, demand } = arrived;
        if let Some(slot) = self.same_packet(head, data) {
            self.refresh(now, slot, fresh_until, demand == Demand::Unsolicited);
            if fresh_until > now {
                self.orders.note_fresh(head, self.marker.mark(name));
            }
            return Inserted::Refreshed;
        }
        self.trim_chain(head);
        let vacated = self.make_room(now, data.len());
        // The eviction may have taken the chain, or its first member.
        let Some(head) = self.head(hash, name) else {
            self.insert_new(now, vacated, arrived);
            return Inserted::New;
        };
        let slot = self.fill(vacated, &arrived);
        self.join_chain(head, slot);
        if fresh_until != Tick(0) {
            self.orders.note_fresh(self.first_of_chain(slot), self.marker.mark(name));
        }
        let queue = self.queue_for(now, slot);
        self.queues.push(slot, queue);
        Inserted::New
    }

    fn refresh(&mut self, now: Tick, slot: u32, fresh_until: Tick, unsolicited: bool) {
        let s = &mut self.slots[slot as usize];
        s.fresh_until = fresh_until;
        s.unsolicited &= unsolicited;
        let queue = self.queue_for(now, slot);
        self.queues.move_to(slot, queue);
    }

    /// The queue that the policy puts `slot` in; arms the end of its freshness.
    #[inline(always)]
    fn queue_for(&mut self, now: Tick, slot: u32) -> Queue {
        if self.config.policy == Policy::Lru {
            return Queue::Fresh;
        }
        let s = &self.slots[slot as usize];
        let (queue, until) = match (s.unsolicited, s.fresh_until > now) {
            (true, _) => (Queue::Unsolicited, Tick::NEVER),
            (false, true) => (Queue::Fresh, s.fresh_until),
            (false, false) => (Queue::Stale, Tick::NEVER),
        };
        self.wheel.arm(slot, until);
        queue
    }

    /// Evicts what has to leave for a packet of so many octets; returns one of the slots, which that
    /// packet may have as it is.
    #[inline(always)]
    fn make_room(&mut self, now: Tick, octets: usize) -> Option<u32> {
        if self.config.policy == Policy::PriorityFifo {
            while let Some(slot) = self.wheel.pop(now) {
                self.queues.move_to(slot, Queue::Stale);
            }
        }
        if !self.is_over(self.len(), octets) {
            return None;
        }
        let slot = self.queues.first()?;
        self.unlink(slot);
        self.prefetch_next();
        // One is the rule.
        if self.is_over(self.len() - 1, octets) {
            self.make_more_room(octets);
        }
        Some(slot)
    }

    /// Whether `len` packets are too many for a further one of so many octets.
    #[inline(always)]
    fn is_over(&self, len: usize, octets: usize) -> bool {
        len >= self.config.packets_max || self.octets + octets > self.config.bytes_max
    }

    /// The same where one slot was vacated, and that is not enough.
    #[cold]
    fn make_more_room(&mut self, octets: usize) {
        while self.is_over(self.len() - 1, octets)
            && let Some(slot) = self.queues.first()
        {
            self.remove(slot);
            self.prefetch_next();
        }
    }

    // Offsets within a Data, which is at most 8800 octets.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn fill(&mut self, vacated: Option<u32>, arrived: &Arrived<'_>) -> u32 {
        let Arrived { data, name, hash, fresh_until, demand } = *arrived;
        let id = vacated.or_else(|| self.free.pop()).unwrap_or_else(|| self.add_slot());
        let name_at = first_value_at(data.len(), name.len());
        debug_assert!(data.get(name_at..name_at + name.len()) == Some(name));
        self.octets += data.len();
        let s = &mut self.slots[id as usize];
        self.pool.store(data, &mut s.stored);
        s.hash = hash;
        s.fresh_until = fresh_until;
        s.name_at = name_at as u16;
        s.name_len = name.len() as u16;
        (s.same_prev, s.same_next) = (NONE, NONE);
        s.unsolicited = demand == Demand::Unsolicited;
        s.noted = demand == Demand::Noted;
        id
    }

    #[cold]
    fn add_slot(&mut self) -> u32 {
        let id = u32::try_from(self.slots.len()).expect("invariant: fewer than 2^32 packets");
        room::push(&mut self.slots, Slot::default());
        room::match_free(&self.slots, &mut self.free);
        self.orders.add_place();
        if self.slots.len() == REGROUP_AT {
            self.regroup();
        }
        id
    }

    fn digest(&mut self, slot: u32) -> [u8; 32] {
        let s = &mut self.slots[slot as usize];
        if let Some(known) = self.digests.get(s.digest as usize) {
            return *known;
        }
        let digest = (self.sha256)(s.stored.bytes());
        s.digest = match self.digests_free.pop() {
            Some(at) => {
                self.digests[at as usize] = digest;
                at
            }
            None => {
                room::push(&mut self.digests, digest);
                room::match_free(&self.digests, &mut self.digests_free);
                u32::try_from(self.digests.len() - 1).expect("invariant: fewer than 2^32 packets")
            }
        };
        digest
    }

    /// Takes the packet in `slot` out.
    fn remove(&mut self, slot: u32) {
        self.unlink(slot);
        self.vacate(slot);
    }

    /// Takes the packet in `slot` out of all lists; its octets stay there.
    #[inline(always)]
    fn unlink(&mut self, slot: u32) {
        self.queues.remove(slot);
        self.wheel.cancel(slot);
        let s = &mut self.slots[slot as usize];
        if s.digest != NONE {
            self.digests_free.push(s.digest);
            s.digest = NONE;
        }
        let (hash, prev, next) = (s.hash, s.same_prev, s.same_next);
        self.octets -= s.stored.len();
        if (prev, next) == (NONE, NONE) {
            self.index.remove(hash, slot);
            self.orders.leave(slot);
        } else {
            self.leave_chain(slot);
        }
    }

    /// Frees `slot`, which is in no list.
    fn vacate(&mut self, slot: u32) {
        self.pool.release(std::mem::take(&mut self.slots[slot as usize].stored));
        self.free.push(slot);
    }
}
