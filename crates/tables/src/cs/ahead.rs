//! What packets that come next will meet, fetched before the first of them is taken.

use super::body::SMALL_LEN_MAX;
use super::{CACHED, ContentStore};

/// Octets of a packet that are fetched; the processor goes on by itself.
const OCTETS: usize = 256;

impl ContentStore {
    /// Whether the processor may not have what a lookup or an insertion meets.
    #[inline(always)]
    #[must_use]
    pub fn is_large(&self) -> bool {
        self.slots.len() > CACHED
    }

    /// Has the processor fetch the packet that a name with this hash has, if there is one.
    #[inline(always)]
    pub fn prefetch_found(&self, hash: u64) {
        if let Some(slot) = self.index.likely(hash) {
            onym_mem::prefetch(&self.slots[slot as usize]);
            self.queues.prefetch(slot);
        }
    }

    /// As [`ContentStore::prefetch_found`], when that is done, its octets.
    #[inline(always)]
    pub fn prefetch_hit(&self, hash: u64) {
        if let Some(slot) = self.index.likely(hash) {
            self.prefetch_octets(slot);
        }
    }

    #[inline(always)]
    fn prefetch_octets(&self, slot: u32) {
        let octets = self.slots[slot as usize].stored.room();
        onym_mem::prefetch_whole(octets.get(..OCTETS).unwrap_or(octets));
    }

    /// Has the processor fetch the packets that leave when so many others come.
    pub fn prefetch_evictions(&self, count: usize) {
        self.each_next(count, |slot| self.prefetch_places(slot));
    }

    /// As [`ContentStore::prefetch_evictions`], when that is done, what they leave.
    pub fn prefetch_evicted(&self, count: usize) {
        self.each_next(count, |slot| {
            self.index.prefetch(self.slots[slot as usize].hash);
            self.orders.canonical.prefetch_neighbours(slot);
            self.orders.fresh.prefetch_neighbours(slot);
            self.prefetch_octets(slot);
        });
    }

    /// Has the processor fetch all places of a packet.
    #[inline(always)]
    pub(super) fn prefetch_places(&self, slot: u32) {
        onym_mem::prefetch(&self.slots[slot as usize]);
        self.queues.prefetch(slot);
        self.orders.canonical.prefetch(slot);
        self.orders.fresh.prefetch(slot);
    }

    fn each_next(&self, count: usize, visit: impl Fn(u32)) {
        let crowded = self.octets + count * SMALL_LEN_MAX > self.config.bytes_max;
        let room = self.config.packets_max.saturating_sub(self.len());
        let leaving = if crowded { count } else { count.saturating_sub(room) };
        self.queues.iter().take(leaving).for_each(visit);
    }
}
