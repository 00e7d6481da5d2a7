#![doc = include_str!("../README.md")]

mod command;
mod connection;
pub mod held;
mod meet;
mod names;
pub mod nlsr;
pub mod readvertise;
mod renewal;
mod run;
mod seen;
mod state;
mod trust;
mod watch;

pub use meet::Counters as Met;
pub use meet::hello::Hello as Greeting;
pub use run::{Error, Handle, run, start};
pub use seen::{Figures, Seen};
pub use state::{Keys, KeysError, next_boot};
pub use trust::{Schema, Trust};

use onym_route::{CostBy, Export, Link};
use onym_wire::Name;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Which routes of applications are announced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Announce {
    /// Those of origin client (65), as deployed routers do.
    Client,
    /// Those of origin app (0), too: whatever an application registers.
    All,
}

/// Who is told which links are in use.
#[derive(Clone)]
pub struct LinkWatch(Arc<dyn Fn(LinkChange) + Send + Sync>);

impl LinkWatch {
    /// Has `tell` called with every change, by the router's thread.
    pub fn new(tell: impl Fn(LinkChange) + Send + Sync + 'static) -> Self {
        Self(Arc::new(tell))
    }
}

impl std::fmt::Debug for LinkWatch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("LinkWatch")
    }
}

/// A link that came, went, or costs something else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkChange {
    /// A neighbour is heard by this face and hears this router; what the link costs. Again when it
    /// costs something else.
    Up {
        /// The face.
        face: u64,
        /// The cost.
        cost: u64,
    },
    /// No more.
    Down {
        /// The face.
        face: u64,
    },
}

/// What a router needs.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The forwarder: `unix:///path` or `tcp://host:port`.
    pub node: String,
    /// The networks that this host is in, each by a router of its own; one at least. The first one has
    /// the programs of this host.
    pub areas: Vec<Area>,
    /// What one of the networks hears of another.
    pub exports: Vec<Export>,
    /// Time between two looks at host names. The system's resolver does not tell how long an answer is
    /// good.
    pub resolve_every: Duration,
    /// Time between two signs of life.
    pub advertise_interval: Duration,
    /// A neighbour that is silent for so long is dead.
    pub dead_interval: Duration,
    /// Which routes are announced.
    pub announce: Announce,
    /// Whether routes learned from prefix announcements are announced, too, while they last; not
    /// those that lead to other routers.
    pub learned: bool,
    /// Whether forwarders may announce by `/localhost/nlsr/rib/…`, too, as NFD and ndnd do.
    pub readvertise: bool,
    /// What quality of a link adds to its cost.
    pub cost_by: CostBy,
    /// Who is told which links are in use.
    pub link_watch: Option<LinkWatch>,
}

/// A network that this host is in.
#[derive(Debug, Clone)]
pub struct Area {
    /// Name of the network.
    pub network: Name,
    /// Name of the router.
    pub router: Name,
    /// Links to neighbours. One that is named by its host is followed when its address changes.
    pub links: Vec<Link>,
    /// Whether neighbours in this network are looked for on links with several peers: the multicast faces
    /// of the forwarder, which is on this machine.
    pub discover: bool,
    /// Prefixes that other routers of the network may announce, and all under them; empty for any.
    pub accept: Vec<Name>,
    /// Folder of the bootstrap time and of neighbours held down; without it the clock must not go
    /// backward.
    pub state: Option<PathBuf>,
    /// Folder of the keys; none is insecure.
    pub keys: Option<PathBuf>,
    /// Rules of the operator about who may sign what, in place of those of deployed routers.
    pub trust: Option<Schema>,
}
