//! The content store of one shard: packets by name, in canonical order, bounded in packets and
//! octets.
//!
//! An exact Interest finds its Data by the hash of the name; one with CanBePrefix finds the
//! canonically smallest, and with MustBeFresh too the smallest of those that are fresh: they have an
//! order of their own, which stale ones leave. Packets that differ but have one name form a chain, ordered by implicit
//! digest; the digest is computed only there, and when an Interest asks for one.

mod body;
mod chain;
mod deferred;
mod lookup;
mod order;
mod queue;
#[cfg(test)]
mod tests;

pub use body::{Body, SMALL_LEN_MAX};

use crate::hash::HashKey;
use crate::index::HashIndex;
use crate::wheel::Wheel;
use crate::{Tick, room};
use body::{Pool, Stored};
use deferred::Deferred;
use onym_frame::Buf;
use order::{NONE, Order};
use queue::{Queue, Queues};

/// Different packets of one name that are kept; the last in order leaves for a further one.
pub const VARIANTS_MAX: usize = 16;

/// Names under a prefix that one lookup with CanBePrefix examines; a match farther on is missed.
pub const SCAN_MAX: usize = 1024;

/// Packets that one lookup with CanBePrefix and MustBeFresh enters into the order of fresh ones.
pub const ENTER_MAX: usize = 256;

const FINGERS: usize = 256;
/// Neighbours of a finger that are tried before the whole order is searched.
const FINGER_STEPS: usize = 8;

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
}

/// The store. Full: the packet that the policy names leaves.
#[derive(Debug)]
pub struct ContentStore {
    config: CsConfig,
    slots: Vec<Slot>,
    free: Vec<u32>,
    index: HashIndex,
    order: Order,
    /// The first packets of chains of which one may be fresh.
    fresh: Deferred,
    queues: Queues,
    /// Ends of freshness, under `priority_fifo` only.
    wheel: Wheel,
    pool: Pool,
    /// Slots inserted last, by what their names begin and end with: a hint.
    fingers: Box<[u32; FINGERS]>,
    octets: usize,
    /// What lookups looked at, entered and took out beyond one packet each, until it is taken.
    steps: u32,
    /// Implicit digests of the few packets for which they matter.
    digests: Vec<[u8; 32]>,
    digests_free: Vec<u32>,
    sha256: fn(&[u8]) -> [u8; 32],
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
            order: Order::new(key.words([2, u64::MAX])),
            fresh: Deferred::new(key.words([3, u64::MAX])),
            queues: Queues::new(),
            wheel: Wheel::default(),
            pool: Pool::new(),
            fingers: Box::new([NONE; FINGERS]),
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
        let s = &self.slots[slot as usize];
        &s.stored.room()[s.name_at as usize..s.name_at as usize + s.name_len as usize]
    }

    #[inline(always)]
    fn head(&self, hash: u64, name: &[u8]) -> Option<u32> {
        self.index
            .find(hash, |slot| self.slots[slot as usize].hash == hash && self.name(slot) == name)
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
                return Inserted::Refreshed;
            }
            self.trim_chain(head);
        }
        self.make_room(now, data.len());
        // The eviction may have taken the chain, or its first member.
        let head = head.and_then(|_| self.head(hash, name));
        let slot = self.fill(data, name, hash, fresh_until, unsolicited);
        match head {
            Some(head) => self.join_chain(head, slot),
            None => {
                self.index.insert(hash, slot);
                self.enter_order(slot, name);
            }
        }
        if freshness_ms > 0 {
            self.fresh.note(slot);
        }
        let queue = self.queue_for(now, slot);
        self.queues.push(slot, queue);
        Inserted::New
    }

    fn refresh(&mut self, now: Tick, slot: u32, fresh_until: Tick, unsolicited: bool) {
        let s = &mut self.slots[slot as usize];
        s.fresh_until = fresh_until;
        s.unsolicited &= unsolicited;
        if fresh_until > now {
            self.fresh.note(slot);
        }
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
        unsolicited: bool,
    ) -> u32 {
        let name_at = name.as_ptr().addr().wrapping_sub(data.as_ptr().addr());
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
            unsolicited,
        };
        self.octets += data.len();
        if let Some(id) = self.free.pop() {
            self.slots[id as usize] = slot;
            return id;
        }
        room::push(&mut self.slots, slot);
        room::match_free(&self.slots, &mut self.free);
        self.fresh.reserve(self.slots.len(), self.slots.capacity());
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
                self.order.remove(slot);
                if self.fresh.has(slot) {
                    self.fresh.leave(slot);
                }
            }
            (NONE, next) => {
                self.slots[next as usize].same_prev = NONE;
                self.index.replace(hash, slot, next);
                self.order.replace(slot, next);
                if self.fresh.has(slot) {
                    self.fresh.replace(slot, next);
                }
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

    /// Erases at most `limit` packets whose name starts with `prefix` (a name's value); says how
    /// many.
    pub fn erase(&mut self, prefix: &[u8], limit: usize) -> usize {
        let before = self.order.last_where(|other| self.name(other) < prefix);
        let mut erased = 0;
        while erased < limit {
            let at = self.order.right(before);
            if at == NONE || !self.name(at).starts_with(prefix) {
                break;
            }
            self.remove(at);
            erased += 1;
        }
        erased
    }

    /// Whether a packet's name starts with `prefix` (a name's value).
    #[must_use]
    pub fn has_under(&self, prefix: &[u8]) -> bool {
        let at = self.order.right(self.order.last_where(|other| self.name(other) < prefix));
        at != NONE && self.name(at).starts_with(prefix)
    }

    /// The packets in canonical order of their full names, each with what is left of its
    /// freshness at the time of asking and whether it came unsolicited.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], Tick, bool)> {
        let mut at = self.order.first();
        let mut head = at;
        std::iter::from_fn(move || {
            if at == NONE {
                return None;
            }
            let s = &self.slots[at as usize];
            let item = (s.stored.bytes(), s.fresh_until, s.unsolicited);
            at = s.same_next;
            if at == NONE {
                at = self.order.right(head);
                head = at;
            }
            Some(item)
        })
    }
}
