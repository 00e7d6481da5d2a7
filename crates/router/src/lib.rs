#![doc = include_str!("../README.md")]

mod command;
mod connection;
pub mod held;
mod run;
mod seen;
mod state;
mod trust;
mod watch;

pub use run::{Error, Handle, run, start};
pub use seen::{Figures, Seen};
pub use state::{Keys, KeysError, next_boot};
pub use trust::Trust;

use onym_route::{CostBy, Link};
use onym_wire::Name;
use std::path::PathBuf;
use std::time::Duration;

/// Which routes of applications are announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announce {
    /// Those of origin client (65), as deployed routers do.
    Client,
    /// Those of origin app (0), too: whatever an application registers.
    All,
}

/// What a router needs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The forwarder: `unix:///path` or `tcp://host:port`.
    pub node: String,
    /// Name of the network.
    pub network: Name,
    /// Name of the router.
    pub router: Name,
    /// Links to neighbours.
    pub links: Vec<Link>,
    /// Time between two signs of life.
    pub advertise_interval: Duration,
    /// A neighbour that is silent for so long is dead.
    pub dead_interval: Duration,
    /// Which routes are announced.
    pub announce: Announce,
    /// Whether forwarders may announce by `/localhost/nlsr/rib/…`, too, as NFD and ndnd do.
    pub readvertise: bool,
    /// What quality of a link adds to its cost.
    pub cost_by: CostBy,
    /// Folder of the bootstrap time and of neighbours held down; without it the clock must not go
    /// backward.
    pub state: Option<PathBuf>,
    /// Folder of the keys; none is insecure.
    pub keys: Option<PathBuf>,
}
