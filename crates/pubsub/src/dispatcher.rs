//! The dispatcher: proxy of the applications of a node.
//!
//! A rendezvous knows nodes only, so a request leaves the node when it is the first or the last one
//! for its identifier. Every request ends in one status; what was refused is undone.

mod answer;
mod answers;
mod assert;
mod cache;
mod children;
mod data;
mod fragment;
mod late;
mod leave;
mod leaving;
mod notify;
mod origin;
mod pace;
mod readers;
mod repair;
mod request;
mod retained;
mod share;
mod source;
mod tell;
mod terms;
mod waits;
mod words;

pub use crate::counters::Counters;
pub use crate::data::{Data, Refusal, Sent};
pub use answers::ANSWERS_MAX;
pub use cache::CacheView;
pub(crate) use fragment::HOLES;
pub use leaving::LEAVE_MAX;
pub(crate) use notify::WAY_MAX;
pub use origin::{Came, Origin};
pub use repair::FragmentLimits;
pub use request::Request;
pub use retained::{HistoryView, RetainedView};
pub use terms::{DEPTH_MAX as RETAINED_MAX, LIFETIME_MAX, PRIORITY_MAX};

use crate::courier::{Courier, Traffic};
use crate::data::Aliases;
use crate::fib::Way;
use crate::names::{Hashing, Key, Names};
use crate::publication::{AppId, Event, Outbox, Target, responsible};
use crate::rendezvous::graph::Held;
use answers::Asks;
use cache::Cache;
use children::Children;
use fragment::Reassembly;
use late::Again;
use leaving::Leaving;
use onym_tables::{KeyedMap, SipKey, Tick};
use onym_wire::push::{Control, Home, Id, Kind, Label, Role, RouteBuf, Sequence, Status, Strategy};
use readers::Readers;
use repair::Repair;
use request::Waiting;
use retained::Retained;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;
use terms::Terms;
use waits::Waits;

/// Links that a publication may travel beyond the depth of its tree.
pub const SPARE_HOPS: u8 = 1;

/// How long a publisher that wants to waits at a stretch for who is behind, usually.
pub const HOLD: Duration = Duration::from_millis(250);

/// Settings of a dispatcher.
#[derive(Debug, Clone)]
pub struct Config {
    /// The node.
    pub node: Label,
    /// Start of session numbers and of publication numbers.
    pub boot: u32,
    /// Time between keep-alives: a third of the lease.
    pub keep_alive: Duration,
    /// Time after which a request that found no rendezvous is answered so.
    pub patience: Duration,
    /// Most requests that wait.
    pub pending_max: usize,
    /// What all applications may assert together; beyond three quarters of it each has its share.
    pub held_max: usize,
    /// Most octets of a frame.
    pub frame_max: usize,
    /// Octets that a signature needs in each frame.
    pub reserve: usize,
    /// Octets of publications that are kept for who subscribes later.
    pub cache_octets_max: usize,
    /// Octets of publications that are retained, of items.
    pub retained_octets_max: usize,
    /// Octets of what is retained that an application may be told and not have taken.
    pub reader_octets_max: usize,
    /// How long a publisher waits at a stretch for who is behind, where it wants that; zero: not.
    pub hold: Duration,
    /// Links that a publication may travel beyond the depth of its tree.
    pub spare_hops: u8,
    /// Bounds of fragmentation.
    pub fragments: FragmentLimits,
    /// Shards of the node, each with a push FIB.
    pub shards: u16,
}

impl Config {
    /// The usual settings of a node.
    #[must_use]
    pub fn new(node: Label, boot: u32) -> Self {
        Self {
            node,
            boot,
            keep_alive: Duration::from_secs(10),
            patience: Duration::from_secs(10),
            pending_max: 65_536,
            held_max: 1_000_000,
            frame_max: 1400,
            reserve: 0,
            cache_octets_max: 16 << 20,
            retained_octets_max: 16 << 20,
            reader_octets_max: 4 << 20,
            hold: HOLD,
            spare_hops: SPARE_HOPS,
            fragments: FragmentLimits::default(),
            shards: 1,
        }
    }
}

