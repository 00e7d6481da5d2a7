//! What can be set.

/// How much may be stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Octets of records that are alive; default none.
    pub octets_max: u64,
    /// Packets; default none.
    pub packets_max: u64,
    /// Octets of one owner; default none.
    pub owner_octets_max: u64,
    /// Packets of one owner; default none.
    pub owner_packets_max: u64,
    /// Insertions are refused while less is free on the disk; default 64 MiB.
    pub free_min_octets: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            octets_max: u64::MAX,
            packets_max: u64::MAX,
            owner_octets_max: u64::MAX,
            owner_packets_max: u64::MAX,
            free_min_octets: 64 << 20,
        }
    }
}

/// How a store works.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// How much may be stored.
    pub bounds: Bounds,
    /// Octets after which a new segment is begun; default 256 MiB, at most 2 GiB.
    pub segment_octets: u32,
    /// Octets of log after which the index is made durable; default 32 MiB. Bounds the time of a start.
    pub checkpoint_octets: u64,
    /// Memory for pages of the index; default 64 MiB.
    pub cache_octets: usize,
    /// Calls of [`Store::apply`](crate::Store::apply) that wait; default 64.
    pub queue_groups: usize,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            bounds: Bounds::default(),
            segment_octets: 256 << 20,
            checkpoint_octets: 32 << 20,
            cache_octets: 64 << 20,
            queue_groups: 64,
        }
    }
}
