//! A Data on its way into a cache.

use onym_link::Packet;
use onym_tables::cs::Demand;
use onym_wire::data::DataHead;

/// A Data that may be kept.
#[derive(Debug)]
pub struct Arrival<'a> {
    /// The packet.
    pub packet: &'a Packet,
    /// Its name and freshness.
    pub data: &'a DataHead<'a>,
    /// Hash of its name.
    pub hash: u64,
    /// Whether a pending Interest asked for it.
    pub demand: Demand,
}