/// A word that a label stands for.
pub type Word = Box<str>;

/// One application's part in a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Publisher {
    app: AppId,
    is_started: bool,
    /// The push FIB of its shard has the item.
    is_installed: bool,
    /// How its publications are to be retained.
    terms: Terms,
    /// They are: it is the first one.
    is_open: bool,
}

impl Publisher {
    const fn new(app: AppId) -> Self {
        let terms = Terms { depth: 0, lifetime: None, deadline: None, priority: 0, waits: false };
        Self { app, is_started: false, is_installed: false, terms, is_open: false }
    }
}

/// A publication of this node.
#[derive(Debug)]
struct Publishing {
    is_scope: bool,
    strategy: Strategy,
    /// As it was asked.
    id: Id,
    prefix: Id,
    /// The word of its last label.
    word: Option<Word>,
    /// In the order in which they came; empty while the rendezvous is asked.
    publishers: SmallVec<[Publisher; 1]>,
    /// Who waits for the answer to the first request.
    waiting: SmallVec<[Waiting; 1]>,
    /// There are subscribers.
    is_matched: bool,
    /// The way to subscribers on other nodes.
    route: Option<RouteBuf>,
    reply: Option<RouteBuf>,
    hops: u8,
    /// All names of the item, as the rendezvous knows them.
    aliases: Aliases,
}

/// A subscription of this node.
#[derive(Debug)]
struct Subscribing {
    is_scope: bool,
    strategy: Strategy,
    /// As it was asked.
    id: Id,
    prefix: Id,
    /// The word of its last label.
    word: Option<Word>,
    /// In the order in which they came.
    subscribers: SmallVec<[AppId; 2]>,
    waiting: SmallVec<[Waiting; 1]>,
}

/// A request that a rendezvous has to answer.
#[derive(Debug, Clone)]
struct Pending {
    kind: Kind,
    full: Key,
    /// As it was asked.
    id: Id,
    prefix: Id,
    /// The word of its last label.
    word: Option<Word>,
    strategy: Strategy,
    /// Who waits for a withdrawal.
    waiting: Option<Waiting>,
    /// Said once more, so "already so" is no refusal.
    is_assertion: bool,
    since: Tick,
}

/// The dispatcher of a node.
#[derive(Debug)]
pub struct Dispatcher {
    config: Config,
    publications: Names<Publishing>,
    subscriptions: Names<Subscribing>,
    /// Scopes beneath those that are subscribed to.
    children: Children,
    /// What each application publishes and subscribes to.
    apps: BTreeMap<AppId, BTreeSet<Held>>,
    /// What is still to be taken back of those that left.
    leaving: Leaving,
    homes: Vec<Home>,
    /// Ways round links of this node, by their numbers.
    backups: BTreeMap<u32, Vec<u32>>,
    /// Sessions to rendezvous nodes.
    rendezvous: Courier,
    /// Sessions from topology managers.
    managers: Courier,
    pending: KeyedMap<(Label, Sequence), Pending>,
    /// Requests for which no rendezvous is known yet, or that will be made again.
    early: Vec<(Tick, Pending)>,
    /// Requests to the rendezvous within the node that are not answered, in order.
    local: VecDeque<Pending>,
    /// Of matched items with several names: a name, and one that is published here.
    names: KeyedMap<Id, Id>,
    epochs: KeyedMap<Label, u64>,
    /// Number of the last "assert again" of each rendezvous that was obeyed.
    rounds: KeyedMap<Label, u64>,
    next_keep_alive: Tick,
    repair: Repair,
    reassembly: Reassembly,
    cache: Cache,
    /// What is asked for in caches of other nodes.
    asks: Asks,
    /// Something is, or was, kept for who subscribes later, here or elsewhere: others are not told
    /// of any.
    keeps: bool,
    retained: Retained,
    /// How far applications are in what is retained.
    readers: Readers,
    /// Publishers that wait for some of them.
    waits: Waits,
    /// Lanes to shards have no room.
    is_full: bool,
    /// What was said for a late subscriber, to be said once more then.
    again: VecDeque<Again>,
    publication_number: u64,
    /// What each shard passed until now, by its number.
    taken: SmallVec<[u64; 1]>,
    /// What was counted.
    pub counters: Counters,
}

