//! A batch of packets, before the first of them is taken: what all of them will meet in tables that are
//! larger than the processor's caches is fetched at once, in steps, each of what the one before it
//! found. No outcome depends on it.
//! In: octets and PIT tokens of packets.  Out: the hashes of Interests' names, which are kept for them.
//! Drops: none.  Counters: none.

use crate::Forwarder;
use crate::stage::{CacheStage, RouteStage};
use onym_tables::hash::NameHashes;
use onym_wire::name::NameRef;
use onym_wire::types::PacketType;

/// Packets of a batch.
pub const BATCH: usize = 32;

/// Longer names are not hashed ahead.
const NAME_LEN_MAX: usize = 512;

/// A batch.
#[derive(Debug, Default)]
pub(crate) struct Ahead {
    /// Names and hashes; room is used again. The first `count` are those of this batch.
    interests: Vec<Foreseen>,
    count: usize,
    /// The first that was not taken.
    next: usize,
    /// The lengths of prefixes that were hashed.
    lengths: u64,
    /// PIT entries that tokens name.
    slots: Vec<u32>,
    /// Data.
    data: usize,
}

#[derive(Debug, Default)]
struct Foreseen {
    name: Vec<u8>,
    hashes: Box<NameHashes>,
}

impl Ahead {
    /// Puts the hashes of this name, and of its prefixes of these `lengths`, into `hashes`, where they
    /// were made ahead.
    #[inline(always)]
    pub(crate) fn take(&mut self, name: &[u8], lengths: u64, hashes: &mut Box<NameHashes>) -> bool {
        self.next < self.count && self.lengths == lengths && self.find(name, hashes)
    }

    /// Packets come in the order of their batch; some do not get so far.
    fn find(&mut self, name: &[u8], hashes: &mut Box<NameHashes>) -> bool {
        let Some(left) = self.interests.get_mut(self.next..self.count) else { return false };
        for foreseen in left {
            self.next += 1;
            if foreseen.name == name {
                std::mem::swap(&mut foreseen.hashes, hashes);
                return true;
            }
        }
        false
    }

    fn clear(&mut self) {
        (self.count, self.next, self.data) = (0, 0, 0);
        self.slots.clear();
    }
}

/// Whether a table is so large that [`run`] is of use.
#[inline]
pub(crate) fn is_useful<R: RouteStage, C: CacheStage>(fw: &Forwarder<R, C>) -> bool {
    fw.pending.pit.is_large() || fw.cache.is_large() || fw.routes.is_large()
}

/// Has the processor fetch what [`BATCH`] packets at most will meet.
pub(crate) fn run<'a, R: RouteStage, C: CacheStage>(
    fw: &mut Forwarder<R, C>,
    packets: impl Iterator<Item = (&'a [u8], &'a [u8])>,
) {
    let mut ahead = std::mem::take(&mut fw.pending.ahead);
    ahead.clear();
    ahead.lengths = fw.routes.lengths() | fw.strategies.choices.lengths();
    for (octets, token) in packets.take(BATCH) {
        let Some(name) = NameRef::value_in(octets).filter(|name| name.len() <= NAME_LEN_MAX) else {
            continue;
        };
        if PacketType::of(octets) == Some(PacketType::Data) {
            data(fw, &mut ahead, name, token);
        } else {
            interest(fw, &mut ahead, name);
        }
    }
    let Forwarder { pending, routes, cache, .. } = fw;
    cache.prefetch_room(ahead.data, 0);
    let interests = ahead.interests.get(..ahead.count).unwrap_or_default();
    for Foreseen { hashes, .. } in interests {
        routes.prefetch_found(hashes);
        pending.pit.prefetch_found(hashes.undigested);
        cache.prefetch_found(hashes.undigested);
    }
    for slot in &ahead.slots {
        if let Some(hash) = pending.pit.prefetch_end(*slot) {
            cache.prefetch(hash);
        }
    }
    cache.prefetch_room(ahead.data, 1);
    for Foreseen { hashes, .. } in interests {
        routes.prefetch_names(hashes);
        cache.prefetch_hit(hashes.undigested);
    }
    fw.pending.ahead = ahead;
}

fn interest<R: RouteStage, C: CacheStage>(fw: &Forwarder<R, C>, ahead: &mut Ahead, name: &[u8]) {
    if ahead.count == ahead.interests.len() {
        ahead.interests.push(Foreseen::default());
    }
    let Some(Foreseen { name: kept, hashes }) = ahead.interests.get_mut(ahead.count) else {
        return;
    };
    ahead.count += 1;
    kept.clear();
    kept.extend_from_slice(name);
    hashes.fill(&fw.pending.key, name, ahead.lengths);
    fw.pending.pit.prefetch(hashes.undigested);
    fw.cache.prefetch(hashes.undigested);
    fw.routes.prefetch(hashes);
}

fn data<R: RouteStage, C: CacheStage>(
    fw: &Forwarder<R, C>,
    ahead: &mut Ahead,
    name: &[u8],
    token: &[u8],
) {
    ahead.data += 1;
    if let Some((slot, _)) = fw.pending.tokens.decode(token) {
        fw.pending.pit.prefetch_slot(slot);
        ahead.slots.push(slot);
    } else {
        let hash = fw.pending.key.name(name);
        fw.pending.pit.prefetch(hash);
        fw.cache.prefetch(hash);
    }
}
