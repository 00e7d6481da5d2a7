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
mod queue;
#[cfg(test)]
mod tests;

pub use body::{Body, SMALL_LEN_MAX};
pub use lookup::Noting;

use crate::hash::HashKey;
use crate::index::HashIndex;
use crate::wheel::Wheel;
use crate::{Tick, room};
use body::{Pool, Stored};
use deferred::{Deferred, Marker, REGROUP_AT};
use onym_frame::Buf;
use onym_wire::tlv::first_value_at;
use order::NONE;
use queue::{Queue, Queues};
use std::time::Duration;

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
    live: bool,
    unsolicited: bool,
    /// Whether [`ContentStore::find_noting`] has found it.
    noted: bool,
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
    /// The first packets of chains, and those of which one may be fresh.
    canonical: Deferred,
    fresh: Deferred,
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
            canonical: Deferred::new(key.words([2, u64::MAX])),
            fresh: Deferred::new(key.words([3, u64::MAX])),
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
                if self.slots[slot].live {
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
        let unsolicited = demand == Demand::Unsolicited;
        if self.config.packets_max == 0 || data.len() > self.config.bytes_max {
            return Inserted::Refused;
        }
        let fresh_until = if freshness_ms == 0 { Tick(0) } else { now.plus_ms(freshness_ms) };
        let head = self.head(hash, name);
        if let Some(head) = head {
            if let Some(slot) = self.same_packet(head, data) {
                self.refresh(now, slot, fresh_until, unsolicited);
                if fresh_until > now {
                    self.fresh.note(head, self.marker.mark(name));
                }
                return Inserted::Refreshed;
            }
            self.trim_chain(head);
        }
        self.make_room(now, data.len());
        // The eviction may have taken the chain, or its first member.
        let head = head.and_then(|_| self.head(hash, name));
        let slot = self.fill(data, name, hash, fresh_until, demand);
        let mark = self.marker.mark(name);
        let mut first = slot;
        match head {
            Some(head) => {
                self.join_chain(head, slot);
                first = self.first_of_chain(slot);
            }
            None => {
                self.index.insert(hash, slot);
                self.canonical.note(slot, mark);
            }
        }
        if freshness_ms > 0 {
            self.fresh.note(first, mark);
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
        let s = &self.slots[slot as usize];
        if self.config.policy == Policy::Lru {
            return Queue::Fresh;
        }
        let (queue, until) = match (s.unsolicited, s.fresh_until > now) {
            (true, _) => (Queue::Unsolicited, Tick::NEVER),
            (false, true) => (Queue::Fresh, s.fresh_until),
            (false, false) => (Queue::Stale, Tick::NEVER),
        };
        self.wheel.arm(slot, until);
        queue
    }

    #[inline(always)]
    fn make_room(&mut self, now: Tick, octets: usize) {
        if self.config.policy == Policy::PriorityFifo {
            while let Some(slot) = self.wheel.pop(now) {
                self.queues.move_to(slot, Queue::Stale);
            }
        }
        while self.len() >= self.config.packets_max || self.octets + octets > self.config.bytes_max
        {
            let Some(slot) = self.queues.first() else { break };
            self.remove(slot);
            self.prefetch_next();
        }
    }

    // Offsets within a Data, which is at most 8800 octets.
    #[inline(always)]
    #[allow(clippy::cast_possible_truncation)]
    fn fill(
        &mut self,
        data: &Buf,
        name: &[u8],
        hash: u64,
        fresh_until: Tick,
        demand: Demand,
    ) -> u32 {
        let name_at = first_value_at(data.len(), name.len());
        debug_assert!(data.get(name_at..name_at + name.len()) == Some(name));
        let slot = Slot {
            hash,
            stored: self.pool.store(data),
            fresh_until,
            name_at: name_at as u16,
            name_len: name.len() as u16,
            same_prev: NONE,
            same_next: NONE,
            digest: NONE,
            live: true,
            unsolicited: demand == Demand::Unsolicited,
            noted: demand == Demand::Noted,
        };
        self.octets += data.len();
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = slot;
            return id;
        }
        room::push(&mut self.slots, slot);
        room::match_free(&self.slots, &mut self.free);
        if self.slots.len() == REGROUP_AT {
            self.regroup();
        }
        (self.slots.len() - 1) as u32
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
    #[inline(always)]
    fn remove(&mut self, slot: u32) {
        self.queues.remove(slot);
        self.wheel.cancel(slot);
        let s = &mut self.slots[slot as usize];
        s.live = false;
        if s.digest != NONE {
            self.digests_free.push(s.digest);
            s.digest = NONE;
        }
        let (hash, prev, next) = (s.hash, s.same_prev, s.same_next);
        match (prev, next) {
            (NONE, NONE) => {
                self.index.remove(hash, slot);
                self.canonical.leave(slot);
                self.fresh.leave(slot);
            }
            (NONE, next) => {
                self.slots[next as usize].same_prev = NONE;
                self.index.replace(hash, slot, next);
                self.canonical.replace(slot, next);
                self.fresh.replace(slot, next);
            }
            (prev, next) => {
                self.slots[prev as usize].same_next = next;
                if next != NONE {
                    self.slots[next as usize].same_prev = prev;
                }
            }
        }
        let stored = std::mem::take(&mut self.slots[slot as usize].stored);
        self.octets -= stored.bytes().len();
        self.pool.release(stored);
        self.free.push(slot);
    }
}