/// What a dispatcher has of one identifier, for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct View {
    /// Its strategy.
    pub strategy: Strategy,
    /// Applications that publish it, and whether each is started.
    pub publishers: Vec<(AppId, bool)>,
    /// Applications that subscribed to it.
    pub subscribers: Vec<AppId>,
    /// Whether there are subscribers anywhere.
    pub is_matched: bool,
    /// The way to those on other nodes.
    pub route: Option<RouteBuf>,
    /// Links to the farthest of them.
    pub hops: u8,
    /// Names of the item.
    pub aliases: Vec<Id>,
    /// What is retained of it.
    pub retained: Option<HistoryView>,
}

impl Publishing {
    /// Where it goes, as push FIBs have it.
    fn way(&self, full: &Id) -> Option<Box<Way>> {
        let is_plain = self.route.is_none() && matches!(&self.aliases[..], [id] if id == full);
        let way =
            || Way { aliases: self.aliases.clone(), route: self.route.clone(), hops: self.hops };
        (!is_plain).then(|| Box::new(way()))
    }
}

impl Subscribing {
    /// The application has it no more; whether it had.
    fn leave(&mut self, app: AppId) -> bool {
        let before = self.subscribers.len();
        self.subscribers.retain(|known| *known != app);
        self.subscribers.len() != before
    }
}

impl Pending {
    fn new(now: Tick, request: &Request, full: Key) -> Self {
        Self {
            kind: request.kind,
            full,
            id: request.id.clone(),
            prefix: request.prefix.clone(),
            word: None,
            strategy: request.strategy,
            waiting: None,
            is_assertion: false,
            since: now,
        }
    }
}

