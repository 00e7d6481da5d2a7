//! The configuration of a router.

use super::CostBy;
use crate::prefixes::PrefixLimits;
use crate::table::Limits;
use onym_wire::Name;
use std::time::Duration;

/// A link to a neighbour that is configured here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Link {
    /// FaceUri of the neighbour.
    pub uri: String,
    /// MTU of the face, in octets.
    pub mtu: Option<u64>,
    /// Cost of the link, 1 or more.
    pub cost: u64,
}

/// Configuration of a router.
#[derive(Debug, Clone)]
pub struct Config {
    /// Name of the network, one to three components.
    pub network: Name,
    /// Name of this router: the network and one more component.
    pub router: Name,
    /// Bootstrap time in seconds since the Unix epoch, never twice the same: [`next_boot`].
    pub boot: u64,
    /// Time between two signs of life.
    pub advertise_interval: Duration,
    /// A neighbour that is silent for so long is dead.
    pub dead_interval: Duration,
    /// Links to neighbours.
    pub links: Vec<Link>,
    /// What quality of a link adds to its cost; nothing by default. Only to neighbours of ours, as
    /// others do not answer probes.
    pub cost_by: CostBy,
    /// Neighbours that are held down from the start.
    pub held: Vec<Name>,
    /// Where the shell keeps what outlives a run, for who asks.
    pub folder: Option<String>,
    /// Neighbours; a hello of a further one is refused and counted.
    pub neighbours_max: usize,
    /// Bounds of the table.
    pub table: Limits,
    /// Bounds of the prefix tables.
    pub prefixes: PrefixLimits,
    /// Prefixes that other routers of the network may announce, and all under them; empty for any.
    pub accept: Vec<Name>,
    /// Whether `/localhost/nlsr/rib/…` announces prefixes. Every program of the host can, as those
    /// commands carry no signature.
    pub readvertise: bool,
    /// Gives Nonces and jitter: differs from node to node and run to run.
    pub seed: u64,
}

impl Config {
    /// A router with the timing of ndn-dv and no links.
    #[must_use]
    pub fn new(network: Name, router: Name, boot: u64, seed: u64) -> Self {
        Self {
            network,
            router,
            boot,
            advertise_interval: Duration::from_secs(5),
            dead_interval: Duration::from_secs(30),
            links: Vec::new(),
            cost_by: CostBy::default(),
            held: Vec::new(),
            folder: None,
            neighbours_max: 256,
            table: Limits::default(),
            prefixes: PrefixLimits::default(),
            accept: Vec::new(),
            readvertise: true,
            seed,
        }
    }
}

/// The bootstrap time of a run that begins at `unix_s`, after one that began at `stored`: time never
/// goes backward for others, whatever the clock did, as they ignore who comes from the past.
#[must_use]
pub fn next_boot(unix_s: u64, stored: Option<u64>) -> u64 {
    stored.map_or(unix_s, |stored| unix_s.max(stored.saturating_add(1)))
}
