//! The control thread: creates and closes faces, owns the RIB and the master copies of tables, runs
//! management, and serves requests of other threads.
//!
//! It owns no packet. It changes the shards by orders and waits for their answers, so what it reports
//! is already in force.
//!
//! | file | what |
//! |---|---|
//! | `drive` | the thread as its engine sees it |
//! | `request` | what other threads ask |
//! | `follow` | from which listener a UDP face speaks |
//! | `plane` | the parts below, and what concerns several of them: faces made, down, up, closed |
//! | `settings` | the configuration in force, and what it says of a face |
//! | `shards` | the forwarding threads: faces, tables, content stores |
//! | `faces` | the record of every face, room for strangers |
//! | `listeners`, `open` | where peers and applications arrive |
//! | `dial`, `target` | connections that are being made |
//! | `routes` | RIB, and who may announce |
//! | `push`, `links` | the push thread: faces, links, datasets |
//! | `apply` | the configuration applied |
//! | `viewers`, `onlook` | who looks at the traffic: what `onym dump` and `onym top` are shown |
//! | `host`, `status`, `explain` | the node as management asks and shows it |

mod apply;
mod dial;
mod drive;
mod explain;
pub(crate) mod faces;
mod follow;
mod history;
mod host;
mod links;
mod listeners;
mod onlook;
pub(crate) mod open;
mod plane;
mod push;
mod remember;
pub(crate) mod request;
mod routes;
mod settings;
mod shards;
mod status;
mod target;
mod trace;
mod viewers;

pub(crate) use shards::{cs_config, unsolicited};

use crate::config::Config;
use crate::disk::Disk;
use crate::exported::Exported;
use crate::log::LogControl;
use crate::mgmt::Management;
use crate::push::PushPort;
use crate::shard::{Report, ShardPort};
use faces::Faces;
use listeners::Listeners;
use onym_crypto::Entropy as _;
use onym_engine::{Clock, Engine, Mailbox, Policy};
use onym_forward::stage::Held;
use onym_sys::epoll::Waker;
use open::Opened;
use plane::Plane;
use push::PushHalf;
use request::Request;
use routes::Routes;
use rtrb::Consumer;
use settings::Settings;
use shards::Shards;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Numbers of the engine of the control thread, which has no faces of its own.
const POLICY: Policy = Policy {
    round_frames: 0,
    flush_frames: 0,
    flush_octets: 0,
    chunks: 64,
    is_rung_to_receive: false,
};

/// Requests that wait at most; who asks for more waits for room.
pub(crate) const REQUESTS_MAX: usize = 256;

/// The control thread with its I/O.
pub(crate) type ControlEngine = Engine<Control>;
/// The listeners of the control thread, and the connections that it is making.
type Io = onym_engine::Io<NoFace>;

/// What the control thread keeps with a face of its own: it has none.
#[derive(Debug)]
pub(crate) enum NoFace {}

/// What the engine of the control thread drives.
pub(crate) struct Control {
    plane: Plane,
    management: Management,
    /// Changes of the RIB that management was told of.
    rib_changes: u64,
    /// The log of the program around the node.
    log: Option<Arc<dyn LogControl>>,
    /// What shards tell, by shard.
    reports: Vec<Consumer<Report>>,
    /// Data that shards keep when they are good, by the ticket of their judgement.
    verifying: BTreeMap<u64, (usize, Box<Held>)>,
    /// By whose rules, by the number of the rule: as at the start, like the shards' own.
    verify_by: Vec<String>,
}

/// Everything the control thread is given at start.
pub(crate) struct Parts {
    pub(crate) clock: Clock,
    pub(crate) config: Config,
    /// The file of the configuration.
    pub(crate) origin: PathBuf,
    pub(crate) ports: Vec<ShardPort>,
    pub(crate) push: Option<PushPort>,
    /// The second level of the content store, where there is one.
    pub(crate) disk: Option<Disk>,
    pub(crate) reports: Vec<Consumer<Report>>,
    pub(crate) mailbox: Mailbox<Request, Waker>,
    pub(crate) exported: Arc<Exported>,
}

impl std::fmt::Debug for Control {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Control").field("plane", &self.plane).finish_non_exhaustive()
    }
}

impl Control {
    /// The control thread; nothing of the configuration is applied yet.
    ///
    /// # Errors
    /// A sentence: out of descriptors, or a certificate of the configuration cannot be read.
    pub(crate) fn engine(parts: Parts) -> Result<ControlEngine, String> {
        let clock = parts.clock;
        let settings = Settings::new(parts.config, parts.origin);
        let options = settings.management_options(&settings.config)?;
        let verify = &settings.config.cs.verify;
        let verify_by = verify.iter().map(|entry| entry.trust.clone()).collect();
        let plane = Plane {
            clock,
            start_ms: onym_engine::clock::unix_ms(),
            faces: Faces::new(parts.ports.len(), clock.now()),
            routes: Routes::new(&settings.config, options.policy.clone()),
            listeners: Listeners::default(),
            dialer: dial::Dialer::default(),
            shards: Shards::new(parts.ports),
            disk: parts.disk,
            push: parts.push.map(PushHalf::new),
            settings,
            watches: viewers::Watches::new(random()),
            history: history::History::new(clock.now()),
            news: Vec::new(),
            verified: [0; 2],
            exported: parts.exported,
        };
        let entropy = Box::new(onym_crypto::SystemEntropy);
        let management = Management::new(options, entropy);
        let control = Self {
            plane,
            management,
            rib_changes: 0,
            log: None,
            reports: parts.reports,
            verifying: BTreeMap::new(),
            verify_by,
        };
        Engine::new(control, parts.mailbox, clock, POLICY)
            .map_err(|e| format!("making the control thread: {e}"))
    }

    /// Watches what was opened and applies the configuration: before the first connection is taken,
    /// for its first Interest may be for management.
    ///
    /// # Errors
    /// A sentence with the key and what is wrong.
    pub(crate) fn begin(&mut self, io: &mut Io, opened: Opened) -> Result<(), String> {
        self.plane.listeners.watch(io, opened.listeners)?;
        self.plane.add_multicast(opened.multicast)?;
        apply::Applier::new(&mut self.plane, io).all()
    }
}

/// A number that nobody outside knows.
fn random() -> u64 {
    let mut octets = [0; 8];
    onym_crypto::SystemEntropy.fill(&mut octets);
    u64::from_le_bytes(octets)
}

/// What tests count of the work that this thread did.
#[cfg(test)]
mod work {
    use std::cell::Cell;

    thread_local! {
        /// Records of faces that were looked at for those to connect.
        pub(super) static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
        /// URIs that were brought to their canonical form.
        pub(super) static RESOLVED: Cell<usize> = const { Cell::new(0) };
        /// Times that the shards were asked to change the FIB.
        pub(super) static FIB_ASKED: Cell<usize> = const { Cell::new(0) };
    }
}