impl Dispatcher {
    /// A dispatcher without applications.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let hashing = Hashing::default();
        Self {
            publications: Names::new(&hashing),
            subscriptions: Names::new(&hashing),
            children: Children::default(),
            apps: BTreeMap::new(),
            leaving: Leaving::default(),
            homes: Vec::new(),
            rendezvous: Courier::new(config.node, config.boot),
            managers: Courier::new(config.node, config.boot),
            pending: KeyedMap::default(),
            early: Vec::new(),
            local: VecDeque::new(),
            names: KeyedMap::default(),
            epochs: KeyedMap::default(),
            rounds: KeyedMap::default(),
            next_keep_alive: Tick(0),
            repair: Repair::new(config.fragments),
            reassembly: Reassembly::new(config.fragments),
            cache: Cache::new(config.cache_octets_max),
            backups: BTreeMap::new(),
            asks: Asks::default(),
            keeps: false,
            retained: Retained::new(config.retained_octets_max),
            readers: Readers::new(config.reader_octets_max),
            waits: Waits::default(),
            is_full: false,
            again: VecDeque::new(),
            publication_number: first_number(config.node, config.boot),
            taken: SmallVec::new(),
            counters: Counters::default(),
            config,
        }
    }

    /// The rendezvous nodes and topology managers that are known.
    #[must_use]
    pub fn homes(&self) -> &[Home] {
        &self.homes
    }

    /// Messages to the rendezvous nodes and topology managers that are known.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        [self.rendezvous.traffic(), self.managers.traffic()].into_iter().sum()
    }

    /// What this node has of an item or scope; `None` when nothing.
    #[must_use]
    pub fn view(&self, id: &Id) -> Option<View> {
        let (published, subscribed) = (self.publications.get(id), self.subscriptions.get(id));
        let strategy = published.map(|p| p.strategy).or(subscribed.map(|s| s.strategy))?;
        let mut view = View { strategy, ..View::default() };
        if let Some(p) = published {
            view.publishers = p.publishers.iter().map(|p| (p.app, p.is_started)).collect();
            (view.is_matched, view.hops) = (p.is_matched, p.hops);
            view.route.clone_from(&p.route);
            view.aliases = p.aliases.to_vec();
        }
        view.retained = self.retained_of(id);
        view.subscribers = subscribed.map_or_else(Vec::new, |s| s.subscribers.to_vec());
        Some(view)
    }

    /// The rendezvous that an identifier belongs to, when one is known.
    #[must_use]
    pub fn rendezvous_of_root(&self, id: &Id) -> Option<Label> {
        self.rendezvous_of(id)
    }

    /// How identifiers are hashed here and in push FIBs.
    #[must_use]
    pub const fn hashing(&self) -> &Hashing {
        self.publications.hashing()
    }

    fn key(&self, id: Id) -> Key {
        self.hashing().key(id)
    }

    fn rendezvous_of(&self, id: &Id) -> Option<Label> {
        let homes = self.homes.iter().filter(|h| h.role.has(Role::RENDEZVOUS));
        responsible(id.first()?, homes.map(|h| h.node))
    }

    /// The way to a home; `None` when it is not known.
    fn way(&self, node: Label, role: Role) -> Option<Target> {
        if node == self.config.node {
            return Some(Target::Here);
        }
        let home = self.homes.iter().find(|h| h.node == node && h.role.has(role));
        home.map(|h| Target::Route(h.route.clone()))
    }

    fn message(&self, kind: Kind) -> Control {
        Control::new(kind, self.config.node)
    }

    fn tell_status(&self, waiting: &[Waiting], status: Status, out: &mut Outbox) {
        for waiting in waiting {
            out.tell(waiting.app, Event::Status { tag: waiting.tag, status });
        }
    }

    /// Repeats and gives up what is overdue.
    pub fn handle_timeout(&mut self, now: Tick, out: &mut Outbox) {
        let (again, lost) = self.rendezvous.repeat(now);
        for (node, message) in again {
            self.publish_to_rendezvous(node, message, out);
        }
        for node in lost {
            self.assert_all(now, node, out);
        }
        self.early_again(now, out);
        self.leave_on(now, out);
        self.children_timeout(now, out);
        if self.next_keep_alive <= now {
            self.next_keep_alive = now + self.config.keep_alive;
            self.keep_alive(out);
        }
        self.fragments_timeout(now, out);
        self.late_again(now, out);
        self.waits_timeout(now, out);
        self.caches_timeout(now, out);
        self.tell_overdue(now, out);
    }

    /// When [`handle_timeout`](Self::handle_timeout) has something to do.
    #[must_use]
    pub fn next_timeout(&self) -> Option<Tick> {
        let early = self.early.iter().map(|(due, _)| *due).min();
        let parts = [
            self.rendezvous.next_timeout(),
            early,
            Some(self.next_keep_alive),
            self.leaving.due(),
            self.children.next_timeout(),
            self.retained.next_timeout(),
            self.waits.next_timeout(),
            self.reassembly.next_timeout(),
            self.repair.next_timeout(),
            self.cache.next_timeout(),
            self.asks.next_timeout(),
            self.again.front().map(|again| again.due),
        ];
        parts.into_iter().flatten().min()
    }

    /// Whether so much waits to be sent that the shell had better take nothing more from
    /// applications.
    #[must_use]
    pub fn is_backlogged(&self) -> bool {
        self.repair.is_backlogged()
    }

    fn publish_to_rendezvous(&self, node: Label, message: Control, out: &mut Outbox) {
        if let Some(target) = self.way(node, Role::RENDEZVOUS) {
            let root = onym_wire::push::reserved::RENDEZVOUS;
            out.control(target, root, self.config.node, message);
        }
    }
}

/// Numbers of publications begin here: several nodes publish the same item, and their numbers are
/// not to meet.
fn first_number(node: Label, boot: u32) -> u64 {
    SipKey::new(node.to_u64(), boot.into()).words([0, 1])
}
